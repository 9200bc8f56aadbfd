"""Runs the controllers: queues of keys that are due, and of keys that are due later.

At once: `settle` runs everything that is due, after each request and when the time of a later step has come; tests
see the end state immediately. Paced: `run` is a task that waits on the clock between two steps, so that clients see
every state in between, as on a real cluster. Which of several waiting keys comes next is decided by the seeded
generator.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers.base import Controller
from kubectl_ctrl.sandbox.storage import Storage, StoredChange

_log = logging.getLogger(__name__)

_FIRST_RETRY = 0.005  # seconds until a refused step is tried again; doubled each time
_LAST_RETRY = 1000.0
_MOST_DOUBLED = 20  # times
_NAP = 5.0  # seconds after which the clock is read again: its time may jump
_EARLY = 1e-6  # seconds by which a loop's timer may come early, by rounding
_MOST = 100_000  # steps for one key in one settle, after which two controllers certainly work against each other

_Work = tuple[Controller, Key]


class Actors:
    def __init__(self, clock: Clock, rng: Random, ring: Callable[[], None]) -> None:
        self.controllers: list[Controller] = []
        self.tolerant = False  # the failure of a controller is logged, and the others continue; else it is raised
        self._ring = ring  # called when the time of a later step has come, after a `settle`
        self._alarm: asyncio.TimerHandle | None = None
        self._refused: dict[_Work, int] = {}  # how often in a row
        self._clock = clock
        self._rng = rng
        self._due: dict[_Work, None] = {}
        self._later: list[tuple[float, int, _Work]] = []  # a heap
        self._timers: dict[_Work, float] = {}  # the earliest time of each
        self._count = itertools.count()
        self._changes = 0
        self._wake = asyncio.Event()

    def heard(self, table: str, change: StoredChange) -> None:
        """A listener of the storage."""
        self._changes += 1
        self._tell(self.controllers, table, change)
        if self._due:
            self._wake.set()

    def _tell(self, controllers: Iterable[Controller], table: str, change: StoredChange) -> None:
        for controller in controllers:
            try:
                self._due.update(dict.fromkeys((controller, key) for key in controller.concerns(table, change)))
            except Exception as error:  # noqa: BLE001 - see `_report`
                self._report(error, f"{controller!r} cannot read a change of {table}")

    def _report(self, error: Exception, what: str) -> None:
        """One object that a controller cannot handle must not stop a server."""
        if not self.tolerant:
            raise error
        _log.error("%s", what, exc_info=error)

    def start(self, controllers: Iterable[Controller], storage: Storage) -> None:
        """Add controllers, which hear of the current objects as if they were new."""
        added = list(controllers)
        self.controllers += added
        self._introduce(added, storage)

    def stop(self) -> None:
        """Remove all controllers."""
        self.controllers.clear()
        self._due.clear()
        self._later.clear()
        self._timers.clear()
        self._refused.clear()

    def rebuild(self, storage: Storage) -> None:
        """Let all controllers read the current state again: it is not the result of logged changes."""
        self._introduce(self.controllers, storage)

    def _introduce(self, controllers: list[Controller], storage: Storage) -> None:
        for table, change in storage.introduced():
            self._tell(controllers, table, change)
        self._wake.set()

    def settle(self) -> None:
        """Take every step that is due now, and those that follow from them."""
        taken: Counter[_Work] = Counter()
        self._collect()
        while self._due:
            work = self._step()
            taken[work] += 1
            if taken[work] > _MOST:
                raise RuntimeError(f"The controllers do not come to rest: {work} after {_MOST} steps for it.")
            self._collect()
        self._set_alarm()

    async def run(self, pace: float = 0.0) -> None:
        """Take one step after the other, for ever; `pace` seconds pass after each one that changes something."""
        while True:
            self._collect()
            if self._due:
                changes = self._changes
                self._step()
                await self._clock.sleep(pace if self._changes != changes else 0.0)
                continue
            self._wake.clear()
            wait = self._later[0][0] - self._clock.elapsed() if self._later else None
            try:
                async with self._clock.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _set_alarm(self) -> None:
        """Let the running loop ring at the next timer. Unlike a task, this cannot outlive the loop."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._later:
            wait = self._later[0][0] - self._clock.elapsed()
            self._alarm = loop.call_later(min(max(0.0, wait), _NAP), self._rang)

    def _rang(self) -> None:
        self._alarm = None
        if self._later and self._later[0][0] <= self._clock.elapsed() + _EARLY:
            self._ring()
        else:
            self._set_alarm()

    def _collect(self) -> None:
        """Make those due whose time has come."""
        now = self._clock.elapsed() + _EARLY
        while self._later and self._later[0][0] <= now:
            at, _, work = heapq.heappop(self._later)
            if self._timers.get(work) == at:
                del self._timers[work]
                self._due[work] = None

    def _step(self) -> _Work:
        chosen = self._rng.randrange(len(self._due)) if len(self._due) > 1 else 0
        work = next(itertools.islice(self._due, chosen, None))
        del self._due[work]
        controller, key = work
        try:
            after = controller.sync(key)
            self._refused.pop(work, None)
        except Refusal:
            # A conflict, a namespace that is being deleted, an object that is not valid: as on a real cluster, later.
            after = self._patience(work)
        except Exception as error:  # noqa: BLE001 - see `_report`
            self._report(error, f"{controller!r} failed at {'/'.join(filter(None, key))}")
            after = self._patience(work)
        if after is not None:
            self._after(work, after)
        return work

    def _patience(self, work: _Work) -> float:
        """The seconds until the next try."""
        times = self._refused[work] = min(self._refused.get(work, -1) + 1, _MOST_DOUBLED)
        return min(_FIRST_RETRY * 2.0**times, _LAST_RETRY)

    def _after(self, work: _Work, seconds: float) -> None:
        at = self._clock.elapsed() + max(0.0, seconds)
        if work not in self._timers or at < self._timers[work]:
            self._timers[work] = at
            heapq.heappush(self._later, (at, next(self._count), work))

    def __repr__(self) -> str:
        return f"Actors(controllers={len(self.controllers)}, due={len(self._due)}, later={len(self._timers)})"
