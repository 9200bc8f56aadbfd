"""The user's processes, found by their command lines: programs of a folder, Python modules, arguments.

Not by pid files: one is written after its process has started, so a kill between the two would hide the process for
ever, and after a reboot the pid is another process's. Not by any mention of a folder either: an editor with one of its
log files must not be killed.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from kubectl_ctrl.clock import Clock, pause
from kubectl_ctrl.errors import ClusterError
from kubectl_ctrl.exec import quickly
from kubectl_ctrl.value import Value

PROC = Path("/proc")
_TIMEOUT = 20.0
_POLL_EVERY = 0.05
# For a process between two programs: how often its command line is read, and the seconds between two reads.
_EXEC_READS = 40
_EXEC_PAUSE = 0.005


class Process(Value):
    pid: int
    program: str  # its file's name

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


async def running(folder: Path, *, links: bool = True) -> tuple[Process, ...]:
    """This user's processes of programs in the folder; with `links`, also in the folder that a symbolic link names."""
    return _inside(folder, links=links)


def _inside(folder: Path, *, links: bool) -> tuple[Process, ...]:
    inside = (f"{folder}{os.sep}", f"{folder.resolve() if links else folder}{os.sep}")
    found = [(pid, line) for pid, line in _all() if line.startswith(inside)]
    # `ps` separates arguments by spaces, and a path may contain some; the program names in these folders contain none.
    rest = [(pid, line.removeprefix(inside[0]).removeprefix(inside[1])) for pid, line in found]
    named = [Process(pid, Path(re.split("[\0 ]", path)[0]).name) for pid, path in rest]
    return tuple(sorted(named, key=lambda process: process.program))


def of_module(module: str, path: Path, *, below: bool = False) -> tuple[int, ...]:
    """The pids of this user's processes `python -m MODULE PATH ...`; with `below`, of a PATH in that folder.

    Other programs with the same words as arguments do not count, for example a grep for them.
    """
    between = re.escape(_separator())
    python = r"(?:[^\0]*/)?(?:python|pypy)[\w.]*"
    words = re.escape(f"-m{_separator()}{module}{_separator()}{path}")
    end = re.escape(os.sep) if below else rf"(?={between}|$)"
    command = re.compile(rf"{python}(?:{between}-\w+)*{between}{words}{end}", re.IGNORECASE)
    return tuple(sorted(pid for pid, line in _all() if command.match(line)))


def _with_argument(argument: str) -> tuple[int, ...]:
    between = _separator()
    return tuple(sorted(pid for pid, line in _all() if f"{between}{argument}{between}" in line + between))


async def kill_all(folder: Path, clock: Clock, *, links: bool = True) -> None:
    """Kill the processes of `running`, and return when none is left; ClusterError if some do not exit.

    They have no state worth keeping, so SIGKILL is the first signal. The leader of a process group is killed with its
    group, because the programs that it started may be elsewhere.
    """
    await _killed(lambda: _inside(folder, links=links), clock)


async def kill_module(module: str, path: Path, clock: Clock) -> None:
    """The same for the processes of `of_module`."""
    await _killed(lambda: tuple(Process(pid, module) for pid in of_module(module, path)), clock)


async def _killed(find: Callable[[], tuple[Process, ...]], clock: Clock) -> None:
    start, killed = clock.elapsed(), set[int]()
    # Twice, so that a process that was started during the first listing is not missed.
    while left := (find() or find()):
        if clock.elapsed() - start > _TIMEOUT:
            raise ClusterError(
                f"These processes do not exit: {', '.join(map(str, left))}.",
                next_step="kill them with `kill -9`, then repeat the command",
            )
        for process in left:
            _kill(process.pid, lambda: [one.pid for one in find()])
            killed.add(process.pid)
        await clock.sleep(_POLL_EVERY)
    # These are not killed again: a pid may be another process's by now.
    while not all(map(has_exited, killed)) and clock.elapsed() - start < _TIMEOUT:
        await clock.sleep(_POLL_EVERY)


async def wait_for_exit(argument: str, clock: Clock) -> None:
    """Wait until no process has this argument; after a timeout, kill the rest."""
    start = clock.elapsed()
    while (left := _with_argument(argument)) and clock.elapsed() - start < _TIMEOUT:
        await clock.sleep(_POLL_EVERY)
    for pid in left:
        _kill(pid, lambda: _with_argument(argument))


def has_exited(pid: int) -> bool:
    """Whether the process and all its threads have exited, so that its ports are free.

    A killed process has no command line while its threads exit one by one. Without /proc that state is not visible.
    """
    entry = PROC / str(pid)
    try:
        state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        return state in ("Z", "X") and len(list((entry / "task").iterdir())) < 2
    except OSError:
        return True


def _kill(pid: int, find: Callable[[], Collection[int]]) -> None:
    """Kill the process unless its pid is another process's by now: a pidfd is opened, then the process found again."""
    with suppress(ProcessLookupError), ExitStack() as stack:
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        if handle is not None:
            stack.callback(os.close, handle)
        if pid not in find():
            return
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        elif handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def _all() -> Iterable[tuple[int, str]]:
    """This user's processes: the pid, and the program with its arguments, joined by the separator."""
    return _from_proc() if _has_proc() else _from_ps()


def _separator() -> str:
    """The separator of arguments; the one of `ps` may also be part of an argument."""
    return "\0" if _has_proc() else " "


def _has_proc() -> bool:
    return (PROC / "self" / "cmdline").exists()


def _from_proc() -> Iterator[tuple[int, str]]:
    me = os.getuid()
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # it may have exited
                if entry.stat().st_uid == me:
                    yield int(entry.name), _command(entry)


def _command(entry: Path) -> str:
    """Program and arguments; OSError for zombies and kernel threads, which have no program.

    During execve the command line is empty for a moment: it is read again, or the process would be missed.
    """
    for _ in range(_EXEC_READS):
        command = os.fsdecode((entry / "cmdline").read_bytes())
        if command:
            return command
        (entry / "exe").readlink()
        pause(_EXEC_PAUSE)
    return ""


def _from_ps() -> Iterator[tuple[int, str]]:
    listing = quickly(
        ["/bin/ps", "-xww", "-U", str(os.getuid()), "-o", "pid=,command="], env={"LC_ALL": "C"}, timeout=10
    )
    if listing is None:
        raise ClusterError("The processes of this machine cannot be listed.", tried="/bin/ps", next_step="try it again")
    for line in listing.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command.lstrip()
