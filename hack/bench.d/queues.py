"""The queue's full cycle, 100,000 keys at once, and the number of attempts of 2,000 failing keys."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable

from figure import Figure, rate

from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.workqueue.limits import KeyBackoff, Limiter, default_limiter
from kubectl_ctrl.workqueue.queue import Queue
from kubectl_ctrl.workqueue.values import Retry

_CYCLES = 50_000
_KEYS = 100_000
_FAILING = 2_000
_WORKERS = 8
_ATTEMPT = 0.005  # seconds, as for a write that a webhook refuses
_STORM = 10.0


def _queue() -> Queue[int, str]:
    return Queue(name="bench", clock=SystemClock(), limiter=KeyBackoff(rng=random.Random(1)), lane=lambda key: key % 20)


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


def _attempts(limiter: Callable[[Clock], Limiter[int]]) -> int:
    """The number of attempts of keys that all fail, in virtual time: the same on every machine."""
    attempts = 0

    async def main() -> None:
        clock = FakeClock()
        queue: Queue[int, str] = Queue(name="bench", clock=clock, limiter=limiter(clock))
        for key in range(_FAILING):
            queue.add(key, "cause")

        async def worker() -> None:
            nonlocal attempts
            while True:
                work = await queue.get()
                attempts += 1
                await clock.sleep(_ATTEMPT)
                queue.done(work, then=Retry(lambda failures, delay: "retry"))

        workers = [asyncio.create_task(worker()) for _ in range(_WORKERS)]
        await clock.sleep(_STORM)
        for one in workers:
            one.cancel()
        await asyncio.wait(workers)

    run_virtual(main)
    return attempts


def figures() -> Iterable[Figure]:
    baseline = rate(_plain)
    against = "/s deque and set alone"
    yield Figure(name="queue: add, get, done", value=rate(_cycles), unit="/s", baseline=baseline, against=against)
    yield Figure(
        name="queue: 100,000 keys in, then out", value=rate(_flood), unit="/s", baseline=baseline, against=against
    )
    yield Figure(
        name=f"queue: {_FAILING:,} keys failing for {_STORM:.0f} s",
        value=_attempts(lambda clock: default_limiter(clock=clock, rng=random.Random(1))),
        unit="attempts",
        baseline=_attempts(lambda _: KeyBackoff(rng=random.Random(1))),
        against="with each key's backoff alone",
        bar="<= 2,200",
    )
