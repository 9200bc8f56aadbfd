"""Notes about controllers in the background: a small file beside the log of each, in the folder of its cluster.

The process writes its note when it starts and when it exits. A note does not show whether the process still runs, since
kill -9 leaves it as it was; the lock of the run and the list of processes do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl import files
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.value import Value, asdict

_LOG, _NOTE = ".log", ".json"


class BackgroundNote(Value, kw_only=True):
    """One start of a controller in the background."""

    word: str  # its argument on the command line, see `absolute`
    scope: str  # its namespace
    pid: int
    began: float  # wall time
    asked: float | None = None  # when it was asked to stop
    ended: float | None = None  # None also after a kill
    code: int | None = None  # its exit code


def is_path(word: str) -> bool:
    """Whether an argument for a controller is a file or a folder."""
    return "/" in word or word.endswith(".py") or word in (".", "..")


def absolute(word: str) -> str:
    """The argument for a controller, with a path made absolute."""
    return str(Path(word).expanduser().resolve()) if is_path(word) else word


def log_of(entry: ClusterEntry, controller: str) -> Path:
    return entry.controllers / f"{controller}{_LOG}"


def older(log: Path) -> Path:
    """The file with the earlier part of a long log."""
    return log.with_name(f"{log.name}.1")


def logged(entry: ClusterEntry) -> list[str]:
    """The controllers that were ever started in the background there."""
    return sorted(path.name.removesuffix(_LOG) for path in entry.controllers.glob(f"*{_LOG}"))


def notes(entry: ClusterEntry) -> Iterator[tuple[str, BackgroundNote]]:
    """By controller."""
    for name in logged(entry):
        note = read(log_of(entry, name))
        if note is not None:
            yield name, note


def read(log: Path) -> BackgroundNote | None:
    try:
        return BackgroundNote(**files.known(BackgroundNote, json.loads(_beside(log).read_bytes())))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def write(log: Path, note: BackgroundNote) -> None:
    """Replace the note atomically. A full disk must not stop a controller, so errors are ignored."""
    with suppress(OSError):
        files.replace(_beside(log), json.dumps(asdict(note)).encode(), sync=False)


def forget(log: Path) -> None:
    """Delete the note of a controller that should no longer run. Its log is kept."""
    _beside(log).unlink(missing_ok=True)


def _beside(log: Path) -> Path:
    return log.with_suffix(_NOTE)
