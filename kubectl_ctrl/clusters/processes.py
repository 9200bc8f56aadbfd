"""The processes that belong to a folder: those whose program was started through a path inside it.

Not by files with their numbers: such a file is written after its process has started, so a kill between the two would
hide the process for ever, and after a restart of the machine the number is somebody else's. Not by any mention of the
folder either: an editor that is open on a log in it is not ours to end.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kubectl_ctrl.clock import Clock, pause
from kubectl_ctrl.errors import ClusterError
from kubectl_ctrl.exec import quickly

PROC = Path("/proc")
_PATIENCE = 20.0
_PACE = 0.05
# How often, and after how long, to look again at one that is becoming another program.
_BECOMING = 40
_MOMENT = 0.005


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    program: str  # the name of its file

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid})"


async def running(folder: Path, *, links: bool = True) -> tuple[Process, ...]:
    """This user's, by name; the folder counts by the path that is given, and by the one that `links` in it lead to."""
    return _inside(folder, links=links)


def _inside(folder: Path, *, links: bool) -> tuple[Process, ...]:
    inside = (f"{folder}{os.sep}", f"{folder.resolve() if links else folder}{os.sep}")
    found = [(pid, line) for pid, line in _all() if line.startswith(inside)]
    # `ps` puts blanks between the arguments, and a path may have some: the names of programs that we link have none.
    rest = [(pid, line.removeprefix(inside[0]).removeprefix(inside[1])) for pid, line in found]
    named = [Process(pid, Path(re.split("[\0 ]", path)[0]).name) for pid, path in rest]
    return tuple(sorted(named, key=lambda process: process.program))


def called_with(*texts: str) -> tuple[int, ...]:
    """The numbers of this user's processes that have all of these texts among their program and its arguments."""
    return tuple(sorted(pid for pid, line in _all() if all(text in line for text in texts)))


async def ended(folder: Path, clock: Clock, *, links: bool = True) -> None:
    """Kill them, and return when none is left; ClusterError where some stay.

    Nothing of what they do is to be kept, so nobody is asked first. A process that leads a group goes with its group,
    as a program with the helpers that it has started from elsewhere.
    """
    start, killed = clock.elapsed(), set[int]()
    # Twice: one that was started behind our eyes is not missed.
    while left := (await running(folder, links=links) or await running(folder, links=links)):
        if clock.elapsed() - start > _PATIENCE:
            raise ClusterError(
                f"These processes do not end: {', '.join(map(str, left))}.",
                next_step="end them with `kill -9`, then do this again",
            )
        for process in left:
            _kill(process.pid)
            killed.add(process.pid)
        await clock.sleep(_PACE)
    # Only looked at: a number may be somebody else's by now.
    while not all(map(gone, killed)) and clock.elapsed() - start < _PATIENCE:
        await clock.sleep(_PACE)


async def let_end(text: str, clock: Clock) -> None:
    """Wait until no process is left that was called with this text; those that take too long are killed."""
    start = clock.elapsed()
    while (left := called_with(text)) and clock.elapsed() - start < _PATIENCE:
        await clock.sleep(_PACE)
    for pid in left:
        _kill(pid)


def gone(pid: int) -> bool:
    """Whether nothing of it is left but, at most, its number.

    One that was killed has no program any more while its threads end one by one, and until the last has, its ports are
    taken. Where that cannot be seen, what has no program is gone.
    """
    entry = PROC / str(pid)
    try:
        state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        return state in ("Z", "X") and len(list((entry / "task").iterdir())) < 2
    except OSError:
        return True


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def _all() -> Iterable[tuple[int, str]]:
    """This user's processes: number, and program with arguments."""
    return _from_proc() if (PROC / "self" / "cmdline").exists() else _from_ps()


def _from_proc() -> Iterator[tuple[int, str]]:
    me = os.getuid()
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            # It may be gone by now.
            with suppress(OSError):
                if entry.stat().st_uid == me:
                    yield int(entry.name), _command(entry)


def _command(entry: Path) -> str:
    """Program and arguments; OSError for a zombie and the kernel's own, which have no program.

    One that is just becoming another program has none for a moment: who looked away then would miss it for good.
    """
    for _ in range(_BECOMING):
        command = os.fsdecode((entry / "cmdline").read_bytes())
        if command:
            return command
        (entry / "exe").readlink()
        pause(_MOMENT)
    return ""


def _from_ps() -> Iterator[tuple[int, str]]:
    said = quickly(["/bin/ps", "-xww", "-U", str(os.getuid()), "-o", "pid=,command="], env={"LC_ALL": "C"}, timeout=10)
    if said is None:
        raise ClusterError("The processes of this machine cannot be listed.", tried="/bin/ps", next_step="try it again")
    for line in said.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command.lstrip()
