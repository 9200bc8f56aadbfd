from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubectl_ctrl.testing.loop import (
    DAY,
    START,
    Deadlock,
    LeakedTasks,
    Spinning,
    TimeRanOut,
    Unhandled,
    VirtualLoop,
    run_virtual,
    settle,
)


async def turn() -> None:
    """One turn of the loop."""
    loop = asyncio.get_running_loop()
    reached = loop.create_future()
    loop.call_soon(reached.set_result, None)
    await reached


async def at(when: float) -> None:
    loop = asyncio.get_running_loop()
    reached = loop.create_future()
    loop.call_at(when, reached.set_result, None)
    await reached


def test_returns_the_result_of_a_coroutine_and_of_a_function() -> None:
    async def seven() -> int:
        return 7

    assert run_virtual(seven) == 7
    assert run_virtual(seven()) == 7


def test_time_jumps_exactly_to_the_next_timer() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = [loop.time()]
        for when in (START + 0.1 + 0.2, START + DAY):
            await at(when)
            seen.append(loop.time())
        return seen

    assert run_virtual(main) == [START, START + 0.1 + 0.2, START + DAY]


def test_equal_times_run_in_the_order_they_were_set() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        order: list[int] = []
        for number in range(50):
            loop.call_at(START + 1 + number % 2, order.append, number)
        await at(START + 3)
        return order

    assert run_virtual(main) == [*range(0, 50, 2), *range(1, 50, 2)]


async def test_time_stands_still_while_anything_is_ready() -> None:
    loop = asyncio.get_running_loop()
    loop.call_at(START + 1e-9, lambda: None)
    for _ in range(100):
        await turn()
    assert loop.time() == START


def test_a_timer_due_now_runs_although_callbacks_keep_the_loop_busy() -> None:
    async def main() -> int:
        fired = asyncio.Event()
        asyncio.get_running_loop().call_later(0, fired.set)
        turns = 0
        while not fired.is_set():
            await turn()
            turns += 1
        return turns

    assert run_virtual(main) < 5


async def test_a_cancelled_timer_does_not_move_time() -> None:
    loop = asyncio.get_running_loop()
    loop.call_at(START + 5, lambda: None).cancel()
    await at(START + 1)
    assert loop.time() == START + 1
    with pytest.raises(TimeoutError):
        async with asyncio.Timeout(START + 2):
            await asyncio.Event().wait()
    assert loop.time() == START + 2


def test_a_deadlock_names_every_task_and_the_innermost_line() -> None:
    async def innermost() -> None:
        await asyncio.get_running_loop().create_future()

    async def worker() -> None:
        await innermost()

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker(), name="worker-1")

    with pytest.raises(Deadlock, match=r"worker-1: .*innermost at .*test_loop\.py:\d+"):
        run_virtual(main)


def test_timers_for_ever_end_at_the_limit() -> None:
    async def main() -> None:
        while True:
            await at(asyncio.get_running_loop().time() + DAY)

    with pytest.raises(TimeRanOut, match="Task-"):
        run_virtual(main, limit=10 * DAY)


def test_spinning_is_found() -> None:
    async def main() -> None:
        while True:
            await turn()

    with pytest.raises(Spinning, match="time did not move"):
        run_virtual(main)


def test_a_task_left_behind_is_an_error() -> None:
    async def main() -> None:
        main.task = asyncio.create_task(asyncio.Event().wait(), name="forgotten")  # type: ignore[attr-defined]

    with pytest.raises(LeakedTasks, match="forgotten"):
        run_virtual(main)


async def test_a_task_that_was_cancelled_may_still_end() -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    await turn()
    task.cancel()


def test_an_error_in_a_callback_is_not_lost() -> None:
    def broken() -> None:
        raise ValueError("seen by nobody")

    async def main() -> None:
        asyncio.get_running_loop().call_soon(broken)
        await turn()

    with pytest.raises(Unhandled, match="seen by nobody"):
        run_virtual(main)


def test_executor_functions_run_in_threads_and_in_order() -> None:
    async def main() -> list[Any]:
        log: list[Any] = []
        first = asyncio.create_task(asyncio.to_thread(lambda: log.append(threading.get_ident())))
        second = asyncio.create_task(asyncio.to_thread(log.append, "second"))
        await second
        await first
        return log

    first, second = run_virtual(main)
    assert second == "second"
    assert first != threading.get_ident()


