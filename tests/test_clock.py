"""The system clock against a system time that the test owns, and the API's two ways of writing a time."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from kubectl_ctrl.clock import SystemClock, parse_rfc3339, rfc3339, rfc3339_micro


class Machine:
    """What the operating system says: the suspend-counting time runs with the loop, and ahead of it after a suspend."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0.0
        self.asked: list[int] = []
        monkeypatch.setattr(time, "clock_gettime", self.read)

    def read(self, source: int) -> float:
        self.asked.append(source)
        return asyncio.get_running_loop().time() + self.ahead


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def loop_time() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other names for it")
async def test_elapsed_counts_suspend(machine: Machine) -> None:
    SystemClock().elapsed()
    assert machine.asked == [time.CLOCK_BOOTTIME]


def test_elapsed_and_now_move_on() -> None:
    clock = SystemClock()
    assert clock.elapsed() <= clock.elapsed()
    assert abs(clock.now() - time.time()) < 60


def test_cpu_time_is_that_of_the_calling_thread() -> None:
    clock = SystemClock()
    assert time.thread_time() <= clock.cpu() <= time.thread_time()


@pytest.mark.usefixtures("machine")
async def test_sleep_takes_as_long_as_asked() -> None:
    began = loop_time()
    await SystemClock().sleep(12.5)
    assert loop_time() - began == pytest.approx(12.5)


async def test_sleep_notices_a_suspend_within_a_nap(machine: Machine) -> None:
    began = loop_time()
    asyncio.get_running_loop().call_later(1.0, setattr, machine, "ahead", 3600.0)
    await SystemClock().sleep(600)
    assert loop_time() - began <= 5.0


@pytest.mark.usefixtures("machine")
async def test_sleep_of_nothing_lets_others_run() -> None:
    ran: list[bool] = []
    asyncio.get_running_loop().call_soon(ran.append, True)
    await SystemClock().sleep(0)
    assert ran == [True]


@pytest.mark.usefixtures("machine")
async def test_timeout_ends_the_block_on_time() -> None:
    began = loop_time()
    with pytest.raises(TimeoutError):
        async with SystemClock().timeout(12.5):
            await asyncio.Event().wait()
    assert loop_time() - began == pytest.approx(12.5)


async def test_timeout_notices_a_suspend_within_a_nap(machine: Machine) -> None:
    began = loop_time()
    asyncio.get_running_loop().call_later(1.0, setattr, machine, "ahead", 3600.0)
    with pytest.raises(TimeoutError):
        async with SystemClock().timeout(600):
            await asyncio.Event().wait()
    assert loop_time() - began <= 5.0


@pytest.mark.usefixtures("machine")
async def test_a_block_in_time_leaves_nothing_behind() -> None:
    clock = SystemClock()
    async with clock.timeout(1.0):
        await clock.sleep(0.5)
    async with clock.timeout(None):
        await clock.sleep(10)  # the first block's time has long passed


@pytest.mark.usefixtures("machine")
async def test_a_timeout_leaves_other_errors_and_cancellations_alone() -> None:
    async def cancelled() -> None:
        async with SystemClock().timeout(100):
            await asyncio.Event().wait()

    with pytest.raises(KeyError):
        async with SystemClock().timeout(1.0):
            raise KeyError
    task = asyncio.create_task(cancelled())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.usefixtures("machine")
async def test_a_timeout_of_nothing_ends_at_the_first_wait() -> None:
    began = loop_time()
    with pytest.raises(TimeoutError):
        async with SystemClock().timeout(0):
            await asyncio.Event().wait()
    assert loop_time() == began


def test_rfc3339_is_what_the_api_writes() -> None:
    assert rfc3339(1_767_225_600.999) == "2026-01-01T00:00:00Z"
    assert rfc3339_micro(1_767_225_600.25) == "2026-01-01T00:00:00.250000Z"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600.0),
        ("2026-01-01T00:00:00.250000Z", 1_767_225_600.25),
        ("2026-01-01T00:00:00.123456789Z", 1_767_225_600.123456),
        ("2026-01-01T02:00:00+02:00", 1_767_225_600.0),
    ],
)
def test_parse_reads_what_servers_write(text: str, at: float) -> None:
    assert parse_rfc3339(text) == pytest.approx(at, abs=1e-6)


@pytest.mark.parametrize("text", ["", "soon", "2026-01-01T00:00:00", "2026-01-01"])
def test_parse_refuses_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_rfc3339(text)
