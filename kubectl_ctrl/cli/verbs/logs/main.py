"""What `logs` does: prints the logs of controllers in the background, and what is added to them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.one_cluster import where
from kubectl_ctrl.cli.parsing.verb import Given
from kubectl_ctrl.clock import pause
from kubectl_ctrl.clusters.registry import Entry
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import CtrlError, NotRecorded, UsageError
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs import background, background_notes, local
from kubectl_ctrl.runs.local import SelectedCluster
from kubectl_ctrl.text import nearest, verbatim

_FEW = 10
_PACE = 0.1
# How often it is looked whether a process still is there that has nothing to say.
_LOOK_EVERY = 1.0


def run(app: App, given: Given) -> int:
    """The body of the verb."""
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
    _Hearing(app, entry, names, together=not given.arguments and len(names) > 1).tell(tail, follow=given["follow"])
    return 0


def _names(app: App, given: Given, place: SelectedCluster) -> list[str]:
    """Of whom there are logs on that cluster: of the controller that is asked for, or all."""
    if place.entry is None:
        return []  # none but clusters of ours have any
    if not given.arguments:
        return background_notes.logged(place.entry)
    return _logged(place.entry, given.arguments[0])


def _logged(entry: Entry, word: str) -> list[str]:
    """By the word with which it was started, or by its name."""
    started = [name for name, note in background_notes.notes(entry) if note.word == background_notes.absolute(word)]
    return started[:1] or [name for name in background_notes.logged(entry) if name == word]


def _nothing(app: App, place: SelectedCluster, words: Sequence[str]) -> CtrlError:
    """There is no such log on that cluster; where there is one, and what there is instead."""
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
    here = [one for one in local.on(app.user, place) if one.controller == word and one.lives and one.log is None]
    return f"it runs in the foreground, as process {here[0].pid}, and speaks there" if here else ""


def _instead(word: str, there: Sequence[str], app: App) -> str:
    if there:
        return nearest(word, there) or f"there is: {', '.join(there)}"
    if local.controllers(app.user):
        return "kubectl ctrl status -A shows what runs where"
    return f"{ctrl('up', word if word in BUNDLED else 'CONTROLLER', '--detach')} starts one"


class _Hearing:
    """Prints some logs; `together` each line says whose it is."""

    def __init__(self, app: App, entry: Entry, names: Sequence[str], *, together: bool) -> None:
        self._app = app
        self._entry = entry
        self._names = names
        self._together = together

    def __repr__(self) -> str:
        return f"_Hearing({self._entry.name}, {', '.join(self._names)})"

    def tell(self, tail: int, *, follow: bool) -> None:
        with ExitStack() as held:
            logs = {name: held.enter_context(Log(background_notes.log_of(self._entry, name))) for name in self._names}
            for name, log in logs.items():
                lines = [*log.before(), *(log.new() if follow else log.rest())]
                self._print(name, lines[max(len(lines) - tail, 0) :] if tail >= 0 else lines)
            try:
                while follow and logs:
                    over = [name for name in logs if not background.starting(self._entry, name)]
                    for _ in range(round(_LOOK_EVERY / _PACE)):
                        for name, log in logs.items():
                            self._print(name, log.new())
                        if over:
                            break
                        pause(_PACE)
                    for name in over:
                        self._print(name, logs.pop(name).rest())
                        self._app.narrate(_end(self._entry, name))
            except KeyboardInterrupt:
                pass

    def _print(self, name: str, lines: Sequence[str]) -> None:
        prefix = f"[{name}] " if self._together else ""
        if lines:
            # A controller prints what it likes: nothing of it drives the terminal, but tabs are as they were.
            self._app.answer_all(verbatim(f"{prefix}{line}") for line in lines)


def _end(entry: Entry, name: str) -> str:
    note = background_notes.read(background_notes.log_of(entry, name))
    if note is not None and note.ended is None:
        return f"{name} is dead: it ended without a word, as after kill -9."
    code = f", with exit code {note.code}" if note is not None and note.code else ""
    return f"{name} has ended{code}."


class Log:
    """One log, read as it grows, also over the moment in which its process goes on in a new file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO | None = None
        self._begun = b""  # a line without its end

    def __repr__(self) -> str:
        return f"Log({str(self.path)!r})"

    def __enter__(self) -> Log:
        self._file = self._opened()
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def before(self) -> list[str]:
        """What was said before the log began anew."""
        try:
            return background_notes.older(self.path).read_bytes().decode(errors="replace").splitlines()
        except OSError:
            return []

    def new(self) -> list[str]:
        """The lines that have come since the last call, none that is still being written."""
        lines = list(self._lines())
        if self._moved():
            lines += self._lines()  # what came before it was moved
            self.__exit__()
            self._file = self._opened()
            lines += self._lines()
        return lines

    def rest(self) -> list[str]:
        """The last lines; one without an end is one too."""
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
