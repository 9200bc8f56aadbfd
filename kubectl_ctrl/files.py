"""Files written as a whole: readers, kills and full disks leave all of the old content or all of the new.

Errors are OSError: the caller knows what the file is for. `remedy` gives the advice that goes with one.
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
    """What to do about it; "" where the error may be a fault of the caller."""
    return _REMEDIES.get(error.errno or 0, "")


def state_remedy(error: OSError) -> str:
    """The same for a file in the folder of this user's state."""
    return f"{remedy(error) or 'make the folder writable'}, or set XDG_STATE_HOME to another folder"


def draft_of(path: Path) -> Path:
    """Where the next content is written. A kill may leave it; the next write takes it over."""
    return path.with_name(f".{path.name}.kubectl-ctrl")


def replace(path: Path, content: bytes, *, mode: int = 0o600, keep: bool = False, sync: bool = True) -> None:
    """Give the file this content.

    With `keep`, a file that is there keeps its mode, owner and extended attributes. Without `sync`, a power loss may
    leave an empty file: for what can be had again.
    """
    before = _status(path) if keep else None
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
    except BaseException:
        if locks.is_at(handle, draft):
            with suppress(OSError):
                draft.unlink()
        raise
    finally:
        os.close(handle)


def create(path: Path, content: bytes = b"", *, mode: int = 0o600) -> None:
    """Make the file; FileExistsError where there is one. A failed write leaves none."""
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
    """All of it: a single system call may write only a part, as on a disk that is nearly full."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def known(kind: type[Value], document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document that the value has: a later version may have written more of them."""
    return {name: value for name, value in document.items() if name in kind.__struct_fields__}


def _locked(draft: Path) -> int:
    """The draft, for nobody but us until it has its name.

    A link of either kind, a file of another user's and what is no file is removed first: somebody may have put it there
    to have its target overwritten, or to own what is written.
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
                if _is_ours_alone(os.fstat(handle)):
                    return handle
                draft.unlink()
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _is_ours_alone(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _copy_attributes(path: Path, other: Path) -> None:
    """Those that a system keeps beside the mode: who else may read it, for instance."""
    if sys.platform == "linux":
        with suppress(OSError):  # not every disk keeps any
            for name in os.listxattr(path):
                with suppress(OSError):  # some are the system's own to give
                    os.setxattr(other, name, os.getxattr(path, name))
