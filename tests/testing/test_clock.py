from __future__ import annotations

import asyncio

import pytest

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.testing.clock import START_OF_2026, FakeClock
from kubectl_ctrl.testing.loop import run_virtual


def test_is_a_clock() -> None:
    clock: Clock = FakeClock()
    assert clock.now() == START_OF_2026


async def test_sleep_moves_both_times() -> None:
    clock = FakeClock(start=50.0)
    before = clock.elapsed()
    await clock.sleep(90)
    assert clock.elapsed() - before == 90
    assert clock.now() == 140.0


@pytest.mark.parametrize("asleep", [0.0, 0.1, 1 / 3, 12_345.678])
def test_sleeping_what_is_left_reaches_the_end(asleep: float) -> None:
    async def main() -> int:
        clock = FakeClock()
        clock.suspend(asleep)
        end = clock.elapsed() + 0.1 + 0.2
        rounds = 0
        while (left := end - clock.elapsed()) > 0:
            await clock.sleep(left)
            rounds += 1
        return rounds

    assert run_virtual(main) <= 2


async def test_sleep_zero_lets_others_run() -> None:
    clock = FakeClock()
    other = asyncio.create_task(clock.sleep(0))
    await clock.sleep(0)
    await clock.sleep(-1)
    assert other.done()


async def test_step_moves_wall_time_alone() -> None:
    clock = FakeClock(start=1_000.0)
    before = clock.elapsed()
    clock.step(-600)
    assert (clock.now(), clock.elapsed()) == (400.0, before)


def test_a_sleep_finds_out_about_a_suspend_at_the_end_of_its_nap() -> None:
    async def main() -> dict[float, float]:
        clock = FakeClock()
        begin = asyncio.get_running_loop().time()
        woke: dict[float, float] = {}

        async def sleeper(seconds: float) -> None:
            await clock.sleep(seconds)
            woke[seconds] = asyncio.get_running_loop().time() - begin

        async with asyncio.TaskGroup() as group:
            for seconds in (1.0, 3.0, 7.0, 30.0, 100.0):
                group.create_task(sleeper(seconds))
            await clock.sleep(2)
            clock.suspend(60)
            assert woke == {1.0: 1.0}
        return woke

    # 3 s: its only nap ends then; 7 s and 30 s: first nap; 100 s: still had 38 s to go.
    assert run_virtual(main) == {1.0: 1.0, 3.0: 3.0, 7.0: 5.0, 30.0: 5.0, 100.0: 40.0}


async def test_timeout_cuts_a_wait() -> None:
    clock = FakeClock()
    before = clock.elapsed()
    with pytest.raises(TimeoutError):
        async with clock.timeout(12):
            await asyncio.Event().wait()
    assert clock.elapsed() - before == 12


async def test_timeout_counts_suspend() -> None:
    clock = FakeClock()
    loop = asyncio.get_running_loop()
    begin = loop.time()
    asyncio.get_running_loop().call_later(0, clock.suspend, 4000)
    with pytest.raises(TimeoutError):
        async with clock.timeout(3600):
            await asyncio.Event().wait()
    assert loop.time() - begin == 5


async def test_timeout_leaves_a_quick_block_alone() -> None:
    clock = FakeClock()
    async with clock.timeout(1), clock.timeout(None):
        await clock.sleep(0.5)
    await clock.sleep(10)
    assert repr(clock).endswith("waits=0)")


async def test_a_cancelled_sleep_leaves_nothing() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(100))
    await clock.sleep(1)
    task.cancel()
    await asyncio.wait([task])
    assert repr(clock).endswith("waits=0)")


def test_outside_a_loop_time_moves_by_hand() -> None:
    clock = FakeClock(start=0.0)
    clock.suspend(5)
    clock.step(2)
    assert (clock.now(), clock.elapsed()) == (7.0, 5.0)


def test_goes_on_from_one_loop_to_the_next() -> None:
    clock = FakeClock(start=0.0)
    clock.suspend(5)

    async def main() -> None:
        await clock.sleep(10)

    run_virtual(main)
    run_virtual(main, start=77.0)
    assert (clock.now(), clock.elapsed()) == (25.0, 25.0)


async def test_two_clocks_on_one_loop_are_two_machines() -> None:
    here, there = FakeClock(), FakeClock(start=START_OF_2026 + 30)
    there.suspend(100)
    await here.sleep(1)
    assert there.now() - here.now() == 130


def test_a_frozen_machine_wakes_up_late_while_others_live_on() -> None:
    async def main() -> list[tuple[str, float]]:
        here, there = FakeClock(), FakeClock()
        begin = here.elapsed()
        woke: list[tuple[str, float]] = []

        async def sleeper(name: str, clock: FakeClock, seconds: float) -> None:
            await clock.sleep(seconds)
            woke.append((name, clock.elapsed() - begin))

        async with asyncio.TaskGroup() as group:
            for seconds in (1.0, 10.0, 30.0):
                group.create_task(sleeper("here", here, seconds))
            group.create_task(sleeper("there", there, 10.0))
            await there.sleep(2)
            here.freeze(18)
            await there.sleep(1)
            group.create_task(sleeper("here", here, 1.0))
        return woke

    assert run_virtual(main) == [("here", 1.0), ("there", 10.0), ("here", 20.0), ("here", 20.0), ("here", 30.0)]
