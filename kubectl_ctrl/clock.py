"""Clocks, sleeps and timeouts. No other module reads the system's time.

`now()` is wall time, for timestamps and schedules. `elapsed()` is monotonic, includes the time that the machine was
suspended, and is for leases, deadlines and delays.
"""

from __future__ import annotations

import sys
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

# Timers of the event loop do not count suspended time on Linux, so long waits are split and measured again.
_LONGEST_NAP = 5.0


class Clock(Protocol):
    """The source of time, an argument everywhere so that tests can control it."""

    def now(self) -> float:
        """Wall time in seconds since the epoch."""

    def elapsed(self) -> float:
        """Seconds since an arbitrary start: monotonic, suspended time included."""

    def cpu(self) -> float:
        """Seconds of CPU time that the calling thread has used."""

    async def sleep(self, seconds: float) -> None:
        """Return once `elapsed()` has grown by at least `seconds`."""

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[None]:
        """Raise TimeoutError from the block once `elapsed()` has grown by `seconds`; None never does."""


class SystemClock:
    def __init__(self) -> None:
        # Of the two, only macOS' CLOCK_MONOTONIC counts suspended time; Linux has CLOCK_BOOTTIME for it.
        linux = sys.platform != "darwin"
        self._source = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) if linux else time.CLOCK_MONOTONIC

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.clock_gettime(self._source)

    def cpu(self) -> float:
        return time.thread_time()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # takes 30 ms, which verbs without an event loop need not spend

        end = self.elapsed() + seconds
        while (left := end - self.elapsed()) > 0:  # noqa: ASYNC110 - no event exists for time itself
            await asyncio.sleep(min(left, _LONGEST_NAP))
        if seconds <= 0:
            await asyncio.sleep(0)

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[None]:
        return nullcontext() if seconds is None else _Timeout(self, seconds)

    def __repr__(self) -> str:
        return "SystemClock()"


class _Timeout:
    """A block with a deadline. A class, because a nested function that schedules itself would be a reference cycle.

    Every call of a client has one, and a cycle would keep its task in memory until the garbage collector finds it.
    """

    def __init__(self, clock: SystemClock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.elapsed() + seconds
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(None)
        await self._scope.__aenter__()
        self._check()

    def _check(self) -> None:
        left = self._end - self._clock.elapsed()
        if left <= 0:
            self._scope.reschedule(self._loop.time())
        else:
            self._timer = self._loop.call_later(min(left, _LONGEST_NAP), self._check)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._scope.__aexit__(kind, error, traceback)


def pause(seconds: float) -> None:
    """Sleep without an event loop."""
    time.sleep(seconds)


def rfc3339(at: float) -> str:
    """Seconds since the epoch as metav1.Time: whole seconds, UTC, `Z`."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(at: float) -> str:
    """Seconds since the epoch as metav1.MicroTime."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """The inverse of both, also for other offsets and fractions; ValueError for anything else."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"The time {text!r} does not say its offset from UTC.")
    return at.timestamp()
