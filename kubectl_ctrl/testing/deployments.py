"""An imitation of the deployment controller and everything below it: the replicas of a Deployment exist at once.

With pods, each Deployment has a ReplicaSet for its current template and empty ones for former templates; each
ReplicaSet has the requested number of pods, ready from their creation. A failed or terminating pod is replaced, and
a failed one stays until somebody deletes it. Without pods, only the status of the Deployment changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from kubectl_ctrl.clock import Clock, rfc3339
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
from kubectl_ctrl.model.owners import controlled_by, controller_of, owner_reference
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS
from kubectl_ctrl.testing.answers import encode
from kubectl_ctrl.testing.storage import Storage, StoredChange
from kubectl_ctrl.value import Value

_HASH = "pod-template-hash"
# Template hashes use letters that form no words.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class PlayerWrites(Value, kw_only=True):
    """The player's writes, as kube-controller-manager."""

    create: Callable[[Obj], None]
    merge: Callable[[str, Key, Obj, str], None]  # table, key, merge patch, subresource
    delete: Callable[[str, Key, str], None]  # table, key, propagation policy


class DeploymentPlayer:
    """Acts while `playing`; otherwise Deployments do not progress, as when no node has room."""

    def __init__(self, storage: Storage, clock: Clock, hands: PlayerWrites) -> None:
        self.playing = False
        self.with_pods = False
        self._storage = storage
        self._clock = clock
        self._hands = hands
        self._replicas = _ReplicaSets(storage, clock, hands)
        self._waiting: dict[Key, None] = {}
        storage.listeners.append(self._heard)

    def _heard(self, table: str, step: StoredChange) -> None:
        if table == DEPLOYMENTS.full_name and step.new is not None:
            self._waiting[key_of(step.new)] = None
        elif self.with_pods and (deployment := self._replicas.deployment_of(table, step.obj)) is not None:
            self._waiting[deployment] = None

    def run(self) -> None:
        while self.playing and self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            deployment = self._storage.get(DEPLOYMENTS.full_name, key)
            if deployment is not None and not is_deleting(deployment):
                if self.with_pods:
                    self._replicas.follow(deployment)
                self._follow(key, deployment)

    def _follow(self, key: Key, deployment: Obj) -> None:
        before = deployment.get("status") or {}
        after = self._status(deployment, before)
        if not same(before, after):
            change = {**dict.fromkeys(before), **after}
            self._hands.merge(DEPLOYMENTS.full_name, key, {"status": change}, "status")

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
        return f"DeploymentPlayer(playing={self.playing}, pods={self.with_pods}, waiting={len(self._waiting)})"


class _ReplicaSets:
    """The ReplicaSets and pods of a Deployment."""

    def __init__(self, storage: Storage, clock: Clock, hands: PlayerWrites) -> None:
        self._storage = storage
        self._clock = clock
        self._hands = hands

    def deployment_of(self, table: str, obj: Obj) -> Key | None:
        """The Deployment that owns this ReplicaSet or pod."""
        ref = controller_of(obj)
        if ref is not None and table == PODS.full_name:
            parent = self._storage.get(REPLICASETS.full_name, Key(namespace_of(obj), ref["name"]))
            ref = controller_of(parent) if parent is not None else None
            table = REPLICASETS.full_name
        return Key(namespace_of(obj), ref["name"]) if ref is not None and table == REPLICASETS.full_name else None

    def follow(self, deployment: Obj) -> None:
        """The ReplicaSet of the current template has all pods, and those of former templates have none."""
        present = _replicaset(deployment)
        if self._storage.get(REPLICASETS.full_name, key_of(present)) is None:
            self._hands.create(present)
        for replicas in list(self._owned(REPLICASETS.full_name, deployment)):
            wanted = int(deployment["spec"].get("replicas", 1)) if name_of(replicas) == name_of(present) else 0
            if replicas["spec"].get("replicas") != wanted:
                self._hands.merge(REPLICASETS.full_name, key_of(replicas), {"spec": {"replicas": wanted}}, "")
            self._fill(replicas, wanted)

    def _fill(self, replicas: Obj, wanted: int) -> None:
        active = sorted((pod for pod in self._owned(PODS.full_name, replicas) if _is_active(pod)), key=name_of)
        for pod in active[wanted:]:
            self._hands.delete(PODS.full_name, key_of(pod), "")
        for _ in range(wanted - len(active)):
            self._hands.create(_pod(replicas))
        ready = {"phase": "Running", "conditions": [_condition("Ready", "Played", rfc3339(self._clock.now()))]}
        for pod in list(self._owned(PODS.full_name, replicas)):
            if (pod.get("status") or {}).get("phase") == "Pending":
                self._hands.merge(PODS.full_name, key_of(pod), {"status": ready}, "status")

    def _owned(self, table: str, owner: Obj) -> Iterator[Obj]:
        rows = self._storage.tables.get(table, {})
        return (obj for obj in rows.values() if controlled_by(obj, uid_of(owner)) and not is_deleting(obj))


def _replicaset(deployment: Obj) -> Obj:
    template = deployment["spec"]["template"]
    digest = hashlib.sha256(encode(template)).digest()[:10]
    hashed = {_HASH: "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)}
    labels = {**(template["metadata"].get("labels") or {}), **hashed}
    selector = deployment["spec"]["selector"]
    return {
        "apiVersion": REPLICASETS.api_version,
        "kind": REPLICASETS.kind,
        "metadata": {
            "name": f"{name_of(deployment)}-{hashed[_HASH]}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": int(deployment["spec"].get("replicas", 1)),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **hashed}},
            "template": {**template, "metadata": {**template["metadata"], "labels": labels}},
        },
    }


def _pod(replicas: Obj) -> Obj:
    meta = {
        "generateName": f"{name_of(replicas)}-",
        "namespace": namespace_of(replicas),
        "labels": labels_of(replicas),
        "ownerReferences": [owner_reference(replicas)],
    }
    spec = replicas["spec"]["template"]["spec"]
    return {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": meta, "spec": spec}


def _is_active(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _condition(kind: str, reason: str, now: str) -> Obj:
    times = {"lastTransitionTime": now, "lastUpdateTime": now}
    return {"type": kind, "status": "True", **times, "reason": reason, "message": "Played by the scripted server."}
