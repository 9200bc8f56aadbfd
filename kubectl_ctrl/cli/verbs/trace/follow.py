"""`trace -w`: appends reconciles as they finish; on a terminal, running ones are shown below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clock import SystemClock, pause
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.trace.rows import TraceOptions, columns
from kubectl_ctrl.render.trace.text import Rows, head_lines
from kubectl_ctrl.story.chronicle import FollowedObjects
from kubectl_ctrl.text import Text, printable, verbatim
from kubectl_ctrl.value import replace

_PACE = 0.1
# A killed process does not change the recording, so the processes are also checked without a change.
_REFRESH_EVERY = 2.0
# More reconciles than can finish between two refreshes.
_BETWEEN = 200


def follow(app: App, followed: FollowedObjects, showing: TraceOptions, form: str, style: Style) -> int:
    """Until Ctrl-C."""
    _Following(app, followed, showing, form, style).run()
    return 0


class _Following:
    """The reconciles already shown, and the last lines of the terminal."""

    def __init__(self, app: App, followed: FollowedObjects, showing: TraceOptions, form: str, style: Style) -> None:
        self._app = app
        self._followed = followed
        self._showing = replace(showing, about=(followed.resource, followed.key) if followed.key else None)
        self._form = form
        self._style = style
        self._rows: Rows | None = None
        self._shown: set[str] = set()
        self._run = ""  # the run of the last row
        self._from = 0.0  # the start of the first reconcile shown
        self._began: set[str] = set()  # known runs
        self._ends: dict[str, str] = {}  # how runs ended
        self._below = 0  # lines of running reconciles, which are redrawn

    def run(self) -> None:
        clock = SystemClock()
        while True:
            changed = self._followed.chronicle.changed
            self._refresh(clock.now())
            for _ in range(round(_REFRESH_EVERY / _PACE)):
                pause(_PACE)
                if self._followed.chronicle.changed != changed:
                    break

    def _refresh(self, now: float) -> None:
        self._followed.chronicle.refresh(now)
        attempts = self._followed.attempts(self._followed.first if self._rows is None else _BETWEEN, self._shown)
        if self._rows is None:
            self._begin(attempts)
        assert self._rows is not None
        runs = self._followed.chronicle.runs
        self._rows = replace(self._rows, runs=runs, over=self._followed.chronicle.over(runs))
        new = [one for one in attempts if one.id not in self._shown and one.started >= self._from]
        # First the reconciles of known runs, then their ends and the new runs, then the reconciles of those.
        self._show([one for one in new if one.over and one.run in self._began], [])
        self._report_runs()
        new = [one for one in new if one.id not in self._shown]
        self._show([one for one in new if one.over], [one for one in new if not one.over])

    def _begin(self, attempts: Sequence[RecordedAttempt]) -> None:
        """Print the header, and choose the rows to start with."""
        chronicle, followed = self._followed.chronicle, self._followed
        runs = chronicle.runs
        self._began = {run.id for run in runs}
        self._ends = {name: what for name, (what, _) in chronicle.ends(runs).items()}
        self._from = attempts[0].started if attempts else 0.0
        self._style = replace(self._style, primaries=chronicle.primaries(runs, followed.resource))
        widths = columns(attempts, self._showing, self._style)
        self._rows = Rows(runs=runs, over=chronicle.over(runs), widths=widths, showing=self._showing, style=self._style)
        if self._form == "jsonl":
            return
        lines: list[str] = [followed.name]
        if followed.key is not None:
            told = chronicle.object_story(followed.resource, followed.key, last=followed.first, since=followed.since)
            lines = [*map(Text, head_lines(told.story, told.scene, self._style))] if told is not None else lines
        if not attempts:
            lines.append("Nothing is recorded yet; waiting for the first reconcile.")
        self._write([*lines, "", Text(self._rows.header)])

    def _report_runs(self) -> None:
        """Print a line for each run that started or ended."""
        assert self._rows is not None
        chronicle = self._followed.chronicle
        ends = {name: what for name, (what, _) in chronicle.ends(chronicle.runs).items()}
        for run in chronicle.runs[::-1]:
            if run.id != self._run and not self._followed.concerns(run):
                continue
            end, before = ends.get(run.id, ""), self._ends.get(run.id, "")
            if run.id not in self._began:
                self._report(self._rows.separator(run.id), f"Run {run.id} started, process {run.pid} on {run.host}.")
                self._run = run.id
            elif end != before:
                news = f"run {run.id} {'is ' * end.startswith('suspended')}{end}" if end else f"run {run.id} continues"
                self._report(self._rows.between(news), f"{news.capitalize()}.")
        self._began |= {run.id for run in chronicle.runs}
        self._ends = ends

    def _report(self, lines: Iterable[str], sentence: str) -> None:
        """Print the lines among the rows on a terminal, else the sentence on stderr."""
        if self._app.terminal and self._form != "jsonl":
            self._write([*map(Text, lines)])
        else:
            self._app.narrate(sentence)

    def _show(self, ended: Sequence[RecordedAttempt], running: Sequence[RecordedAttempt]) -> None:
        assert self._rows is not None
        rows, chronicle = self._rows, self._followed.chronicle
        self._shown |= {one.id for one in ended}
        if self._form == "jsonl":
            from kubectl_ctrl.render.trace.formats import export

            for one in ended:
                self._app.answer_all(map(verbatim, export("jsonl", chronicle.story_of(one, None))), end="")
            return
        lines = [*map(Text, rows.lines(ended, self._run or (ended[0].run if ended else "")))]
        self._run = ended[-1].run if ended else self._run
        transient: list[Text] = []
        if self._app.terminal and self._app.unicode:
            transient = [*map(Text, rows.lines(running, self._run or (running[0].run if running else "")))]
        self._write(lines, transient)

    def _write(self, lines: Sequence[str], transient: Sequence[str] = ()) -> None:
        """Write in one piece, over the lines of running reconciles, so that nothing flickers."""
        if not lines and not transient and not self._below:
            return
        back = f"\x1b[{self._below}F\x1b[J" if self._below else ""
        self._app.out.write(back + "".join(f"{printable(line)}\n" for line in (*lines, *transient)))
        self._app.out.flush()
        self._below = len(transient)
