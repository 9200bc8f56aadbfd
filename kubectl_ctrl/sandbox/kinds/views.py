"""Built-in types that show the objects of another type or version: events.k8s.io/v1, and autoscaling/v1."""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import EVENTS, HPAS, Resource
from kubectl_ctrl.sandbox.kinds import builtin
from kubectl_ctrl.value import Value

_EVENT_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_NAMES = {shown: stored for stored, shown in _EVENT_NAMES.items()}
_CPU_TARGET, _CPU_NOW = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"


class View(Value):
    """How a type shows stored objects: each function converts a whole object, but for its apiVersion."""

    stored: Resource
    show: Callable[[Obj], Obj]
    store: Callable[[Obj, Obj], Obj]  # the given object, and the stored one or nothing

    def stored_form(self, obj: Obj, old: Obj) -> Obj:
        """A given object of this type as one of the stored type, with its defaults."""
        return builtin.defaulted({**self.store(obj, old), "apiVersion": self.stored.api_version})


def _event_shown(event: Obj) -> Obj:
    return {_EVENT_NAMES.get(key, key): value for key, value in event.items()}


def _event_stored(event: Obj, _: Obj) -> Obj:
    return {_CORE_NAMES.get(key, key): value for key, value in event.items()}


def _is_cpu(metric: Obj) -> bool:
    """Whether autoscaling/v1 has a field of its own for this metric."""
    resource = metric.get("resource") or {}
    amounts = resource.get("target") or resource.get("current") or {}
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and "averageUtilization" in amounts


def _scaler_shown(scaler: Obj) -> Obj:
    spec, status = dict(scaler.get("spec") or {}), dict(scaler.get("status") or {})
    for metric in filter(_is_cpu, spec.get("metrics") or ()):
        spec[_CPU_TARGET] = metric["resource"]["target"]["averageUtilization"]
    for metric in filter(_is_cpu, status.get("currentMetrics") or ()):
        status[_CPU_NOW] = metric["resource"]["current"]["averageUtilization"]
    status = {"currentReplicas": 0, "desiredReplicas": 0, **status}
    return {
        **scaler,
        "spec": _without(spec, "metrics", "behavior"),
        "status": _without(status, "currentMetrics", "conditions"),
    }


def _scaler_stored(scaler: Obj, old: Obj) -> Obj:
    """What autoscaling/v1 does not show stays as it is stored."""
    spec, status = dict(scaler.get("spec") or {}), dict(scaler.get("status") or {})
    before, was = old.get("spec") or {}, old.get("status") or {}
    metrics = [metric for metric in before.get("metrics") or () if not _is_cpu(metric)]
    if _CPU_TARGET in spec:
        target = {"type": "Utilization", "averageUtilization": spec.pop(_CPU_TARGET)}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    kept = {"behavior": before["behavior"]} if "behavior" in before else {}
    status.pop(_CPU_NOW, None)
    shown = {key: was[key] for key in ("currentMetrics", "conditions") if key in was}
    return {
        **scaler,
        "spec": {**spec, **kept, **({"metrics": metrics} if metrics else {})},
        "status": {**status, **shown},
    }


def _without(value: Obj, *names: str) -> Obj:
    return {key: item for key, item in value.items() if key not in names}


VIEWS: dict[tuple[str, str, str], View] = {
    ("events.k8s.io", "v1", "events"): View(EVENTS, _event_shown, _event_stored),
    ("autoscaling", "v1", "horizontalpodautoscalers"): View(HPAS, _scaler_shown, _scaler_stored),
}
