"""How this process signs a Lease, and whether the signature of another is that of a process that is certainly gone."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def identity(run_id: str) -> str:
    return f"{_machine(_PROC)}_{os.getpid()}_{run_id}"


def is_dead(holder: str, proc: Path = _PROC) -> bool:
    """Whether the holder was a process that we would see here, and do not; what cannot be told counts as alive."""
    pid = pid_of(holder)
    return _place(proc) is not None and is_here(holder, proc) and pid is not None and not runs(pid)


def is_here(holder: str, proc: Path = _PROC) -> bool:
    """Whether the holder signed with the name of this machine, and since its last start where that is known."""
    return holder.rpartition("_")[0].rpartition("_")[0] == _machine(proc) and pid_of(holder) is not None


def machine_of(holder: str) -> str:
    """The name of the machine that a holder of ours signed from; another's signature as it is."""
    machine = holder.rpartition("_")[0].rpartition("_")[0]
    return machine.rsplit(".", 2)[0] if machine.count(".") > 1 else machine or holder


def pid_of(holder: str) -> int | None:
    pid = holder.rpartition("_")[0].rpartition("_")[2]
    return int(pid) if pid.isdigit() and pid.isascii() else None


def runs(pid: int) -> bool:
    """Whether there is such a process; one that has ended, and that nobody asked how, is none any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return _status(pid, _PROC) not in ("Z", "X")


def is_stopped(pid: int, proc: Path = _PROC) -> bool:
    """Whether it is stopped, by SIGSTOP or a debugger; False where that cannot be seen."""
    return _status(pid, proc) in ("T", "t")


def _status(pid: int, proc: Path) -> str:
    """As the kernel has it, one letter; "" where that cannot be seen."""
    try:
        # The name of the program stands before it in brackets, and may hold anything.
        return (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _machine(proc: Path) -> str:
    return f"{os.uname().nodename}.{_place(proc) or 0}"


def _place(proc: Path) -> str | None:
    """Where our pids mean what they mean: since which boot, and in which namespace, as a container has one of its own.

    None where that is not known: many a laptop has the name of another.
    """
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        return f"{boot}.{(proc / 'self/ns/pid').readlink().name.strip('pid:[]')}"
    except OSError:
        return None
