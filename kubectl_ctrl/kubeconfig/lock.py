"""A file of the user's that other programs write too: locked as kubectl locks a kubeconfig, and replaced as a whole.

kubectl, kind and others take FILE.lock by making it where it is not; whoever dies leaves it there for good. Ours says
whose it is and has the kernel's lock on it as well, so that what we left, and only that, is known to be nobody's.
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

_OURS = b"kubectl-ctrl "
_NEW = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
# Whoever holds such a lock writes one small file.
_PATIENCE = 3.0
_LOOK_EVERY = 0.05


def lock_of(file: Path) -> Path:
    """Beside the file as it is named, also where that is a link: so does kubectl."""
    return file.with_name(file.name + ".lock")


@asynccontextmanager
async def locked(file: Path, clock: Clock) -> AsyncIterator[None]:
    """Nobody else who asks for the lock changes the file during the block; ConfigError where somebody keeps it."""
    lock, until = lock_of(file), clock.elapsed() + _PATIENCE
    while (handle := _taken(lock)) is None:
        if clock.elapsed() >= until:
            raise held_by_another(file, clock.now())
        await clock.sleep(_LOOK_EVERY)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(handle)


class KubeconfigLocked(ConfigError):
    """Somebody else keeps the lock."""


def held_by_another(file: Path, now: float) -> KubeconfigLocked:
    """What to say of a lock that stays."""
    lock = lock_of(file)
    age = age_of(lock, now)
    since = f" for {format_duration(age)}" if age is not None else ""
    return KubeconfigLocked(
        f"The kubeconfig {str(file)!r} has been locked{since}.",
        tried=f"{lock}, which kubectl, kind and others create while they write",
        next_step=f"if none of them runs: {command('rm', '-f', lock)}",
    )


def age_of(lock: Path, now: float) -> float | None:
    """How long somebody else has held it, in whole seconds; None where nobody does."""
    try:
        made = lock.lstat().st_mtime
    except OSError:
        return None
    if (handle := _left_by_us(lock)) is not None:
        os.close(handle)
        return None
    return max(round(now - made), 0)


def remove_left(lock: Path, seen: os.stat_result) -> bool:
    """Remove a lock that was left behind; False, and it stays, where it is not the one that was seen any more.

    No system call removes a file only if it is a certain one. So it gets a name of ours first, under which nobody
    changes it, and one that was taken at the last moment gets its own name back.
    """
    if not _is_same(lock, seen):
        return False
    apart = files.draft_of(lock)
    try:
        lock.rename(apart)
    except FileNotFoundError:
        return False
    mine = _is_same(apart, seen)
    if not mine:
        with suppress(FileExistsError):  # a third one has taken it in this moment
            os.link(apart, lock, follow_symlinks=False)
    apart.unlink()
    return mine


def _is_same(lock: Path, seen: os.stat_result) -> bool:
    """Whether it is that very file, and untouched: the number of a removed one is soon given to another."""
    try:
        now = lock.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(now, seen) and now.st_mtime_ns == seen.st_mtime_ns


def _taken(lock: Path) -> int | None:
    """The lock, made, or taken over from one of us who died; None while it is another's."""
    if (left := _left_by_us(lock)) is not None:
        lock.unlink()
        os.close(left)
    try:
        return _linked(lock) or _signed(os.open(lock, _NEW | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return None
    except OSError as error:
        raise unwritable(lock, error) from error


def _linked(lock: Path) -> int | None:
    """The lock, ours from the moment that it is there; None where the system cannot make a file before it has a name.

    Whoever is killed between the making and the signing of a file leaves a lock that could be anybody's.
    """
    try:
        handle = os.open(lock.parent, _NEW | os.O_TMPFILE, 0o600)
    except (AttributeError, OSError):
        return None
    try:
        # With a folder given, though the path needs none, the link is followed to the file.
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
    with suppress(OSError):  # on a full disk it is a lock all the same
        os.write(handle, _OURS + str(os.getpid()).encode())
    return handle


def _left_by_us(lock: Path) -> int | None:
    """A lock that one of us made and that no process holds any more; with the kernel's lock, so no two take it over."""
    try:
        handle = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if locks.lock(handle) and os.read(handle, len(_OURS)) == _OURS and locks.is_at(handle, lock):
            return handle
    except OSError:  # not every file can be read
        pass
    os.close(handle)
    return None


def target(file: Path) -> Path:
    """Where its links end; nothing need be there."""
    try:
        return Path(os.path.realpath(file, strict=True))
    except FileNotFoundError:
        return Path(os.path.realpath(file))
    except OSError as error:
        raise ConfigError(f"The kubeconfig {str(file)!r} cannot be read: {error.strerror}.") from error


def replaced(file: Path, content: bytes) -> None:
    """The file, whole with its new content or as it was: at the end of its links, with its mode, owner and attributes.

    To be called with the lock held.
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
    """Raise ConfigError for a pipe, which keeps who reads it waiting, and a device, whose place no file must take."""
    status = _status(target(file))
    if status is not None and not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise _not_writable(file, "it is not a regular file", remedy="")


def check_writable(file: Path) -> None:
    """Raise ConfigError where it could not be replaced, or is not meant to be: one that nobody may write to."""
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
