"""The cells of workloads and their autoscalers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.encoding.ages import human, seconds_of, since
from kubectl_ctrl.sandbox.encoding.facts import age, at, count, requirements, selector

_JOB_STATES = {"Suspended": "Suspended", "FailureTarget": "FailureTarget", "SuccessCriteriaMet": "SuccessCriteriaMet"}
_MOST_METRICS = 2


def names(pod_spec: Obj | None) -> str:
    return ",".join(one.get("name", "") for one in (pod_spec or {}).get("containers") or ())


def images(pod_spec: Obj | None) -> str:
    return ",".join(one.get("image", "") for one in (pod_spec or {}).get("containers") or ())


def _template(obj: Obj, path: str) -> list[str]:
    """The containers and images of the pods, and the selector."""
    pod = at(obj, f"{path}.template.spec")
    return [names(pod), images(pod), selector(at(obj, f"{path}.selector"))]


def _deployment(obj: Obj, now: float) -> list[Any]:
    status = obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{at(obj, 'spec.replicas') or 0}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    containers = _template(obj, "spec")[:2]
    return [at(obj, "metadata.name"), ready, *counts, age(obj, now), *containers, _exact(obj)]


def _exact(obj: Obj) -> str:
    return requirements(at(obj, "spec.selector") or {})


def _stateful_set(obj: Obj, now: float) -> list[Any]:
    ready = f"{at(obj, 'status.readyReplicas') or 0}/{at(obj, 'spec.replicas') or 0}"
    return [at(obj, "metadata.name"), ready, age(obj, now), *_template(obj, "spec")[:2]]


def _job(obj: Obj, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    done, wanted, parallel = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    completions = (
        f"{done}/{wanted}" if wanted is not None else f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    )
    start, end = status.get("startTime"), status.get("completionTime")
    duration = human((seconds_of(end) if end else now) - seconds_of(start)) if start else ""
    return [at(obj, "metadata.name"), _job_state(obj), completions, duration, age(obj, now), *_template(obj, "spec")]


def _job_state(obj: Obj) -> str:
    first: dict[str, bool] = {}
    for condition in at(obj, "status.conditions") or ():
        first.setdefault(condition.get("type", ""), condition.get("status") == "True")
    found = {kind for kind, true in first.items() if true}
    if "Complete" in found or "Failed" in found:
        return "Complete" if "Complete" in found else "Failed"
    if at(obj, "metadata.deletionTimestamp"):
        return "Terminating"
    return next((shown for kind, shown in _JOB_STATES.items() if kind in found), "Running")


def _cron_job(obj: Obj, now: float) -> list[Any]:
    spec, last = obj.get("spec") or {}, at(obj, "status.lastScheduleTime")
    suspended = spec.get("suspend")
    return [
        at(obj, "metadata.name"),
        spec.get("schedule", ""),
        spec.get("timeZone", "<none>"),
        "<unset>" if suspended is None else str(bool(suspended)),
        count(at(obj, "status.active")),
        since(last, now) if last else "<none>",
        age(obj, now),
        *_template(obj, "spec.jobTemplate.spec"),
    ]


def _autoscaler(obj: Obj, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    least = spec.get("minReplicas")
    return [
        at(obj, "metadata.name"),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        "<unset>" if least is None else str(least),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(specs: list[Obj], statuses: list[Obj]) -> str:
    if not specs:
        return "<none>"
    pairs = zip(specs, [*statuses, *({} for _ in specs)], strict=False)
    shown = [_metric(spec, status) for spec, status in pairs]
    more = f" + {len(shown) - _MOST_METRICS} more..." if len(shown) > _MOST_METRICS else ""
    return ", ".join(shown[:_MOST_METRICS]) + more


def _metric(spec: Obj, status: Obj) -> str:
    kind = spec.get("type", "")
    name = kind[:1].lower() + kind[1:]
    wanted, now = at(spec, f"{name}.target"), at(status, f"{name}.current")
    if wanted is None:
        return "<unknown type>"
    average = wanted.get("averageValue")
    match kind:
        case "External" | "Object" if average is not None:
            return f"{_known(now, 'averageValue')}/{average} (avg)"
        case "External" | "Object":
            return f"{_known(now, 'value')}/{wanted.get('value', '0')}"
        case "Pods":
            return f"{_known(now, 'averageValue')}/{average}"
    resource = at(spec, f"{name}.name")
    if average is not None:
        return f"{resource}: {_known(now, 'averageValue')}/{average}"
    used, limit = at(now, "averageUtilization"), wanted.get("averageUtilization")
    shown = "<unknown>" if used is None else f"{used}%"
    return f"{resource}: {shown}/{'<auto>' if limit is None else f'{limit}%'}"


def _known(current: Obj | None, field: str) -> str:
    return "<unknown>" if current is None or current.get(field) is None else str(current[field])


CELLS: dict[str, Callable[[Obj, float], list[Any]]] = {
    "CronJob.batch": _cron_job,
    "Deployment.apps": _deployment,
    "HorizontalPodAutoscaler.autoscaling": _autoscaler,
    "Job.batch": _job,
    "StatefulSet.apps": _stateful_set,
}
