"""Assigns pods to nodes: to the one with the fewest pods among those that a pod may run on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, name_of
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers.base import Controller
from kubectl_ctrl.sandbox.controllers.placement import fits_affinity, untolerated
from kubectl_ctrl.sandbox.controllers.pods import condition_of, is_ready, phase_of
from kubectl_ctrl.sandbox.controllers.resources import NODES
from kubectl_ctrl.sandbox.kinds.quantities import amount
from kubectl_ctrl.sandbox.storage import StoredChange

_NAME = "default-scheduler"
_SOURCE = f"{_NAME}@{_NAME}-sandbox"
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Scheduler(Controller):
    component = "kube-scheduler"

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == NODES.full_name and change.new is not None:
            return [key_of(pod) for pod in self.cluster.index.on_node("")]
        return [key_of(change.new)] if table == PODS.full_name and change.new is not None else ()

    def sync(self, key: Key) -> float | None:
        pod = self.cluster.get(PODS, key)
        if pod is None or not _is_waiting(pod):
            return None
        if pod["spec"].get("schedulingGates"):
            self._refuse(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return None
        nodes = list(self.cluster.all(NODES))
        problems = {name_of(node): self._problems(pod, node) for node in nodes}
        fitting = [name for name, found in problems.items() if not found]
        if fitting:
            self._assign(pod, min(fitting, key=self.cluster.index.count_on_node))
        else:
            message = _why(nodes, list(problems.values()))
            if self._refuse(pod, "Unschedulable", message):
                self._event(pod, "FailedScheduling", message, "Scheduling", kind="Warning")
        return None

    def _assign(self, pod: Obj, node: str) -> None:
        self.cluster.bind(pod, node)
        title = f"{key_of(pod).namespace}/{name_of(pod)}"
        self._event(pod, "Scheduled", f"Successfully assigned {title} to {node}", "Binding")

    def _refuse(self, pod: Obj, reason: str, message: str) -> bool:
        """Write why the pod has no node; whether that is new."""
        before = condition_of(pod, "PodScheduled")
        told = {"status": "False", "reason": reason, "message": message}
        if before is not None and told.items() <= before.items():
            return False
        since = before["lastTransitionTime"] if before is not None else self.cluster.now
        condition = {"type": "PodScheduled", "lastTransitionTime": since, **told}
        if "generation" in pod["metadata"] and reason == "Unschedulable":
            condition["observedGeneration"] = pod["metadata"]["generation"]
        status = pod.get("status") or {}
        others = [one for one in status.get("conditions") or () if one["type"] != "PodScheduled"]
        self.cluster.set_status(PODS, pod, {**status, "conditions": [*others, condition]})
        return True

    def _event(self, pod: Obj, reason: str, message: str, action: str, *, kind: str = "Normal") -> None:
        self.cluster.event(pod, reason, message, kind=kind, source=_SOURCE, action=action)

    def _problems(self, pod: Obj, node: Obj) -> list[str]:
        """Why the pod cannot run on a node, in the words of the scheduler's plugins."""
        spec = node.get("spec") or {}
        cordoned = {"spec": {"taints": [_CORDONED] if spec.get("unschedulable") else []}}
        if untolerated(pod["spec"], cordoned, ("NoSchedule",)):
            return ["node(s) were unschedulable"]
        unready = {"spec": {"taints": [] if is_ready(node) else [_NOT_READY]}}
        if any(untolerated(pod["spec"], one, ("NoSchedule", "NoExecute")) for one in (node, unready)):
            return ["node(s) had untolerated taint(s)"]
        if not fits_affinity(pod["spec"], node):
            return ["node(s) didn't match Pod's node affinity/selector"]
        return self._lacking(pod, node)

    def _lacking(self, pod: Obj, node: Obj) -> list[str]:
        room = (node.get("status") or {}).get("allocatable") or {}
        full = self.cluster.index.count_on_node(name_of(node)) >= amount(room.get("pods", 110))
        wanted = _requests(pod)
        used: dict[str, Decimal] = {}
        for other in filter(_counts, self.cluster.index.on_node(name_of(node)) if wanted else ()):
            for name, number in _requests(other).items():
                used[name] = used.get(name, Decimal(0)) + number
        lacking = [name for name in wanted if used.get(name, 0) + wanted[name] > amount(room.get(name, 0))]
        return [*(["Too many pods"] if full else []), *(f"Insufficient {name}" for name in sorted(lacking))]


def _counts(pod: Obj) -> bool:
    return phase_of(pod) not in ("Succeeded", "Failed")


def _is_waiting(pod: Obj) -> bool:
    ours = pod["spec"].get("schedulerName", _NAME) == _NAME
    return ours and not pod["spec"].get("nodeName") and not is_deleting(pod) and phase_of(pod) == "Pending"


def _why(nodes: list[Obj], problems: list[list[str]]) -> str:
    if not nodes:
        return "no nodes available to schedule pods"
    total = len(nodes)
    counts = Counter(problem for found in problems for problem in found)
    reasons = ", ".join(sorted(f"{count} {problem}" for problem, count in counts.items()))
    # Deleting pods makes room, unless the node is too small even without any.
    evictable = sum("Too many pods" in found for found in problems)
    told = {"No preemption victims found for incoming pod": evictable}
    told["Preemption is not helpful for scheduling"] = total - evictable
    tail = ", ".join(sorted(f"{count} {why}" for why, count in told.items() if count))
    head = f"0/{total} nodes are available"
    return f"{head}: {reasons}. no new claims to deallocate, preemption: {head}: {tail}."


def _requests(pod: Obj) -> dict[str, Decimal]:
    """The resources that a pod reserves: of all containers together, or of the largest init container."""
    mains, inits = pod["spec"].get("containers") or (), pod["spec"].get("initContainers") or ()
    totals: dict[str, Decimal] = {}
    for container in mains:
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            totals[name] = totals.get(name, Decimal(0)) + amount(text)
    for container in inits:
        for name, text in ((container.get("resources") or {}).get("requests") or {}).items():
            totals[name] = max(totals.get(name, Decimal(0)), amount(text))
    return totals
