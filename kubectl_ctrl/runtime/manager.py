"""Starts controllers in order, supervises the run, and stops it in order.

Start: check that the resource types are served; start caches and wait until they are synced; election; workers.
Stop: workers finish attempts under way; queued events are sent; Leases are released; caches stop. Events come before
Leases, because a released Lease closes the gate of their client. A second stop ends the run at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

from kubectl_ctrl.cache.informer import Informer
from kubectl_ctrl.cache.informers import Informers
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import ControllerError, CtrlError, NotInstalled
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.runtime.attempts import CancelReason
from kubectl_ctrl.runtime.builder import ControllerSpec, check_together
from kubectl_ctrl.runtime.idle import QUIET, unmet
from kubectl_ctrl.runtime.ids import AttemptIds, new_run
from kubectl_ctrl.runtime.member import Member
from kubectl_ctrl.runtime.observers import Observer, Observers
from kubectl_ctrl.runtime.options import Run, RunOptions
from kubectl_ctrl.runtime.presence import Presence
from kubectl_ctrl.runtime.reports import Reports
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import FailedRequest, Reason, Summary, UndoneRequest, Unmet
from kubectl_ctrl.runtime.until import Until
from kubectl_ctrl.version import VERSION

_log = logging.getLogger(__name__)

_DEFAULT_OPTIONS = RunOptions()
_NO_SERVICES = Services()

_CHECK_IDLE_EVERY = 0.1
# After a cancellation: the time for cancelled attempts, and for queued events.
_CLEANUP_TIME = 5.0


class Manager:
    """One run of some controllers; it cannot be run twice."""

    def __init__(
        self,
        controllers: Sequence[ControllerSpec],
        *,
        client: Client,
        clock: Clock,
        rng: Random,
        observers: Iterable[Observer] = (),
        options: RunOptions = _DEFAULT_OPTIONS,
        services: Services = _NO_SERVICES,
    ) -> None:
        check_together(controllers)
        self.run_id = options.run_id or new_run(rng)
        self.options = options
        self._client = client
        self._clock = clock
        self._observers = Observers(observers)
        self._ids = AttemptIds(self.run_id)
        run = Run(
            ids=self._ids, observers=self._observers, clock=clock, rng=rng, options=options, on_fatal=self._give_up
        )
        managers = frozenset(spec.field_manager for spec in controllers)
        read_only = options.read_only_objects
        self.informers = Informers(client, clock=clock, rng=rng, managers=managers, read_only_objects=read_only)
        self._informers = {client: self.informers}

        def member(spec: ControllerSpec) -> Member:
            own = services.clients.get(spec.name, client)
            if own not in self._informers:
                # Rights differ between users: only controllers with the same client share caches.
                self._informers[own] = Informers(
                    own, clock=clock, rng=rng, managers=managers, read_only_objects=read_only
                )
            return Member(
                spec, own.as_agent(f"kubectl-ctrl/{VERSION} ({spec.name})"), self._informers[own], services, run
            )

        self.members = tuple(member(spec) for spec in controllers)
        self._reports = Reports(self.members, self._observers, clock)
        own = [resource for spec in controllers for resource in spec.primaries]
        self._until = Until(options.until, client, own=own, clock=clock, rng=rng) if options.until else None
        self._presence = Presence(client.discovery, self._missing, clock=clock, rng=rng)
        self._over = asyncio.Event()
        self._reason = Reason.STOPPED
        self._told: tuple[Unmet, ...] = ()  # what the run waited for when it ended
        self._error: CtrlError | None = None

    def ask(self, controller: str, request: Request, detail: str = "") -> None:
        """Run a request without a change."""
        self._member(controller).controller.ask(request, detail)

    async def swap(self, spec: ControllerSpec) -> None:
        """Replace the code of the controller of that name.

        Caches, Lease and queued requests are kept; attempts under way may finish within the drain time. Then all
        objects are reconciled again. Returns when nothing of the old code is left.
        """
        check_together([spec])
        await self._member(spec.name).swap(spec)
        for informers in self._informers.values():
            for informer in informers.all():
                # Checked each time: another swap may begin while one stops.
                if not any(member.uses(informer) for member in self.members):
                    await informers.stop(informer.selection)

    def _member(self, name: str) -> Member:
        for member in self.members:
            if member.spec.name == name:
                return member
        raise ControllerError(f"No controller {name!r} is part of this run.")

    async def run(self, stop: Stop) -> Summary:
        """Run until stopped, or until the goal in the options is reached. Expected errors are in the summary."""
        async with asyncio.TaskGroup() as group, _running(group, *self._watchers(stop)):
            await _first(group, self._check_served(), self._over.wait())
            if self._over.is_set():
                return self._summary(clean=True)
            caches = (informers.run() for informers in self._informers.values())
            async with _running(group, *caches, self._presence.run(), self._reports.run()):
                async with _running(group, *(member.recorder.run() for member in self.members)):
                    clean = await self._work(group, stop)
                self._reports.close()
            return self._summary(clean=clean)

    # Ends of a run.

    def _watchers(self, stop: Stop) -> Iterator[Coroutine[Any, Any, None]]:
        yield self._on_stop(stop)
        if self.options.timeout is not None:
            yield self._on_timeout(self.options.timeout)
        if self.options.until_idle:
            yield self._on_idle()
        if self._until is not None:
            yield self._on_until(self._until)

    async def _on_stop(self, stop: Stop) -> None:
        await stop.first()
        self._end(Reason.STOPPED)

    async def _on_timeout(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._end(Reason.TIMEOUT, self._unmet())

    async def _on_idle(self) -> None:
        since: float | None = None  # the first check that found nothing to do
        seen = -1
        while since is None or self._clock.elapsed() - since < QUIET:
            await self._clock.sleep(_CHECK_IDLE_EVERY)
            # Attempts that began and ended between two checks show in their number.
            if self._ids.given != seen or any(self._unmet()):
                since, seen = None, self._ids.given
            elif since is None:
                since = self._clock.elapsed()
        self._end(Reason.IDLE)

    async def _on_until(self, until: Until) -> None:
        try:
            await until.reached()
        except CtrlError as error:
            self._give_up(error)
        self._end(Reason.UNTIL)

    def _give_up(self, error: CtrlError) -> None:
        self._error = self._error or error
        self._end(Reason.FATAL)

    def _end(self, reason: Reason, unmet: Iterable[Unmet] = ()) -> None:
        """The first reason counts."""
        if not self._over.is_set():
            self._reason, self._told = reason, tuple(unmet)
            self._over.set()

    # Start.

    async def _check_served(self) -> None:
        """With `once` a missing resource type ends the run; otherwise the run waits for it."""
        missing = []
        for resource in dict.fromkeys(resource for member in self.members for resource in member.spec.resources):
            try:
                api = await self._client.discovery.serves(resource)
            except CtrlError as error:  # the caches will report it, and retry
                _log.debug("Discovery failed.", extra={"action": "discovery.failed", "why": str(error)})
                return
            if api is None:
                missing.append(Unmet(f"{resource} ({resource.api_version}) is not installed", self._clock.now()))
        if missing and self.options.once:
            self._end(Reason.NOT_INSTALLED, missing)

    async def _work(self, group: asyncio.TaskGroup, stop: Stop) -> bool:
        """Run elections and workers to their end; returns whether no attempt had to be cancelled."""
        async with _running(group, *(member.lead() for member in self.members)):
            serving = [
                group.create_task(member.serve(), name=f"controller {member.spec.name}") for member in self.members
            ]
            await _first(group, _all_over(serving), self._over.wait())
            self._end(Reason.ONCE)  # without another reason the workers ended because of `once`
            for member in self.members:
                member.stop()
            clean = await self._drained(group, serving, stop)
            if clean:
                await _first(group, self._flush(), stop.second())
            return clean

    # Stop.

    async def _drained(self, group: asyncio.TaskGroup, serving: list[asyncio.Task[None]], stop: Stop) -> bool:
        """Wait for attempts under way; returns whether none had to be cancelled."""
        with suppress(TimeoutError):
            async with self._clock.timeout(self.options.drain):
                await _first(group, self._finished(serving), stop.second())
        if all(task.done() for task in serving) and not any(member.under_way for member in self.members):
            return True
        for member in self.members:
            member.cut(CancelReason.STOP)
        with suppress(TimeoutError):
            async with self._clock.timeout(_CLEANUP_TIME):
                await self._finished(serving)
        for member, task in zip(self.members, serving, strict=True):
            member.abandon()
            task.cancel()
        return False

    async def _finished(self, serving: list[asyncio.Task[None]]) -> None:
        """Wait for the workers, and for attempts that their workers gave up."""
        await _all_over(serving)
        for member in self.members:
            await member.finished()

    async def _flush(self) -> None:
        with suppress(TimeoutError):
            async with self._clock.timeout(_CLEANUP_TIME):
                for member in self.members:
                    await member.recorder.flush()

    def _summary(self, *, clean: bool) -> Summary:
        reason = self._reason
        if reason is Reason.STOPPED and not clean:
            reason = Reason.CUT
        absent = [one for member in self.members for one in _absent(member)]
        if reason is Reason.ONCE and absent:
            reason, self._told = Reason.NOT_INSTALLED, tuple(absent)
        left = tuple(
            UndoneRequest(controller=one.spec.name, entry=entry)
            for one in self.members
            for entry in one.controller.left
        )
        failed = tuple(one for member in self.members for one in self._failed(member))
        return Summary(reason=reason, left=left, failed=failed, unmet=self._told, error=self._error)

    def _failed(self, member: Member) -> Iterator[FailedRequest]:
        for request, standing in member.controller.standings.items():
            verdict = standing.verdict
            if verdict.failed or (self.options.once and verdict.outcome is Outcome.DROPPED):
                yield FailedRequest(controller=member.spec.name, request=request, verdict=verdict)

    def _unmet(self) -> Iterator[Unmet]:
        if self._until is not None:
            yield from self._until.unmet()
        yield from unmet(self.members, self._clock.now())

    def _missing(self) -> list[Informer]:
        return [informer for member in self.members for informer in member.missing]

    def __repr__(self) -> str:
        caches = ", ".join(map(repr, self._informers.values()))
        return f"Manager({self.run_id}, controllers={len(self.members)}, attempts={self._ids.given}, {caches})"


def _absent(member: Member) -> Iterator[Unmet]:
    """Types that attempts found missing."""
    for standing in member.controller.standings.values():
        if standing.verdict.error_id == NotInstalled.id:
            yield Unmet(standing.verdict.message.rstrip("."), standing.since)


@asynccontextmanager
async def _running(group: asyncio.TaskGroup, *coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these during the block, and cancel them at its end; one that fails cancels the whole group."""
    tasks = [group.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _first(group: asyncio.TaskGroup, *coroutines: Coroutine[Any, Any, object]) -> None:
    """Return at the end of the first one; the others are cancelled."""
    tasks = [group.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _all_over(tasks: Iterable[asyncio.Task[None]]) -> None:
    await asyncio.wait(tasks)
