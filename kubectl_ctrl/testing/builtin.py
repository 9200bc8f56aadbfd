"""The server's defaults, normal forms and checks of built-in objects, as far as controllers depend on them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from copy import deepcopy
from decimal import Decimal, InvalidOperation
from typing import Any

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.testing import answers, schemas
from kubectl_ctrl.testing.answers import Problem
from kubectl_ctrl.testing.names import invalid

_WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def defaulted(obj: Obj) -> Obj:
    """The object with the API server's additions; may change `obj` in place."""
    spec = obj.get("spec")
    match obj["kind"]:
        case "Event" | "Lease":
            _fill(obj, **deepcopy(schemas.EMPTY[obj["kind"]]))
        case "Secret":
            plain = {name: base64.b64encode(text.encode()).decode() for name, text in obj.pop("stringData", {}).items()}
            obj["type"] = obj.get("type") or "Opaque"
            if plain:
                obj["data"] = {**(obj.get("data") or {}), **plain}
        case "CustomResourceDefinition" if isinstance(spec, dict):
            names = spec.get("names") or {}
            _fill(names, singular=names.get("kind", "").lower(), listKind=f"{names.get('kind', '')}List")
            _fill(spec, conversion={"strategy": "None"})
    if not isinstance(spec, dict):
        return obj
    match obj["kind"]:
        case "Deployment":
            _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
            strategy = spec.setdefault("strategy", {})
            if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
                _fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
        case "ReplicaSet":
            _fill(spec, replicas=1)
        case "StatefulSet":
            _stateful_set_spec(spec)
        case "HorizontalPodAutoscaler":
            target = {"type": "Utilization", "averageUtilization": 80}
            _fill(spec, minReplicas=1, metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": target}}])
        case "Pod":
            _pod_spec(spec)
            _fill(spec, enableServiceLinks=True)
        case "Service":
            _fill(spec, type="ClusterIP", sessionAffinity="None", internalTrafficPolicy="Cluster")
            for port in spec.get("ports") or ():
                _fill(port, protocol="TCP", targetPort=port.get("port"))
    if obj["kind"] in _WORKLOADS and isinstance(spec.get("template"), dict):
        _pod_spec(spec["template"].setdefault("spec", {}))
    return obj


def first_status(kind: str) -> Obj:
    """The initial status of an object of this kind."""
    match kind:
        case "Deployment":
            return {"status": {}}
        case "ReplicaSet":
            return {"status": {"replicas": 0}}
        case "StatefulSet":
            return {"status": {"replicas": 0, "availableReplicas": 0}}
        case "HorizontalPodAutoscaler":
            return {"status": {"desiredReplicas": 0, "currentMetrics": None}}
        case "Service":
            return {"status": {"loadBalancer": {}}}
        case "Pod":
            return {"status": {"phase": "Pending", "qosClass": "BestEffort"}}
    return {}


def _fill(target: Obj, **defaults: Any) -> None:
    for key, value in defaults.items():
        target.setdefault(key, value)


def _stateful_set_spec(spec: Obj) -> None:
    _fill(spec, replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady", serviceName="")
    _fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), partition=0)


def _pod_spec(spec: Obj) -> None:
    _fill(
        spec,
        restartPolicy="Always",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        securityContext={},
        schedulerName="default-scheduler",
    )
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        image = str(container.get("image") or "")
        latest = image.endswith(":latest") or ":" not in image.rpartition("/")[2]
        _fill(
            container,
            resources={},
            terminationMessagePath="/dev/termination-log",
            terminationMessagePolicy="File",
            imagePullPolicy="Always" if latest and "@" not in image else "IfNotPresent",
        )
        for port in container.get("ports") or ():
            _fill(port, protocol="TCP")
        for amounts in container["resources"].values():
            if isinstance(amounts, dict):
                amounts.update({name: quantity(amount) for name, amount in amounts.items()})


def quantity(amount: Any) -> str:
    """A quantity in the form that the server returns: `1000m` is `1`, `1024Mi` is `1Gi`."""
    text = str(amount)
    if text.endswith("i"):
        return _binary(text)
    digits = text.rstrip("numkMGTPE")
    try:
        value = Decimal(digits) * Decimal(10) ** _SUFFIXES[text[len(digits) :]]
    except (InvalidOperation, KeyError):
        return text
    if value == 0:
        return "0"
    for suffix, power in sorted(_SUFFIXES.items(), key=lambda item: -item[1]):
        scaled = value / Decimal(10) ** power
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    return text


