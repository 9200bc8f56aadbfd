"""The processes that belong to a folder: those whose program was started through a path inside it.

Not by files with their numbers: such a file is written after its process has started, so a kill between the two would
hide the process for ever, and after a restart of the machine the number is somebody else's. Not by any mention of the
folder either: an editor that is open on a log in it is not ours to end.
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
_PATIENCE = 20.0
_PACE = 0.05
# How often, and after how long, to look again at one that is becoming another program.
_BECOMING = 40
_MOMENT = 0.005


class Process(Value):
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


def of_module(module: str, path: Path, *, below: bool = False) -> tuple[int, ...]:
    """The numbers of this user's processes of `python -m MODULE PATH ...`; with `below`, of a PATH in that folder.

    Nothing else that has the words among its arguments counts: somebody may search for them, or read that file.
    """
    between = re.escape(_separator())
    python = r"(?:[^\0]*/)?(?:python|pypy)[\w.]*"
    words = re.escape(f"-m{_separator()}{module}{_separator()}{path}")
    end = re.escape(os.sep) if below else rf"(?={between}|$)"
    command = re.compile(rf"{python}(?:{between}-\w+)*{between}{words}{end}", re.IGNORECASE)
    return tuple(sorted(pid for pid, line in _all() if command.match(line)))


def with_argument(word: str) -> tuple[int, ...]:
    """The numbers of this user's processes that have this word as one of their arguments."""
    between = _separator()
    return tuple(sorted(pid for pid, line in _all() if f"{between}{word}{between}" in line + between))


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
                f"These processes do not exit: {', '.join(map(str, left))}.",
                next_step="kill them with `kill -9`, then repeat the command",
            )
        for process in left:
            _kill(process.pid, lambda: [one.pid for one in _inside(folder, links=links)])
            killed.add(process.pid)
        await clock.sleep(_PACE)
    # Only looked at: a number may be somebody else's by now.
    while not all(map(gone, killed)) and clock.elapsed() - start < _PATIENCE:
        await clock.sleep(_PACE)


async def let_end(word: str, clock: Clock) -> None:
    """Wait until no process is left that has this argument; those that take too long are killed."""
    start = clock.elapsed()
    while (left := with_argument(word)) and clock.elapsed() - start < _PATIENCE:
        await clock.sleep(_PACE)
    for pid in left:
        _kill(pid, lambda: with_argument(word))


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


def _kill(pid: int, find: Callable[[], Collection[int]]) -> None:
    """Kill it if it is found again once it is held: since it was seen, its number may have become another's."""
    with suppress(ProcessLookupError), ExitStack() as held:
        handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        if handle is not None:
            held.callback(os.close, handle)
        if pid not in find():
            return
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        elif handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def _all() -> Iterable[tuple[int, str]]:
    """This user's processes: number, and program with arguments, with the separator between them."""
    return _from_proc() if _has_proc() else _from_ps()


def _separator() -> str:
    """What stands between two arguments; of `ps` it can be a part of one too."""
    return "\0" if _has_proc() else " "


def _has_proc() -> bool:
    return (PROC / "self" / "cmdline").exists()


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
