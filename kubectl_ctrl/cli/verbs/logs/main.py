"""`logs`: prints and follows the logs of controllers in the background."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.one_cluster import where
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import pause
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import CtrlError, NotRecorded, UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs import background, background_notes, local
from kubectl_ctrl.runs.local import SelectedCluster
from kubectl_ctrl.text import nearest, verbatim

_FEW = 10
_PACE = 0.1
# The interval of checks whether the processes still exist.
_CHECK_EVERY = 1.0


def run(app: App, given: ParsedCommandLine) -> int:
    if len(given.arguments) > 1:
        raise UsageError("logs takes one controller at most.", next_step="kubectl ctrl logs --help")
    if given["tail"] < -1:
        raise UsageError("Invalid value for --tail: it must be at least -1.", next_step="for instance: --tail 20")
    place = where(app, given)
    entry = place.entry
    names = _names(app, given, place)
    if entry is None or not names:
        raise _nothing(app, place, given.arguments)
    tail = _FEW if not given.arguments and given["tail"] < 0 else given["tail"]
    _Printer(app, entry, names, together=not given.arguments and len(names) > 1).print(tail, follow=given["follow"])
    return 0


def _names(app: App, given: ParsedCommandLine, place: SelectedCluster) -> list[str]:
    """The controllers with logs on that cluster: the named one, or all."""
    if place.entry is None:
        return []  # only managed clusters have logs
    if not given.arguments:
        return background_notes.logged(place.entry)
    return _logged(place.entry, given.arguments[0])


def _logged(entry: ClusterEntry, word: str) -> list[str]:
    """Controllers with a log, by the argument with which they were started, or by their name."""
    started = [name for name, note in background_notes.notes(entry) if note.word == background_notes.absolute(word)]
    return started[:1] or [name for name in background_notes.logged(entry) if name == word]


def _nothing(app: App, place: SelectedCluster, words: Sequence[str]) -> CtrlError:
    """The error if the cluster has no such log, with a command that finds one."""
    word = words[0] if words else ""
    what = f"{word} was" if word else "No controller was"
    never = " never" if word else " ever"
    entries = [entry for entry in app.registry.entries() if place.entry is None or entry.name != place.entry.name]
    having = [entry.name for entry in entries if (_logged(entry, word) if word else background_notes.logged(entry))]
    ways = [str(ctrl("logs", *words, "--name", name)) for name in having]
    there = background_notes.logged(place.entry) if place.entry else []
    return NotRecorded(
        f"{what}{never} in the background on {place.text}.",
        tried=_foreground(app, place, word),
        next_step=", or ".join(ways) or _instead(word, there, app),
    )


def _foreground(app: App, place: SelectedCluster, word: str) -> str:
    found = [one for one in local.on(app.user, place) if one.controller == word and not one.unreadable]
    here = [one for one in found if one.lives and one.log is None]
    return f"it runs in the foreground, as process {here[0].pid}, and prints its log there" if here else ""


def _instead(word: str, there: Sequence[str], app: App) -> str:
    if there:
        return nearest(word, there) or f"there is: {', '.join(there)}"
    if local.controllers(app.user):
        return "kubectl ctrl status -A shows what runs where"
    return f"{ctrl('up', word if word in BUNDLED else 'CONTROLLER', '--detach')} starts one"


class _Printer:
    """Prints logs; with `together`, each line starts with the name of the controller."""

    def __init__(self, app: App, entry: ClusterEntry, names: Sequence[str], *, together: bool) -> None:
        self._app = app
        self._entry = entry
        self._names = names
        self._together = together

    def __repr__(self) -> str:
        return f"_Printer({self._entry.name}, {', '.join(self._names)})"

    def print(self, tail: int, *, follow: bool) -> None:
        with ExitStack() as held:
            logs = {name: held.enter_context(Log(background_notes.log_of(self._entry, name))) for name in self._names}
            for name, log in logs.items():
                lines = [*log.before(), *(log.new() if follow else log.rest())]
                self._print(name, lines[max(len(lines) - tail, 0) :] if tail >= 0 else lines)
            try:
                while follow and logs:
                    over = [name for name in logs if not background.starting(self._entry, name)]
                    for _ in range(round(_CHECK_EVERY / _PACE)):
                        for name, log in logs.items():
                            self._print(name, log.new())
                        if over:
                            break
                        pause(_PACE)
                    for name in over:
                        self._print(name, logs.pop(name).rest())
                        self._app.narrate(_exit_text(self._entry, name))
            except KeyboardInterrupt:
                pass

    def _print(self, name: str, lines: Sequence[str]) -> None:
        prefix = f"[{name}] " if self._together else ""
        if lines:
            # A controller may print anything: control characters are escaped, tabs are kept.
            self._app.answer_all(verbatim(f"{prefix}{line}") for line in lines)


def _exit_text(entry: ClusterEntry, name: str) -> str:
    note = background_notes.read(background_notes.log_of(entry, name))
    if note is not None and note.ended is None:
        return f"{name} is dead: it left no exit code, as after kill -9."
    code = f", with exit code {note.code}" if note is not None and note.code else ""
    return f"{name} has ended{code}."


class Log:
    """One log, read while it grows, also when its process continues in a new file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._begun = b""  # an incomplete line

    def __repr__(self) -> str:
        return f"Log({str(self.path)!r})"

    def __enter__(self) -> Log:
        self._file = self._opened()
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def before(self) -> list[str]:
        """The lines of the earlier file."""
        try:
            return background_notes.older(self.path).read_bytes().decode(errors="replace").splitlines()
        except OSError:
            return []

    def new(self) -> list[str]:
        """The complete lines since the last call."""
        lines = list(self._lines())
        if self._moved():
            lines += self._lines()  # lines written before it was renamed
            self.__exit__()
            self._file = self._opened()
            lines += self._lines()
        return lines

    def rest(self) -> list[str]:
        """The last lines, including an incomplete one."""
        lines = self.new()
        if self._begun:
            lines.append(self._begun.decode(errors="replace"))
            self._begun = b""
        return lines

    def _lines(self) -> Iterator[str]:
        if self._file is not None and (grown := self._file.read()):
            *lines, self._begun = (self._begun + grown).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)

    def _moved(self) -> bool:
        with suppress(OSError):
            return self._file is None or not os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        return False

    def _opened(self) -> BinaryIO | None:
        with suppress(OSError):
            return self.path.open("rb", buffering=0)
        return None
