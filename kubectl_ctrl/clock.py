"""Time, for everyone: no other module asks the system what time it is, sleeps, or bounds a wait.

Two notions are kept apart. `now()` is wall time, for stamps that people read and for schedules. `elapsed()` grows
steadily, counts the time that the machine was suspended, and is for leases, deadlines and delays.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

# A sleeping loop timer does not count suspend on Linux, so long waits are cut into pieces and measured again.
_LONGEST_NAP = 5.0


class Clock(Protocol):
    """What the package knows of time."""

    def now(self) -> float:
        """Wall time in seconds since the epoch."""

    def elapsed(self) -> float:
        """Seconds from an arbitrary start, never going back, suspend included."""

    def cpu(self) -> float:
        """Seconds of CPU time that the calling thread has used: what other programs use does not count."""

    async def sleep(self, seconds: float) -> None:
        """Return once `elapsed()` has grown by at least `seconds`."""

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[None]:
        """Raise TimeoutError from the block once `elapsed()` has grown by `seconds`; None never does."""


def _suspend_counting() -> int:
    if sys.platform == "darwin":
        return time.CLOCK_MONOTONIC  # on macOS this one runs on during sleep
    return getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The real clock."""

    def __init__(self) -> None:
        self._source = _suspend_counting()

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.clock_gettime(self._source)

    def cpu(self) -> float:
        return time.thread_time()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # 30 ms that verbs which only look back shall not pay

        end = self.elapsed() + seconds
        while (left := end - self.elapsed()) > 0:  # noqa: ASYNC110 - nobody could set an event for the time itself
            await asyncio.sleep(min(left, _LONGEST_NAP))
        if seconds <= 0:
            await asyncio.sleep(0)

    @asynccontextmanager
    async def timeout(self, seconds: float | None) -> AsyncIterator[None]:
        if seconds is None:
            yield
            return
        import asyncio

        loop = asyncio.get_running_loop()
        end = self.elapsed() + seconds
        handle: asyncio.Handle
        async with asyncio.timeout(None) as scope:

            def check() -> None:
                nonlocal handle
                left = end - self.elapsed()
                if left <= 0:
                    scope.reschedule(loop.time())
                else:
                    handle = loop.call_later(min(left, _LONGEST_NAP), check)

            handle = loop.call_soon(check)
            try:
                yield
            finally:
                handle.cancel()

    def __repr__(self) -> str:
        return "SystemClock()"


def pause(seconds: float) -> None:
    """Wait without an event loop: for programs that do nothing else meanwhile."""
    time.sleep(seconds)


def rfc3339(at: float) -> str:
    """Seconds since the epoch as the API writes metav1.Time: whole seconds, UTC, `Z`."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(at: float) -> str:
    """Seconds since the epoch as the API writes metav1.MicroTime."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_rfc3339(text: str) -> float:
    """The inverse of both, also for offsets and any number of fraction digits; raises ValueError for anything else."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"The time {text!r} does not say its offset from UTC.")
    return at.timestamp()
