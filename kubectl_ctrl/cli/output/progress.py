"""Progress of slow steps on stderr: a spinner on terminals, lines for logs, or JSON for programs.

All steps are known from the start. Other lines on stderr must be printed with `say`, so that they do not mix with the
spinner.
"""

from __future__ import annotations

import json
import os
import textwrap
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.text import cut, printable

FORMS = ("auto", "plain", "json", "none")

# The width with the seconds at the right, on a terminal that is wide enough.
_COLUMNS = 76
_SECONDS = 9  # columns
_SLOW = 5.0
_PACE = 0.1


class ProgressStep:
    """One slow step; `text` may be changed to describe its result."""

    def __init__(self, display: _Display, at: int, name: str, text: str) -> None:
        self.at = at  # from 1
        self.name = name
        self.text = text
        self.silent = False  # its line is not kept
        self.doubtful = False  # it is done, but not as it should be; the text gives the reason
        self._display = display

    def __repr__(self) -> str:
        return f"ProgressStep({self.at}, {self.name!r}, {self.text!r})"

    def note(self, line: str) -> None:
        """Show what happens at the moment, on a terminal or as JSON."""
        self._display.noted(self, line)


class _Display(Protocol):
    """One way to show steps; `state` is ended, failed or skipped."""

    def began(self, step: ProgressStep) -> None: ...

    def noted(self, step: ProgressStep, line: str) -> None: ...

    def over(self, step: ProgressStep, state: str, seconds: float) -> None: ...

    def say(self, text: str) -> None: ...


class Progress:
    """The steps of one verb; `form` is one of FORMS, or quiet for errors only."""

    def __init__(self, app: App, form: str, steps: Sequence[str], clock: Clock) -> None:
        self._app = app
        self.form = _form(app, form)
        self._steps = tuple(steps)
        self._clock = clock
        self._display = _display(app, self.form, self._steps, clock)

    @classmethod
    def of(cls, app: App, given: ParsedCommandLine, steps: Sequence[str], clock: Clock) -> Progress:
        """The steps of a verb, in the form of --progress and --quiet; with json, errors are JSON too."""
        form = given.one_of("progress", FORMS)
        app.machine = form == "json"
        return cls(app, "quiet" if given["quiet"] else form, steps, clock)

    def __repr__(self) -> str:
        return f"Progress({self.form}, {', '.join(self._steps)})"

    @contextmanager
    def step(self, name: str, text: str, *, error_tells: bool = False) -> Iterator[ProgressStep]:
        """One of the steps, for the block. With `error_tells`, a failure prints no line: the error says it all."""
        began = self._clock.elapsed()
        step = self._made(name, text)
        self._display.began(step)
        state = "failed"
        try:
            yield step
            state = "ended"
        finally:
            step.silent = error_tells and state == "failed"
            self._display.over(step, state, self._clock.elapsed() - began)

    def skip(self, name: str, text: str) -> None:
        """There is nothing to do; `text` gives the reason, in JSON only."""
        self._display.over(self._made(name, text), "skipped", 0.0)

    def say(self, text: str) -> None:
        """Print a line that belongs to no step."""
        self._display.say(text)

    def warn(self, text: str) -> None:
        """Print such a line also with --quiet."""
        if self.form == "quiet":
            self._app.narrate(text)
        else:
            self._display.say(text)

    def _made(self, name: str, text: str) -> ProgressStep:
        return ProgressStep(self._display, self._steps.index(name) + 1, name, text)


def stopping(progress: Progress) -> Callable[[str], None]:
    """A function that gets the name of the first signal, and prints what the next one does."""

    def say(name: str) -> None:
        asked = "stopping; Ctrl-C again" if name == "SIGINT" else f"stopping after {name}; a second one"
        progress.say(f"{asked} exits at once")

    return say


def _form(app: App, form: str) -> str:
    if form != "auto":
        return form
    return "spinner" if app.err.isatty() and app.user.environ.get("TERM", "") not in ("", "dumb") else "plain"


def _display(app: App, form: str, steps: Sequence[str], clock: Clock) -> _Display:
    if form == "json":
        return _Json(app, steps)
    if form in ("none", "quiet"):
        return _NoSteps(app, quiet=form == "quiet")
    return _Spinner(app, clock) if form == "spinner" else _Plain(app)


class _NoSteps:
    """No steps; other lines only if not quiet."""

    def __init__(self, app: App, *, quiet: bool) -> None:
        self._app = app
        self._quiet = quiet

    def began(self, step: ProgressStep) -> None:
        pass

    def noted(self, step: ProgressStep, line: str) -> None:
        pass

    def over(self, step: ProgressStep, state: str, seconds: float) -> None:
        pass

    def say(self, text: str) -> None:
        if not self._quiet:
            self._app.narrate(text)


