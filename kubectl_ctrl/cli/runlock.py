"""One runner per cluster, controller and scope on this machine, told by a locked file.

The lock is the kernel's, so it goes with the process however it dies; what the file says is only for the message.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubectl_ctrl.errors import CtrlError, Refused


@contextmanager
def only_runner(folder: Path, *, cluster: str, controller: str, scope: str) -> Iterator[None]:
    """Hold the place of this controller for the block; Refused, naming who has it, when it is taken."""
    name = hashlib.sha256(json.dumps([cluster, controller, scope]).encode()).hexdigest()[:20]
    path = folder / "runners" / f"{controller}-{name}.lock"
    handle = _opened(path)
    try:
        _take(handle, controller, scope)
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "controller": controller, "scope": scope}).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise CtrlError(
            f"The lock file {str(path)!r} cannot be made: {error.strerror}.",
            next_step="make the folder writable, or set XDG_STATE_HOME to one that is",
        ) from error


def _take(handle: int, controller: str, scope: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise CtrlError(f"The lock of {controller!r} cannot be taken: {error.strerror}.") from error
        where = scope or "all namespaces"
        raise Refused(
            f"{controller} already runs here for this cluster ({where}): {_holder(handle)}.",
            next_step="stop that one, or use another namespace with -n",
        ) from None


def _holder(handle: int) -> str:
    try:
        return f"process {json.loads(os.pread(handle, 4096, 0))['pid']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
