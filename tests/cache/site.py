"""One informer over a scripted server under virtual time, and a subscriber that keeps a mirror of what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import settle
from kubectl_ctrl.testing.server import ScriptedServer

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config(name: str, value: str = "0", *, namespace: str = "default", labels: dict[str, str] | None = None) -> Obj:
    meta: Obj = {"name": name, "namespace": namespace, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}


class Wire:
    """The way to the server, with a note of every request, also of those that are refused because it is down."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.sent: list[tuple[float, HttpRequest]] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.sent.append((self.server.clock.elapsed(), request))
        return await self.server.send(request)

    async def open(self, request: HttpRequest) -> HttpStream:
        self.sent.append((self.server.clock.elapsed(), request))
        return await self.server.open(request)

    async def close(self) -> None:
        await self.server.close()

    def kinds(self) -> list[str]:
        """What was asked for: `list` (a page), `stream` (a watch with a list before it), `watch` (one that resumes)."""
        return [_kind(request) for _, request in self.sent]


def _kind(request: HttpRequest) -> str:
    query = dict(request.query)
    if "watch" not in query:
        return "list"
    return "stream" if "sendInitialEvents" in query else "watch"


class Site:
    """Everything that a test of the cache looks at."""

    def __init__(self, selection: Selection, managers: frozenset[str]) -> None:
        self.clock = FakeClock()
        self.server = ScriptedServer(self.clock)
        self.wire = Wire(self.server)
        self.client = Client(self.wire, clock=self.clock, rng=Random(1), user_agent="test")
        self.informers = Informers(self.client, clock=self.clock, rng=Random(2), managers=managers)
        self.informer = self.informers.informer(selection)
        self.selection = selection
        self.mirror: dict[Key, Obj] = {}
        self.told: list[Change] = []
        self.subscription = self.informer.subscribe("mirror", self.hear)

    def hear(self, change: Change) -> None:
        self.told.append(change)
        if change.kind is ChangeKind.DELETED:
            del self.mirror[change.key]
        else:
            assert change.new is not None
            self.mirror[change.key] = change.new

    async def synced(self) -> None:
        for informer in self.informers.all():
            await informer.wait_synced()

    def truth(self) -> dict[str, str]:
        return {obj["metadata"]["name"]: obj["data"]["value"] for obj in self.server.objects(self.selection.resource)}

    def cached(self) -> dict[str, str]:
        return {obj["metadata"]["name"]: obj["data"]["value"] for obj in self.informer.list()}

    def mirrored(self) -> dict[str, str]:
        return {key.name: obj["data"]["value"] for key, obj in self.mirror.items()}

    def agrees(self) -> bool:
        """Whether server, cache and subscriber say the same, and nobody stumbled."""
        return self.truth() == self.cached() == self.mirrored() and self.subscription.errors == 0

    async def agree(self, *, within: float = 10.0) -> float:
        """Wait until they do; says how long it took."""
        began = self.clock.elapsed()
        while not self.agrees():
            assert self.clock.elapsed() - began <= within, (self.truth(), self.cached(), self.informer)
            await self.clock.sleep(0.05)
        await settle()
        return self.clock.elapsed() - began


@asynccontextmanager
async def running(selection: Selection | None = None, *, objects: int = 3, **how: bool) -> AsyncIterator[Site]:
    """A site whose informers run; `how` may hold `streaming` and `synced`, both True when not said."""
    site = Site(selection or Selection(MAPS), frozenset({"kubectl-ctrl-foo"}))
    site.server.streaming_lists = how.get("streaming", True)
    for number in range(objects):
        site.server.create(config(f"map-{number}"))
    task = asyncio.create_task(site.informers.run())
    try:
        if how.get("synced", True):
            await site.synced()
            await settle()
        yield site
        assert not task.done(), "the informers run until they are cancelled"
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
