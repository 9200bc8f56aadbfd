"""Keeps the number of pods of each ReplicaSet and ReplicationController, and counts them in its status."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.model.objects import Key, Obj, generation_of, is_deleting, namespace_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import PODS, REPLICASETS
from kubectl_ctrl.model.selectors import Selector, from_label_selector
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers import pods
from kubectl_ctrl.sandbox.controllers.base import OwnerController
from kubectl_ctrl.sandbox.controllers.resources import REPLICATION_CONTROLLERS
from kubectl_ctrl.value import Value

_BURST = 500  # most pods that one step creates or deletes


class _Outcome(Value, kw_only=True):
    """What a step found and did."""

    active: list[Obj]  # before the step
    terminating: list[Obj]
    refusal: Refusal | None


class ReplicaSetController(OwnerController):
    owner = REPLICASETS
    owned = PODS
    source = "replicaset-controller"
    counts_terminating = True

    def sync(self, key: Key) -> float | None:
        owner = self.cluster.get(self.owner, key)
        if owner is None:
            return None
        selector = self.selector(owner)
        active = self.cluster.claim(PODS, owner, selector, pods.is_active)
        terminating = [pod for pod in self.cluster.controlled(PODS, owner) if pods.is_terminating(pod)]
        refusal = None if is_deleting(owner) else self._manage(owner, active)
        outcome = _Outcome(active=active, terminating=terminating, refusal=refusal)
        self.cluster.set_status(self.owner, owner, self._status(owner, outcome))
        if refusal is not None:
            raise refusal
        return self._next_available(owner, active)

    def _manage(self, owner: Obj, active: list[Obj]) -> Refusal | None:
        missing = int(owner["spec"].get("replicas", 1)) - len(active)
        try:
            for _ in range(min(missing, _BURST)):
                self._create_pod(owner)
            for pod in self._superfluous(owner, active, min(-missing, _BURST)):
                pods.delete_pod(self.cluster, pod, owner, self.source)
        except Refusal as refusal:
            return refusal
        return None

    def _create_pod(self, owner: Obj) -> None:
        pods.create_pod(self.cluster, pods.pod_from(owner["spec"]["template"], owner), owner, self.source)

    def _superfluous(self, owner: Obj, active: list[Obj], count: int) -> Iterable[Obj]:
        if count <= 0:
            return ()
        return pods.deletion_order(active, self._related(owner, active))[:count]

    def _related(self, owner: Obj, active: list[Obj]) -> list[Obj]:
        """The pods of all ReplicaSets of the same Deployment."""
        above = controller_of(owner)
        if above is None:
            return active
        siblings = self.cluster.index.controlled(self.owner.full_name, above["uid"])
        return [pod for sibling in siblings for pod in self.cluster.controlled(PODS, sibling)]

    def _status(self, owner: Obj, outcome: _Outcome) -> Obj:
        before = owner.get("status") or {}
        counts = self._counts(owner, outcome)
        conditions = self._conditions(owner, outcome)
        kept = {name: before.get(name) or 0 for name in counts}
        if kept == counts and before.get("conditions", []) == conditions and _is_observed(owner):
            return before
        status = {name: count for name, count in counts.items() if count or name in ("replicas", "terminatingReplicas")}
        observed = {"observedGeneration": generation_of(owner)}
        return {**status, **observed, **({"conditions": conditions} if conditions else {})}

    def _counts(self, owner: Obj, outcome: _Outcome) -> dict[str, int]:
        template = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
        min_ready, now = int(owner["spec"].get("minReadySeconds") or 0), self.cluster.clock.now()
        active = outcome.active
        return {
            "replicas": len(active),
            "fullyLabeledReplicas": sum(pods.has_labels(pod, template) for pod in active),
            "readyReplicas": sum(map(pods.is_ready, active)),
            "availableReplicas": sum(not pods.seconds_until_available(pod, min_ready, now) for pod in active),
            **({"terminatingReplicas": len(outcome.terminating)} if self.counts_terminating else {}),
        }

    def _conditions(self, owner: Obj, outcome: _Outcome) -> list[Obj]:
        found = (owner.get("status") or {}).get("conditions") or []
        others = [condition for condition in found if condition["type"] != "ReplicaFailure"]
        if outcome.refusal is None:
            return others
        if len(others) < len(found):
            return list(found)
        few = len(outcome.active) < int(owner["spec"].get("replicas", 1))
        failure = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": self.cluster.now,
            "reason": "FailedCreate" if few else "FailedDelete",
            "message": pods.refusal_message(outcome.refusal),
        }
        return [*others, failure]

    def _next_available(self, owner: Obj, active: list[Obj]) -> float | None:
        """The seconds until a pod becomes available by time alone."""
        min_ready, now = int(owner["spec"].get("minReadySeconds") or 0), self.cluster.clock.now()
        waits = [pods.seconds_until_available(pod, min_ready, now) for pod in active]
        return min((wait for wait in waits if 0 < wait < float("inf")), default=None)


class ReplicationControllerController(ReplicaSetController):
    owner = REPLICATION_CONTROLLERS
    source = "replication-controller"
    counts_terminating = False

    def selector(self, owner: Obj) -> Selector:
        return from_label_selector({"matchLabels": owner["spec"].get("selector") or {}})

    def _related(self, owner: Obj, active: list[Obj]) -> list[Obj]:
        """All pods with its labels."""
        found = self.cluster.all(PODS, namespace_of(owner))
        selector = self.selector(owner)
        return [pod for pod in found if selector.matches(pod["metadata"].get("labels") or {})]


def _is_observed(owner: Obj) -> bool:
    return int((owner.get("status") or {}).get("observedGeneration") or 0) == generation_of(owner)
