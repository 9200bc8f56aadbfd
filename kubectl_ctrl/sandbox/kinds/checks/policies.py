"""Kinds that limit or rank others, and the small ones of the control plane.

| kind | checked |
|---|---|
| HorizontalPodAutoscaler | replicas, target, metrics |
| PodDisruptionBudget | one of two numbers, selector |
| ResourceQuota | names and amounts, scopes, which never change |
| LimitRange | types, and the order of minimum, default and maximum |
| PriorityClass | name and value, which never change |
| Lease | duration and transitions |
| Event | the namespace of its object |
"""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.kinds import quantities
from kubectl_ctrl.sandbox.kinds.checks.containers import COUNTED, amount_of, resource_name
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    at_most_all,
    duplicate,
    forbidden,
    invalid,
    not_negative,
    path_segment,
    required,
    selector,
    share,
    texts,
    unlike,
    unsupported,
)

_METRICS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_SCOPES = (
    *("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass"),
    *("CrossNamespacePodAffinity", "VolumeAttributesClass"),
)
_SYSTEM = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def autoscaler(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    most, least = int(spec.get("maxReplicas") or 0), int(spec.get("minReplicas", 1))
    # Scaling to zero requires a metric that does not come from the pods.
    outside = any(metric.get("type") in ("Object", "External") for metric in spec.get("metrics") or ())
    lowest = 0 if outside else 1
    if least < lowest:
        yield invalid("spec.minReplicas", least, f"must be greater than or equal to {lowest}")
    if most == 0:
        yield required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target, before = spec.get("scaleTargetRef") or {}, ((old or {}).get("spec") or {}).get("scaleTargetRef")
    if target != before:  # older servers allowed more
        yield from _target_of("spec.scaleTargetRef", target)
    for place, metric in enumerate(spec.get("metrics") or ()):
        yield from _metric(f"spec.metrics[{place}]", metric)
    if least == 0 and not outside:
        words = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", words)


def _target_of(path: str, ref: Obj) -> Found:
    for name in ("kind", "name"):
        if ref.get(name):
            yield from texts(f"{path}.{name}", ref[name], path_segment)
        else:
            yield required(f"{path}.{name}")
    version = ref.get("apiVersion") or ""
    if "/" not in version:
        yield invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _metric(path: str, metric: Obj) -> Found:
    kind = metric.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric source type")
    if kind not in _METRICS:
        yield from [unsupported(f"{path}.type", kind, *_METRICS)] * 2  # it is checked twice
        return
    source = metric.get(_METRICS[kind])
    if source is None:
        yield required(f"{path}.{_METRICS[kind]}", "must populate information for the given metric source")
    elif kind in ("Resource", "ContainerResource"):
        yield from _resource(f"{path}.{_METRICS[kind]}", source)


def _resource(path: str, source: Obj) -> Found:
    if not source.get("name"):
        yield required(f"{path}.name", "must specify a resource name")
    target = source.get("target") or {}
    kind, share_wanted, value = target.get("type"), target.get("averageUtilization"), target.get("averageValue")
    if not kind:
        yield required(f"{path}.target.type", "must specify a metric target type")
    elif kind not in ("Utilization", "Value", "AverageValue"):
        yield invalid(f"{path}.target.type", kind, "must be either Utilization, Value, or AverageValue")
    if share_wanted is not None and share_wanted < 1:
        yield invalid(f"{path}.target.averageUtilization", share_wanted, "must be greater than 0")
    if share_wanted is None and value is None:
        words = "must set either a target raw value or a target utilization"
        yield required(f"{path}.target.averageUtilization", words)
    if share_wanted is not None and value is not None:
        words = "may not set both a target raw value and a target utilization"
        yield forbidden(f"{path}.target.averageValue", words)


def budget(obj: Obj, _old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        whole = {"MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most}
        whole["UnhealthyPodEvictionPolicy"] = spec.get("unhealthyPodEvictionPolicy")
        yield invalid("spec", whole, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        yield from share(f"spec.{name}", spec.get(name))
        yield from at_most_all(f"spec.{name}", spec.get(name))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy not in (None, "AlwaysAllow", "IfHealthyBudget"):
        yield unsupported("spec.unhealthyPodEvictionPolicy", policy, "AlwaysAllow", "IfHealthyBudget")
    yield from selector("spec.selector", spec.get("selector"))


def quota(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    for name, amount in hard.items():
        field = f"spec.hard[{name}]"
        yield from resource_name(field, name)
        if "/" not in name and not _is_quota(name):
            yield invalid(field, name, "must be a standard resource for quota")
        yield from amount_of(field, amount, whole=name in COUNTED or name.startswith("count/"))
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid("spec.scopes", scopes, "unsupported scope")
        for _ in [name for name in hard if _is_quota(name) and scope in _SCOPES and not _fits(scope, name)]:
            yield invalid("spec.scopes", scopes, "unsupported scope applied to resource")
    for one, other in (_SCOPES[2:4], _SCOPES[0:2]):
        if one in scopes and other in scopes:
            yield invalid("spec.scopes", scopes, "conflicting scopes")
    before = ((old or {}).get("spec") or {}).get("scopes") or []
    if old is not None and frozenset(scopes) != frozenset(before):
        yield invalid("spec.scopes", scopes, "field is immutable")


_COMPUTE = frozenset(
    {
        *("cpu", "memory", "ephemeral-storage", "pods"),
        *(f"{kind}.{name}" for kind in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")),
    }
)


def _is_quota(name: str) -> bool:
    return name in _COMPUTE or name in COUNTED or name.startswith(("hugepages-", "requests."))


def _fits(scope: str, name: str) -> bool:
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return name == "pods" if scope == "BestEffort" else name in _COMPUTE or name == "requests.storage"


def limit_range(obj: Obj, _old: Obj | None) -> Found:
    seen = set()
    for place, one in enumerate((obj.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{place}]", one.get("type") or ""
        if "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            yield invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if one.get(name):
                    yield forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'")
        for name in sorted({key for part in _ORDERED for key in one.get(part) or ()}):
            yield from _in_order(path, name, {part: (one.get(part) or {}).get(name) for part in _ORDERED})


_ORDERED = ("max", "min", "default", "defaultRequest")
# The lower field and the higher one, the field of the problem, whose value is shown, and the words for both.
_PAIRS = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        *("defaultRequest", "default", "defaultRequest", "defaultRequest"),
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _in_order(path: str, name: str, amounts: dict[str, Any]) -> Found:
    for low, high, field, value, words in _PAIRS:
        lower, higher = amounts[low], amounts[high]
        if lower is not None and higher is not None and quantities.amount(lower) > quantities.amount(higher):
            yield invalid(f"{path}.{field}[{name}]", amounts[value], words.format(lower, higher))


def priority_class(obj: Obj, old: Obj | None) -> Found:
    name, value = obj["metadata"]["name"], obj.get("value") or 0
    if old is not None:
        if value != (old.get("value") or 0):
            yield forbidden("value", "may not be changed in an update.")
        yield from unlike("preemptionPolicy", obj.get("preemptionPolicy"), old.get("preemptionPolicy"))
        return
    if name.startswith("system-"):
        if _SYSTEM.get(name) != value:
            words = "priority class names with 'system-' prefix are reserved for system use only. error: "
            yield forbidden("metadata.name", f"{words}{name} is not a known system priority class")
    elif value > 1000000000:
        yield forbidden("value", "maximum allowed value of a user defined priority is 1000000000")


def lease(obj: Obj, _old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from not_negative("spec", spec, "leaseTransitions")


def event(obj: Obj, _old: Obj | None) -> Found:
    namespace = obj["metadata"].get("namespace") or ""
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    if about != namespace and not (not about and namespace in ("default", "kube-system")):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")