class _Json:
    """A line of JSON for each event."""

    def __init__(self, app: App, steps: Sequence[str]) -> None:
        self._app = app
        self._of = len(steps)

    def began(self, step: ProgressStep) -> None:
        self._tell(step, state="began", text=step.text)

    def noted(self, step: ProgressStep, line: str) -> None:
        self._tell(step, state="note", text=line)

    def over(self, step: ProgressStep, state: str, seconds: float) -> None:
        self._tell(step, state=state, text=step.text, seconds=round(seconds, 3))

    def say(self, text: str) -> None:
        self._app.narrate(json.dumps({"action": "said", "state": "said", "text": self._app.hide(text)}))

    def _tell(self, step: ProgressStep, *, state: str, text: str, **more: float) -> None:
        place = {"action": "step", "step": step.at, "of": self._of, "name": step.name}
        fields = {**place, "state": state, "text": self._app.hide(text)}
        self._app.narrate(json.dumps({**fields, **more}))


class _Plain:
    """A line with the seconds after each step; for a slow step also one before it ends."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._late: threading.Timer | None = None
        self._unicode = app.draws(app.err)

    def began(self, step: ProgressStep) -> None:
        sign = "…" if self._unicode else ".."
        self._late = threading.Timer(_SLOW, lambda: self.say(f" {sign} {step.text}"))
        self._late.daemon = True
        self._late.start()

    def noted(self, step: ProgressStep, line: str) -> None:
        pass

    def over(self, step: ProgressStep, state: str, seconds: float) -> None:
        if self._late is not None:
            self._late.cancel()
        if state != "skipped" and not step.silent:
            for line in over_lines(step, state, seconds, unicode=self._unicode, columns=columns(self._app)):
                self.say(line)

    def say(self, text: str) -> None:
        self._app.narrate(text)


class _Spinner:
    """Redraws the current step in the last line of a terminal; finished steps are above it.

    A thread draws it, so that it keeps turning while the main thread blocks.
    """

    def __init__(self, app: App, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._unicode = app.draws(app.err)
        self._signs = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if self._unicode else "|/-\\"
        self._lock = threading.RLock()
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn = False
        self._note = ""

    def began(self, step: ProgressStep) -> None:
        self._note = ""
        self._done.clear()
        self._thread = threading.Thread(target=self._turn, args=(step, self._clock.elapsed()), daemon=True)
        self._thread.start()

    def noted(self, step: ProgressStep, line: str) -> None:
        self._note = " ".join(_narrow(self._app.hide(line)).split())

    def over(self, step: ProgressStep, state: str, seconds: float) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._wipe()
        if state != "skipped" and not step.silent:
            for line in over_lines(step, state, seconds, unicode=self._unicode, columns=columns(self._app)):
                self.say(line)

    def say(self, text: str) -> None:
        with self._lock:
            self._wipe()
            self._app.narrate(text)

    def _wipe(self) -> None:
        with self._lock:
            if self._drawn:
                self._write("\r\x1b[K")
                self._drawn = False

    def _turn(self, step: ProgressStep, began: float) -> None:
        turns = 0
        while not self._done.is_set():
            sign = self._signs[turns % len(self._signs)]
            text = f"{step.text}: {self._note}" if self._note else step.text
            line = _spread(f" {sign} {text}", self._clock.elapsed() - began, columns(self._app), unicode=self._unicode)
            with self._lock:
                self._write(f"\r{printable(line)}\x1b[K")
                self._drawn = True
            turns += 1
            self._done.wait(_PACE)

    def _write(self, text: str) -> None:
        try:
            self._app.err.write(text)
            self._app.err.flush()
        except (OSError, ValueError):  # a lost terminal must not stop the verb
            self._done.set()


def over_lines(step: ProgressStep, state: str, seconds: float, *, unicode: bool, columns: int | None) -> list[str]:
    """The line of a finished step: ` ok cluster ctrl (kind, v1.36.3)    14.8s`; several if the terminal is narrow."""
    good, doubtful, bad = ("✓", "!", "✗") if unicode else ("ok", "!!", "FAIL")
    if state == "ended":
        text = f" {doubtful if step.doubtful else good} {step.text}"
    else:
        text = f" {bad} {step.text}: not done"
    lines = [text]
    if columns is not None:
        room = max(min(columns - 1, _COLUMNS) - _SECONDS, 1)
        lines = textwrap.wrap(text, room, subsequent_indent="   "[: room - 1]) or [text]
        lines[0] = f" {lines[0].lstrip()}"
    return [*lines[:-1], _spread(lines[-1], seconds, columns, unicode=unicode)]


def _spread(left: str, seconds: float, columns: int | None, *, unicode: bool) -> str:
    """The text at the left, truncated if necessary, and the seconds at the right."""
    right = f"{seconds:{_SECONDS - 1}.1f}s"
    room = _COLUMNS if columns is None else min(columns - 1, _COLUMNS)
    if columns is not None:
        left = cut(left, max(room - len(right), 1), mark="…" if unicode else "...")
    return left.ljust(room - len(right)) + right


def _narrow(line: str) -> str:
    """The line without characters of two columns or none: a line that is measured wrongly would wrap and stay."""
    return "".join(
        char for char in line if unicodedata.east_asian_width(char) not in "WF" and not unicodedata.combining(char)
    )


def columns(app: App) -> int | None:
    """Columns of stderr; None if it is not a terminal, and lines must not be truncated."""
    if not app.err.isatty():
        return None
    try:
        return os.get_terminal_size(app.err.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
