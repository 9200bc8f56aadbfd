"""The processes of a folder: those whose program was started through a path inside it.

Not by pid files: a pid file is written after the start of its process, so a kill between the two would hide the process
for ever. Not by arguments that name the folder either: an editor of its log must not be killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from realkube import CannotHere, Failed

PROC = Path("/proc")


def running(folder: Path) -> dict[str, int]:
    """Program name -> pid."""
    return dict(_programs(folder))


def _programs(folder: Path) -> Iterator[tuple[str, int]]:
    if not (PROC / "self" / "cmdline").exists():
        raise CannotHere("/proc is needed to find the processes of a cluster: only Linux has it.")
    for entry in PROC.iterdir():
        if entry.name.isdecimal() and (program := _program(int(entry.name))).startswith(f"{folder}{os.sep}"):
            yield Path(program).name, int(entry.name)


def _program(pid: int) -> str:
    """argv[0] of a process; empty if it has exited, is a zombie, or belongs to another user."""
    try:
        return os.fsdecode((PROC / str(pid) / "cmdline").read_bytes().split(b"\0", 1)[0])
    except OSError:
        return ""


def end(folder: Path, only: str = "", patience: float = 30) -> None:
    """Kill the folder's processes, or the `only` one, with children that they start meanwhile; return when gone."""
    deadline = time.monotonic() + patience
    killed: dict[int, str] = {}
    while True:
        for name, pid in _programs(folder):
            if only in ("", name):
                killed[pid] = name
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        killed = {pid: name for pid, name in killed.items() if not _gone(pid)}
        if not killed:
            return
        if time.monotonic() > deadline:
            raise Failed(f"These processes of {folder} do not exit: {killed!r}.")
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    """Exited with all its threads: a killed process has no program any more, but its threads keep its ports in use."""
    entry = PROC / str(pid)
    try:
        state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        return state in ("Z", "X") and len(list((entry / "task").iterdir())) < 2
    except OSError:
        return True
