"""kubectl_ctrl.exec, with real programs: what they say, how they end, and that none is left."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_ctrl.errors import CtrlError, PrerequisiteMissing, ProgramFailed
from kubectl_ctrl.exec import Output, detached, quickly, run

pytestmark = pytest.mark.programs("echo", "false", "sh", "sleep")
linux = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open to see processes end")


def environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "GREETING": "hello"}


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-c", code, *args]


def ran(argv: list[str], *, timeout: float | None = 90.0, text: bytes = b"", check: bool = True) -> Output:
    return asyncio.run(run(argv, timeout=timeout, env=environ(), input=text, check=check))


def ends(pid: int) -> bool:
    """Whether the process has ended or does so now; not only whether it was told to."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 60.0)[0])
    finally:
        os.close(descriptor)


def test_output_and_input_are_what_the_program_says_and_reads() -> None:
    output = ran(python("import sys; print(sys.stdin.read()[::-1]); print('hm', file=sys.stderr)"), text=b"abc")
    assert (output.code, output.stdout, output.stderr) == (0, "cba\n", "hm\n")


def test_no_input_is_an_empty_one() -> None:
    assert ran(python("import sys; print(len(sys.stdin.read()))")).stdout == "0\n"


def test_arguments_are_never_a_shell_line(tmp_path: Path) -> None:
    target = tmp_path / "made"
    hostile = f"; touch {target} $(touch {target})"
    assert ran(python("import sys; print(sys.argv[1])", hostile)).stdout == hostile + "\n"
    assert not target.exists()


def test_the_environment_is_the_one_given() -> None:
    code = "import os; print(os.environ['GREETING'], 'HOME' in os.environ)"
    assert ran(python(code)).stdout == "hello False\n"


def test_a_failure_carries_command_code_and_output() -> None:
    with pytest.raises(ProgramFailed) as caught:
        ran(python("import sys; print('so far'); print('first\\nno such node', file=sys.stderr); sys.exit(3)"))
    error = caught.value
    assert (error.code, error.stdout, error.stderr) == (3, "so far\n", "first\nno such node\n")
    assert error.outcome == "exited with code 3"
    assert str(error).endswith("exited with code 3: no such node")
    assert error.argv[0] == sys.executable
    assert sys.executable in error.tried


def test_without_check_a_code_is_an_answer() -> None:
    assert ran(python("raise SystemExit(7)"), check=False).code == 7


def test_a_program_ended_by_a_signal_says_which() -> None:
    with pytest.raises(ProgramFailed, match="was terminated by signal 9") as caught:
        ran(python("import os; os.kill(os.getpid(), 9)"))
    assert caught.value.code == -9


def test_a_missing_program_is_a_missing_prerequisite() -> None:
    with pytest.raises(PrerequisiteMissing, match="'no-such-program' was not found"):
        ran(["no-such-program"])


