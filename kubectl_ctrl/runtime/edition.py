"""One version of a controller's code with its caches, routes and loop. A run without reloads has one per controller.

Informers, leadership, events and the settled states belong to the controller and outlive its editions. Two editions
overlap: the next one gets changes from the moment at which the previous one does not, and starts no attempt before the
last attempt of the previous one has ended. So no change is lost between them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubectl_ctrl.cache.fanout import Subscription
from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.recovery import InformerState
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.access import AccessParts
from kubectl_ctrl.runtime.attempts import Attempts, CancelReason
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.caches import Caches, selection_of
from kubectl_ctrl.runtime.controller import Controller, Gate
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.noop import Settlements
from kubectl_ctrl.runtime.options import Run
from kubectl_ctrl.runtime.services import EventSender
from kubectl_ctrl.runtime.status import Schemas
from kubectl_ctrl.runtime.triggers import Watching
from kubectl_ctrl.value import Value


class PermanentParts(Value, kw_only=True):
    """The parts of a controller that stay when its code is replaced."""

    client: Client  # with its own user agent
    informers: Informers  # shared by all controllers
    settlements: Settlements
    schemas: Schemas
    recorder: EventSender
    gate: Gate
    run: Run


class Edition:
    """See the module. It gets no changes before `listen`; `noted` is called at a change of a cache's state."""

    def __init__(
        self, spec: ControllerSpec, kept: PermanentParts, noted: Callable[[Informer], None], *, number: int = 1
    ) -> None:
        self.spec = spec
        self.number = number
        self.started = False  # its workers run or ran
        self.serving = False
        self._kept = kept
        self._run = kept.run
        self._dismissed = asyncio.Event()  # it must start nothing more, not even its workers
        self._over = asyncio.Event()
        scope = self._run.options.namespace, self._run.options.labels
        selections = {resource: selection_of(spec, resource, *scope) for resource in spec.resources}
        self.informers = {resource: kept.informers.informer(one) for resource, one in selections.items()}
        self._caches = Caches(spec, self.informers, number)
        self._echoes = Echoes(spec.field_manager)
        self._watching = self._routes()
        attempts = Attempts(spec, self._equipment(), kept.client)
        self.controller = Controller(spec, attempts, self._watching, self._echoes, run=self._run, gate=kept.gate)
        self._subscriptions: list[Subscription] = []
        self._stops = [informer.on_health(noted) for informer in self.informers.values()]

    def listen(self) -> None:
        """Subscribe to all objects and their changes."""
        self._subscriptions = [self._subscribe(resource) for resource in self._watching.resources]

    async def ready(self) -> bool:
        """Wait until the caches are synced and the controller has their objects; False if dismissed before."""
        waits = [asyncio.create_task(wait) for wait in (self._synced(), self._dismissed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
        return not self._dismissed.is_set()

    async def serve(self, on_start: Callable[[], None]) -> None:
        """Wait for the caches and run the workers, until the controller is closed or stopped."""
        self.serving = True
        try:
            if await self.ready():
                if self._run.options.once:
                    self.controller.close()  # only the present objects will run
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
        """Start no more attempts, for good; those under way may finish."""
        self.controller.stop()
        self._dismissed.set()

    def make_way(self, successor: Edition) -> None:
        """Take no more changes and start no more attempts: from this moment the successor gets the changes."""
        for subscription in self._subscriptions:
            subscription.close()
        successor.listen()
        for request, causes in self.controller.hand_over().items():
            successor.controller.inherit(request, causes)
        self._dismissed.set()

    async def over(self) -> None:
        """Return when its last attempt has ended; attempts are cancelled after `drain` seconds."""
        try:
            async with self._run.clock.timeout(self._run.options.drain):
                await self._over.wait()
        except TimeoutError:
            self.controller.shut(CancelReason.RELOAD)
            await self._over.wait()

    def close(self, successor: Edition) -> None:
        """Remove its indexes and listeners; requests that it left undone go to the successor."""
        self.controller.abandon()
        for waiting in self.controller.left:
            successor.controller.inherit(waiting.request)
        for stop in self._stops:
            stop()
        self._caches.close()

    async def _synced(self) -> None:
        for informer in self.informers.values():
            await informer.wait_synced()

    @property
    def missing(self) -> list[Informer]:
        """The caches whose resource type the server does not serve."""
        return [informer for informer in self.informers.values() if informer.health.state is InformerState.MISSING]

    @property
    def behind(self) -> int:
        """The number of changes in the caches' backlogs for this controller."""
        return sum(subscription.behind for subscription in self._subscriptions)

    def _equipment(self) -> AccessParts:
        return AccessParts(
            manager=self.spec.field_manager,
            caches=self._caches,
            overlays=self._kept.informers,
            echoes=self._echoes,
            settlements=self._kept.settlements,
            schemas=self._kept.schemas,
            recorder=self._kept.recorder,
            clock=self._run.clock,
        )

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
