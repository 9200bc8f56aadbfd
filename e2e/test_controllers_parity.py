"""The controllers of the sandbox leave the same objects behind as those of a real cluster, after every step."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.kube import Cluster
from e2e.parity.asks import PODS, Ask
from e2e.parity.controllers import PLAYS, Deed, Play, View
from e2e.parity.record import unequal
from e2e.test_scripted_parity import connected
from kubectl_ctrl.clock import Clock, SystemClock, rfc3339
from kubectl_ctrl.model.transport import HttpRequest, Transport
from kubectl_ctrl.sandbox import cluster as sandbox
from kubectl_ctrl.sandbox.endpoint import Endpoint

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("test_scripted_parity")]

AT_ONCE = 8
NODES = 10  # as the session's cluster has
SECONDS = 40.0  # in which the real controllers act
_NOISE = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}(?![\w-])"), "-<name>"),
    (re.compile(r"(?<![\w])[bcdfghjklmnpqrstvwxz2456789]{7,10}(?![\w-])"), "<hash>"),
    (re.compile(r"\b(node|sandbox)-\d+"), "<node>"),
    (re.compile(r"\b10(\.\d+){3}\b"), "<ip>"),
    (re.compile(r"parity-controllers-\d+"), "<namespace>"),
)


class Side:
    """One of the two clusters, in one namespace."""

    def __init__(self, namespace: str, server: Transport) -> None:
        self._namespace = namespace
        self._server = server

    async def ask(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Any:
        request = HttpRequest(
            method=method,
            path=path.replace("{ns}", self._namespace),
            headers={"Content-Type": media, "Accept": "application/json", "User-Agent": "parity/1.0"},
            body=None if body is None else json.dumps(body).encode(),
            deadline=30.0,
        )
        answer = await self._server.send(request)
        assert answer.status < 300, (request.path, answer.body)
        return json.loads(answer.body)

    async def do(self, step: Ask | Deed, now: str) -> None:
        if isinstance(step, Ask):
            await self.ask(step.method, step.path, step.body, step.media)
            return
        listed = (await self.ask("GET", PODS))["items"]
        waiting = sorted((pod for pod in listed if pod["status"]["phase"] == "Pending"), key=_order)
        assert len(waiting) >= step.count, f"{len(waiting)} pods instead of {step.count}"
        for place, pod in enumerate(waiting[: step.count]):
            change = {"status": _status(step, place, now)}
            path = f"{PODS}/{pod['metadata']['name']}/status"
            await self.ask("PATCH", path, change, "application/merge-patch+json")

    async def show(self, views: tuple[View, ...]) -> list[Any]:
        return [_shown((await self.ask("GET", view.path))["items"], view.fields) for view in views]


def _order(pod: Mapping[str, Any]) -> tuple[str, str]:
    index = pod["metadata"].get("annotations", {}).get("batch.kubernetes.io/job-completion-index", "")
    return (index, pod["metadata"]["name"])


def _status(step: Deed, place: int, now: str) -> dict[str, Any]:
    if step.phase == "Running":
        ip = f"10.99.0.{place + 1}"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
        return {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [ready]}
    terminated = {"exitCode": step.code, "startedAt": now, "finishedAt": now, "reason": "Done"}
    status = {"name": "web", "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    return {"phase": step.phase, "containerStatuses": [{**status, "state": {"terminated": terminated}}]}


def _shown(items: list[Any], fields: tuple[str, ...]) -> list[Any]:
    """The fields of all objects without noise, in an order that does not depend on names."""
    shown = [{field: _picked(item, field.split(".")) for field in fields} for item in items]
    return sorted((_plain(one) for one in shown), key=json.dumps)


def _picked(value: Any, path: list[str]) -> Any:
    """An empty struct is the same as none: which of the two a server shows is not the controllers' choice."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return None if value == {} else value


def _plain(value: Any) -> Any:
    text = json.dumps(value, sort_keys=True)
    for pattern, label in _NOISE:
        text = pattern.sub(label, text)
    return json.loads(text)


@pytest.mark.parametrize("play", [pytest.param(play, id=play.name) for play in PLAYS])
def test_both_clusters_come_to_the_same(play: Play, differences: dict[str, list[str]]) -> None:
    assert not differences[play.name], "\n".join(differences[play.name])


@pytest.fixture(scope="module")
def differences(cluster: Cluster) -> dict[str, list[str]]:
    """By the name of the play; all are played at once."""
    return asyncio.run(played(cluster.kubeconfig))


async def played(kubeconfig: Path) -> dict[str, list[str]]:
    clock, turns = SystemClock(), asyncio.Semaphore(AT_ONCE)
    async with connected(kubeconfig, clock) as real:

        async def compare(number: int, play: Play) -> list[str]:
            async with turns:
                return await _compared(play, f"parity-controllers-{number}", real, clock)

        found = await asyncio.gather(*(compare(number, play) for number, play in enumerate(PLAYS)))
    return {play.name: lines for play, lines in zip(PLAYS, found, strict=True)}


async def _compared(play: Play, namespace: str, real: Transport, clock: Clock) -> list[str]:
    server = sandbox.Cluster(Endpoint(clock), sandbox.ClusterSettings(nodes=NODES)).server
    ours, theirs = Side(namespace, server), Side(namespace, real)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    for side in (ours, theirs):
        await side.ask("POST", "/api/v1/namespaces", space)
    await clock.sleep(1.0)  # the ServiceAccount of the namespace, without which no pod is created
    for place, step in enumerate(play.steps):
        try:
            for side in (ours, theirs):
                await side.do(step, rfc3339(clock.now()))
        except AssertionError as error:
            return [f"step {place}: {error}"]
        if lines := await _difference(play.views, ours, theirs, clock):
            return [f"step {place}:", *lines]
    return []


async def _difference(views: tuple[View, ...], ours: Side, theirs: Side, clock: Clock) -> list[str]:
    """Compared until they agree, or the time is over."""
    end = clock.elapsed() + SECONDS
    while True:
        sandboxed, real = await ours.show(views), await theirs.show(views)
        if sandboxed == real or clock.elapsed() > end:
            break
        await clock.sleep(0.2)
    return [f"  {path}: real {one}, sandbox {other}" for path, one, other in unequal(real, sandboxed)]
