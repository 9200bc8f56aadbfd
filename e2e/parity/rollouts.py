"""Rollouts: the states in which the controllers of a cluster leave a Deployment after each of several changes.

Nodes and running pods are kwok's on a real cluster, so what a kubelet writes is left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from e2e.parity.asks import DEPLOYMENTS, EVENTS, MERGE, PODS, REPLICASETS, Ask, delete, deployment, patch, post
from kubectl_ctrl.model.transport import HttpRequest, Transport

_WEB = f"{DEPLOYMENTS}/web"
_TIMES = ("lastUpdateTime", "lastTransitionTime")
_KUBECTL = {"User-Agent": "parity/1.0", "Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Rollout:
    """Requests, each made after the controllers have come to rest."""

    name: str
    asks: tuple[Ask, ...]


def _image(image: str, **spec: Any) -> Ask:
    containers = [{"name": "web", "image": image}]
    return patch(_WEB, {"spec": {**spec, "template": {"spec": {"containers": containers}}}}, MERGE)


def _spec(**spec: Any) -> Ask:
    return patch(_WEB, {"spec": spec}, MERGE)


def _made(replicas: int = 3, **spec: Any) -> Ask:
    return post(DEPLOYMENTS, deployment("web", replicas, **spec))


_STUCK = {
    "spec": {
        "template": {
            "spec": {"nodeSelector": {"no": "node"}, "containers": [{"name": "web", "image": "nginx:stuck"}]},
        }
    }
}
_STRATEGY = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}

ROLLOUTS = (
    Rollout("created", (_made(),)),
    Rollout("without replicas", (_made(0), _spec(replicas=2), _spec(replicas=0))),
    Rollout("scaled", (_made(), _spec(replicas=5), _spec(replicas=1))),
    Rollout("rolled", (_made(4), _image("nginx:2"), _image("nginx:3"))),
    Rollout("rolled back", (_made(2), _image("nginx:2"), _image("nginx"), _image("nginx:2"))),
    Rollout("recreated", (_made(2, strategy={"type": "Recreate"}), _image("nginx:2"))),
    Rollout("paused", (_made(2), _spec(paused=True), _image("nginx:2", replicas=3), _spec(paused=None))),
    Rollout("born paused", (_made(2, paused=True), _spec(paused=None))),
    Rollout("with history", (_made(1, revisionHistoryLimit=1), *(_image(f"nginx:{one}") for one in range(2, 5)))),
    Rollout("stuck", (_made(4), patch(_WEB, _STUCK, MERGE))),
    Rollout("stuck and scaled", (_made(10, strategy=_STRATEGY), patch(_WEB, _STUCK, MERGE), _spec(replicas=15))),
    Rollout("stuck and shrunk", (_made(10, strategy=_STRATEGY), patch(_WEB, _STUCK, MERGE), _spec(replicas=5))),
    Rollout("stuck and rolled back", (_made(4), patch(_WEB, _STUCK, MERGE), _image("nginx", replicas=4))),
    Rollout("late", (_made(1, progressDeadlineSeconds=2), patch(_WEB, _STUCK, MERGE))),
    Rollout("never available", (_made(2, minReadySeconds=3600, progressDeadlineSeconds=3601),)),
    Rollout("annotated", (_made(1), patch(_WEB, {"metadata": {"annotations": {"example.com/a": "b"}}}, MERGE))),
    Rollout("orphaned", (_made(2), delete(_WEB, {"propagationPolicy": "Orphan"}), _made(2))),
    Rollout("deleted", (_made(2), delete(_WEB))),
)


class Cluster:
    """One of the two clusters."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport = transport
        self._namespace = namespace
        self._hashes: dict[str, str] = {}

    async def ask(self, ask: Ask) -> int:
        body = None if ask.body is None else json.dumps(ask.body).encode()
        return (await self._send(ask.method, ask.path, body, ask.media))[0]

    async def state(self) -> Any:
        """Deployments, ReplicaSets, pods and events, without the values that each cluster may choose."""
        listed = {name: await self._listed(path) for name, path in _LISTS.items()}
        self._hashes |= _hashes(listed["replicasets"])
        state: dict[str, Any] = {name: [*map(_plain, listed[name])] for name in ("deployments", "replicasets")}
        state["pods"] = [[*pod, count] for pod, count in Counter(map(_pod, listed["pods"])).items()]
        state["events"] = [_event(one) for one in listed["events"] if one["involvedObject"]["kind"] != "Pod"]
        masked = json.loads(_masked(json.dumps(state), self._hashes))
        unique = {name: {json.dumps(one): one for one in found} for name, found in masked.items()}
        return {name: [found[text] for text in sorted(found)] for name, found in unique.items()}

    async def _listed(self, path: str) -> list[Any]:
        _, body = await self._send("GET", path, None, MERGE)
        return list(body["items"])

    async def _send(self, method: str, path: str, body: bytes | None, media: str) -> tuple[int, Any]:
        headers = {**_KUBECTL, "Content-Type": media}
        path = path.replace("{ns}", self._namespace)
        response = await self._transport.send(HttpRequest(method=method, path=path, headers=headers, body=body))
        return response.status, json.loads(response.body)


_LISTS: Mapping[str, str] = {"deployments": DEPLOYMENTS, "replicasets": REPLICASETS, "pods": PODS, "events": EVENTS}


def _hashes(replicasets: list[Any]) -> dict[str, str]:
    """The template hashes, by the image of their template."""
    return {
        one["metadata"]["labels"]["pod-template-hash"]: one["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in replicasets
    }


def _masked(text: str, hashes: Mapping[str, str]) -> str:
    for value, image in hashes.items():
        text = text.replace(value, f"<{image}>")
    return text


def _plain(obj: Any) -> Any:
    meta = obj["metadata"]
    status = {**obj["status"]}
    observed = status.pop("observedGeneration", 0) == meta["generation"]
    conditions = [
        {key: value for key, value in one.items() if key not in _TIMES} for one in status.get("conditions", ())
    ]
    return {
        "name": meta["name"],
        "labels": meta.get("labels"),
        "annotations": meta.get("annotations"),
        "generation": meta["generation"] if obj["spec"].get("strategy") else observed,
        "owners": [owner["kind"] for owner in meta.get("ownerReferences", ())],
        "spec": {
            key: value for key, value in obj["spec"].items() if key in ("replicas", "selector", "minReadySeconds")
        },
        "status": {**status, "conditions": conditions},
    }


def _pod(pod: Any) -> tuple[str, str]:
    return pod["spec"]["containers"][0]["image"], pod["status"]["phase"]


def _event(event: Any) -> tuple[str, ...]:
    """Without the message: the steps in which a ReplicaSet is scaled depend on the speed of its pods."""
    return event["involvedObject"]["kind"], event["type"], event["reason"]
