"""The only place that starts other programs: kind, kwokctl, kubectl, docker, credential plugins.

A program gets a list of arguments, never a line for a shell, an environment that the caller names, and a time by which
it must have ended. It runs in a session of its own, so a Ctrl-C in our terminal is for us to handle, and what is
stopped is stopped together with what it started.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from kubectl_ctrl.errors import PrerequisiteMissing, ProgramFailed

# From asking a program to stop until it is killed.
_GRACE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
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
) -> Output:
    """Run a program to its end; raises ProgramFailed, which has all that it said, for a code other than 0 or a timeout.

    `interactive` gives it our terminal: our stdin, and our stderr, which is then not recorded. With `shown` it has our
    stdout too. Without `check` every code is an answer. When the call is cancelled, the program is stopped first.
    """
    with ExitStack() as files:
        # Not pipes: a program that leaves a daemon behind leaves it our pipe too, and we would wait for the daemon.
        said, complained, source = (files.enter_context(TemporaryFile()) for _ in range(3))
        source.write(input)
        source.seek(0)
        apart = not (interactive or shown)
        streams = (source, said, complained) if apart else (None, None if shown else said, None)
        process = await _start(tuple(argv), env, streams, own_session=apart)
        in_time = await _wait(process, timeout, group=apart)
        output = Output(argv=tuple(argv), code=process.returncode or 0, stdout=_text(said), stderr=_text(complained))
    if not in_time:
        raise _failed(output, f"did not end within {timeout:g} s and was stopped")
    if check and output.code != 0:
        code = output.code
        raise _failed(output, f"ended with exit code {code}" if code > 0 else f"was ended by signal {-code}")
    return output


_Streams = tuple[IO[bytes] | None, IO[bytes] | None, IO[bytes] | None]  # stdin, stdout, stderr; None is our own


async def _start(
    argv: tuple[str, ...], env: Mapping[str, str], streams: _Streams, *, own_session: bool
) -> asyncio.subprocess.Process:
    source, said, complained = streams
    try:
        return await asyncio.create_subprocess_exec(
            *argv, stdin=source, stdout=said, stderr=complained, env=dict(env), start_new_session=own_session
        )
    except FileNotFoundError as exc:
        message = f"The program {argv[0]!r} was not found."
        raise PrerequisiteMissing(message, next_step="Install it, or add its folder to PATH.") from exc
    except OSError as exc:
        raise PrerequisiteMissing(f"The program {argv[0]!r} cannot be run: {exc.strerror}.") from exc


async def _wait(process: asyncio.subprocess.Process, timeout: float | None, *, group: bool) -> bool:
    """Until it has ended; False when it had to be stopped because the time was over."""
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
    _signal(process, signal.SIGTERM, group=group)
    try:
        async with asyncio.timeout(_GRACE):
            await process.wait()
    except TimeoutError:
        pass
    finally:
        if group or process.returncode is None:
            _signal(process, signal.SIGKILL, group=group)
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
