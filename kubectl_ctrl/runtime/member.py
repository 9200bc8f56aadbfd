"""One controller of a run with all that is its own: its lease, its events, its code; and whether it may work now.

It works when its caches are synced, their resource types are served, and it leads. Until then, and again whenever one
of these is lost, it waits and says for what. Its code can be replaced while it runs; all else stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.cache.recovery import State as CacheState
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.errors import CallSite, CtrlError, Forbidden, Refused
from kubectl_ctrl.model.attempt import State, Tally
from kubectl_ctrl.runtime.attempts import Cut
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.controller import Controller
from kubectl_ctrl.runtime.edition import Edition, Kept
from kubectl_ctrl.runtime.noop import Settlements
from kubectl_ctrl.runtime.options import Run
from kubectl_ctrl.runtime.services import Elector, Mute, Recorder, Services
from kubectl_ctrl.runtime.status import Schemas


class Member:
    """See the module. `client` is the controller's own, by its user agent; the informers are everybody's."""

    def __init__(
        self, spec: ControllerSpec, client: Client, informers: Informers, services: Services, run: Run
    ) -> None:
        tell = run.observers.tell
        gated = client.scoped(Scope(gate=self._gate))
        self.recorder: Recorder = services.recorder(spec.name, gated, tell) if services.recorder else Mute()
        self._elector: Elector | None = services.elector(spec.name, client, tell) if services.elector else None
        self._run = run
        self._kept = Kept(
            client=client,
            informers=informers,
            settlements=Settlements(),
            schemas=Schemas(client, run.clock, run.options.words.get(spec.name, spec.name)),
            recorder=self.recorder,
            gate=self._gate,
            run=run,
        )
        self._leading = self._elector is None
        self._since = run.clock.now()  # of leading, or of not leading
        self._edition = Edition(spec, self._kept, self._noted)
        self._leaving: Edition | None = None  # the one before, while its last attempts run
        self._swapping = asyncio.Lock()
        self._stopped = False
        self._absent: set[Selection] = set()  # of types that were not served
        self._edition.listen()

    # Its life.

    async def serve(self) -> None:
        """Wait for the caches, stand for election, work; until the controller is closed or stopped."""
        while True:
            edition = self._edition
            await edition.serve(self._update)
            if edition is self._edition:
                return
            self._part_with(edition)

    async def swap(self, spec: ControllerSpec) -> None:
        """Let other code of the same controller take over; returns when nothing of the code before it runs any more."""
        async with self._swapping:
            if self._stopped:
                return  # nobody takes over from here
            before = self._edition
            after = Edition(spec, self._kept, self._noted, number=before.number + 1)
            self._edition, self._leaving = after, before
            before.make_way(after)
            if before.serving:
                await before.over()
            else:
                self._part_with(before)

    def _part_with(self, before: Edition) -> None:
        """Nothing of it runs any more."""
        before.close(self._edition)
        self._leaving = None

    def stop(self) -> None:
        """Start nothing more, for good; `serve` ends once what runs is done."""
        self._stopped = True
        self._edition.stop()

    def cut(self, why: Cut) -> None:
        """Start nothing more, and end what runs."""
        for controller in self._controllers:
            controller.shut(why)

    async def finished(self) -> None:
        """Wait until none of its attempts runs any more; for when none starts."""
        for controller in self._controllers:
            await controller.finished()

    def give_up(self) -> None:
        """`serve` is ended while attempts still run."""
        for controller in self._controllers:
            controller.give_up()

    async def lead(self) -> None:
        """Stand for election once the caches are synced, until cancelled."""
        if self._elector is None:
            return
        while not await (edition := self._edition).ready():
            if edition is self._edition:
                return  # it was stopped, not replaced
        try:
            await self._elector.run(self._led, self._lost)
        except CtrlError as error:
            self._run.on_fatal(error)

    def _led(self) -> None:
        self._leading, self._since = True, self._run.clock.now()
        self._update()

    def _lost(self) -> None:
        self._leading, self._since = False, self._run.clock.now()
        self.cut(Cut.LEASE)

    def _noted(self, informer: Informer) -> None:
        state = informer.health.state
        if state is CacheState.REFUSED:
            self._run.on_fatal(Refused(informer.health.message))
        elif state is CacheState.FORBIDDEN and self._run.options.once:
            self._run.on_fatal(_forbidden(informer))  # a script has nobody who would grant it meanwhile
        elif state is CacheState.MISSING:
            self._absent.add(informer.selection)
        elif state is CacheState.SYNCED and informer.selection in self._absent:
            self._absent.discard(informer.selection)
            self._kept.client.discovery.forget()  # it may have been read a moment before the type appeared
        self._update()

    def _update(self) -> None:
        if self.started and self._leading and not self.missing:
            self.controller.open()
        else:
            self.controller.shut()

    def _gate(self) -> float | None:
        return self._elector.gate() if self._elector is not None else None

    # How it stands.

    @property
    def spec(self) -> ControllerSpec:
        return self._edition.spec

    @property
    def controller(self) -> Controller:
        """The loop of its present code."""
        return self._edition.controller

    @property
    def _controllers(self) -> Iterator[Controller]:
        """All that may have attempts under way."""
        yield self._edition.controller
        if self._leaving is not None:
            yield self._leaving.controller

    @property
    def under_way(self) -> tuple[str, ...]:
        """The attempts that run now."""
        return tuple(attempt for controller in self._controllers for attempt in controller.under_way)

    @property
    def at_work(self) -> tuple[tuple[str, bool], ...]:
        """The same with their objects, and whether it is they who keep the loop; also for another thread."""
        return tuple(one for controller in self._controllers for one in controller.at_work)

    @property
    def started(self) -> bool:
        """Whether its workers were."""
        return self._edition.started

    @property
    def missing(self) -> list[Informer]:
        """The caches whose resource type the server does not serve."""
        return self._edition.missing

    @property
    def informers(self) -> Iterable[Informer]:
        return self._edition.informers.values()

    def uses(self, informer: Informer) -> bool:
        """Whether its code reads from it, or the code before it, whose last attempts still run."""
        editions = (self._edition, self._leaving)
        return any(edition is not None and informer in edition.informers.values() for edition in editions)

    @property
    def behind(self) -> int:
        """How much of what the caches know the controller is still to be told."""
        return self._edition.behind

    @property
    def leading(self) -> bool:
        return self._leading

    @property
    def overdue(self) -> bool:
        """Whether it still counts as leading after its time has passed: the loop did not come to say so."""
        return self._leading and self._elector is not None and not self._elector.leading

    def obstacles(self) -> Iterator[tuple[str, float]]:
        """What keeps it from working or from knowing everything, each with its wall time."""
        for informer in self.informers:
            health = informer.health
            if health.state is CacheState.MISSING:
                yield f"{informer.selection.resource} is not installed", health.since
            elif health.state is not CacheState.SYNCED:
                said = f": {health.message}" if health.message else ""
                yield f"the cache of {informer.selection} is {health.state.value}{said}", health.since
        if not self._leading:
            yield f"the lease of {self.spec.name} is not ours", self._since

    def state(self) -> State:
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
