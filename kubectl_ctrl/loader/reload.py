"""`run --reload`: sees that files of a controller changed, loads them, and has the new code take over.

Files are looked at a few times a second, by size and time first and then by content: who saves without a change, saves
twice, or writes another file and renames it, causes no reload or one. Code that cannot be loaded changes nothing.
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
from kubectl_ctrl.loader.code_errors import mishap, shown
from kubectl_ctrl.loader.sources import Sourced
from kubectl_ctrl.runtime.manager import Manager

if TYPE_CHECKING:
    from kubectl_ctrl.runtime.builder import ControllerSpec

_log = logging.getLogger(__name__)

_EVERY = 0.2
# Between two looks at a file that is being written; it counts when both find the same.
_SETTLE = 0.05
_MOST_LOOKS = 40
# An editor that writes by renaming leaves a moment without the file.
_LOOKS_UNTIL_GONE = 5

_Print = tuple[int, int, int]  # time, size, inode


class CodeGroup:
    """The controllers that share their code, and the files as they were when it was loaded."""

    def __init__(self, controllers: Sequence[Sourced]) -> None:
        self.controllers = tuple(controllers)
        self._code = controllers[0].source.code
        self._prints: dict[Path, _Print | None] = {}
        self._contents: dict[Path, bytes] = {}
        self._missed: dict[Path, int] = {}
        self._beside: dict[Path, _Print | None] | None = None  # since a load failed: all the code in its folders
        self.changed()

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(sorted(self._code.files))

    def changed(self) -> tuple[Path, ...]:
        """The files with another content than at the last load; those that are new to it are only noted.

        While the last load is one that failed, whatever comes or changes beside them may be what it lacked.
        """
        found = tuple(path for path in self.files if self._look(path))
        if found or self._beside is None:
            return found
        now = self._code_beside()
        return tuple(path for path in now if now[path] != self._beside.get(path))

    def note(self) -> None:
        """What is there now is what is loaded next."""
        self._beside = None
        for path in self.files:
            self._prints[path] = _print_of(path)
            self._contents[path] = _content(path)

    def load(self) -> tuple[ControllerSpec, ...]:
        """The declarations in the files as they are now; when one cannot be had, all is as before."""
        return self._code.again(lambda: tuple(_again(sourced) for sourced in self.controllers))

    def failed(self) -> None:
        """What was noted could not be loaded."""
        self.changed()  # notes the files that this load was the first to look at
        self._beside = self._code_beside()

    def _code_beside(self) -> dict[Path, _Print | None]:
        folders = sorted({path.parent for path in self.files})
        found = [path for folder in folders for form in ("*.py", "*/*.py") for path in sorted(folder.glob(form))]
        return {path: _print_of(path) for path in found}

    def _look(self, path: Path) -> bool:
        print_ = _print_of(path)
        if path not in self._prints:
            self._prints[path], self._contents[path] = print_, _content(path)
            return False
        if print_ is None:
            self._miss(path)
            return False
        self._missed.pop(path, None)
        if print_ == self._prints[path]:
            return False
        if _content(path) == self._contents[path]:
            self._prints[path] = print_
            return False
        return True

    def _miss(self, path: Path) -> None:
        self._missed[path] = self._missed.get(path, 0) + 1
        if self._missed[path] == _LOOKS_UNTIL_GONE:
            _log.warning(
                "%s is gone; the code that was loaded goes on.", shown(path), extra={"action": "reload.file_gone"}
            )

    def __repr__(self) -> str:
        return f"CodeGroup({', '.join(one.spec.name for one in self.controllers)}, files={len(self.files)})"


def code_groups(controllers: Iterable[Sourced]) -> tuple[CodeGroup, ...]:
    """Those whose code can change: one's own, and bundled ones where the program runs from a checkout."""
    checkout = (Path(__file__).resolve().parents[2] / "pyproject.toml").exists()
    together: dict[Path, list[Sourced]] = {}
    for sourced in controllers:
        if checkout or sourced.word not in BUNDLED:
            together.setdefault(sourced.source.code.root, []).append(sourced)
    if not together:
        raise UsageError(
            "--reload has nothing to watch: the code of the bundled controllers is part of this program.",
            next_step="leave the flag out, or run a controller of your own",
        )
    return tuple(CodeGroup(group) for group in together.values())


class Reloader:
    """Watches shelves for as long as a run lasts."""

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
                        await self._take_up(group)
                except Exception:  # noqa: BLE001  # a run must not lose its reloads to one that failed
                    _log.exception("A change could not be taken up.", extra={"action": "reload.failed"})

    async def _settled(self, group: CodeGroup) -> None:
        """Return when nobody seems to be writing any more."""
        before: list[_Print | None] = []
        for _ in range(_MOST_LOOKS):
            await self._clock.sleep(_SETTLE)
            now = [_print_of(path) for path in group.files]
            if now == before:
                return
            before = now

    async def _take_up(self, group: CodeGroup) -> None:
        changed = group.changed()
        if not changed:
            return  # back to what it was
        group.note()
        began = self._clock.elapsed()
        try:
            specs = group.load()
        except ControllerError as error:
            self._tell_kept(error)
            group.failed()
            return
        names = ", ".join(spec.name for spec in specs)
        self._tell_waiting(specs)
        await asyncio.gather(*(self._manager.swap(spec) for spec in specs))
        self._reloads += 1
        _log.info(
            "Reloaded %s, because of a change in %s.",
            names,
            ", ".join(map(shown, changed)),
            extra={"action": "reload.done", "took": f"{self._clock.elapsed() - began:.3f}s"},
        )

    def _tell_waiting(self, specs: Sequence[ControllerSpec]) -> None:
        names = {spec.name for spec in specs}
        members = [member for member in self._manager.members if member.spec.name in names]
        if under_way := [attempt for member in members for attempt in member.under_way]:
            _log.info(
                "Before new code begins, what is under way may end: %s",
                ", ".join(under_way),
                extra={"action": "reload.draining"},
            )

    def _tell_kept(self, error: ControllerError) -> None:
        beside = {"source": error.tried, "next": error.next_step}
        _log.warning(
            "Not reloaded, the code from before goes on. %s",
            error.message,
            extra={"action": "reload.refused", **{name: text for name, text in beside.items() if text}},
        )
        _log.debug("Why it was not reloaded.", extra={"action": "reload.refused"}, exc_info=error)

    def __repr__(self) -> str:
        return f"Reloader(groups={len(self._groups)}, reloads={self._reloads})"


def _again(sourced: Sourced) -> ControllerSpec:
    spec = sourced.source.read()
    if spec.name != sourced.spec.name:
        raise mishap(
            sourced.source.place,
            f"The controller is named {spec.name!r} now, and it runs as {sourced.spec.name!r}.",
            "end this run and start it again: lease, field manager and recordings go by the name",
        )
    return spec


def _print_of(path: Path) -> _Print | None:
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
