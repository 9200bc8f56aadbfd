"""One controller of a run with its Lease, its events and its code; decides whether attempts may start.

They may when its caches are synced, their resource types are served, and it leads. Until then, and again whenever one
of these is lost, it waits and reports the reason. Its code can be replaced while it runs; all else stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.recovery import InformerState
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.errors import CallSite, CtrlError, Forbidden, Refused
from kubectl_ctrl.model.attempt import ControllerState, Tally
from kubectl_ctrl.runtime.attempts import CancelReason
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.controller import Controller
from kubectl_ctrl.runtime.edition import Edition, PermanentParts
from kubectl_ctrl.runtime.noop import Settlements
from kubectl_ctrl.runtime.options import Run
from kubectl_ctrl.runtime.services import Elector, EventSender, NoEvents, Services
from kubectl_ctrl.runtime.status import Schemas


class Member:
    """See the module. `client` has the controller's own user agent; the informers are shared."""

    def __init__(
        self, spec: ControllerSpec, client: Client, informers: Informers, services: Services, run: Run
    ) -> None:
        tell = run.observers.tell
        gated = client.scoped(Scope(gate=self._gate))
        self.recorder: EventSender = services.recorder(spec.name, gated, tell) if services.recorder else NoEvents()
        self._elector: Elector | None = services.elector(spec.name, client, tell) if services.elector else None
        self._run = run
        self._kept = PermanentParts(
            client=client,
            informers=informers,
            settlements=Settlements(),
            schemas=Schemas(client, run.clock, run.options.words.get(spec.name, spec.name)),
            recorder=self.recorder,
            gate=self._gate,
            run=run,
        )
        self._leading = self._elector is None
        self._since = run.clock.now()  # wall time of the last change of `_leading`
        self._edition = Edition(spec, self._kept, self._noted)
        self._leaving: Edition | None = None  # the previous one, while its last attempts run
        self._swapping = asyncio.Lock()
        self._stopped = False
        self._absent: set[Selection] = set()  # of types that were not served
        self._edition.listen()

    async def serve(self) -> None:
        """Serve one edition after the other, until the controller is closed or stopped."""
        while True:
            edition = self._edition
            await edition.serve(self._update)
            if edition is self._edition:
                return
            self._close(edition)

    async def swap(self, spec: ControllerSpec) -> None:
        """Replace the code; returns when the last attempt of the previous code has ended."""
        async with self._swapping:
            if self._stopped:
                return
            before = self._edition
            after = Edition(spec, self._kept, self._noted, number=before.number + 1)
            self._edition, self._leaving = after, before
            before.make_way(after)
            if before.serving:
                await before.over()
            else:
                self._close(before)

    def _close(self, before: Edition) -> None:
        before.close(self._edition)
        self._leaving = None

    def stop(self) -> None:
        """Start no more attempts, for good; `serve` returns after those under way."""
        self._stopped = True
        self._edition.stop()

    def cut(self, why: CancelReason) -> None:
        """Start no more attempts, and cancel those under way."""
        for controller in self._controllers:
            controller.shut(why)

    async def finished(self) -> None:
        """Wait for the end of all attempts; none may start meanwhile."""
        for controller in self._controllers:
            await controller.finished()

    def abandon(self) -> None:
        """Abandon the attempts that still run."""
        for controller in self._controllers:
            controller.abandon()

    async def lead(self) -> None:
        """Take part in the election until cancelled; only with synced caches, because a leader needs data."""
        if self._elector is None:
            return
        while not await (edition := self._edition).ready():
            if edition is self._edition:
                return  # stopped, not replaced
        try:
            await self._elector.run(self._gained, self._lost)
        except CtrlError as error:
            self._run.on_fatal(error)

    def _gained(self) -> None:
        self._leading, self._since = True, self._run.clock.now()
        self._update()

    def _lost(self) -> None:
        self._leading, self._since = False, self._run.clock.now()
        self.cut(CancelReason.LEASE)

    def _noted(self, informer: Informer) -> None:
        state = informer.health.state
        if state is InformerState.REFUSED:
            self._run.on_fatal(Refused(informer.health.message))
        elif state is InformerState.FORBIDDEN and self._run.options.once:
            self._run.on_fatal(_forbidden(informer))  # with --once nobody grants the right meanwhile
        elif state is InformerState.MISSING:
            self._absent.add(informer.selection)
        elif state is InformerState.SYNCED and informer.selection in self._absent:
            self._absent.discard(informer.selection)
            self._kept.client.discovery.forget()  # it may have been read just before the type was installed
        self._update()

    def _update(self) -> None:
        if self.started and self._leading and not self.missing:
            self.controller.open()
        else:
            self.controller.shut()

    def _gate(self) -> float | None:
        return self._elector.gate() if self._elector is not None else None

    @property
    def spec(self) -> ControllerSpec:
        return self._edition.spec

    @property
    def controller(self) -> Controller:
        """That of the present code."""
        return self._edition.controller

    @property
    def _controllers(self) -> Iterator[Controller]:
        """Those that may have attempts under way."""
        yield self._edition.controller
        if self._leaving is not None:
            yield self._leaving.controller

    @property
    def under_way(self) -> tuple[str, ...]:
        """The attempts under way."""
        return tuple(attempt for controller in self._controllers for attempt in controller.under_way)

    @property
    def at_work(self) -> tuple[tuple[str, bool], ...]:
        """The same with their objects, and whether the event loop is in them; may be called from another thread."""
        return tuple(one for controller in self._controllers for one in controller.at_work)

    @property
    def started(self) -> bool:
        return self._edition.started

    @property
    def missing(self) -> list[Informer]:
        """The caches whose resource type the server does not serve."""
        return self._edition.missing

    @property
    def informers(self) -> Iterable[Informer]:
        return self._edition.informers.values()

    def uses(self, informer: Informer) -> bool:
        """Its code uses the informer, or its previous code, whose last attempts still run."""
        editions = (self._edition, self._leaving)
        return any(edition is not None and informer in edition.informers.values() for edition in editions)

    @property
    def behind(self) -> int:
        """The number of changes in the caches' backlogs for this controller."""
        return self._edition.behind

    @property
    def leading(self) -> bool:
        return self._leading

    @property
    def overdue(self) -> bool:
        """It counts as leading after its deadline has passed: the event loop had no time to report the end."""
        return self._leading and self._elector is not None and not self._elector.leading

    def obstacles(self) -> Iterator[tuple[str, float]]:
        """The reasons why no attempts may start or the caches are not complete, each with its wall time."""
        for informer in self.informers:
            health = informer.health
            if health.state is InformerState.MISSING:
                yield f"{informer.selection.resource} is not installed", health.since
            elif health.state is not InformerState.SYNCED:
                said = f": {health.message}" if health.message else ""
                yield f"the cache of {informer.selection} is {health.state.value}{said}", health.since
        if not self._leading:
            yield f"the run does not hold the Lease of {self.spec.name}", self._since

    def state(self) -> ControllerState:
        message = "; ".join(what for what, _ in self.obstacles())
        synced = all(informer.synced for informer in self.informers)
        return self.controller.state(leading=self._leading, synced=synced, message=message)

    def tally(self) -> Tally:
        versions = tuple((resource, informer.version) for resource, informer in self._edition.informers.items())
        return Tally(
            controller=self.spec.name,
            at=self._run.clock.now(),
            filtered=self.controller.held_back,
            versions=versions,
            held=self.controller.held_objects,
        )


def _forbidden(informer: Informer) -> Forbidden:
    selection = informer.selection
    return Forbidden(informer.health.message, site=CallSite("list", str(selection)), code=403, reason="Forbidden")
