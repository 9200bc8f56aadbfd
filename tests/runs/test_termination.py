"""Ending real processes: asked first, killed only where that is wanted, and gone when it is said."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import TimedOut
from kubectl_ctrl.runs.termination import LiveProcess, ended

# Ends with 7 when it is asked to. Waiting for a signal that is blocked, none can come between two steps and be missed.
_HEARING = "import signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {15}); print('on', flush=True)\n"
_POLITE = f"{_HEARING}signal.sigwait({{15}}); sys.exit(7)"
_DEAF = "import signal; signal.signal(15, signal.SIG_IGN); print('on', flush=True); signal.pause()"
_TWICE = f"{_HEARING}signal.sigwait({{15}}); signal.sigwait({{15}}); sys.exit(9)"

Begin = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Starts Python code, and returns when it says that it runs."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(code: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def live(process: subprocess.Popen[bytes], *, asked: bool = False) -> LiveProcess:
    return LiveProcess(pid=process.pid, controllers=("foo",), asked=asked)


def end(
    found: Callable[[], Sequence[LiveProcess]], *, patience: float = 30.0, kill: bool = False
) -> tuple[list[LiveProcess], list[str]]:
    notes: list[str] = []
    gone = asyncio.run(ended(found, patience, SystemClock(), notes.append, kill=kill))
    return gone, notes


def test_it_is_asked_once_and_waited_for(begin: Begin) -> None:
    process = begin(_POLITE)
    gone, notes = end(lambda: [live(process)])
    assert (process.wait(0), gone) == (7, [live(process)])
    assert notes == [f"waiting for foo (process {process.pid})"]


def test_where_nothing_is_found_nothing_is_waited_for() -> None:
    assert end(list) == ([], [])


def test_what_does_not_end_in_time_is_named_and_left(begin: Begin) -> None:
    process = begin(_DEAF)
    with pytest.raises(TimedOut, match=rf"foo \(process {process.pid}\) did not exit within 500ms"):
        end(lambda: [live(process)], patience=0.5)
    assert process.poll() is None


def test_however_short_the_time_is_it_was_asked_when_that_is_said(begin: Begin) -> None:
    process, notes = begin(_POLITE), list[str]()
    with pytest.raises(TimedOut, match="did not exit"):
        asyncio.run(ended(lambda: [live(process)], 0.0, SystemClock(), notes.append, kill=False))
    assert process.wait(60) == 7
    assert notes == [f"waiting for foo (process {process.pid})"]


def test_or_killed_where_that_is_wanted(begin: Begin) -> None:
    process = begin(_DEAF)
    end(lambda: [live(process)], patience=0.5, kill=True)
    assert process.wait(0) == -signal.SIGKILL


def test_one_that_is_stopped_goes_on_to_its_end(begin: Begin) -> None:
    process = begin(_POLITE)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
    end(lambda: [live(process)])
    assert process.wait(0) == 7


def test_one_that_was_asked_before_is_not_asked_again(begin: Begin) -> None:
    process = begin(_TWICE)
    with pytest.raises(TimedOut):
        end(lambda: [live(process)], patience=0.5)
    with pytest.raises(TimedOut):
        end(lambda: [live(process, asked=True)], patience=0.5)
    assert process.poll() is None


def test_what_is_found_meanwhile_ends_too(begin: Begin) -> None:
    first, second = begin(_POLITE), begin(_POLITE)
    end(lambda: [live(first)] if first.poll() is None else [live(second)] if second.poll() is None else [])
    assert (first.wait(0), second.wait(0)) == (7, 7)


def test_what_is_not_found_again_is_not_touched(begin: Begin) -> None:
    # Between the look and the grip its number may have become another's.
    process, looks = begin(_POLITE), iter([True, False, False])
    assert end(lambda: [live(process)] if next(looks) else []) == ([], [])
    assert process.poll() is None


def test_it_never_ends_itself() -> None:
    me = LiveProcess(pid=os.getpid(), controllers=("foo",))
    assert end(lambda: [me], kill=True) == ([], [])