def test_a_thread_waits_for_coroutines_in_virtual_time() -> None:
    async def later(log: list[str], name: str, seconds: float) -> str:
        loop = asyncio.get_running_loop()
        await at(loop.time() + seconds)
        log.append(f"{name} at {loop.time():g}")
        return name

    def work(loop: asyncio.AbstractEventLoop, log: list[str], name: str, seconds: float) -> None:
        for _ in range(2):
            log.append(asyncio.run_coroutine_threadsafe(later(log, name, seconds), loop).result())

    async def main() -> list[str]:
        log: list[str] = []
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.to_thread(work, loop, log, "slow", 3600))
            group.create_task(asyncio.to_thread(work, loop, log, "fast", 1000))
        return log

    runs = [run_virtual(main, start=0) for _ in range(5)]
    assert runs[0] == [
        "fast at 1000", "fast", "fast at 2000", "fast", "slow at 3600", "slow", "slow at 7200", "slow",
    ]  # fmt: skip
    assert all(run == runs[0] for run in runs)


@pytest.mark.parametrize("calls", [1, 3])
def test_a_thread_that_calls_and_does_not_wait_goes_on(calls: int) -> None:
    log: list[object] = []

    def work(loop: asyncio.AbstractEventLoop) -> str:
        for number in range(calls):
            loop.call_soon_threadsafe(log.append, number)
        return asyncio.run_coroutine_threadsafe(slept(loop), loop).result()

    async def slept(loop: asyncio.AbstractEventLoop) -> str:
        timer = loop.create_future()
        loop.call_later(5, timer.set_result, "slept")
        return str(await timer)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        log.append(await asyncio.to_thread(work, loop))
        await asyncio.to_thread(lambda: loop.call_soon_threadsafe(log.append, "last"))
        await settle()
        log.append(loop.time() - START)

    run_virtual(main)
    assert log == [*range(calls), "slept", "last", 5]


def test_a_thread_whose_callback_fails_goes_on() -> None:
    async def main() -> None:
        loop, nothing = asyncio.get_running_loop(), dict[str, str]()
        await asyncio.to_thread(lambda: loop.call_soon_threadsafe(lambda: nothing["none"]))

    with pytest.raises(Unhandled, match="KeyError"):
        run_virtual(main)


def test_a_thread_that_waits_for_a_cancelled_coroutine_ends() -> None:
    ended: list[str] = []

    async def main() -> None:
        tasks: list[asyncio.Task[Any] | None] = []

        async def never() -> None:
            tasks.append(asyncio.current_task())
            await asyncio.Event().wait()

        def work(loop: asyncio.AbstractEventLoop) -> None:
            with pytest.raises(concurrent.futures.CancelledError):
                asyncio.run_coroutine_threadsafe(never(), loop).result()
            ended.append("cancelled")

        thread = asyncio.create_task(asyncio.to_thread(work, asyncio.get_running_loop()))
        await settle()
        thread.cancel()
        await settle()
        assert tasks[0] is not None
        tasks[0].cancel()

    run_virtual(main)
    assert ended == ["cancelled"]


def fails_with_stop() -> None:
    raise StopIteration


def fails_with_value() -> None:
    raise ValueError("no")


@pytest.mark.parametrize(("function", "error"), [(fails_with_value, ValueError), (fails_with_stop, RuntimeError)])
def test_executor_errors_reach_the_caller(function: Callable[[], None], error: type[Exception]) -> None:
    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(None, function)

    with pytest.raises(error):
        run_virtual(main)


def test_the_error_of_main_is_not_masked_by_its_leaks() -> None:
    async def main() -> None:
        main.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[attr-defined]
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_virtual(main)


def test_two_runs_interleave_alike() -> None:
    async def worker(name: int, log: list[tuple[int, float]]) -> None:
        loop = asyncio.get_running_loop()
        for step in range(5):
            await at(loop.time() + (name * 7 + step * 3) % 5)
            log.append((name, loop.time()))

    def main(log: list[tuple[int, float]]) -> Callable[[], Coroutine[Any, Any, None]]:
        async def body() -> None:
            async with asyncio.TaskGroup() as group:
                for name in range(20):
                    group.create_task(worker(name, log))

        return body

    first: list[tuple[int, float]] = []
    second: list[tuple[int, float]] = []
    run_virtual(main(first))
    run_virtual(main(second))
    assert first == second
    assert len(first) == 100


def test_repr_shows_time_and_timers() -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        handle = loop.call_at(START + 1, lambda: None)
        text = repr(loop)
        handle.cancel()
        return text

    assert run_virtual(main) == "VirtualLoop(now=1000.000, timers=1)"


def test_a_closed_loop_takes_no_timers() -> None:
    loop = VirtualLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)


async def test_settle_lets_others_run_and_time_stand() -> None:
    loop = asyncio.get_running_loop()
    seen: list[str] = []

    async def other() -> None:
        for _ in range(20):
            await turn()
        seen.append("ran")
        await at(START + 1)
        seen.append("later")

    task = asyncio.create_task(other())
    loop.call_later(0, seen.append, "due")
    await settle()
    assert (seen, loop.time()) == (["due", "ran"], START)
    await task
    await settle()
    assert loop.time() == START + 1
