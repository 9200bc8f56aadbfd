"""`run --reload`: loads changed files of controllers, and replaces the running code.

Files are checked a few times a second, first by size and time and then by content. So saving without a change causes no
reload; saving twice, or writing a new file and renaming it, causes one. Code that cannot be loaded changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import ControllerError, UsageError
from kubectl_ctrl.loader.code_errors import error_at, shown
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.runtime.manager import Manager

if TYPE_CHECKING:
    from kubectl_ctrl.runtime.builder import ControllerSpec

_log = logging.getLogger(__name__)

_EVERY = 0.2
# A changed file is loaded when two checks at this interval find the same: it may still be written.
_SETTLE = 0.05
_MAX_SETTLE_CHECKS = 40
# An editor that saves by renaming leaves a moment without the file.
_CHECKS_UNTIL_GONE = 5

_Stat = tuple[int, int, int]  # time, size, inode


class CodeGroup:
    """Controllers with common code, and the state of its files at the last load."""

    def __init__(self, controllers: Sequence[SourcedController]) -> None:
        self.controllers = tuple(controllers)
        self._code = controllers[0].source.code
        self._stats: dict[Path, _Stat | None] = {}
        self._contents: dict[Path, bytes] = {}
        self._missed: dict[Path, int] = {}
        self._beside: dict[Path, _Stat | None] | None = None  # after a failed load: all Python files in its folders
        self.changed()

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(sorted(self._code.files))

    def changed(self) -> tuple[Path, ...]:
        """The files whose content changed since the last load. New files of the code are only noted.

        After a failed load also other Python files beside them: they may be the missing modules.
        """
        found = tuple(path for path in self.files if self._has_changed(path))
        if found or self._beside is None:
            return found
        now = self._code_beside()
        return tuple(path for path in now if now[path] != self._beside.get(path))

    def note(self) -> None:
        """Note the current files as loaded; call it before `load`, so that a change during the load is not missed."""
        self._beside = None
        for path in self.files:
            self._stats[path] = _stat_of(path)
            self._contents[path] = _content(path)

    def load(self) -> tuple[ControllerSpec, ...]:
        """Load the declarations again; after an error the old code stays."""
        return self._code.again(lambda: tuple(_again(sourced) for sourced in self.controllers))

    def failed(self) -> None:
        """The last load failed."""
        self.changed()  # notes files that this load read first
        self._beside = self._code_beside()

    def _code_beside(self) -> dict[Path, _Stat | None]:
        folders = sorted({path.parent for path in self.files})
        found = [path for folder in folders for form in ("*.py", "*/*.py") for path in sorted(folder.glob(form))]
        return {path: _stat_of(path) for path in found}

    def _has_changed(self, path: Path) -> bool:
        stat = _stat_of(path)
        if path not in self._stats:
            self._stats[path], self._contents[path] = stat, _content(path)
            return False
        if stat is None:
            self._miss(path)
            return False
        self._missed.pop(path, None)
        if stat == self._stats[path]:
            return False
        if _content(path) == self._contents[path]:
            self._stats[path] = stat
            return False
        return True

    def _miss(self, path: Path) -> None:
        self._missed[path] = self._missed.get(path, 0) + 1
        if self._missed[path] == _CHECKS_UNTIL_GONE:
            _log.warning(
                "%s is gone; the loaded code is still used.", shown(path), extra={"action": "reload.file_gone"}
            )

    def __repr__(self) -> str:
        return f"CodeGroup({', '.join(one.spec.name for one in self.controllers)}, files={len(self.files)})"


def code_groups(controllers: Iterable[SourcedController]) -> tuple[CodeGroup, ...]:
    """The controllers whose code can change: the user's, and in a checkout also the bundled ones."""
    checkout = (Path(__file__).resolve().parents[2] / "pyproject.toml").exists()
    together: dict[Path, list[SourcedController]] = {}
    for sourced in controllers:
        if checkout or sourced.word not in BUNDLED:
            together.setdefault(sourced.source.code.root, []).append(sourced)
    if not together:
        raise UsageError(
            "--reload has no files to watch: the bundled controllers are part of the program.",
            next_step="omit --reload, or run your own controller",
        )
    return tuple(CodeGroup(group) for group in together.values())


class Reloader:
    """Watches code groups during a run."""

    def __init__(self, watched: Sequence[CodeGroup], manager: Manager, *, clock: Clock) -> None:
        self._groups = watched
        self._manager = manager
        self._clock = clock
        self._reloads = 0

    async def run(self) -> None:
        """Until cancelled."""
        files = [shown(path) for group in self._groups for path in group.files]
        _log.info("Watching for changes: %s", ", ".join(files), extra={"action": "reload.watching"})
        while True:
            await self._clock.sleep(_EVERY)
            for group in self._groups:
                try:
                    if group.changed():
                        await self._settled(group)
                        await self._reload(group)
                except Exception:  # noqa: BLE001  # a failed reload must not stop later ones
                    _log.exception("Cannot reload after a change.", extra={"action": "reload.failed"})

    async def _settled(self, group: CodeGroup) -> None:
        """Wait until the files no longer change."""
        before: list[_Stat | None] = []
        for _ in range(_MAX_SETTLE_CHECKS):
            await self._clock.sleep(_SETTLE)
            now = [_stat_of(path) for path in group.files]
            if now == before:
                return
            before = now

    async def _reload(self, group: CodeGroup) -> None:
        changed = group.changed()
        if not changed:
            return  # it was changed back
        group.note()
        began = self._clock.elapsed()
        try:
            specs = group.load()
        except ControllerError as error:
            beside = {"source": error.tried, "next": error.next_step}
            fields = {"action": "reload.refused", **{name: text for name, text in beside.items() if text}}
            _log.warning("Not reloaded, the old code is still used. %s", error.message, extra=fields)
            _log.debug("The error of the reload.", extra={"action": "reload.refused"}, exc_info=error)
            group.failed()
            return
        names = [spec.name for spec in specs]
        members = [member for member in self._manager.members if member.spec.name in names]
        if under_way := [attempt for member in members for attempt in member.under_way]:
            text = "The new code starts after the reconciles in progress: %s"
            _log.info(text, ", ".join(under_way), extra={"action": "reload.draining"})
        await asyncio.gather(*(self._manager.swap(spec) for spec in specs))
        self._reloads += 1
        _log.info(
            "Reloaded %s, because of a change in %s.",
            ", ".join(names),
            ", ".join(map(shown, changed)),
            extra={"action": "reload.done", "took": f"{self._clock.elapsed() - began:.3f}s"},
        )

    def __repr__(self) -> str:
        return f"Reloader(groups={len(self._groups)}, reloads={self._reloads})"


def _again(sourced: SourcedController) -> ControllerSpec:
    spec = sourced.source.read()
    if spec.name != sourced.spec.name:
        raise error_at(
            sourced.source.place,
            f"The controller is now named {spec.name!r}, but runs as {sourced.spec.name!r}.",
            "restart the run: Lease, field manager and recordings use the name",
        )
    return spec


def _stat_of(path: Path) -> _Stat | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _content(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""
