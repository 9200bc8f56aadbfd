"""The book: which clusters are ours. What is not in it is never touched.

A cluster has a folder, `clusters/NAME`, with its page `cluster.json`, its own kubeconfig, and all files that its
provider keeps. The page is written before the first thing of the cluster exists and goes after the last one is gone.
Verbs that must be quick read it: nothing but the standard library is imported here.
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
_PAGE = "cluster.json"


class Phase(StrEnum):
    """How far a cluster is."""

    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"


class Entry(Value, kw_only=True):
    """One cluster of ours; server and authority (as `client/kubeconfig` has it) tell it from all others."""

    name: str
    provider: str
    phase: Phase
    began: float  # wall time at which its making began
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
        """Where the output of controllers in the background is kept."""
        return self.folder / "controllers"


def unread_key(server: str, ca: str) -> str:
    """What a cluster goes by where its UID may not be read: what the kubeconfig says of it."""
    from hashlib import sha256

    return sha256(f"{server} {ca}".encode()).hexdigest()


class Book:
    """All clusters of ours, below one folder of the user's state."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, user: User) -> Book:
        return cls(user.state / "clusters")

    def __repr__(self) -> str:
        return f"Book({str(self.folder)!r}, {len(self.entries())})"

    def entries(self) -> tuple[Entry, ...]:
        """By name. A page that cannot be read is left out; `damaged` names it."""
        places = [page.parent for page in sorted(self.folder.glob(f"*/{_PAGE}")) if is_name(page.parent.name)]
        return tuple(entry for place in places if (entry := self._read(place)) is not None)

    def damaged(self) -> tuple[Path, ...]:
        """Folders without a page that can be read, and those that no cluster can have."""
        if not self.folder.is_dir():
            return ()
        known = {entry.folder for entry in self.entries()}
        return tuple(path for path in sorted(self.folder.iterdir()) if path.is_dir() and path not in known)

    def check(self, name: str) -> None:
        """Raise where there is a page of that name that cannot be read: what it was about must not be guessed."""
        place = self.place(name)
        if (place / _PAGE).exists() and self._read(place) is None:
            raise ClusterError(
                f"The registry entry of cluster {name!r} cannot be read, so its parts are unknown.",
                tried=str(place / _PAGE),
                next_step=f"repair it, or delete the parts that can be found: {ctrl('down', name)}",
            )

    def find(self, name: str) -> Entry | None:
        return self._read(self.folder / checked_name(name))

    def unread(self, name: str) -> Entry:
        """What is known of one whose page cannot be read, or is not there yet: its folder."""
        return Entry(name=name, provider="", phase=Phase.DELETING, began=0.0, folder=self.place(name))

    def place(self, name: str) -> Path:
        """The folder that a cluster of that name has."""
        return self.folder / checked_name(name)

    def write(self, entry: Entry) -> None:
        """The page, whole or as it was; makes the folder."""
        page = {key: value for key, value in asdict(entry).items() if key not in ("name", "folder")}
        try:
            entry.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise _cannot("be made", entry.folder, error) from error
        _replace(entry.folder / _PAGE, json.dumps(page, indent=2))

    def write_kubeconfig(self, entry: Entry, content: str) -> None:
        """The cluster's own kubeconfig; an admin's key lies in it."""
        _replace(entry.kubeconfig, content)

    def remove(self, name: str) -> None:
        """The folder and all that is in it, the page last: what a kill leaves can be removed again."""
        place = self.place(name)
        if not place.is_dir():
            return
        import shutil

        try:
            for path in place.iterdir():
                if path.name != _PAGE:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            shutil.rmtree(place)
        except OSError as error:
            raise _cannot("be removed", place, error) from error

    @contextmanager
    def locked(self, name: str) -> Iterator[bool]:
        """Hold the right to change that cluster, for the block; False, and nothing is held, while another process does.

        Not to be nested: to the lock, the same process is another one too.
        """
        with locked_file(self.folder / f"{checked_name(name)}.lock") as ours:
            yield ours

    def holder(self, name: str) -> int | None:
        """The process that changes that cluster, where one does and its number is known."""
        try:
            return int((self.folder / f"{checked_name(name)}.lock").read_text())
        except (OSError, ValueError):
            return None

    def _read(self, place: Path) -> Entry | None:
        try:
            page = json.loads((place / _PAGE).read_bytes())
            known = files.known(Entry, page)
            return Entry(**{**known, "phase": Phase(page["phase"]), "name": place.name, "folder": place})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def is_name(name: str) -> bool:
    """Whether a cluster may be called that."""
    return _NAME.fullmatch(name) is not None


def checked_name(name: str) -> str:
    """The name, where a cluster may be called that: it becomes part of container, context and file names."""
    if not is_name(name):
        raise UsageError(
            f"{name!r} is not a valid cluster name.",
            next_step="use at most 40 characters of a-z, 0-9 and '-', without '-' at either end",
        )
    return name


@contextmanager
def locked_file(path: Path) -> Iterator[bool]:
    """Hold the lock that this file is, for the block; False, and nothing is held, while somebody else does.

    The lock is the kernel's: it goes with its holder, however that ends. The file goes with its holder too.
    """
    try:
        handle = locks.acquire(path)
    except OSError as error:
        raise _cannot("be made or locked", path, error) from error
    try:
        if handle is not None:
            _sign(handle)
        yield handle is not None
    finally:
        if handle is not None:
            locks.release(path, handle)


def _sign(handle: int) -> None:
    """Who holds it; a full disk may leave that unsaid."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)


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
