"""Many workers, cancelled at any moment, against adds at any time: nothing is lost, doubled or early."""

from __future__ import annotations

import asyncio
import random

import hypothesis.strategies as st
from hypothesis import given, settings

from kubectl_ctrl.errors import QueueClosed
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import run_virtual, settle
from kubectl_ctrl.workqueue.limits import KeyBackoff
from kubectl_ctrl.workqueue.queue import Queue
from kubectl_ctrl.workqueue.values import BULK, After, Retry

KEYS = ["a/x", "a/y", "b/x", "c/x"]


class Site:
    """Workers on one queue, and a note of every add, run and end, with the moment."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = FakeClock()
        self.queue: Queue[str, int] = Queue(
            name="site",
            clock=self.clock,
            limiter=KeyBackoff(rng=self.rng),
            lane=lambda key: key[0],
            keep=1000,
            aging=2.0,
        )
        self.running: set[str] = set()
        self.added: dict[str, int] = {}  # key -> the last cause that was added and must be seen by a run
        self.seen: dict[str, int] = {}  # key -> the last cause that a run was started with
        self.causes = 0
        self.early: list[str] = []

    def add(self) -> None:
        key = self.rng.choice(KEYS)
        self.causes += 1
        self.added[key] = self.causes
        self.queue.add(key, self.causes, priority=self.rng.choice([0, 0, BULK]))

    async def worker(self) -> None:
        while True:
            try:
                work = await self.queue.get()
            except QueueClosed:
                return
            assert work.key not in self.running, "two workers have one key"
            assert work.ready_at <= self.clock.elapsed(), "a key was handed out before its time"
            self.running.add(work.key)
            self.seen[work.key] = max(self.seen.get(work.key, 0), *work.causes)
            # A worker that is cancelled here has the key, and must hand it back: so does the real one.
            try:
                await self.clock.sleep(self.rng.choice([0.0, 0.1, 1.0]))
            finally:
                self.running.discard(work.key)
                then = self.rng.choice([None, None, After(1.0, 0), Retry(lambda failures, delay: 0)])
                self.queue.done(work, then=then)

    async def check_nobody_waits_in_vain(self) -> None:
        self.queue.snapshot()  # what a suspend made due is ready now, before the next look at the timers
        await settle()
        assert not (len(self.queue) and self.queue._getters), "a key is ready and a worker waits"

    async def run(self, steps: int) -> None:
        workers = [asyncio.create_task(self.worker()) for _ in range(3)]
        for _ in range(steps):
            match self.rng.randrange(6):
                case 0 | 1:
                    self.add()
                case 2:
                    self.add()
                    victim = workers.pop(self.rng.randrange(len(workers)))
                    victim.cancel()  # perhaps just woken for that key
                    await asyncio.gather(victim, return_exceptions=True)
                    await self.check_nobody_waits_in_vain()
                    workers.append(asyncio.create_task(self.worker()))
                case 3:
                    await self.clock.sleep(self.rng.choice([0.05, 0.5, 3.0]))
                case 4:
                    self.clock.suspend(self.rng.choice([0.5, 30.0]))
                case 5:
                    await self.check_nobody_waits_in_vain()
        self.queue.close()
        await asyncio.gather(*workers)
        assert (len(self.queue), self.running) == (0, set())


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_every_add_is_followed_by_a_run_and_no_key_runs_twice_at_once(seed: int) -> None:
    async def main() -> None:
        site = Site(seed)
        await site.run(80)
        assert all(site.seen[key] >= cause for key, cause in site.added.items()), "an add was lost"
        assert site.queue.snapshot() == []

    run_virtual(main)


async def test_work_is_spread_over_idle_workers() -> None:
    site = Site(1)
    at_work = 0
    most = 0

    async def worker() -> None:
        nonlocal at_work, most
        work = await site.queue.get()
        at_work += 1
        most = max(most, at_work)
        await site.clock.sleep(1)
        at_work -= 1
        site.queue.done(work)

    workers = [asyncio.create_task(worker()) for _ in KEYS]
    await settle()
    for key in KEYS:
        site.queue.add(key, 1)
    began = site.clock.elapsed()
    await asyncio.gather(*workers)
    assert (most, site.clock.elapsed() - began) == (len(KEYS), 1)
