"""kubectl_ctrl.exec.foreground: exit codes, and the signals that reach the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_ctrl.errors import PrerequisiteMissing
from kubectl_ctrl.exec import detached, foreground, has_ended

# Prints a line when it is ready, and the name of the signal that ends it.
_PROGRAM = """\
import signal, sys
numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("ready", flush=True)
print(signal.Signals(signal.sigwait(numbers)).name)
sys.exit(3)
"""
_CALLER = "import os, sys; from kubectl_ctrl.exec import foreground; sys.exit(foreground(sys.argv[1:], env=os.environ))"


@pytest.mark.parametrize(
    ("code", "expected"),
    [("import sys; sys.exit(7)", 7), ("", 0), ("import os; os.kill(os.getpid(), 9)", 128 + 9)],
)
def test_the_exit_code_is_as_in_a_shell(code: str, expected: int) -> None:
    assert foreground([sys.executable, "-c", code], env=os.environ) == expected


def test_a_missing_program_is_an_error_and_signals_are_as_before(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with pytest.raises(PrerequisiteMissing, match="'no-such-program' was not found"):
        foreground(["no-such-program"], env=os.environ)
    with pytest.raises(PrerequisiteMissing, match="cannot be run: Permission denied"):
        foreground([str(tmp_path)], env=os.environ)
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_this_process_alone_reaches_the_program(number: signal.Signals) -> None:
    argv = [sys.executable, "-c", _CALLER, sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == "ready\n"
        caller.send_signal(number)
        assert caller.stdout.read() == f"{number.name}\n"
        assert caller.wait(60) == 3


def test_an_ignored_signal_stays_ignored_for_the_program() -> None:
    code = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    caller = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); {_CALLER}"
    ran = subprocess.run([sys.executable, "-c", caller, sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert ran.stdout == b"True\n"


def test_a_detached_program_reads_a_pipe_and_its_end_is_noticed(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    log = tmp_path / "log"
    pid = detached([sys.executable, "-c", "print(input())"], env=os.environ, output=log, stdin=reading)
    os.close(reading)
    assert not has_ended(pid)
    os.write(writing, b"read\n")
    os.close(writing)
    while not has_ended(pid):
        pass
    assert has_ended(pid)
    assert log.read_text() == "read\n"
