"""Atomic writes: after a kill or on a full disk, a file has either its whole old content or its whole new content.

Errors are OSError, because only the caller knows the purpose of the file. `remedy` returns advice for one.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubectl_ctrl import locks
from kubectl_ctrl.value import Value

_REMEDIES = {
    errno.ENOSPC: "free disk space",
    errno.EDQUOT: "free disk space: the quota is used up",
    errno.EROFS: "use a disk that is not read-only",
    errno.EACCES: "make the file and its folder readable and writable",
    errno.EPERM: "make the file and its folder readable and writable",
    errno.ENAMETOOLONG: "use a shorter path",
    errno.ELOOP: "remove the symbolic link, which is not followed",
    errno.EIO: "check the disk",
    errno.EMFILE: "raise the limit of open files: ulimit -n",
    errno.ENFILE: "raise the limit of open files of this machine",
}


def remedy(error: OSError) -> str:
    """Advice for the user; "" if the error may be the caller's."""
    return _REMEDIES.get(error.errno or 0, "")


def state_remedy(error: OSError) -> str:
    """The same for a file in the user's state folder."""
    return f"{remedy(error) or 'make the folder writable'}, or set XDG_STATE_HOME to another folder"


def draft_of(path: Path) -> Path:
    """The temporary file of the next content. A kill may leave it; the next write reuses it."""
    return path.with_name(f".{path.name}.kubectl-ctrl")


def replace(path: Path, content: bytes, *, mode: int = 0o600, keep: bool = False, sync: bool = True) -> None:
    """Write the file atomically.

    With `keep`, an existing file keeps its mode, owner and extended attributes. Without `sync`, which is for content
    that can be recreated, a power failure may leave an empty file.
    """
    before = None
    if keep:
        with suppress(FileNotFoundError):
            before = path.stat()
    draft = draft_of(path)
    handle = _locked(draft)
    try:
        os.ftruncate(handle, 0)
        write(handle, content)
        if before and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(handle, before.st_uid, before.st_gid)
        os.fchmod(handle, stat.S_IMODE(before.st_mode) if before else mode)
        if before:
            _copy_attributes(path, draft)
        if sync:
            os.fsync(handle)
        draft.replace(path)
        if sync:
            _sync_folder(path.parent)
    except BaseException:
        if locks.is_at(handle, draft):
            with suppress(OSError):
                draft.unlink()
        raise
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Without it, a power failure may bring the replaced file back. Not every folder can be opened or synced."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def create(path: Path, content: bytes = b"", *, mode: int = 0o600) -> None:
    """Create the file; FileExistsError if it exists. A failed write leaves none."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        write(handle, content)
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(handle)


def write(handle: int, content: bytes) -> None:
    """Write all of it: one system call may write only a part, for example on an almost full disk."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def known(kind: type[Value], document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document that the value has: a later version may have added some."""
    return {name: value for name, value in document.items() if name in kind.__struct_fields__}


def _locked(draft: Path) -> int:
    """The temporary file, open and locked against concurrent writers.

    A symbolic or hard link, another user's file and anything but a regular file is removed first: somebody may have put
    it there to have its target overwritten, or to own the written file.
    """
    while True:
        try:
            handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.ELOOP, errno.ENXIO):
                raise
            try:
                draft.unlink()
            except OSError:
                raise error from None
            continue
        try:
            locks.lock(handle, wait=True)
            if locks.is_at(handle, draft):
                status = os.fstat(handle)
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid():
                    return handle
                draft.unlink()
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _copy_attributes(path: Path, other: Path) -> None:
    """Extended attributes, such as access control lists."""
    if sys.platform == "linux":
        with suppress(OSError):  # not every file system has any
            for name in os.listxattr(path):
                with suppress(OSError):  # some only the system may set
                    os.setxattr(other, name, os.getxattr(path, name))
