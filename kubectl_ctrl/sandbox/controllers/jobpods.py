"""The pods of a Job: their completion index, when and why they failed, and the rules about that."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.objects import Obj, annotations_of, is_deleting, labels_of, name_of, namespace_of
from kubectl_ctrl.sandbox.controllers.pods import is_ready, phase_of
from kubectl_ctrl.sandbox.controllers.workloads import has_finalizer, pod_of

FINALIZER = "batch.kubernetes.io/job-tracking"
_INDEX = "batch.kubernetes.io/job-completion-index"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{_INDEX}']"}},
}
_FIRST_DELAY, _LONGEST_DELAY = 10.0, 600.0  # seconds before a failed pod is replaced


def is_tracked(pod: Obj) -> bool:
    """Whether the Job has not counted it yet."""
    return has_finalizer(pod, FINALIZER)


def index_of(pod: Obj) -> int:
    """The completion index; -1 without a valid one."""
    text = annotations_of(pod).get(_INDEX, "")
    return int(text) if text.isdecimal() else -1


def replaces_only_failed(spec: Obj) -> bool:
    return spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec


def has_failed(spec: Obj, pod: Obj) -> bool:
    """A deleted pod counts as failed, unless only failed pods are replaced."""
    if phase_of(pod) == "Failed":
        return True
    return not replaces_only_failed(spec) and is_deleting(pod) and phase_of(pod) != "Succeeded"


def new_pod(job: Obj, index: int, former: Obj | None) -> Obj:
    """`index` is -1 for a pod without one; `former` is the failed pod that it replaces."""
    template = job["spec"]["template"]
    finalizers = [*(template["metadata"].get("finalizers") or ()), FINALIZER]
    if index < 0:
        return pod_of(job, template, generateName=f"{name_of(job)}-", finalizers=finalizers)
    text = str(index)
    notes = {**annotations_of(template), _INDEX: text, **_failure_notes(job["spec"], former)}
    labels = {**labels_of(template), _INDEX: text}
    prefix = f"{name_of(job)}-{index}-"
    pod = pod_of(job, template, generateName=prefix, finalizers=finalizers, annotations=notes, labels=labels)
    pod["spec"] |= {"hostname": f"{name_of(job)}-{index}"}
    for containers in ("initContainers", "containers"):
        if containers in pod["spec"]:
            pod["spec"][containers] = list(map(_with_index, pod["spec"][containers]))
    return pod


def _with_index(container: Obj) -> Obj:
    env = container.get("env") or []
    if any(variable["name"] == _VARIABLE["name"] for variable in env):
        return container
    return {**container, "env": [*env, _VARIABLE]}


def _failure_notes(spec: Obj, former: Obj | None) -> dict[str, str]:
    if "backoffLimitPerIndex" not in spec:
        return {}
    counted = former is not None and counts(spec, former)
    ignored = _count(former, _IGNORED) + (former is not None and not counted)
    failures = {_FAILURES: str(_count(former, _FAILURES) + counted)}
    return {**failures, **({_IGNORED: str(ignored)} if ignored else {})}


def _count(pod: Obj | None, name: str) -> int:
    text = annotations_of(pod).get(name, "") if pod is not None else ""
    return int(text) if text.isdecimal() else 0


def failures_of_index(pod: Obj) -> int:
    return _count(pod, _FAILURES)


def all_failures(pod: Obj) -> int:
    return _count(pod, _FAILURES) + _count(pod, _IGNORED)


def finished_at(pod: Obj) -> float:
    """The end of its last container; if unknown, the next best time."""
    status = pod.get("status") or {}
    ends = [((one.get("state") or {}).get("terminated") or {}).get("finishedAt") for one in _containers(status)]
    if ends and all(ends):
        return max(parse_rfc3339(str(end)) for end in ends)
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "False" and condition.get("lastTransitionTime"):
            return parse_rfc3339(condition["lastTransitionTime"])
    meta = pod["metadata"]
    if is_deleting(pod):
        return parse_rfc3339(meta["deletionTimestamp"]) - float(meta.get("deletionGracePeriodSeconds") or 0)
    return parse_rfc3339(meta["creationTimestamp"])


def _containers(status: Obj) -> list[Obj]:
    return status.get("containerStatuses") or []


def delay(failures: int, last: float, now: float) -> float:
    """Seconds until the next pod may be created, after so many failures in a row."""
    if not failures:
        return 0.0
    return max(0.0, last + min(_FIRST_DELAY * 2.0 ** min(failures - 1, 10), _LONGEST_DELAY) - now)


def restarts(pods: Iterable[Obj]) -> int:
    """The restarts of containers in all pods that have not finished."""
    found = [pod.get("status") or {} for pod in pods if phase_of(pod) in ("Pending", "Running")]
    return sum(
        int(one.get("restartCount") or 0)
        for status in found
        for one in [*(status.get("initContainerStatuses") or ()), *_containers(status)]
    )


def removal_order(pod: Obj) -> tuple[bool, int, bool, float]:
    """Those that are less far go first, of equal ones the newest."""
    rank = {"Pending": 0, "Unknown": 1, "Running": 2}.get(phase_of(pod), 0)
    age = -parse_rfc3339(pod["metadata"]["creationTimestamp"])
    return (bool(pod["spec"].get("nodeName")), rank, is_ready(pod), age)


# -- spec.podFailurePolicy


def verdict(spec: Obj, pod: Obj) -> tuple[str, str]:
    """The action of the first rule that matches a failed pod, and the message for a failed Job."""
    for place, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        why = _matched(rule, pod)
        if why:
            return rule["action"], f"{why} matching {rule['action']} rule at index {place}"
    return "", ""


def counts(spec: Obj, pod: Obj) -> bool:
    """Whether the failure counts against the limits."""
    return verdict(spec, pod)[0] != "Ignore"


def _matched(rule: Obj, pod: Obj) -> str:
    title, status = f"{namespace_of(pod)}/{name_of(pod)}", pod.get("status") or {}
    if "onExitCodes" in rule:
        for container in [*_containers(status), *(status.get("initContainerStatuses") or ())]:
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
            if code and _matches_code(rule["onExitCodes"], container["name"], code):
                return f"Container {container['name']} for pod {title} failed with exit code {code}"
        return ""
    wanted = [(one["type"], one.get("status", "True")) for one in rule.get("onPodConditions") or ()]
    for condition in status.get("conditions") or ():
        if (condition["type"], condition["status"]) in wanted:
            return f"Pod {title} has condition {condition['type']}"
    return ""


def _matches_code(rule: Obj, name: str, code: int) -> bool:
    if rule.get("containerName") not in (None, name):
        return False
    return bool((code in rule["values"]) == (rule["operator"] == "In"))


# -- sets of indexes as text: "0,2-4"


def parse_indexes(text: str, completions: int) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), min(int(high or low), completions - 1) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(low) if low == high else f"{low}{',' if high == low + 1 else '-'}{high}" for low, high in runs)


def success_rule(spec: Obj, succeeded: set[int]) -> str:
    """The message of the first rule of spec.successPolicy that is met."""
    for place, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        inside, enough = succeeded, rule.get("succeededCount")
        if "succeededIndexes" in rule:
            wanted = parse_indexes(rule["succeededIndexes"], int(spec["completions"]))
            inside = succeeded & wanted
            if inside == wanted:
                return f"Matched rules at index {place}"
        if succeeded and enough is not None and len(inside) >= enough:
            return f"Matched rules at index {place}"
    return ""
