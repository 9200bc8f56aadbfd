"""The status of a Deployment: its counters, and the conditions of a rollout."""

from __future__ import annotations

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.objects import Obj, generation_of, name_of
from kubectl_ctrl.sandbox.controllers.pods import condition_of
from kubectl_ctrl.sandbox.controllers.revisions import counted, max_unavailable, replicas_of, requested
from kubectl_ctrl.value import Value

_NO_DEADLINE = 2**31 - 1
_DONE = "NewReplicaSetAvailable"
_TIMED_OUT = "ProgressDeadlineExceeded"


class Times(Value, kw_only=True):
    now: float
    stamp: str


def condition(kind: str, value: str, reason: str, message: str, stamp: str) -> Obj:
    return {
        "type": kind,
        "status": value,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
        "reason": reason,
        "message": message,
    }


def with_condition(status: Obj, new: Obj) -> list[Obj]:
    """The conditions with a new one at the end; unchanged if only its message or times would change."""
    found: list[Obj] = status.get("conditions") or []
    before = next((one for one in found if one["type"] == new["type"]), None)
    if before is not None and (before["status"], before["reason"]) == (new["status"], new["reason"]):
        return found
    if before is not None and before["status"] == new["status"]:
        new = {**new, "lastTransitionTime": before["lastTransitionTime"]}
    return [*without_condition(found, new["type"]), new]


def without_condition(conditions: list[Obj], kind: str) -> list[Obj]:
    return [one for one in conditions if one["type"] != kind]


def has_deadline(deployment: Obj) -> bool:
    return int(deployment["spec"].get("progressDeadlineSeconds", _NO_DEADLINE)) != _NO_DEADLINE


def is_complete(deployment: Obj, status: Obj | None = None) -> bool:
    """Whether all pods are of the current template and available."""
    status = (deployment.get("status") or {}) if status is None else status
    wanted = replicas_of(deployment)
    counts = (int(status.get(name) or 0) for name in ("updatedReplicas", "replicas", "availableReplicas"))
    return all(count == wanted for count in counts) and int(status.get("observedGeneration") or 0) >= generation_of(
        deployment
    )


def pause_condition(deployment: Obj, stamp: str) -> list[Obj] | None:
    """The conditions after the Deployment was paused or resumed; None if it was not."""
    now = condition_of(deployment, "Progressing")
    reason = now["reason"] if now is not None else ""
    paused = bool(deployment["spec"].get("paused"))
    if not has_deadline(deployment) or reason == _TIMED_OUT or paused == (reason == "DeploymentPaused"):
        return None
    word = "paused" if paused else "resumed"
    new = condition("Progressing", "Unknown", f"Deployment{word.capitalize()}", f"Deployment is {word}", stamp)
    return with_condition(deployment.get("status") or {}, new)


def status_of(deployment: Obj, newest: Obj | None, all_sets: list[Obj], stamp: str) -> Obj:
    """The counters and the condition Available; the other conditions as they are."""
    before = deployment.get("status") or {}
    available = counted(all_sets, "availableReplicas")
    counts = {
        "observedGeneration": generation_of(deployment),
        "replicas": counted(all_sets, "replicas"),
        "updatedReplicas": counted([newest] if newest is not None else [], "replicas"),
        "readyReplicas": counted(all_sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, requested(all_sets) - available),
        "collisionCount": before.get("collisionCount"),
    }
    status: Obj = {name: count for name, count in counts.items() if count}
    status["terminatingReplicas"] = counted(all_sets, "terminatingReplicas")
    if available >= replicas_of(deployment) - max_unavailable(deployment):
        told = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        told = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = with_condition(before, condition("Available", *told, stamp))
    return status


def rolling_conditions(
    deployment: Obj, newest: Obj | None, all_sets: list[Obj], status: Obj, times: Times
) -> list[Obj]:
    """The conditions of the new status with the progress of the rollout and the failures of its ReplicaSets."""
    found: list[Obj] = status["conditions"]
    if not has_deadline(deployment):
        found = without_condition(found, "Progressing")
    elif not _is_at_rest(deployment, status):
        found = _progressed(deployment, newest, status, times)
    failures = [condition_of(one, "ReplicaFailure") for one in [*([newest] if newest is not None else []), *all_sets]]
    failure = next(filter(None, failures), None)
    if failure is None:
        return without_condition(found, "ReplicaFailure")
    return with_condition({"conditions": found}, {**failure, "lastUpdateTime": failure["lastTransitionTime"]})


def _is_at_rest(deployment: Obj, status: Obj) -> bool:
    """Whether the last rollout has ended, and no other one began."""
    now = condition_of(deployment, "Progressing")
    whole = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return whole and now is not None and now["reason"] == _DONE


def _progressed(deployment: Obj, newest: Obj | None, status: Obj, times: Times) -> list[Obj]:
    found: list[Obj] = status["conditions"]
    title = f'ReplicaSet "{name_of(newest)}"' if newest is not None else f'Deployment "{name_of(deployment)}"'
    before = condition_of(deployment, "Progressing")

    def told(value: str, reason: str, message: str) -> Obj:
        return condition("Progressing", value, reason, f"{title} {message}", times.stamp)

    if is_complete(deployment, status):
        return with_condition(status, told("True", _DONE, "has successfully progressed."))
    if _has_progressed(deployment.get("status") or {}, status):
        new = told("True", "ReplicaSetUpdated", "is progressing.")
        if before is not None and before["status"] == "True":
            new["lastTransitionTime"] = before["lastTransitionTime"]
        return [*without_condition(found, "Progressing"), new]
    if _is_late(deployment, before, times.now):
        return with_condition(status, told("False", _TIMED_OUT, "has timed out progressing."))
    return found


def _has_progressed(before: Obj, after: Obj) -> bool:
    def count(status: Obj, name: str) -> int:
        return int(status.get(name) or 0)

    def old(status: Obj) -> int:
        return count(status, "replicas") - count(status, "updatedReplicas")

    more = any(
        count(after, name) > count(before, name) for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return more or old(after) < old(before)


def _is_late(deployment: Obj, progressing: Obj | None, now: float) -> bool:
    if progressing is None or progressing["reason"] == _DONE:
        return False
    return progressing["reason"] == _TIMED_OUT or _deadline(deployment, progressing) < now


def _deadline(deployment: Obj, progressing: Obj) -> float:
    return parse_rfc3339(progressing["lastUpdateTime"]) + int(deployment["spec"]["progressDeadlineSeconds"])


def seconds_to_deadline(deployment: Obj, status: Obj, now: float) -> float | None:
    """None if the rollout has ended, or has no deadline."""
    progressing = condition_of(deployment, "Progressing")
    if not has_deadline(deployment) or progressing is None:
        return None
    if is_complete(deployment, status) or progressing["reason"] == _TIMED_OUT:
        return None
    return max(1.0, _deadline(deployment, progressing) - now + 1.0)
