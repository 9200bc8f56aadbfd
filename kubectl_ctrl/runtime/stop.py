"""Stops a run: the first request lets attempts under way finish, the second ends it now."""

from __future__ import annotations

import asyncio


class Stop:
    """Created on the event loop of the run. `request` may be called by a signal handler or another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._requests = 0
        self._first = asyncio.Event()
        self._second = asyncio.Event()

    def request(self) -> None:
        self._requests += 1
        event = self._first if self._requests == 1 else self._second
        self._loop.call_soon_threadsafe(event.set)

    @property
    def requests(self) -> int:
        return self._requests

    async def first(self) -> None:
        await self._first.wait()

    async def second(self) -> None:
        await self._second.wait()

    def __repr__(self) -> str:
        return f"Stop(requests={self._requests})"
