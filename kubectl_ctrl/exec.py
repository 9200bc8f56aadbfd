"""The only place that starts other programs: kind, kwokctl, kubectl, docker, credential plugins.

A program gets a list of arguments, never a shell command line, the caller's environment for it, and a deadline. It runs
in its own session: Ctrl-C in the terminal reaches only kubectl-ctrl, and a stopped program is stopped together with its
child processes. `run` waits in the event loop; `quickly` waits without one, because completion has no time to load
asyncio; `detached` does not wait; and `foreground` lends a program the terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kubectl_ctrl.errors import CtrlError, PrerequisiteMissing, ProgramFailed
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    import asyncio

# From SIGTERM to SIGKILL.
_GRACE = 5.0
# How often the standard error output is read for new lines.
_POLL_EVERY = 0.1


class Output(Value, kw_only=True):
    """The output of a program and its exit code, which is -N after signal N."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str


async def run(
    argv: Sequence[str],
    *,
    timeout: float | None,
    env: Mapping[str, str],
    input: bytes = b"",  # noqa: A002 - named as subprocess names it
    interactive: bool = False,
    shown: bool = False,
    check: bool = True,
    heard: Callable[[str], None] | None = None,
) -> Output:
    """Run a program until it exits; ProgramFailed, with all output, for an exit code other than 0 or a timeout.

    `interactive` connects it to the terminal: stdin, and stderr, which is then not captured; `shown` also stdout.
    Without `check` any exit code is returned. If the call is cancelled, the program is stopped first.
    `heard` is called with each non-empty line of its captured stderr as soon as it is written.
    """
    from tempfile import TemporaryFile

    with ExitStack() as files:
        # Files, not pipes: a daemon that the program starts inherits its pipes, and we would wait for the daemon.
        stdout, stderr, source = (files.enter_context(TemporaryFile()) for _ in range(3))
        source.write(input)
        source.seek(0)
        detached = not (interactive or shown)  # from the terminal
        streams = (source, stdout, stderr) if detached else (None, None if shown else stdout, None)
        process = await _start(tuple(argv), env, streams, own_session=detached)
        waiting = _wait(process, timeout, group=detached)
        in_time = await (waiting if heard is None else _following(waiting, _Lines(stderr, heard)))
        output = Output(argv=tuple(argv), code=process.returncode or 0, stdout=_text(stdout), stderr=_text(stderr))
    if not in_time:
        raise _failed(output, f"did not exit within {timeout:g} s and was stopped")
    if check and output.code != 0:
        code = output.code
        raise _failed(output, f"exited with code {code}" if code > 0 else f"was terminated by signal {-code}")
    return output


_Streams = tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None]  # stdin, stdout, stderr; None is inherited


async def _start(
    argv: tuple[str, ...], env: Mapping[str, str], streams: _Streams, *, own_session: bool
) -> asyncio.subprocess.Process:
    import asyncio

    stdin, stdout, stderr = streams
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv, stdin=stdin, stdout=stdout, stderr=stderr, env=dict(env), start_new_session=own_session
        )
    )
    try:
        # If asyncio is cancelled while it starts a program, it kills only that process, not the group, and two of its
        # tasks then wait for the same pid. So the start is completed first, and the group stopped here.
        return await asyncio.shield(starting)
    except OSError as error:
        raise _missing(argv[0], error) from error
    except asyncio.CancelledError:
        with suppress(OSError):
            await _stop(await starting, group=own_session)
        raise


def _missing(program: str, error: OSError) -> PrerequisiteMissing:
    if isinstance(error, FileNotFoundError):
        message = f"The program {program!r} was not found."
        return PrerequisiteMissing(message, next_step="Install it, or add its folder to PATH.")
    return PrerequisiteMissing(f"The program {program!r} cannot be run: {error.strerror}.")


class _Lines:
    """Reports each line of a file that a program writes."""

    def __init__(self, file: IO[bytes], report: Callable[[str], None]) -> None:
        self._report = report
        self._file = file
        self._at = 0
        self._begun = b""  # an incomplete line

    def __repr__(self) -> str:
        return f"_Lines({self._at} bytes)"

    def read(self, *, final: bool = False) -> None:
        """Report new lines; when `final`, also an incomplete last line."""
        # pread, because the program shares the file's offset.
        while grown := os.pread(self._file.fileno(), 65536, self._at):
            self._at += len(grown)
            *lines, self._begun = re.split(rb"[\r\n]", self._begun + grown)
            for line in filter(None, lines):
                self._report(line.decode(errors="replace"))
        if final and self._begun:
            self._report(self._begun.decode(errors="replace"))


async def _following(waiting: Coroutine[None, None, bool], lines: _Lines) -> bool:
    """The result of `waiting`; meanwhile, the lines are reported."""
    import asyncio

    async def follow() -> None:
        while True:
            lines.read()
            await asyncio.sleep(_POLL_EVERY)

    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(follow())
        in_time = await waiting
        following.cancel()
    lines.read(final=True)
    return in_time


