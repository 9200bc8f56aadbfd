"""The disruption controller: how many pods of a PodDisruptionBudget may be evicted now."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.objects import (
    Key,
    Obj,
    generation_of,
    is_deleting,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS, STATEFULSETS, Resource
from kubectl_ctrl.model.selectors import from_label_selector
from kubectl_ctrl.sandbox.controllers.pods import is_ready
from kubectl_ctrl.sandbox.controllers.resources import BUDGETS, REPLICATION_CONTROLLERS
from kubectl_ctrl.sandbox.controllers.workloads import WorkloadController, scaled
from kubectl_ctrl.sandbox.storage import StoredChange

_EVICTION = 120.0  # seconds in which an evicted pod has to begin its deletion
_SCALED: tuple[Resource, ...] = (REPLICASETS, DEPLOYMENTS, STATEFULSETS, REPLICATION_CONTROLLERS)


class DisruptionBudgets(WorkloadController):
    resource = BUDGETS
    source = "controllermanager"

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == BUDGETS.full_name:
            yield change.key
        elif table == PODS.full_name:
            for pod in filter(None, (change.old, change.new)):
                yield from self._adopters(pod)
        elif any(table == scaled_.full_name for scaled_ in _SCALED):
            yield from (key_of(budget) for budget in self.cluster.all(BUDGETS, change.key.namespace))

    def sync(self, key: Key) -> float | None:
        budget = self.cluster.get(BUDGETS, key)
        if budget is None:
            return None
        selector = from_label_selector(budget["spec"].get("selector"))
        pods = [pod for pod in self.cluster.all(PODS, key.namespace) if selector.matches(labels_of(pod))]
        evicted, again = self._evicted(budget, pods)
        before = budget.get("status") or {}
        if not pods and before.get("observedGeneration") != generation_of(budget):
            self.event(budget, "NoPods", "No matching pods found")
        try:
            expected, desired = self._desired(budget["spec"], pods)
        except LookupError as error:
            self._fail(budget, str(error))
            return again
        healthy = sum(not is_deleting(pod) and name_of(pod) not in evicted and is_ready(pod) for pod in pods)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status = {
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation_of(budget),
            **({"disruptedPods": evicted} if evicted else {}),
        }
        reason = "SufficientPods" if allowed else "InsufficientPods"
        self.write_status(budget, {**status, **self._conditions(budget, bool(allowed), reason, "")})
        return again

    def _evicted(self, budget: Obj, pods: list[Obj]) -> tuple[Obj, float | None]:
        """The pods whose deletion after an eviction is still awaited, and the seconds until the first is given up."""
        known, now = (budget.get("status") or {}).get("disruptedPods") or {}, self.cluster.clock.now()
        awaited = {name_of(pod): known[name_of(pod)] for pod in pods if name_of(pod) in known and not is_deleting(pod)}
        waits = {name: parse_rfc3339(at) + _EVICTION - now for name, at in awaited.items()}
        left = {name: at for name, at in awaited.items() if waits[name] > 0}
        return left, min((waits[name] for name in left), default=None)

    def _desired(self, spec: Obj, pods: list[Obj]) -> tuple[int, int]:
        """The expected and the required number of pods."""
        least = spec.get("minAvailable")
        if "maxUnavailable" in spec:
            expected = self._scale(pods)
            return expected, max(0, expected - scaled(spec["maxUnavailable"], expected, up=True))
        if isinstance(least, str):
            expected = self._scale(pods)
            return expected, scaled(least, expected, up=True)
        return len(pods), int(least or 0)

    def _scale(self, pods: list[Obj]) -> int:
        """The sum of the replicas of all controllers of these pods."""
        found: dict[str, int] = {}
        for pod in pods:
            if (reference := controller_of(pod)) is None:
                continue
            owner = self._top(namespace_of(pod), reference)
            if owner is None:
                raise LookupError(f'found no controllers for pod "{name_of(pod)}"')
            found[uid_of(owner)] = int(owner["spec"].get("replicas", 1))
        return sum(found.values())

    def _top(self, namespace: str, reference: Obj) -> Obj | None:
        """The object with the scale: of a Deployment's ReplicaSet, the Deployment."""
        kinds = [one for one in _SCALED if (one.kind, one.api_version) == (reference["kind"], reference["apiVersion"])]
        found = self.cluster.get(kinds[0], Key(namespace, reference["name"])) if kinds else None
        if found is None or uid_of(found) != reference["uid"]:
            return None
        above = controller_of(found)
        return found if above is None else self._top(namespace, above) or found

    def _fail(self, budget: Obj, message: str) -> None:
        words = f"Failed to calculate the number of expected pods: {message}"
        self.event(budget, "CalculateExpectedPodCountFailed", words, warning=True)
        status = {**(budget.get("status") or {}), "disruptionsAllowed": 0}
        zeros = dict.fromkeys(("currentHealthy", "desiredHealthy", "expectedPods"), 0)
        self.write_status(budget, {**zeros, **status, **self._conditions(budget, False, "SyncFailed", message)})

    def _conditions(self, budget: Obj, allowed: bool, reason: str, message: str) -> Obj:
        known = (budget.get("status") or {}).get("conditions") or []
        before: Obj = next((one for one in known if one["type"] == "DisruptionAllowed"), {})
        status = "True" if allowed else "False"
        since = before["lastTransitionTime"] if before.get("status") == status else self.cluster.now
        condition = {
            "type": "DisruptionAllowed",
            "status": status,
            "observedGeneration": generation_of(budget),
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
        return {"conditions": [*(one for one in known if one is not before), condition]}
