"""File locks of the kernel (flock): they are released when their holder exits, for whatever reason.

There are two uses. `acquire` creates a lock file and `release` removes it. A file with content is opened by `opened`
and locked by `lock`. All errors are OSError, because only the caller knows the purpose of the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path


def opened(path: Path) -> int:
    """Open the file, created with mode 0600 and its folders if missing; symbolic links are not followed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def lock(handle: int, *, wait: bool = False, shared: bool = False) -> bool:
    """Lock an open file; False if another holder has the lock."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def unlock(handle: int) -> None:
    """Release the lock and keep the file open."""
    fcntl.flock(handle, fcntl.LOCK_UN)


def acquire(path: Path, *, wait: bool = False) -> int | None:
    """Lock this lock file; None if another holder has the lock.

    The other holder removes the file when it releases the lock. If the path then names no file, or a new one, the lock
    that was just granted protects nothing, and the file is opened again.
    """
    while True:
        handle = opened(path)
        try:
            if not lock(handle, wait=wait):
                os.close(handle)
                return None
            if is_at(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def release(path: Path, handle: int) -> None:
    """Release a lock from `acquire`: the file is removed first, so that no one locks a file that is about to go."""
    with suppress(FileNotFoundError):
        path.unlink()
    os.close(handle)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock; true if that cannot be read. Nothing is created or changed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return not lock(handle, shared=True)
    except OSError:
        return True
    finally:
        os.close(handle)


def is_at(handle: int, path: Path) -> bool:
    """Whether the open file is the one at the path now."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