async def _wait(process: asyncio.subprocess.Process, timeout: float | None, *, group: bool) -> bool:
    """Wait until it exits; False if it was stopped at the deadline."""
    import asyncio

    try:
        async with asyncio.timeout(timeout):
            await process.wait()
    except TimeoutError:
        return False
    else:
        return True
    finally:
        if process.returncode is None:
            await _stop(process, group=group)


async def _stop(process: asyncio.subprocess.Process, *, group: bool) -> None:
    """Terminate the program, kill it if it does not exit, and kill the rest of its group."""
    import asyncio

    _signal(process, signal.SIGTERM, group=group)
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        if group or process.returncode is None:
            _signal(process, signal.SIGKILL, group=group)
        # Also after a second cancellation: an event loop that is closed before its child is reaped warns of it.
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals, *, group: bool) -> None:
    with suppress(ProcessLookupError):
        if group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _failed(output: Output, outcome: str) -> ProgramFailed:
    lines = (output.stderr.strip() or output.stdout.strip()).splitlines()
    last = f": {lines[-1].strip()}" if lines else "."
    return ProgramFailed(
        f"The command {shlex.join(output.argv)!r} {outcome}{last}",
        argv=output.argv,
        outcome=outcome,
        code=output.code,
        stdout=output.stdout,
        stderr=output.stderr,
    )


# Without an event loop.


def python(environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command of this Python, which finds this package but nothing in the current folder, and its environment."""
    env = dict(environ)
    if sys.flags.isolated:
        return [sys.executable, "-I"], env
    root = Path(__file__).resolve().parents[1]
    if not sys.flags.safe_path and sys.path and Path(sys.path[0]).resolve() == root:
        # `python -m kubectl_ctrl` in a checkout: the package is only in that folder.
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(root), env.get("PYTHONPATH", "")]))
    return [sys.executable, "-P"], env


def detached(argv: Sequence[str], *, env: Mapping[str, str], output: Path, stdin: int | None = None) -> int:
    """Start a program in its own session, which continues after this process and its terminal; its pid.

    Its output is appended to the file, which is created with mode 0600. It inherits no other open file than `stdin`.
    """
    import subprocess

    try:
        handle = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CtrlError(
            f"The file {str(output)!r} for the output of {Path(argv[0]).name} cannot be created: {error.strerror}.",
            next_step="make its folder writable, and check that its disk is not full",
        ) from error
    try:
        source = subprocess.DEVNULL if stdin is None else stdin
        process = subprocess.Popen(argv, stdin=source, stdout=handle, stderr=handle, env=env, start_new_session=True)
    except OSError as error:
        raise _missing(argv[0], error) from error
    finally:
        os.close(handle)
    process.returncode = 0  # nobody waits for it; otherwise its destructor would warn
    return process.pid


def has_ended(pid: int) -> bool:
    """Whether a program of `detached` has exited."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # an earlier call has reaped it
        return True


def foreground(argv: Sequence[str], *, env: Mapping[str, str]) -> int:
    """Run a program with this process's terminal, files and process group; its exit code, or 128+N after signal N.

    Signals to this process are passed on, except Ctrl-C, which the terminal sends to the program too.
    """
    import subprocess

    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals before it has started

    def pass_on(number: int, _frame: object) -> None:
        if process is None:
            early.append(number)
        elif number not in (signal.SIGINT, signal.SIGQUIT) or not _owns_terminal():
            process.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
    # A function, since the program would inherit SIG_IGN; a signal that is ignored, as by nohup, stays so for both.
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in handled}
    before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
    # A handler does not run while a call waits that began just after the signal; but each signal leaves a byte here.
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    woken = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        try:
            process = subprocess.Popen(argv, env=env)
        except OSError as error:
            raise _missing(argv[0], error) from error
        for number in early:
            process.send_signal(number)
        while (code := process.poll()) is None:
            os.read(reading, 512)
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
        signal.set_wakeup_fd(woken)
        os.close(reading)
        os.close(writing)
    return code if code >= 0 else 128 - code


def _owns_terminal() -> bool:
    """Whether this process is in the terminal's foreground group, to whose members Ctrl-C goes."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def quickly(argv: Sequence[str], *, env: Mapping[str, str], timeout: float) -> str | None:
    """The standard output of a program; None if it fails. At the deadline it is killed with its child processes."""
    import subprocess

    null = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            argv, stdin=null, stdout=subprocess.PIPE, stderr=null, env=env, start_new_session=True
        )
    except OSError:
        return None
    with process:
        try:
            stdout, _ = process.communicate(timeout=timeout)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise
    return stdout.decode(errors="replace") if process.returncode == 0 else None
