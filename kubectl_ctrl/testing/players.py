"""A controller for tests that need no pods: the status of a Deployment follows its spec at once."""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.model.objects import Key, Obj, generation_of, key_of
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.sandbox.controllers.base import Controller, is_alive
from kubectl_ctrl.sandbox.storage import StoredChange


class StatusPlayer(Controller):
    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        return [key_of(change.new)] if table == DEPLOYMENTS.full_name and change.new is not None else ()

    def sync(self, key: Key) -> float | None:
        deployment = self.cluster.get(DEPLOYMENTS, key)
        if deployment is not None and is_alive(deployment):
            self.cluster.set_status(DEPLOYMENTS, deployment, self._status(deployment))
        return None

    def _status(self, deployment: Obj) -> Obj:
        wanted = int(deployment["spec"].get("replicas", 1))
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        status: Obj = {name: count for name, count in counts.items() if count}
        status["observedGeneration"] = generation_of(deployment)
        before = (deployment.get("status") or {}).get("conditions") or ()
        old = {condition["type"]: condition for condition in before}
        status["conditions"] = [
            old.get(kind) or _condition(kind, reason, self.cluster.now)
            for kind, reason in (("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable"))
        ]
        return status


def _condition(kind: str, reason: str, now: str) -> Obj:
    times = {"lastTransitionTime": now, "lastUpdateTime": now}
    return {"type": kind, "status": "True", **times, "reason": reason, "message": "Played by the scripted server."}
