"""Time for tests with real sockets and programs: a clock whose hands the test moves, and waiting for a condition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class HandClock:
    """Implements kubectl_ctrl.clock.Clock."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now
        self._elapsed = 1000.0
        self._waits: list[tuple[float, asyncio.Future[None]]] = []

    @property
    def waits(self) -> list[float]:
        """How many seconds from now on each wait ends."""
        return sorted(end - self._elapsed for end, woken in self._waits if not woken.done())

    def advance(self, seconds: float) -> None:
        self._now += seconds
        self._elapsed += seconds
        for end, woken in self._waits:
            if end <= self._elapsed and not woken.done():
                woken.set_result(None)
        self._waits = [wait for wait in self._waits if not wait[1].done()]

    def now(self) -> float:
        return self._now

    def elapsed(self) -> float:
        return self._elapsed

    def cpu(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._waits.append((self._elapsed + seconds, woken))
        await woken

    @asynccontextmanager
    async def timeout(self, seconds: float | None) -> AsyncIterator[None]:
        async with asyncio.timeout(None) as scope:
            alarm = asyncio.ensure_future(self._ring(seconds, scope)) if seconds is not None else None
            try:
                yield
            finally:
                if alarm is not None:
                    alarm.cancel()

    async def _ring(self, seconds: float, scope: asyncio.Timeout) -> None:
        await self.sleep(seconds)
        scope.reschedule(asyncio.get_running_loop().time())


async def until(condition: Callable[[], bool]) -> None:
    """Let the rest of the world go on until something holds."""
    async with asyncio.timeout(120):
        while not condition():  # noqa: ASYNC110 - the condition lies outside of this loop
            await asyncio.sleep(0)
