"""`queue`: the queues of controllers, from the recording and the locks of this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document, note_of, style_of
from kubectl_ctrl.cli.output.screen import Screen
from kubectl_ctrl.cli.parsing.query import query_of
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock, pause
from kubectl_ctrl.errors import ConfigError, NotRecorded, UsageError
from kubectl_ctrl.model.attempt import ControllerState
from kubectl_ctrl.model.life import Sighting
from kubectl_ctrl.render.queue import QueueSnapshot, queue_json, queue_lines
from kubectl_ctrl.render.style import Style, timestamp
from kubectl_ctrl.runs import runners
from kubectl_ctrl.runs.liveness import RunEvidence, sightings
from kubectl_ctrl.story import lookup
from kubectl_ctrl.story.lookup import SelectedRecording
from kubectl_ctrl.target import guard
from kubectl_ctrl.text import Text
from kubectl_ctrl.value import replace

_FORMS = ("text", "wide", "json", "yaml")
# The intervals of -w: of checks for changes, and of redraws, which update ages such as "2s ago".
_PACE = 0.1
_DRAW_EVERY = 1.0


def run(app: App, given: ParsedCommandLine) -> int:
    form = given.one_of("output", _FORMS)
    if len(given.arguments) > 1:
        raise UsageError("queue takes one controller at most.", next_step="kubectl ctrl queue --help")
    with ExitStack() as held:
        source = _Source(app, given, held)
        if given["watch"]:
            return _watch(app, source, form, style_of(app, given))
        look = source.look(wide=form == "wide")
        _answer(app, look, form, style_of(app, given))
        if not look.sightings:
            app.narrate(source.nothing)
        return 0


class _Source:
    """The source of sightings. With -w, the recording may be created later."""

    def __init__(self, app: App, given: ParsedCommandLine, held: ExitStack) -> None:
        self._app = app
        self._given = given
        self._held = held
        self._clock = SystemClock()
        self._meant: SelectedRecording | None = None
        self._controller = given.arguments[0] if given.arguments else ""
        self._context = _context_name(app, given)

    def look(self, *, wide: bool = False) -> QueueSnapshot:
        if self._meant is None:
            self._meant = self._opened()
        found = sightings(self._traces(), self._clock.now(), controller=self._controller)
        namespace = self._given["namespace"]
        shown = [one for one in found if not namespace or one.namespace in ("", namespace)]
        return QueueSnapshot(sightings=shown, now=self._clock.now(), wide=wide)

    @property
    def changed(self) -> int:
        """A number that differs after each change of the recording."""
        return self._meant.recording.changed() if self._meant is not None else 0

    @property
    def nothing(self) -> str:
        what = f"{self._controller} does not run" if self._controller else "No controller runs"
        where = f" in namespace {self._given['namespace']}" if self._given["namespace"] else ""
        return f"{what}{where} from this machine on {self._cluster}."

    @property
    def _cluster(self) -> str:
        return (
            lookup.cluster_text(self._meant.cluster)
            if self._meant
            else f"context {self._context}"
            if self._context
            else "any cluster"
        )

    def _opened(self) -> SelectedRecording | None:
        """The recording of the selected cluster; None if there is none, since a run may not be recorded."""
        named = self._given["from"] or self._given["recorded_cluster"]
        try:
            meant = lookup.open_recording(query_of(self._app, self._given))
        except NotRecorded as error:
            unclear = isinstance(error, lookup.AmbiguousCluster) and not self._context
            if named or (unclear and runners.runners(self._app.user.state)):
                raise
            return None
        if self._context and meant.cluster.ended is not None and not named:
            # The recorded cluster was deleted; the context belongs to a newer one of the same name.
            with meant.recording:
                return None
        self._held.enter_context(meant.recording)
        if note := note_of(meant, style_of(self._app, self._given)):
            self._app.narrate(note)
        return meant

    def _traces(self) -> RunEvidence:
        running = [] if self._given["from"] else runners.runners(self._app.user.state)
        if self._meant is None:  # nothing of its cluster is recorded, so neither is what runs on it
            return RunEvidence(runners=[runner for runner in running if self._context in ("", runner.context)])
        recording, cluster = self._meant.recording, self._meant.cluster.key
        return RunEvidence(
            runs=recording.runs(cluster=cluster),
            moments=recording.moments(cluster=cluster),
            runners=[runner for runner in running if runner.cluster == cluster],
        )


def _context_name(app: App, given: ParsedCommandLine) -> str:
    try:
        return guard.context_name(app.pointed(given))
    except ConfigError:
        return ""


def _answer(app: App, look: QueueSnapshot, form: str, style: Style) -> None:
    match form:
        case "json" | "yaml":
            app.answer(document(queue_json(look), form))
        case _ if look.sightings:
            app.answer_all(map(Text, queue_lines(look, style)))


# Watching.


def _watch(app: App, source: _Source, form: str, style: Style) -> int:
    try:
        if form in ("text", "wide") and app.terminal and app.user.environ.get("TERM") != "dumb":
            with Screen(app.out) as screen:
                _follow(source, form, lambda look: screen.draw(_frame(app, source, look, style)), drawing=True)
        _follow(source, form, lambda look: _append(app, source, look, form, style), drawing=False)
    except KeyboardInterrupt:
        return 0
    return 0


def _follow(source: _Source, form: str, show: Callable[[QueueSnapshot], None], *, drawing: bool) -> None:
    """Show each change, until Ctrl-C; with `drawing`, also every second."""
    shown: object = None
    while True:
        look, changed = source.look(wide=form == "wide"), source.changed
        if drawing or _gist(look.sightings) != shown:
            shown = _gist(look.sightings)
            show(look)
        for _ in range(round(_DRAW_EVERY / _PACE)):
            pause(_PACE)
            if source.changed != changed:
                break


def _gist(found: Sequence[Sighting]) -> list[Sighting]:
    """The sightings without the times that change with every report: only other changes cause new output."""
    return [replace(one, seen=0.0, state=one.state and _at_rest(one.state)) for one in found]


def _at_rest(state: ControllerState) -> ControllerState:
    # The due time of an entry only changes together with its causes or its number of failures.
    return replace(state, at=0.0, entries=tuple(replace(entry, due=None) for entry in state.entries))


def _frame(app: App, source: _Source, look: QueueSnapshot, style: Style) -> list[str]:
    return list(map(Text, queue_lines(look, replace(style, width=app.width)))) if look.sightings else [source.nothing]


def _append(app: App, source: _Source, look: QueueSnapshot, form: str, style: Style) -> None:
    match form:
        case "json":
            app.answer(json.dumps(queue_json(look)))
        case "yaml":
            app.answer_all(["---", document(queue_json(look), form)])
        case _:
            lines = list[str](map(Text, queue_lines(look, style))) or [source.nothing]
            app.answer_all([f"-- {timestamp(look.now, style)}", *lines, ""])
