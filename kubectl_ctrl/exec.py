"""The only place that starts other programs: kind, kwokctl, kubectl, docker, credential plugins.

A program gets a list of arguments, never a line for a shell, an environment that the caller names, and a time by which
it must have ended. It runs in a session of its own, so a Ctrl-C in our terminal is for us to handle, and what is
stopped is stopped together with what it started. `run` waits for its end in the event loop; `quickly` waits without
one, for completion, which has no time to load asyncio; `detached` does not wait.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from kubectl_ctrl.errors import CtrlError, PrerequisiteMissing, ProgramFailed
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    import asyncio

# From asking a program to stop until it is killed.
_GRACE = 5.0
# How soon a line is heard.
_LOOK_EVERY = 0.1


class Output(Value, kw_only=True):
    """What a program said and how it ended; its code is minus the number of the signal that ended it."""

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
    """Run a program to its end; raises ProgramFailed, which has all that it said, for a code other than 0 or a timeout.

    `interactive` gives it our terminal: our stdin, and our stderr, which is then not recorded. With `shown` it has our
    stdout too. Without `check` every code is an answer. When the call is cancelled, the program is stopped first.
    `heard` is told each line of its stderr as it comes; none that is empty, and nothing of what is not recorded.
    """
    from tempfile import TemporaryFile

    with ExitStack() as files:
        # Not pipes: a program that leaves a daemon behind leaves it our pipe too, and we would wait for the daemon.
        said, complained, source = (files.enter_context(TemporaryFile()) for _ in range(3))
        source.write(input)
        source.seek(0)
        apart = not (interactive or shown)
        streams = (source, said, complained) if apart else (None, None if shown else said, None)
        process = await _start(tuple(argv), env, streams, own_session=apart)
        in_time = await _told(_wait(process, timeout, group=apart), _Lines(complained, heard))
        output = Output(argv=tuple(argv), code=process.returncode or 0, stdout=_text(said), stderr=_text(complained))
    if not in_time:
        raise _failed(output, f"did not exit within {timeout:g} s and was stopped")
    if check and output.code != 0:
        code = output.code
        raise _failed(output, f"exited with code {code}" if code > 0 else f"was terminated by signal {-code}")
    return output


_Streams = tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None]  # stdin, stdout, stderr; None is our own


async def _start(
    argv: tuple[str, ...], env: Mapping[str, str], streams: _Streams, *, own_session: bool
) -> asyncio.subprocess.Process:
    import asyncio

    source, said, complained = streams
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv, stdin=source, stdout=said, stderr=complained, env=dict(env), start_new_session=own_session
        )
    )
    try:
        # Cancelled in there, asyncio kills the program without its helpers, and quarrels with itself over its end.
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
    """Tells the lines of a file that somebody else writes, each once."""

    def __init__(self, file: IO[bytes], tell: Callable[[str], None] | None) -> None:
        self.tell = tell
        self._file = file
        self._at = 0
        self._begun = b""  # a line without its end

    def __repr__(self) -> str:
        return f"_Lines({self._at} bytes)"

    def look(self, *, over: bool = False) -> None:
        """What has come; when it is `over`, a line without an end is one too."""
        if self.tell is None:
            return
        # The writer's place in the file is ours as well, and stays where it is.
        while grown := os.pread(self._file.fileno(), 65536, self._at):
            self._at += len(grown)
            *lines, self._begun = re.split(rb"[\r\n]", self._begun + grown)
            for line in filter(None, lines):
                self.tell(line.decode(errors="replace"))
        if over and self._begun:
            self.tell(self._begun.decode(errors="replace"))


async def _told(waiting: Coroutine[None, None, bool], lines: _Lines) -> bool:
    """What is waited for, while the lines are told."""
    import asyncio

    async def follow() -> None:
        while True:
            lines.look()
            await asyncio.sleep(_LOOK_EVERY)

    if lines.tell is None:
        return await waiting
    async with asyncio.TaskGroup() as beside:
        following = beside.create_task(follow())
        in_time = await waiting
        following.cancel()
    lines.look(over=True)
    return in_time


async def _wait(process: asyncio.subprocess.Process, timeout: float | None, *, group: bool) -> bool:
    """Until it has ended; False when it had to be stopped because the time was over."""
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
    """Ask the program to end, kill it when it does not, and kill what is left of its group."""
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
        # Also where even this is cancelled: a loop that closes over a child of its own complains of it.
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
    said = (output.stderr.strip() or output.stdout.strip()).splitlines()
    last = f": {said[-1].strip()}" if said else "."
    return ProgramFailed(
        f"The command {shlex.join(output.argv)!r} {outcome}{last}",
        argv=output.argv,
        outcome=outcome,
        code=output.code,
        stdout=output.stdout,
        stderr=output.stderr,
    )


# Without an event loop.


def detached(argv: Sequence[str], *, env: Mapping[str, str], output: Path) -> int:
    """Start a program that goes on without us: the pid of a session of its own, which no terminal ends.

    What it says is added to the file, which is made for its owner alone; nothing else of ours is open in it.
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
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=handle, stderr=handle, env=env, start_new_session=True
        )
    except OSError as error:
        raise _missing(argv[0], error) from error
    finally:
        os.close(handle)
    process.returncode = 0  # nobody waits for it, and its object need not warn of that
    return process.pid


def quickly(argv: Sequence[str], *, env: Mapping[str, str], timeout: float) -> str | None:
    """What a program prints, when it ends well and in time; one that does not is killed with what it started."""
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
            said, _ = process.communicate(timeout=timeout)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise
    return said.decode(errors="replace") if process.returncode == 0 else None
