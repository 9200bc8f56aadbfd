"""What is noted of a controller in the background, beside its log: one small file each, in its cluster's folder.

The process itself writes it as it begins and as it ends. Whether it still runs, the file does not know: after a kill -9
it says nothing, and the lock of the run and the list of processes are asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kubectl_ctrl import files
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.value import Value, asdict

_LOG, _PAGE = ".log", ".json"


class Page(Value, kw_only=True):
    """One start of a controller in the background."""

    word: str  # what was typed for it, as `whole` has it
    scope: str  # the namespace that it works in
    pid: int
    began: float  # wall time
    asked: float | None = None  # when it was asked to end
    ended: float | None = None  # None also after a kill
    code: int | None = None  # with which it ended


def is_path(word: str) -> bool:
    """Whether a word for a controller is a file or a folder."""
    return "/" in word or word.endswith(".py") or word in (".", "..")


def whole(word: str) -> str:
    """What was typed for a controller: a path so that it means the same from any folder, another word as it is."""
    return str(Path(word).expanduser().resolve()) if is_path(word) else word


def log_of(entry: Entry, controller: str) -> Path:
    """Where all that it says is kept."""
    return entry.controllers / f"{controller}{_LOG}"


def older(log: Path) -> Path:
    """What was said before the log became too long."""
    return log.with_name(f"{log.name}.1")


def logged(entry: Entry) -> list[str]:
    """The controllers that ever were in the background there."""
    return sorted(path.name.removesuffix(_LOG) for path in entry.controllers.glob(f"*{_LOG}"))


def pages(entry: Entry) -> Iterator[tuple[str, Page]]:
    """By controller."""
    for name in logged(entry):
        page = read(log_of(entry, name))
        if page is not None:
            yield name, page


def read(log: Path) -> Page | None:
    try:
        return Page(**files.known(Page, json.loads(_beside(log).read_bytes())))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def write(log: Path, page: Page) -> None:
    """Whole, or as it was. A full disk must not end a controller."""
    with suppress(OSError):
        files.replace(_beside(log), json.dumps(asdict(page)).encode(), sync=False)


def forget(log: Path) -> None:
    """It is not to run any more; its log stays."""
    _beside(log).unlink(missing_ok=True)


def _beside(log: Path) -> Path:
    return log.with_suffix(_PAGE)
