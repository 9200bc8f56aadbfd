"""What kind of disk a file is on, and the lock that lies beside a recording."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

from kubectl_ctrl import locks
from kubectl_ctrl.errors import RecordingError

_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "fuse.sshfs",
    "fuse.gvfs",
    "glusterfs",
    "fuse.glusterfs",
    "ceph",
    "lustre",
)
_MOUNTS = Path("/proc/self/mounts")

# How often whoever waits for the lock looks again, and for how long.
_LOOK_EVERY = 0.005
_PATIENCE = 2.0


def on_network(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether the file is on a network file system, as far as this machine tells."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return False
    place, kind = "", ""
    real = str(path.parent.resolve() / path.name)
    for fields in map(str.split, lines):
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        if len(point) >= len(place) and (real + "/").startswith(point.rstrip("/") + "/"):
            place, kind = point, fields[2]
    return kind.startswith(_NETWORK)


class WriteLock:
    """Held for every write transaction and checkpoint: SQLite before 3.51.3 can damage a WAL with several writers.

    It is the kernel's lock, so it goes with the process however that dies.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._handle = -1
        self._pause = threading.Event()  # never set: what it gives is the waiting

    def __enter__(self) -> WriteLock:
        if self._handle < 0:
            self._handle = locks.opened(self._path)
        for _ in range(round(_PATIENCE / _LOOK_EVERY)):
            if locks.lock(self._handle):
                return self
            self._pause.wait(_LOOK_EVERY)
        raise RecordingError(
            f"The recording {str(self._path.with_suffix(''))!r} cannot be written: another process has locked it.",
            next_step=f"stop the process that holds {self._path}",
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        locks.unlock(self._handle)

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __repr__(self) -> str:
        return f"WriteLock({self._path.name})"
