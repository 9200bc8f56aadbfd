"""What the first signal does to work that has an end of its own; the second is proved with real programs in e2e."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from kubectl_ctrl.cli.interrupts import cancellable, interrupts
from kubectl_ctrl.runtime.stop import Stop


def never(_name: str = "") -> None:
    raise AssertionError("It was not asked for.")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_cancels_and_waits_for_what_is_put_in_order(number: signal.Signals) -> None:
    seen = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("in order")

    before = signal.getsignal(number)
    assert asyncio.run(cancellable(work(), stopping=seen.append, forced=never)) == 128 + number
    assert seen == [number.name, "in order"]
    assert signal.getsignal(number) is before


def test_what_ends_by_itself_or_fails_does_so() -> None:
    async def nothing() -> None:
        pass

    async def broken() -> None:
        raise ValueError("broken")

    assert asyncio.run(cancellable(nothing(), stopping=never, forced=never)) == 0
    with pytest.raises(ValueError, match="broken"):
        asyncio.run(cancellable(broken(), stopping=never, forced=never))


def test_a_cancellation_of_its_own_is_no_signal() -> None:
    async def cancels() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancellable(cancels(), stopping=never, forced=never))


@pytest.mark.real_loop
async def test_a_first_signal_that_a_blocked_loop_does_not_hear_is_told_by_another_thread() -> None:
    told = threading.Event()
    stop = Stop()
    with interrupts(stop.request) as signals:
        signals.unheard = told.set
        os.kill(os.getpid(), signal.SIGINT)
        assert told.wait(20), "The loop is blocked as long as this waits."
        assert signals.blocked
        await stop.first()
        assert not signals.blocked


def test_under_nohup_the_end_of_the_terminal_means_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:

        async def work() -> None:
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)

        assert asyncio.run(cancellable(work(), stopping=never, forced=never)) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


_STUBBORN = """
import asyncio
from kubectl_ctrl.cli.interrupts import leave_within

async def stubborn():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def main():
    asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    print("done")
    leave_within(0.1, 7)

asyncio.run(main())
"""


def test_a_task_that_ignores_its_cancellation_does_not_hold_up_the_end_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", _STUBBORN], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "done\n", "")