def _binary(text: str) -> str:
    units = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
    number, unit = text[:-2], text[-2:]
    if not number.isdecimal() or unit not in units:
        return text
    value, place = int(number), units.index(unit)
    while value and value % 1024 == 0 and place < len(units) - 1:
        value, place = value // 1024, place + 1
    return f"{value}{units[place]}"


def problems(obj: Obj, old: Obj | None) -> list[Problem]:
    """The problems of a built-in object, limited to the checks in this module."""
    kind, spec = obj["kind"], obj.get("spec") or {}
    found: list[Problem] = []
    if kind in _WORKLOADS:
        found += _workload(kind, spec, (old or {}).get("spec"))
    if kind == "HorizontalPodAutoscaler":
        found += _autoscaler(spec)
    if kind == "Lease" and spec.get("leaseDurationSeconds", 1) <= 0:
        found.append(invalid("spec.leaseDurationSeconds", spec["leaseDurationSeconds"], "must be greater than 0"))
    if kind == "Event":
        found += _event(obj)
    return found


def _workload(kind: str, spec: Obj, before: Obj | None) -> Iterator[Problem]:
    if int(spec.get("replicas") or 0) < 0:
        yield invalid("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    selector, template = spec.get("selector"), spec.get("template") or {}
    if not selector:
        yield Problem(field="spec.selector", reason="FieldValueRequired", message="Required value")
    labels = (template.get("metadata") or {}).get("labels") or {}
    try:
        fits = from_label_selector(selector or None).matches(labels)
    except UsageError as error:
        yield invalid("spec.selector", "{}", str(error))
        return
    if not fits:
        words = "`selector` does not match template `labels`"
        yield invalid("spec.template.metadata.labels", _go_map(labels) if labels else "null", words)
    if not (template.get("spec") or {}).get("containers"):
        field = "spec.template.spec.containers"
        yield Problem(field=field, reason="FieldValueRequired", message="Required value")
    yield from _port_names((template.get("spec") or {}).get("containers") or [])
    if before is not None and not same(before.get("selector"), selector):
        yield invalid("spec.selector", answers.encode(selector).decode(), "field is immutable")


def _port_names(containers: list[Obj]) -> Iterator[Problem]:
    """Two ports with one name: an apply moved a named port while another manager still owns the old one."""
    for place, container in enumerate(containers):
        names = [port.get("name") for port in container.get("ports") or ()]
        for at, name in enumerate(names):
            if name and name in names[:at]:
                field = f"spec.template.spec.containers[{place}].ports[{at}].name"
                yield Problem(field=field, reason="FieldValueDuplicate", message=f'Duplicate value: "{name}"')


def _autoscaler(spec: Obj) -> Iterator[Problem]:
    most, least = int(spec.get("maxReplicas") or 0), int(spec.get("minReplicas", 1))
    # Scaling to zero requires a metric that does not come from the pods.
    outside = any(metric.get("type") in ("Object", "External") for metric in spec.get("metrics") or ())
    if least < (0 if outside else 1):
        yield invalid("spec.minReplicas", least, f"must be greater than or equal to {0 if outside else 1}")
    if most < 1:
        message = "Required value: must be set and greater than 0"
        yield Problem(field="spec.maxReplicas", reason="FieldValueRequired", message=message)
    if most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    if least == 0 and not outside:
        message = "Forbidden: must specify at least one Object or External metric to support scaling to zero replicas"
        yield Problem(field="spec.metrics", reason="FieldValueForbidden", message=message)


def _event(event: Obj) -> Iterator[Problem]:
    namespace = event["metadata"].get("namespace") or ""
    about = (event.get("involvedObject") or {}).get("namespace") or ""
    if about != namespace and not (not about and namespace in ("default", "kube-system")):
        yield invalid("involvedObject.namespace", f'"{about}"', "does not match event.namespace")


def _go_map(labels: Obj) -> str:
    return "{" + ",".join(f'"{key}":"{value}"' for key, value in sorted(labels.items())) + "}"
