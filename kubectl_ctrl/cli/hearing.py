"""What `logs` does: prints the logs of controllers in the background, and what is added to them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from kubectl_ctrl.cli import attendance, background, pages
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.attendance import Where
from kubectl_ctrl.cli.command import Given
from kubectl_ctrl.clock import pause
from kubectl_ctrl.clusters.book import Entry
from kubectl_ctrl.errors import NoCluster, NotRecorded, UsageError
from kubectl_ctrl.render.text import escaped

_FEW = 10
_PACE = 0.1
# How often it is looked whether a process still is there that has nothing to say.
_LOOK_EVERY = 1.0


def run(app: App, given: Given) -> int:
    """The body of the verb."""
    if len(given.arguments) > 1:
        raise UsageError("logs takes one controller at most.", next_step="kubectl ctrl logs --help")
    if given["tail"] < -1:
        raise UsageError("Invalid value for --tail: it must be at least -1.")
    place, entry = _place(app, given)
    names = _names(app, given, place, entry)
    tail = _FEW if not given.arguments and given["tail"] < 0 else given["tail"]
    _Hearing(app, entry, names, together=not given.arguments and len(names) > 1).tell(tail, follow=given["follow"])
    return 0


def _place(app: App, given: Given) -> tuple[Where, Entry]:
    """Where the cluster that is meant is none of ours, it is the only one that is: no other has such logs."""
    place, ours = attendance.where(app, given), app.book.entries()
    if place.entry is not None:
        return place, place.entry
    if len(ours) == 1 and not given["context"]:
        app.narrate(f"cluster {ours[0].name}, the only one of ours")
        return attendance.of_ours(ours[0]), ours[0]
    names = ", ".join(entry.name for entry in ours)
    raise NoCluster(
        f"The cluster of {place.text} is none of ours, and only those have controllers in the background.",
        next_step=f"name one with --name: {names}" if names else "kubectl ctrl up CONTROLLER --detach makes one",
    )


def _names(app: App, given: Given, place: Where, entry: Entry) -> list[str]:
    logged = pages.logged(entry)
    if not given.arguments:
        if logged:
            return logged
        raise NotRecorded(
            f"No controller was ever in the background on {place.text}.",
            next_step="kubectl ctrl up CONTROLLER --detach starts one",
        )
    word = given.arguments[0]
    for name, page in pages.pages(entry):
        if page.word == pages.whole(word):
            return [name]
    if word in logged:
        return [word]
    here = [one for one in attendance.of(app, place) if one.controller == word and one.lives]
    raise NotRecorded(
        f"{word} was never in the background on {place.text}.",
        tried=f"it runs in the foreground, as process {here[0].pid}, and speaks there" if here else "",
        next_step=f"there is: {', '.join(logged)}" if logged else "kubectl ctrl status shows what runs here",
    )


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
            logs = {name: held.enter_context(Log(pages.log_of(self._entry, name))) for name in self._names}
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
            self._app.answer("\n".join(f"{prefix}{_shown(line)}" for line in lines))


def _end(entry: Entry, name: str) -> str:
    page = pages.read(pages.log_of(entry, name))
    code = f", with exit code {page.code}" if page is not None and page.code else ""
    return f"{name} has ended{code}."


def _shown(line: str) -> str:
    """A controller prints what it likes: nothing of it drives the terminal, but tabs are as they were."""
    return "\t".join(map(escaped, line.split("\t")))


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
            return pages.older(self.path).read_bytes().decode(errors="replace").splitlines()
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
