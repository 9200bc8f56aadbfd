"""Changes to the user's kubeconfig: it is locked as kubectl does it, and replaced atomically.

kubectl, kind and others lock FILE by creating FILE.lock exclusively; if they are killed, the lock stays for ever. A
lock of kubectl-ctrl contains a signature, and its holder also has the kernel's lock (flock) on it. So a stale lock of
kubectl-ctrl is recognized: it is signed, and nobody has the kernel's lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from kubectl_ctrl import files, locks
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import ConfigError
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.suggestions import command

_SIGNATURE = b"kubectl-ctrl "
_NEW = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
# Long enough: a holder of the lock writes one small file.
_TIMEOUT = 3.0
_POLL_EVERY = 0.05


def lock_of(file: Path) -> Path:
    """Beside the given path, not beside the target of a symbolic link, as in kubectl."""
    return file.with_name(file.name + ".lock")


@asynccontextmanager
async def locked(file: Path, clock: Clock) -> AsyncIterator[None]:
    """Hold the lock during the block; KubeconfigLocked if another process does not release it in time."""
    lock, until = lock_of(file), clock.elapsed() + _TIMEOUT
    while (handle := _acquire(lock)) is None:
        if clock.elapsed() >= until:
            raise held_by_another(file, clock.now())
        await clock.sleep(_POLL_EVERY)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


class KubeconfigLocked(ConfigError):
    """Another process holds the lock."""


def held_by_another(file: Path, now: float) -> KubeconfigLocked:
    lock = lock_of(file)
    age = age_of(lock, now)
    since = f" for {format_duration(age)}" if age is not None else ""
    return KubeconfigLocked(
        f"The kubeconfig {str(file)!r} has been locked{since}.",
        tried=f"{lock}, which kubectl, kind and others create while they write",
        next_step=f"if none of them runs: {command('rm', '-f', lock)}",
    )


def age_of(lock: Path, now: float) -> float | None:
    """Whole seconds since another process locked it; None if it is not locked, or the lock is our stale one."""
    try:
        made = lock.lstat().st_mtime
    except OSError:
        return None
    if (handle := _open_stale(lock)) is not None:
        os.close(handle)
        return None
    return max(round(now - made), 0)


def remove_stale(lock: Path, seen: os.stat_result) -> bool:
    """Remove the stale lock that `seen` describes; False if the path names another file by now, which stays.

    No system call removes a file only if it is a certain one. So the file is first renamed to a private name, under
    which nobody changes it. If it turns out to be another one, created at the last moment, it gets its name back.
    """
    if not _is_same(lock, seen):
        return False
    private = files.draft_of(lock)
    try:
        lock.rename(private)
    except FileNotFoundError:
        return False
    same = _is_same(private, seen)
    if not same:
        with suppress(FileExistsError):  # a third process has created one meanwhile
            os.link(private, lock, follow_symlinks=False)
    private.unlink()
    return same


def _is_same(lock: Path, seen: os.stat_result) -> bool:
    """Whether it is the same, unchanged file. The inode alone is not enough: that of a removed file is soon reused."""
    try:
        now = lock.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(now, seen) and now.st_mtime_ns == seen.st_mtime_ns


def _acquire(lock: Path) -> int | None:
    """Create the lock, after removing a stale one of kubectl-ctrl; None while another process holds it."""
    if (stale := _open_stale(lock)) is not None:
        lock.unlink()
        os.close(stale)
    try:
        return _linked(lock) or _signed(os.open(lock, _NEW | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return None
    except OSError as error:
        raise unwritable(lock, error) from error


def _linked(lock: Path) -> int | None:
    """Create the lock with its signature in one step; None if the file system has no unnamed files (O_TMPFILE).

    A process that is killed between creating and signing a file would leave a lock that looks like another program's.
    """
    try:
        handle = os.open(lock.parent, _NEW | os.O_TMPFILE, 0o600)
    except (AttributeError, OSError):
        return None
    try:
        # src_dir_fd is not needed for the path: it makes Python call linkat, which can follow the link to the file.
        os.link(f"/proc/self/fd/{_signed(handle)}", lock, src_dir_fd=handle)
    except FileExistsError:
        os.close(handle)
        raise
    except OSError:
        os.close(handle)
        return None
    return handle


def _signed(handle: int) -> int:
    locks.lock(handle, wait=True)
    with suppress(OSError):  # on a full disk, an unsigned lock is still a lock
        os.write(handle, _SIGNATURE + str(os.getpid()).encode())
    return handle


def _open_stale(lock: Path) -> int | None:
    """Open a stale lock of kubectl-ctrl, with the kernel's lock, so that only one process removes it; else None."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if locks.lock(handle) and os.read(handle, len(_SIGNATURE)) == _SIGNATURE and locks.is_at(handle, lock):
            return handle
    except OSError:  # for example a folder
        pass
    os.close(handle)
    return None


def target(file: Path) -> Path:
    """The target of symbolic links, which need not exist."""
    try:
        return Path(os.path.realpath(file, strict=True))
    except FileNotFoundError:
        return Path(os.path.realpath(file))
    except OSError as error:
        raise ConfigError(f"The kubeconfig {str(file)!r} cannot be read: {error.strerror}.") from error


def replaced(file: Path, content: bytes) -> None:
    """Replace the target of the file's symbolic links atomically; its mode, owner and attributes stay.

    The caller holds the lock.
    """
    real = target(file)
    try:
        files.replace(real, content, keep=True)
    except OSError as error:
        raise unwritable(real, error) from error


def _status(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None


def check_plain(file: Path) -> None:
    """ConfigError for a pipe, whose reader would block, and for a device, which must not be replaced."""
    status = _status(target(file))
    if status is not None and not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise _not_writable(file, "it is not a regular file", remedy="")


def check_writable(file: Path) -> None:
    """ConfigError if the file cannot be replaced, or has no write permission for anybody, so that it should not be."""
    real = target(file)
    there = next(folder for folder in (real.parent, *real.parent.parents) if folder.exists())
    status = _status(real)
    if status is not None and (not os.access(real, os.W_OK) or not stat.S_IMODE(status.st_mode) & 0o222):
        raise _not_writable(real, "it is read-only")
    if status is not None and status.st_nlink > 1:
        raise _not_writable(real, "it has a hard link, which would be broken", remedy="")
    if file.is_symlink() and there != real.parent:
        raise _not_writable(file, f"it is a link into {str(real.parent)!r}, which does not exist")
    if not os.access(there, os.W_OK | os.X_OK):
        raise _not_writable(real, f"its folder {str(there)!r} is read-only")


def unwritable(file: Path, error: OSError) -> ConfigError:
    return _not_writable(file, error.strerror or str(error))


def _not_writable(file: Path, why: str, remedy: str = "make it writable, or ") -> ConfigError:
    return ConfigError(
        f"The kubeconfig {str(file)!r} cannot be changed: {why}.",
        next_step=f'{remedy}omit --use: eval "$(kubectl ctrl cluster env)" changes one shell alone',
    )
