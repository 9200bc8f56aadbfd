"""What several controllers read from a pod, and how they create and delete pods for an owner."""

from __future__ import annotations

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.objects import Obj, annotations_of, is_deleting, labels_of, name_of, namespace_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def phase_of(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def is_active(pod: Obj) -> bool:
    """Whether it counts as a replica: not finished and not being deleted."""
    return phase_of(pod) not in ("Succeeded", "Failed") and not is_deleting(pod)


def is_terminating(pod: Obj) -> bool:
    """Whether it is being deleted and its containers may still run."""
    return phase_of(pod) not in ("Succeeded", "Failed") and is_deleting(pod)


def condition_of(obj: Obj, kind: str) -> Obj | None:
    conditions: list[Obj] = (obj.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), None)


def is_ready(pod: Obj) -> bool:
    condition = condition_of(pod, "Ready")
    return condition is not None and condition["status"] == "True"


def ready_since(pod: Obj) -> float:
    """The wall time since when it is ready; infinite if it is not."""
    condition = condition_of(pod, "Ready")
    if condition is None or condition["status"] != "True" or not condition.get("lastTransitionTime"):
        return float("inf")
    return parse_rfc3339(condition["lastTransitionTime"])


def seconds_until_available(pod: Obj, min_ready: int, now: float) -> float:
    """0 if it is ready for long enough; infinite if it is not ready."""
    if not min_ready:
        return 0.0 if is_ready(pod) else float("inf")
    return max(0.0, ready_since(pod) + min_ready - now)


def restarts(pod: Obj) -> int:
    """The most restarts of one container."""
    return max((int(one.get("restartCount") or 0) for one in pod["status"].get("containerStatuses") or ()), default=0)


def deletion_order(pods: list[Obj], related: list[Obj]) -> list[Obj]:
    """The pods in the order in which an owner with too many deletes them.

    Pods that do less come first, then those on nodes with more pods of `related`, then the younger ones.
    """
    crowd: dict[str, int] = {}
    for pod in filter(is_active, related):
        crowd[_node(pod)] = crowd.get(_node(pod), 0) + 1

    def rank(pod: Obj) -> tuple[object, ...]:
        ready = is_ready(pod)
        return (
            bool(_node(pod)),
            _PHASES.get(phase_of(pod), 0),
            ready,
            _deletion_cost(pod),
            -crowd.get(_node(pod), 0),
            -ready_since(pod) if ready else 0.0,
            -restarts(pod),
            -parse_rfc3339(pod["metadata"]["creationTimestamp"]),
            pod["metadata"]["uid"],
        )

    return sorted(pods, key=rank)


def _node(pod: Obj) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _deletion_cost(pod: Obj) -> int:
    try:
        return int(annotations_of(pod).get("controller.kubernetes.io/pod-deletion-cost", "0"))
    except ValueError:
        return 0


def pod_from(template: Obj, owner: Obj) -> Obj:
    """A pod of a template, whose name the server completes."""
    meta = template.get("metadata") or {}
    copied = {name: meta[name] for name in ("labels", "annotations", "finalizers") if meta.get(name)}
    named = {"generateName": f"{name_of(owner)}-", "namespace": namespace_of(owner)}
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {**named, **copied, "ownerReferences": [owner_reference(owner)]},
        "spec": template["spec"],
    }


def create_pod(cluster: ClusterAccess, pod: Obj, owner: Obj, source: str) -> Obj:
    """Create a pod for its owner, with an event about it; raises the Refusal."""
    try:
        created = cluster.create(pod)
    except Refusal as refusal:
        if not is_namespace_terminating(refusal):
            message = f"Error creating: {refusal_message(refusal)}"
            cluster.event(owner, "FailedCreate", message, kind="Warning", source=source)
        raise
    cluster.event(owner, "SuccessfulCreate", f"Created pod: {name_of(created)}", source=source)
    return created


def delete_pod(cluster: ClusterAccess, pod: Obj, owner: Obj, source: str) -> None:
    cluster.delete(PODS, pod)
    cluster.event(owner, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}", source=source)


def refusal_message(refusal: Refusal) -> str:
    return str(refusal.body["message"]) if isinstance(refusal.body, dict) else str(refusal.body)


def is_namespace_terminating(refusal: Refusal) -> bool:
    body = refusal.body if isinstance(refusal.body, dict) else {}
    causes = (body.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def has_labels(pod: Obj, labels: dict[str, str]) -> bool:
    own = labels_of(pod)
    return all(own.get(key) == value for key, value in labels.items())
