"""The kind of file system of a recording, and the lock file beside it."""

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
    "ceph",
    "lustre",
    "glusterfs",
    "fuse.sshfs",
    "fuse.gvfs",
    "fuse.glusterfs",
)
_MOUNTS = Path("/proc/self/mounts")

# Interval and limit of attempts to take the lock.
_RETRY_EVERY = 0.005
_PATIENCE = 2.0


def on_network(path: Path, mounts: Path = _MOUNTS) -> bool:
    """The file is on a network file system, according to /proc/self/mounts."""
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
    """Held for every write transaction and checkpoint: SQLite before 3.51.3 can corrupt a WAL with several writers.

    Readers take no lock: with a WAL they continue to read the last commit before their statement. The kernel releases
    the lock with the process, also after kill -9. The lock file is never deleted: otherwise one process could lock the
    deleted file while another locks a new one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._handle = -1
        self._pause = threading.Event()  # never set: `wait` is a sleep

    def __enter__(self) -> WriteLock:
        if self._handle < 0:
            self._handle = locks.opened(self._path)
        for _ in range(round(_PATIENCE / _RETRY_EVERY)):
            if locks.lock(self._handle):
                return self
            self._pause.wait(_RETRY_EVERY)
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