def test_a_program_that_may_not_run_is_a_missing_prerequisite(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    with pytest.raises(PrerequisiteMissing, match="cannot be run: Permission denied"):
        ran([str(script)])


@linux
def test_a_timeout_stops_the_program_and_what_it_started_and_keeps_what_was_said() -> None:
    with pytest.raises(ProgramFailed, match=r"did not exit within 3 s and was stopped") as caught:
        ran(["sh", "-c", "sleep 60 & echo $!; wait"], timeout=3.0)
    assert ends(int(caught.value.stdout))


@linux
def test_what_will_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_ctrl.exec._GRACE", 0.1)
    with pytest.raises(ProgramFailed, match=r"was stopped") as caught:
        ran(["sh", "-c", "trap '' TERM; echo $$; while :; do sleep 60; done"], timeout=3.0)
    assert caught.value.code == -9
    assert ends(int(caught.value.stdout))


@linux
def test_cancellation_stops_the_program_first(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def main() -> int:
        code = "import os, sys, pathlib as p, signal; p.Path(sys.argv[1]).write_text(str(os.getpid())); signal.pause()"
        task = asyncio.create_task(run(python(code, str(pipe)), timeout=None, env=environ()))
        pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    assert ends(asyncio.run(main()))


@linux
def test_cancelled_while_it_is_started_it_is_stopped_with_what_it_has_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    async def main() -> int:
        script = 'sleep 300 & echo $! >"$0"; wait'
        task = asyncio.create_task(run(["sh", "-c", script, str(pipe)], timeout=None, env=environ()))
        for _ in range(2):  # until it waits for asyncio, which has started the program and says so later
            await asyncio.sleep(0)
        assert select.select([reading], [], [], 60.0)[0]  # with the loop standing still
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(os.read(reading, 20))

    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert ends(asyncio.run(main()))
    finally:
        os.close(reading)


@pytest.mark.real_loop
async def test_cancelled_again_it_is_killed_and_has_ended_all_the_same(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = (
        "import os, sys, pathlib as p, signal; signal.signal(15, signal.SIG_IGN)\n"
        "p.Path(sys.argv[1]).write_text(str(os.getpid()))\nwhile True: signal.pause()"
    )
    task = asyncio.create_task(run(python(code, str(pipe)), timeout=None, env=environ()))
    pid = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
    task.cancel()
    for _ in range(3):  # until it waits for the end that it asked for
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)  # nor is it a child whom nobody asked how it ended


def test_a_daemon_left_behind_is_neither_waited_for_nor_stopped() -> None:
    pid = int(ran(["sh", "-c", "sleep 300 & echo $!"], timeout=90.0).stdout)
    os.kill(pid, 9)  # raises when it is gone


def test_more_output_than_a_pipe_holds() -> None:
    output = ran(python("import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('y' * 3_000_000)"))
    assert (len(output.stdout), len(output.stderr)) == (3_000_000, 3_000_000)


def test_output_that_is_no_text_is_still_shown() -> None:
    assert ran(python("import sys; sys.stdout.buffer.write(b'a\\xffb')")).stdout == "a�b"


# Lines that are heard while the program runs.


def hearing(argv: list[str], heard: Callable[[str], None]) -> Output:
    return asyncio.run(run(argv, timeout=90.0, env=environ(), heard=heard))


def test_each_line_is_heard_once_and_recorded_all_the_same() -> None:
    lines: list[str] = []
    code = "import sys; sys.stderr.write('one\\ntwo\\r three\\n\\nfour'); print('no')"
    output = hearing(python(code), lines.append)
    assert lines == ["one", "two", " three", "four"]
    assert output.stderr == "one\ntwo\r three\n\nfour"


def test_a_line_is_heard_while_the_program_still_runs(tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = (
        "import os, signal, sys; signal.alarm(60); print('begun', file=sys.stderr, flush=True)\n"
        "while not os.path.exists(sys.argv[1]): pass"
    )

    def heard(line: str) -> None:
        said.write_text(line)  # only now it ends well

    hearing(python(code, str(said)), heard)


def test_more_lines_than_one_look_takes_are_heard_in_one_piece_each() -> None:
    lines: list[str] = []
    hearing(python("import sys; sys.stderr.write(('x' * 99_999 + '\\n') * 20)"), lines.append)
    assert lines == ["x" * 99_999] * 20


def test_what_was_said_before_a_failure_is_heard() -> None:
    lines: list[str] = []
    with pytest.raises(ProgramFailed):
        hearing(python("import sys; sys.exit('no room')"), lines.append)
    assert lines == ["no room"]


# Programs that go on without us.


def started(argv: list[str], output: Path) -> int:
    """The pid, once it has ended."""
    pid = detached(argv, env=environ(), output=output)
    os.waitpid(pid, 0)
    return pid


def test_a_detached_program_has_a_session_no_input_and_a_file_of_its_own(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getpid() == os.getsid(0), sys.stdin.read() == '', os.environ['GREETING'])"
    output = tmp_path / "log"
    for _ in range(2):
        started(python(f"{code}; print('hm', file=sys.stderr)"), output)
    assert sorted(output.read_text().splitlines()) == ["True True hello"] * 2 + ["hm"] * 2
    assert output.stat().st_mode & 0o777 == 0o600


def test_a_detached_program_holds_no_file_of_ours_open(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    pid = detached(python("import signal; signal.pause()"), env=environ(), output=tmp_path / "log")
    try:
        os.close(writing)
        assert select.select([reading], [], [], 60.0)[0], "its end is open elsewhere"
        assert os.read(reading, 1) == b""
    finally:
        os.close(reading)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@linux
def test_a_detached_program_survives_who_started_it(tmp_path: Path) -> None:
    pipe, output = tmp_path / "pipe", tmp_path / "log"
    os.mkfifo(pipe)
    inner = "import sys, pathlib as p; print(p.Path(sys.argv[1]).read_text())"
    outer = (
        "import sys, pathlib as p; from kubectl_ctrl.exec import detached; "
        "print(detached(sys.argv[2:], env={}, output=p.Path(sys.argv[1])))"
    )
    pid = int(ran(python(outer, str(output), *python(inner, str(pipe)))).stdout)
    pipe.write_text("still here")
    assert ends(pid)
    assert output.read_text() == "still here\n"


def test_a_program_that_is_missing_cannot_be_detached(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteMissing, match="'no-such-program' was not found"):
        detached(["no-such-program"], env=environ(), output=tmp_path / "log")


def test_a_file_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        CtrlError, match=r"nowhere/log' for the output of echo cannot be created: No such file or directory"
    ):
        detached(["echo"], env=environ(), output=tmp_path / "nowhere" / "log")


# Programs that have no time.


def test_a_quick_program_answers() -> None:
    assert quickly(["echo", "hello"], env=environ(), timeout=30.0) == "hello\n"


@pytest.mark.parametrize("argv", [["false"], ["no-such-program"], ["sh", "-c", "kill -9 $$"]])
def test_one_that_fails_answers_nothing(argv: list[str]) -> None:
    assert quickly(argv, env=environ(), timeout=30.0) is None


@linux
def test_one_that_is_late_is_killed_with_what_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pid"
    assert quickly(["sh", "-c", f"sleep 60 & echo $! > {pipe}; wait"], env=environ(), timeout=3.0) is None
    assert ends(int(pipe.read_text()))


def test_quickly_needs_no_asyncio() -> None:
    code = (
        "import os, sys; from kubectl_ctrl.exec import quickly; "
        "print(quickly(['echo', 'hi'], env=dict(os.environ), timeout=30.0), 'asyncio' in sys.modules)"
    )
    assert ran(python(code)).stdout == "hi\n False\n"
