"""The deployment controller and everything below it, played: the status follows the spec at once, without a pod."""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.model.objects import Key, Obj, generation_of, is_deleting, key_of
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.testing.storage import Step, Storage

Merge = Callable[[str, Key, Obj, str], None]  # table, key, merge patch, subresource


class DeploymentPlayer:
    """Plays while `playing`; otherwise Deployments stay as they are, as when no node has room."""

    def __init__(self, storage: Storage, clock: Clock, merge: Merge) -> None:
        self.playing = False
        self._storage = storage
        self._clock = clock
        self._merge = merge
        self._waiting: dict[Key, None] = {}
        storage.listeners.append(self._heard)

    def _heard(self, table: str, step: Step) -> None:
        if table == DEPLOYMENTS.full_name and step.new is not None:
            self._waiting[key_of(step.new)] = None

    def run(self) -> None:
        while self.playing and self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            deployment = self._storage.get(DEPLOYMENTS.full_name, key)
            if deployment is not None and not is_deleting(deployment):
                self._follow(key, deployment)

    def _follow(self, key: Key, deployment: Obj) -> None:
        before = deployment.get("status") or {}
        after = self._status(deployment, before)
        if not same(before, after):
            change = {**dict.fromkeys(before), **after}
            self._merge(DEPLOYMENTS.full_name, key, {"status": change}, "status")

    def _status(self, deployment: Obj, before: Obj) -> Obj:
        wanted = int(deployment["spec"].get("replicas", 1))
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), wanted)
        status: Obj = {name: count for name, count in counts.items() if count}
        status["observedGeneration"] = generation_of(deployment)
        old = {condition["type"]: condition for condition in before.get("conditions") or ()}
        now = rfc3339(self._clock.now())
        status["conditions"] = [
            old.get(kind) or _condition(kind, reason, now)
            for kind, reason in (("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable"))
        ]
        return status

    def __repr__(self) -> str:
        return f"DeploymentPlayer(playing={self.playing}, waiting={len(self._waiting)})"


def _condition(kind: str, reason: str, now: str) -> Obj:
    times = {"lastTransitionTime": now, "lastUpdateTime": now}
    return {"type": kind, "status": "True", **times, "reason": reason, "message": "Played by the scripted server."}
