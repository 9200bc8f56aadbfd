"""The cluster registry: all managed clusters. A cluster that is not in it is never changed.

A cluster has a folder, `clusters/NAME`, with its entry `cluster.json`, its own kubeconfig, and all files that its
provider keeps. The entry is written before the first part of the cluster exists, and deleted after the last one.
Completion reads it too, so this file imports little.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from kubectl_ctrl import files, locks
from kubectl_ctrl.errors import ClusterError, CtrlError, UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value, asdict, field

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_FILE = "cluster.json"


class Phase(StrEnum):
    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"

    @property
    def done(self) -> str:
        """What was being done to the cluster, as in `not completely deleted`."""
        return "deleted" if self is Phase.DELETING else "created"


class ClusterEntry(Value, kw_only=True):
    """One managed cluster; its server and certificate authority distinguish it from all others."""

    name: str
    provider: str
    phase: Phase
    began: float  # wall time at which its creation began
    folder: Path
    context: str = ""
    server: str = ""
    ca: str = ""  # SHA-256 of its certificate authority
    uid: str = ""  # of its namespace kube-system
    version: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)  # the provider's
    used: Mapping[str, str] = field(default_factory=dict)  # what --use changed: see current_context

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def controllers(self) -> Path:
        """The folder for the logs of controllers in the background."""
        return self.folder / "controllers"


def unread_key(server: str, ca: str) -> str:
    """The key of a cluster whose UID may not be read, from its kubeconfig."""
    from hashlib import sha256

    return sha256(f"{server} {ca}".encode()).hexdigest()


class Registry:
    """All managed clusters, below one folder of the user's state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, user: User) -> Registry:
        return cls(user.state / "clusters")

    def __repr__(self) -> str:
        return f"Registry({str(self.folder)!r}, {len(self.entries())})"

    def entries(self) -> tuple[ClusterEntry, ...]:
        """By name, without those that cannot be read: see `damaged`."""
        places = [file.parent for file in sorted(self.folder.glob(f"*/{_FILE}")) if is_name(file.parent.name)]
        return tuple(entry for place in places if (entry := self._read(place)) is not None)

    def damaged(self) -> tuple[Path, ...]:
        """Folders without a readable entry, and folders whose name no cluster can have."""
        if not self.folder.is_dir():
            return ()
        known = {entry.folder for entry in self.entries()}
        return tuple(path for path in sorted(self.folder.iterdir()) if path.is_dir() and path not in known)

    def check(self, name: str) -> None:
        """Raise if the entry of that name cannot be read: its contents must not be guessed."""
        place = self.place(name)
        if (place / _FILE).exists() and self._read(place) is None:
            raise ClusterError(
                f"The registry entry of cluster {name!r} cannot be read, so its parts are unknown.",
                tried=str(place / _FILE),
                next_step=f"repair it, or delete the parts that can be found: {ctrl('down', name)}",
            )

    def find(self, name: str) -> ClusterEntry | None:
        return self._read(self.folder / checked_name(name))

    def unread(self, name: str) -> ClusterEntry:
        """An entry in place of one that cannot be read or does not exist yet; only its folder is known."""
        return ClusterEntry(name=name, provider="", phase=Phase.DELETING, began=0.0, folder=self.place(name))

    def place(self, name: str) -> Path:
        """The folder of a cluster of that name."""
        return self.folder / checked_name(name)

    def write(self, entry: ClusterEntry) -> None:
        """Write the entry atomically; creates its folder."""
        fields = {key: value for key, value in asdict(entry).items() if key not in ("name", "folder")}
        try:
            entry.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise _cannot("be created", entry.folder, error) from error
        _replace(entry.folder / _FILE, json.dumps(fields, indent=2))

    def write_kubeconfig(self, entry: ClusterEntry, content: str) -> None:
        """The cluster's own kubeconfig, which contains an admin's key."""
        _replace(entry.kubeconfig, content)

    def remove(self, name: str) -> None:
        """Delete the folder, and the entry last: after a kill this can be repeated."""
        place = self.place(name)
        if not place.is_dir():
            return
        import shutil

        try:
            for path in place.iterdir():
                if path.name != _FILE:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            shutil.rmtree(place)
        except OSError as error:
            raise _cannot("be deleted", place, error) from error

    @contextmanager
    def locked(self, name: str) -> Iterator[bool]:
        """Lock that cluster for the block; False, without the lock, while another process holds it.

        Not reentrant: the lock cannot tell this process from another one.
        """
        with locked_file(self.folder / f"{checked_name(name)}.lock") as locked:
            yield locked

    def holder(self, name: str) -> int | None:
        """The process that holds the lock of that cluster, if it is known."""
        try:
            return int((self.folder / f"{checked_name(name)}.lock").read_text())
        except (OSError, ValueError):
            return None

    def _read(self, place: Path) -> ClusterEntry | None:
        try:
            fields = json.loads((place / _FILE).read_bytes())
            known = files.known(ClusterEntry, fields)
            return ClusterEntry(**{**known, "phase": Phase(fields["phase"]), "name": place.name, "folder": place})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def is_name(name: str) -> bool:
    """Whether it is a valid name of a cluster."""
    return _NAME.fullmatch(name) is not None


def checked_name(name: str) -> str:
    """The name, if it is valid: it becomes part of the names of containers, contexts and files."""
    if not is_name(name):
        raise UsageError(
            f"{name!r} is not a valid cluster name.",
            next_step="use at most 40 characters of a-z, 0-9 and '-', without '-' at either end",
        )
    return name


@contextmanager
def locked_file(path: Path) -> Iterator[bool]:
    """Lock this file for the block; False, without the lock, while another process holds it.

    It is a lock of the kernel, which ends with its holder, even by a kill. The file is deleted with the lock.
    """
    try:
        handle = locks.acquire(path)
    except OSError as error:
        raise _cannot("be created or locked", path, error) from error
    try:
        if handle is not None:
            with suppress(OSError):  # a full disk
                os.ftruncate(handle, 0)
                os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield handle is not None
    finally:
        if handle is not None:
            locks.release(path, handle)


def _replace(path: Path, content: str) -> None:
    try:
        files.replace(path, content.encode())
    except OSError as error:
        raise _cannot("be written", path, error) from error


def _cannot(what: str, path: Path, error: OSError) -> CtrlError:
    return CtrlError(
        f"{str(path)!r} cannot {what}: {error.strerror}.",
        next_step=files.state_remedy(error),
    )
