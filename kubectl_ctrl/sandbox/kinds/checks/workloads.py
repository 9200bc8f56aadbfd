"""Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

| kind | checked |
|---|---|
| Deployment | selector and template, strategy, numbers; the selector never changes |
| ReplicaSet | selector and template, numbers; the selector never changes |
| StatefulSet | selector and template, strategy, numbers; few fields may change |
| DaemonSet | selector and template, strategy, numbers; the selector never changes |
| ReplicationController | selector and template, numbers |
"""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.kinds.checks import pods
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    at_most_all,
    forbidden,
    invalid,
    label,
    not_negative,
    required,
    selector,
    selects,
    share,
    share_of,
    texts,
    unlike,
    unsupported,
)

_STATEFUL = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_MISMATCH = "`selector` does not match template `labels`"
_TEMPLATE = "spec.template"


def deployment(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    yield from not_negative("spec", spec, "replicas")
    yield from _selected(spec, "deployment", "invalid label selector")
    yield from _strategy("spec.strategy", spec.get("strategy") or {})
    yield from not_negative("spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    yield from _kept_selector(spec, old)


def replica_set(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    yield from not_negative("spec", spec, "replicas", "minReadySeconds")
    yield from _selected(spec, "deployment", "invalid label selector")
    yield from _kept_selector(spec, old)


def _kept_selector(spec: Obj, old: Obj | None) -> Found:
    if old is not None:
        yield from unlike("spec.selector", spec.get("selector"), (old.get("spec") or {}).get("selector"))


def _selected(spec: Obj, kind: str, broken: str, controller: str = "ReplicaSet") -> Found:
    """The selector, the template, and that they fit."""
    given = spec.get("selector")
    yield from selector("spec.selector", given)
    if given is None:
        yield required("spec.selector")
    elif not given:
        yield invalid("spec.selector", {}, f"empty selector is invalid for {kind}")
    template = spec.get("template") or {}
    found = _labels_of(template)
    fits = selects(given, found)
    if fits is None:
        yield invalid("spec.selector", given, broken)
        return
    if not fits and given != {}:
        yield invalid(f"{_TEMPLATE}.metadata.labels", found, _MISMATCH)
    yield from pods.template(_TEMPLATE, template)
    if controller:
        yield from _lasting(template, controller)


def _labels_of(template: Obj) -> Any:
    return (template.get("metadata") or {}).get("labels")


def _lasting(template: Obj, controller: str) -> Found:
    """Pods of a controller run until they are deleted."""
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") != "Always":
        yield unsupported(f"{_TEMPLATE}.spec.restartPolicy", spec.get("restartPolicy"), "Always")
    if spec.get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {controller} is not Supported"
        yield forbidden(f"{_TEMPLATE}.spec.activeDeadlineSeconds", words)


def _strategy(path: str, strategy: Obj) -> Found:
    kind, steps = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate" and steps is not None:
        words = "may not be specified when strategy `type` is 'Recreate'"
        yield forbidden(f"{path}.rollingUpdate", words)
    elif kind == "RollingUpdate":
        yield from _rolling(f"{path}.rollingUpdate", steps or {})
    elif kind != "Recreate":
        value = {"Type": kind, "RollingUpdate": None}
        yield unsupported(path, value, "Recreate", "RollingUpdate")


def _rolling(path: str, steps: Obj) -> Found:
    down, up = steps.get("maxUnavailable"), steps.get("maxSurge")
    yield from share(f"{path}.maxUnavailable", down)
    yield from share(f"{path}.maxSurge", up)
    if share_of(down) == 0 and share_of(up) == 0:
        yield invalid(f"{path}.maxUnavailable", down, "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(f"{path}.maxUnavailable", down)


def stateful_set(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _partitioned("spec.updateStrategy", spec.get("updateStrategy") or {})
    yield from not_negative("spec", spec, "replicas", "minReadySeconds")
    yield from not_negative("spec.ordinals", spec.get("ordinals") or {}, "start")
    if old is None and spec.get("serviceName"):
        yield from texts("spec.serviceName", spec["serviceName"], label)
    yield from _selected(_with_claims(spec), "statefulset", "", "")
    yield from _lasting(spec.get("template") or {}, "StatefulSet")
    before = (old or {}).get("spec") or {}
    if old is not None and not same(_fixed(spec), _fixed(before)):
        names = "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        names += "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
        yield forbidden("spec", f"updates to statefulset spec for fields other than {names} are forbidden")


def _with_claims(spec: Obj) -> Obj:
    """The spec with a volume for each claim template, and the names that the controller gives each pod."""
    claims = [(one.get("metadata") or {}).get("name") for one in spec.get("volumeClaimTemplates") or ()]
    template = spec.get("template") or {}
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in ("hostname", "subdomain")}
    if claims:
        kept = [one for one in pod.get("volumes") or () if one.get("name") not in claims]
        added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = [*added, *kept]
    return {**spec, "template": {**template, "spec": pod}}


def _fixed(spec: Obj) -> Obj:
    return {key: value for key, value in spec.items() if key not in _STATEFUL}


def _partitioned(path: str, strategy: Obj) -> Found:
    steps = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete":
        if steps is not None:
            value = {"Partition": steps.get("partition", 0), "MaxUnavailable": steps.get("maxUnavailable")}
            yield invalid(f"{path}.rollingUpdate", value, "only allowed for updateStrategy 'RollingUpdate'")
    elif strategy.get("type") == "RollingUpdate":
        yield from not_negative(f"{path}.rollingUpdate", steps or {}, "partition")
    else:
        value = {"Type": strategy.get("type"), "RollingUpdate": None}
        yield invalid(path, value, "must be 'RollingUpdate' or 'OnDelete'")


def daemon_set(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    yield from _kept_selector(spec, old)
    given, template = spec.get("selector"), spec.get("template") or {}
    yield from selector("spec.selector", given)
    if selects(given, _labels_of(template)) is False:
        yield invalid(f"{_TEMPLATE}.metadata.labels", _labels_of(template), _MISMATCH)
    if given == {}:
        yield invalid("spec.selector", {}, "empty selector is invalid for daemonset")
    yield from pods.template(_TEMPLATE, template)
    yield from _lasting(template, "DaemonSet")
    yield from not_negative("spec", spec, "minReadySeconds")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "RollingUpdate":
        yield from _daemon_steps("spec.updateStrategy.rollingUpdate", strategy.get("rollingUpdate") or {})
    elif strategy.get("type") != "OnDelete":
        value = {"Type": strategy.get("type"), "RollingUpdate": None}
        yield unsupported("spec.updateStrategy", value, "RollingUpdate", "OnDelete")
    yield from not_negative("spec", spec, "revisionHistoryLimit")


def _daemon_steps(path: str, steps: Obj) -> Found:
    down, up = steps.get("maxUnavailable"), steps.get("maxSurge")
    for check in (share, at_most_all):
        yield from check(f"{path}.maxUnavailable", down)
        yield from check(f"{path}.maxSurge", up)
    if share_of(down) and share_of(up):
        yield invalid(f"{path}.maxSurge", up, "may not be set when maxUnavailable is non-zero")
    elif not share_of(down) and not share_of(up):
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def replication_controller(obj: Obj, _old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    yield from not_negative("spec", spec, "minReadySeconds")
    if not spec.get("selector"):
        yield required("spec.selector")
    yield from not_negative("spec", spec, "replicas")
    if (template := spec.get("template")) is None:
        yield required(_TEMPLATE)
        return
    found = _labels_of(template)
    if not (spec.get("selector") or {}).items() <= (found or {}).items():
        yield invalid(f"{_TEMPLATE}.metadata.labels", found, _MISMATCH)
    yield from pods.template(_TEMPLATE, template)
    yield from _lasting(template, "ReplicationController")
