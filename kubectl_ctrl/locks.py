"""Locks that the kernel keeps on files: they go with their holder, however it ends.

Two kinds. A file that only its lock matters of is made by `acquire` and removed by `release`. A file that stays is
opened by `opened` and locked by `lock`. All errors are OSError: the caller knows what the file is for.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path


def opened(path: Path) -> int:
    """The file, made for its owner alone with its folders where it is not there; links are not followed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def lock(handle: int, *, wait: bool = False, shared: bool = False) -> bool:
    """Take the lock of an open file; False while another holder has it."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def unlock(handle: int) -> None:
    """Give the lock back and keep the file open."""
    fcntl.flock(handle, fcntl.LOCK_UN)


def acquire(path: Path, *, wait: bool = False) -> int | None:
    """The lock that this file is, or None while another holder has it.

    A holder removes the file with its lock, so a file that has gone or was made again meanwhile is opened once more.
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
    """Give back what `acquire` gave: the file first, so that nobody takes the lock of one that is going."""
    with suppress(FileNotFoundError):
        path.unlink()
    os.close(handle)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock of the file, also where that cannot be seen; leaves no trace."""
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
