"""One reconcile in full: its causes, its time to scale, its reads, its requested changes and its result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from textwrap import wrap

from kubectl_ctrl.model.attempt import WriteRequest
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import RecordedAttempt, RecordedCall
from kubectl_ctrl.render.attempts import answer_text, cause_text, label_text, outcome_text, place_text
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.render.trace.details import intent_text, read_text
from kubectl_ctrl.render.trace.rows import TraceOptions, changed_text
from kubectl_ctrl.render.trace.unified_diff import call_diff, cause_diff
from kubectl_ctrl.text import counted, cut, escaped
from kubectl_ctrl.value import Value, replace

_WIDEST_BAR = 60
_NARROWEST_BAR = 12
_WIDEST_LABEL = 40
_LEAST = 40
_ENDLESS = 1_000_000
# A gap between two calls gets a row from this share of the whole time on.
_TOLD_GAP = 0.02
# A wait this many times as long as the work would squeeze the work into one column: its bar is shortened.
_LONG_WAIT = 3.0
_WAIT_SHARE = 0.25


class _Bar(Value, kw_only=True):
    label: str
    fact: str
    start: float
    took: float
    kind: str  # wait, gap, read, write, failed
    note: str = ""


_GLYPHS = {"wait": "░", "gap": "·", "read": "▒", "write": "█", "failed": "█"}
_ASCII = {"wait": ".", "gap": "-", "read": "=", "write": "#", "failed": "!"}
_COLORS = {"wait": "2", "gap": "2", "read": "36", "write": "32", "failed": "31"}


def waterfall_lines(attempt: RecordedAttempt, showing: TraceOptions, style: Style, *, where: str) -> Iterator[str]:
    """`where` says which cluster."""
    kind = f"{showing.about[0].kind} " if showing.about else ""
    head = (f"{kind}{escaped(str(attempt.request))}", escaped(where), f"{attempt.id} of {attempt.controller}")
    yield style.dot.join(filter(None, head))
    facts = [f"started {timestamp(attempt.started, style)}", f"waited {format_duration(attempt.waited)}"]
    facts += [f"try {attempt.try_no}"] if attempt.try_no > 1 else []
    brief = replace(attempt, verdict=replace(attempt.verdict, message="")) if attempt.verdict else attempt
    yield style.dot.join([*facts, outcome_text(brief)])
    yield from _section("TRIGGERED BY", _causes(attempt, showing, style), style)
    yield from _section("TIME", _time(attempt, style), style)
    yield from _section("READ", map(read_text, attempt.reads), style, fold=True)
    yield from _section("OUTSIDE", (escaped(one.name) for one in attempt.outside), style, fold=True)
    yield from _section("REQUESTED", map(_requested, attempt.wishes), style, fold=True)
    if showing.diff:
        yield from _section("CHANGED", _diffs(attempt, showing, style), style)
    yield from _section("SKIPPED", map(escaped, attempt.skipped), style, fold=True)
    yield from _section("EVENTS", _events(attempt), style, fold=True)
    yield from _section("ECHOES", _echoes(attempt), style, fold=True)
    yield from _section("RESULT", _result(attempt, style), style, fold=True)
    yield from _section("TRACEBACK", map(escaped, attempt.traceback.rstrip().splitlines()), style)


def _section(title: str, lines: Iterator[str], style: Style, *, fold: bool = False) -> Iterator[str]:
    first = next(lines, None)
    if first is None:
        return
    yield ""
    yield painted(title, "1", style)
    for line in chain([first], lines):
        room = max(style.width - 2, _LEAST) if fold and style.width is not None else _ENDLESS
        for part in wrap(line, room, subsequent_indent="    ", break_on_hyphens=False) if fold else [line]:
            yield f"  {part}"


def _causes(attempt: RecordedAttempt, showing: TraceOptions, style: Style) -> Iterator[str]:
    primary = style.primaries.get(attempt.controller)
    for cause in attempt.causes:
        step = f"{cause.old_version}{style.arrow}{cause.new_version}" if cause.old_version else cause.new_version
        versions = f"  (version {escaped(step)})" if cause.new_version else ""
        yield f"{timestamp(cause.at, style)}  {cause_text(cause, style, primary)}{versions}"
        if showing.diff:
            yield from (f"    {line}" for line in cause_diff(cause, showing, style))
    if lost := attempt.causes_total - len(attempt.causes):
        yield f"and {lost} more, counted but not recorded"
    if not attempt.causes:
        yield "not recorded"


# Where its time went.


def _time(attempt: RecordedAttempt, style: Style) -> Iterator[str]:
    bars = list(_bars(attempt))
    label = min(max(len(bar.label) for bar in bars), _WIDEST_LABEL)
    fact = max(len(bar.fact) for bar in bars)
    beside = label + fact + 14
    room = _WIDEST_BAR if style.width is None else min(style.width - beside, _WIDEST_BAR)
    room = max(room, _NARROWEST_BAR)
    scale = _Scale(attempt, room)
    for bar in bars:
        drawn = scale.drawn(bar, style)
        name = cut(bar.label, label, mark=style.mark)
        yield f"{name:<{label}}  {bar.fact:>{fact}}  {format_duration(bar.took):>6}  {drawn}".rstrip()
        if bar.note and (attempt.verdict is None or bar.note != escaped(attempt.verdict.message)):
            yield f"{'':{label}}  {bar.note}"
    if scale.broken:
        yield "(the bar of the wait is shortened)"


def _bars(attempt: RecordedAttempt) -> Iterator[_Bar]:
    """The wait, the calls, and the time between them, in order."""
    start = attempt.started
    yield _Bar(label="in the queue", fact="", start=start - attempt.waited, took=attempt.waited, kind="wait")
    calls = sorted(attempt.calls, key=lambda made: made.call.started)
    end = attempt.end
    least = (end - start) * _TOLD_GAP
    at = start
    for made in calls:
        if made.call.started - at > least:
            yield _Bar(label="no call", fact="", start=at, took=made.call.started - at, kind="gap")
        yield _call(made, end)
        at = max(at, made.call.started + made.call.took)
    if end - at > least or not calls:
        yield _Bar(label="no call", fact="", start=at, took=max(end - at, 0.0), kind="gap")


def _call(made: RecordedCall, end: float) -> _Bar:
    call = made.call
    failed = bool(call.error) or (call.code is None and call.write)
    return _Bar(
        label=label_text(call),
        fact=answer_text(call),
        start=call.started,
        took=call.took if call.code is not None else max(call.took, end - call.started, 0.0),
        kind="failed" if failed else "write" if call.write else "read",
        note=escaped(call.error),
    )


class _Scale:
    """Maps times to columns; a wait that would push all else to the right edge is shortened."""

    def __init__(self, attempt: RecordedAttempt, room: int) -> None:
        self._room = room
        self._start = attempt.started
        self._wait = attempt.waited
        self._work = max(attempt.end - attempt.started, 1e-6)
        self.broken = self._wait > self._work * _LONG_WAIT
        share = _WAIT_SHARE if self.broken else self._wait / (self._wait + self._work)
        self._waiting = share * room

    def _at(self, moment: float) -> float:
        if moment < self._start:
            part = 1 - (self._start - moment) / self._wait if self._wait else 1.0
            return self._waiting * max(part, 0.0)
        return self._waiting + (self._room - self._waiting) * min((moment - self._start) / self._work, 1.0)

    def drawn(self, bar: _Bar, style: Style) -> str:
        first = min(round(self._at(bar.start)), self._room - 1)
        last = max(round(self._at(bar.start + bar.took)), first + 1)
        glyph = (_GLYPHS if style.unicode else _ASCII)[bar.kind]
        return " " * first + painted(glyph * (last - first), _COLORS[bar.kind], style)


# What it requested, and the result.


def _requested(wish: WriteRequest) -> str:
    if wish.raised is not None:
        answer = f"raised {escaped(wish.raised.error)}: {escaped(wish.raised.message)}"
    else:
        answer = wish.how or "no response"
    calls = ", ".join(f".{call.rpartition('.')[2]}" for call in wish.calls)
    made = f" by call{'s' if len(wish.calls) > 1 else ''} {calls}" if calls else " without an API call"
    return f"{wish.verb} {wish.resource.kind} {escaped(str(wish.key))}: {answer}{made}"


def _diffs(attempt: RecordedAttempt, showing: TraceOptions, style: Style) -> Iterator[str]:
    for made in attempt.writes:
        yield f"{made.call.verb} {place_text(made.call)}  {changed_text(made, style)}".rstrip()
        yield from (f"    {line}" for line in call_diff(made, showing, style))


def _events(attempt: RecordedAttempt) -> Iterator[str]:
    yield from map(intent_text, attempt.intents)
    for made in attempt.background:
        if made.call.error:
            yield f"{made.call.verb} {place_text(made.call)}: {escaped(made.call.error)}"


def _echoes(attempt: RecordedAttempt) -> Iterator[str]:
    if attempt.echoes:
        yield f"{counted(attempt.echoes, 'own write')} seen while it ran, not queued"
    calls = {(made.call.uid, made.call.new_version): made.call for made in attempt.writes}
    for echo in attempt.heard:
        call = calls.get((echo.uid, echo.version))
        of = f"{call.verb} {place_text(call)} ({call.id})" if call else f"version {escaped(echo.version)}"
        yield f"{of} seen after {format_duration(echo.after)}, not queued"


def _result(attempt: RecordedAttempt, style: Style) -> Iterator[str]:
    yield outcome_text(attempt)
    verdict = attempt.verdict
    if verdict is not None and verdict.where:
        yield f"raised at {escaped(verdict.where)}"
    if verdict is not None and verdict.error_id:
        yield f"error {escaped(verdict.error_id)}"
    for made in attempt.writes:
        yield f"{made.call.id}  {made.call.verb} {place_text(made.call)}  {changed_text(made, style)}".rstrip()
