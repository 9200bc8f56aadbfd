"""The holder identity of a process in Leases and locks, and whether the process of an identity is certainly gone.

An identity is MACHINE_PID_RUN. MACHINE contains the boot and the PID namespace, since a pid has a meaning only there.
"""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def identity(run_id: str) -> str:
    return f"{_machine(_PROC)}_{os.getpid()}_{run_id}"


def is_dead(holder: str, proc: Path = _PROC) -> bool:
    """Whether the holder is a process of this machine that no longer exists; False if that is unknown."""
    pid = pid_of(holder)
    return _boot_and_pid_namespace(proc) is not None and is_here(holder, proc) and pid is not None and not runs(pid)


def is_here(holder: str, proc: Path = _PROC) -> bool:
    """Whether the holder is a process of this machine, since its last boot if that is known."""
    return holder.rpartition("_")[0].rpartition("_")[0] == _machine(proc) and pid_of(holder) is not None


def machine_of(holder: str) -> str:
    """The host name in an identity of kubectl ctrl; another program's identity unchanged."""
    machine = holder.rpartition("_")[0].rpartition("_")[0]
    return machine.rsplit(".", 2)[0] if machine.count(".") > 1 else machine or holder


def pid_of(holder: str) -> int | None:
    pid = holder.rpartition("_")[0].rpartition("_")[2]
    return int(pid) if pid.isdigit() and pid.isascii() else None


def runs(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return _status(pid, _PROC) not in ("Z", "X")


def is_stopped(pid: int, proc: Path = _PROC) -> bool:
    """Whether it is stopped, by SIGSTOP or a debugger; False if that is unknown."""
    return _status(pid, proc) in ("T", "t")


def _status(pid: int, proc: Path) -> str:
    """The kernel's one letter for the state of a process; "" if it cannot be read."""
    try:
        # Before it is the name of the program in brackets, which can contain any character.
        return (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _machine(proc: Path) -> str:
    return f"{os.uname().nodename}.{_boot_and_pid_namespace(proc) or 0}"


def _boot_and_pid_namespace(proc: Path) -> str | None:
    """The boot and the PID namespace in which a pid is unique; a container has its own. None if /proc is missing.

    The host name alone would not do: many laptops have the same one.
    """
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        return f"{boot}.{(proc / 'self/ns/pid').readlink().name.strip('pid:[]')}"
    except OSError:
        return None
