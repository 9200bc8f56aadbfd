from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest

from kubectl_ctrl.cache.fanout import Fanout
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import run_virtual, settle
from tests.cache.history import THINGS, thing

HOURS = 3600.0


def step(number: int) -> Change:
    obj = thing(Key("a", f"x{number}"), f"uid-{number}", str(number))
    return Change(kind=ChangeKind.ADDED, resource=THINGS, old=None, new=obj, version=str(number))


class Stage:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.objects: list[Obj] = []
        self.fanout = Fanout(THINGS, clock=self.clock, rng=Random(1), view=lambda: self.objects)
        self.heard: list[str] = []

    def hear(self, change: Change) -> None:
        self.heard.append(f"{change.kind} {change.version}")


@asynccontextmanager
async def running() -> AsyncIterator[Stage]:
    stage = Stage()
    task = asyncio.create_task(stage.fanout.run())
    yield stage
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_subscriber_that_raises_is_counted_and_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as stage:

        def fail(_: Change) -> None:
            raise ValueError("no")

        failing = stage.fanout.add("failing", fail, resync=None, replaced=None, view=None)
        stage.fanout.add("hearing", stage.hear, resync=None, replaced=None, view=None)
        stage.fanout.tell([step(1), step(2)])
        assert stage.heard == ["added 1", "added 2"]
        assert failing.errors == failing.told == 2
    assert "A subscriber of the cache raised." in caplog.messages


def test_slow_subscriber_is_reported_once_a_minute_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    shown: list[str] = []

    async def main() -> None:
        async with running() as stage:
            used = {"1": 0.049, "2": 0.0333054, "3": 0.0513054, "4": 0.06, "5": 0.07}

            def work(change: Change) -> None:
                stage.clock.work(used[change.version])

            slow = stage.fanout.add("podcount", work, resync=None, replaced=None, view=None)
            stage.fanout.tell([step(number) for number in (1, 2, 3, 4)])
            await stage.clock.sleep(60)
            stage.fanout.tell([step(5)])
            assert (slow.told, slow.slow) == (5, 3)

    with caplog.at_level(logging.WARNING), logging_to(shown.append, form="text", verbosity=0):
        run_virtual(main)
    assert caplog.messages == [
        "Subscriber podcount blocked the event loop for 51 ms.",
        "Subscriber podcount blocked the event loop for 70 ms.",
    ]
    assert max(map(len, shown)) <= 80


async def test_busy_machine_is_nobodys_fault(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as stage:
        stage.fanout.add("x", lambda _: stage.clock.suspend(3.0), resync=None, replaced=None, view=None)
        stage.fanout.tell([step(1)])
    assert caplog.messages == []


async def test_late_subscriber_hears_live_changes_after_its_first_view() -> None:
    async with running() as stage:
        view = [thing(Key("a", f"x{number}"), f"uid-{number}", str(number)) for number in range(1000)]
        late = stage.fanout.add("late", stage.hear, resync=None, replaced=None, view=view)
        stage.fanout.tell([step(5000)])
        assert not late.synced
        assert stage.heard == []
        await stage.fanout.settled()
        assert stage.heard == [*(f"added {number}" for number in range(1000)), "added 5000"]
        assert late.synced


async def test_list_is_announced_in_its_place_between_the_changes() -> None:
    async with running() as stage:
        stage.fanout.add("x", stage.hear, resync=None, replaced=lambda: stage.heard.append("replaced"), view=None)
        stage.fanout.tell([step(1)])
        stage.fanout.deliver_list([step(2)])
        stage.fanout.tell([step(3)])
        await stage.fanout.settled()
        assert stage.heard == ["added 1", "replaced", "added 2", "added 3"]


async def test_bulk_is_told_in_slices_between_which_others_run() -> None:
    async with running() as stage:
        stage.fanout.add("x", stage.hear, resync=None, replaced=None, view=None)
        stage.fanout.deliver_list([step(number) for number in range(1000)])
        sizes: list[int] = []
        while len(stage.heard) < 1000:
            await asyncio.sleep(0)
            sizes.append(len(stage.heard))
        assert len(frozenset(sizes)) >= 5


async def test_resync_retells_everything_about_every_ten_hours_to_who_asked() -> None:
    async with running() as stage:
        stage.objects = [thing(Key("a", "x"), "uid", "7")]
        stage.fanout.add("asked", stage.hear, resync=10 * HOURS, replaced=None, view=None)
        others: list[Change] = []
        stage.fanout.add("others", others.append, resync=None, replaced=None, view=None)
        times: list[float] = []
        for _ in range(5):
            began = stage.clock.elapsed()
            before = len(stage.heard)
            while len(stage.heard) == before:
                await stage.clock.sleep(60)
            times.append((stage.clock.elapsed() - began) / HOURS)
        assert stage.heard == ["resync 7"] * 5
        assert all(8.9 < time < 11.1 for time in times)
        assert len(frozenset(round(time, 2) for time in times)) > 1
        assert not others


async def test_resync_is_at_most_once_a_second() -> None:
    async with running() as stage:
        stage.objects = [thing(Key("a", "x"), "uid", "7")]
        stage.fanout.add("asked", stage.hear, resync=0.0, replaced=None, view=None)
        await stage.clock.sleep(10.5)
        assert len(stage.heard) == 10


async def test_closed_subscription_hears_nothing_more() -> None:
    async with running() as stage:
        subscription = stage.fanout.add("x", stage.hear, resync=None, replaced=None, view=None)
        stage.fanout.deliver_list([step(1)])
        subscription.close()
        stage.fanout.tell([step(2)])
        await settle()
        stage.fanout.deliver_list([step(3)])
        await settle()
        assert stage.heard == []
        assert stage.fanout.subscriptions == ()
