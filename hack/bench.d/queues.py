"""The queue's full cycle, and 100,000 keys at once."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterable

from figure import Figure
from timing import rate

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.workqueue.limits import Backoff
from kubectl_ctrl.workqueue.queue import Queue

_CYCLES = 50_000
_KEYS = 100_000


def _queue() -> Queue[int, str]:
    return Queue(name="bench", clock=SystemClock(), limiter=Backoff(rng=random.Random(1)), lane=lambda key: key % 20)


def _cycles() -> int:
    async def main() -> None:
        queue = _queue()
        for key in range(_CYCLES):
            queue.add(key, "cause")
            work = await queue.get()
            queue.done(work)

    asyncio.run(main())
    return _CYCLES


def _flood() -> int:
    async def main() -> None:
        queue = _queue()
        for key in range(_KEYS):
            queue.add(key, "cause")
        for _ in range(_KEYS):
            queue.done(await queue.get())

    asyncio.run(main())
    return _KEYS


def _plain() -> int:
    async def main() -> None:
        waiting: deque[int] = deque()
        dirty: set[int] = set()
        for key in range(_CYCLES):
            dirty.add(key)
            waiting.append(key)
            await asyncio.sleep(0) if key % 64 == 0 else None
            dirty.discard(waiting.popleft())

    asyncio.run(main())
    return _CYCLES


def figures() -> Iterable[Figure]:
    baseline = rate(_plain)
    against = "/s deque and set alone"
    yield Figure(name="queue: add, get, done", value=rate(_cycles), unit="/s", baseline=baseline, against=against)
    yield Figure(
        name="queue: 100,000 keys in, then out", value=rate(_flood), unit="/s", baseline=baseline, against=against
    )
