"""How this process signs a Lease, and whether the signature of another is that of a process that is certainly gone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

_PROC = Path("/proc")


def identity(run_id: str) -> str:
    return f"{_machine(_PROC)}_{os.getpid()}_{run_id}"


def is_dead(holder: str, proc: Path = _PROC) -> bool:
    """Whether the holder was a process that we would see here, and do not; what cannot be told counts as alive."""
    machine, _, pid = holder.rpartition("_")[0].rpartition("_")
    if _place(proc) is None or machine != _machine(proc) or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _machine(proc: Path) -> str:
    return f"{socket.gethostname()}.{_place(proc) or 0}"


def _place(proc: Path) -> str | None:
    """Where our pids mean what they mean: since which boot, and in which namespace, as a container has one of its own.

    None where that is not known: many a laptop has the name of another.
    """
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
        return f"{boot}.{(proc / 'self/ns/pid').readlink().name.strip('pid:[]')}"
    except OSError:
        return None
