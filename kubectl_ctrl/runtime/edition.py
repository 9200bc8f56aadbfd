"""One version of a controller's code at work: its caches, its routes, its loop. A run without reloads has one of each.

Informers, leadership, events and what is known of the server belong to the controller and outlive its editions. Two
editions overlap: the next one is told of everything from the moment on at which the one before goes deaf, and starts
no attempt before the last attempt of that one has ended. So no change falls between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubectl_ctrl.cache.fanout import Subscription
from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.recovery import State as CacheState
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.access import Equipment
from kubectl_ctrl.runtime.attempts import Attempts, Cut
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.caches import Caches, selection_of
from kubectl_ctrl.runtime.controller import Controller, Gate
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.noop import Settlements
from kubectl_ctrl.runtime.options import Run
from kubectl_ctrl.runtime.services import Recorder
from kubectl_ctrl.runtime.status import Schemas
from kubectl_ctrl.runtime.triggers import Watching
from kubectl_ctrl.value import Value


class Kept(Value, kw_only=True):
    """What a controller keeps when its code is replaced: who it is in the cluster, and what it knows of the server."""

    client: Client  # its own, by its user agent
    informers: Informers  # everybody's
    settlements: Settlements
    schemas: Schemas
    recorder: Recorder
    gate: Gate
    run: Run


class Edition:
    """See the module. It hears nothing before `listen`; `noted` is told when a cache of its changes its state."""

    def __init__(self, spec: ControllerSpec, kept: Kept, noted: Callable[[Informer], None], *, number: int = 1) -> None:
        self.spec = spec
        self.number = number
        self.started = False  # its workers were
        self.serving = False
        self._kept = kept
        self._run = kept.run
        self._dismissed = asyncio.Event()  # it is to start nothing more, not even its workers
        self._over = asyncio.Event()
        self.informers = {resource: kept.informers.informer(self._selection(resource)) for resource in spec.resources}
        self._caches = Caches(spec, self.informers, number)
        self._echoes = Echoes(spec.field_manager)
        self._watching = self._routes()
        attempts = Attempts(spec, self._equipment(), kept.client)
        self.controller = Controller(spec, attempts, self._watching, self._echoes, run=self._run, gate=kept.gate)
        self._subscriptions: list[Subscription] = []
        self._stops = [informer.on_health(noted) for informer in self.informers.values()]

    # Its life.

    def listen(self) -> None:
        """From now on it is told of every change, first of all of what is there."""
        self._subscriptions = [self._subscribe(resource) for resource in self._watching.resources]

    async def ready(self) -> bool:
        """Wait until every cache has everything and the controller was told of it; False when it is to leave before."""
        waits = [asyncio.create_task(wait) for wait in (self._synced(), self._dismissed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
        return not self._dismissed.is_set()

    async def serve(self, on_start: Callable[[], None]) -> None:
        """Wait for the caches and work; until the controller is closed or stopped."""
        self.serving = True
        try:
            if await self.ready():
                if self._run.options.once:
                    self.controller.close()  # what is there now is all that will be run
                self.started = True
                on_start()
                await self._work()
        finally:
            self.serving = False
            self._over.set()

    async def _work(self) -> None:
        names = (f"worker {number} of {self.spec.name}" for number in range(self._run.options.workers))
        workers = [asyncio.create_task(self.controller.work(), name=name) for name in names]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)

    def stop(self) -> None:
        """Start nothing more, for good; what runs may end."""
        self.controller.stop()
        self._dismissed.set()

    def make_way(self, successor: Edition) -> None:
        """Hear nothing more and start nothing more: from this moment on everything is told to the successor."""
        for subscription in self._subscriptions:
            subscription.close()
        successor.listen()
        for request, causes in self.controller.bequeath().items():
            successor.controller.inherit(request, causes)
        self._dismissed.set()

    async def over(self) -> None:
        """Return when nothing of it runs any more; what is left after `drain` seconds is cut."""
        try:
            async with self._run.clock.timeout(self._run.options.drain):
                await self._over.wait()
        except TimeoutError:
            self.controller.shut(Cut.RELOAD)
            await self._over.wait()

    def close(self, successor: Edition) -> None:
        """Leave nothing behind in the caches; what its last attempts did not finish is the successor's."""
        self.controller.give_up()
        for waiting in self.controller.left:
            successor.controller.inherit(waiting.request)
        for stop in self._stops:
            stop()
        self._caches.close()

    async def _synced(self) -> None:
        for informer in self.informers.values():
            await informer.wait_synced()

    # How it stands.

    @property
    def missing(self) -> list[Informer]:
        """The caches whose resource type the server does not serve."""
        return [informer for informer in self.informers.values() if informer.health.state is CacheState.MISSING]

    @property
    def behind(self) -> int:
        """How much of what the caches know the controller is still to be told."""
        return sum(subscription.behind for subscription in self._subscriptions)

    # How it is put together.

    def _equipment(self) -> Equipment:
        return Equipment(
            manager=self.spec.field_manager,
            caches=self._caches,
            overlays=self._kept.informers,
            echoes=self._echoes,
            settlements=self._kept.settlements,
            schemas=self._kept.schemas,
            recorder=self._kept.recorder,
            clock=self._run.clock,
        )

    def _selection(self, resource: Resource) -> Selection:
        return selection_of(self.spec, resource, self._run.options.namespace, self._run.options.labels)

    def _routes(self) -> Watching:
        options, primaries, caches = self._run.options, self.spec.primaries, self._caches
        first = CauseKind.INITIAL if self.number == 1 else CauseKind.RELOADED
        if not options.labels:
            return Watching(self.spec, caches, namespace=options.namespace, first=first)

        def selected(request: Request) -> bool:
            return any(caches.get(one, request.name, request.namespace) is not None for one in primaries)

        return Watching(self.spec, caches, namespace=options.namespace, selected=selected, first=first)

    def _subscribe(self, resource: Resource) -> Subscription:
        primary = resource in self.spec.primaries
        return self.informers[resource].subscribe(
            self.spec.name,
            self.controller.changed,
            resync=self._run.options.resync if primary else None,
            replaced=lambda: self._echoes.new_epoch(resource),
        )

    def __repr__(self) -> str:
        state = "serving" if self.serving else "over" if self._over.is_set() else "new"
        return f"Edition({self.spec.name}, number={self.number}, {state}, subscriptions={len(self._subscriptions)})"
