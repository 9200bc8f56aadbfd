"""The rows of `trace`, one for each attempt, and their columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap

from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import RecordedAttempt, RecordedCall
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempts import UNKNOWN, call_text, cause_text, changes_text, outcome_color, verdict_text, why
from kubectl_ctrl.render.style import Style, moment_text, painted, timestamp
from kubectl_ctrl.text import cut, escaped
from kubectl_ctrl.value import Unshown, Value, replace

# From this width on, WHY is a column; on a narrower terminal it is a line of its own.
ROOMY = 100
# No column is narrower; a smaller terminal wraps the line itself.
_LEAST = 16
# Room for an outcome such as `waiting: rollout 3/5`, which later rows may have.
_USUAL = 24
# WHY and OUTCOME side by side need so much.
_BOTH = 60
_INDENT = " " * 6
_ENDLESS = 1_000_000
_SHOWN_CHANGES = 4
_SHORT_ERROR = 72
_LONG_MESSAGE = 60
_GAP = "  "

_YELLOW, _CYAN, _DIM = "33", "36", "2"
_WHYS = {
    CauseKind.ADDED: _CYAN,
    CauseKind.MODIFIED: _CYAN,
    CauseKind.DELETED: _CYAN,
    CauseKind.MANUAL: _CYAN,
    CauseKind.RETRY: _YELLOW,
}


def _no_body(uid: str, version: str) -> Obj | None:
    return None


class TraceOptions(Value, kw_only=True):
    """The options of `trace` that rows depend on."""

    now: float
    about: tuple[Resource, Request] | None = None  # None: the rows are of several objects, and each names its object
    calls: bool = False  # every call, and the reads
    diff: bool = False
    wide: bool = False
    body: Unshown[Callable[[str, str], Obj | None]] = _no_body  # of a UID and version, for `diff`


class Columns(Value, kw_only=True):
    """The width of each column, 0 if it is left out; fixed before the first row, because -w adds rows for hours."""

    number: int
    start: int
    wait: int
    took: int
    controller: int
    request: int
    calls: int
    why: int = 0  # 0: on lines of its own
    outcome: int = _ENDLESS

    @property
    def left(self) -> int:
        """The start of WHY, or of CALLS if WHY is on lines of its own."""
        parts = (self.number, self.start, self.wait, self.took, self.controller, self.request)
        return sum(part + len(_GAP) for part in parts if part)


def columns(attempts: Sequence[RecordedAttempt], showing: TraceOptions, style: Style) -> Columns:
    """Wide enough for these attempts, and for later ones of -w."""
    several = style.controllers or len({attempt.controller for attempt in attempts}) > 1
    others = showing.about is None or any(attempt.request != showing.about[1] for attempt in attempts)

    def widest(least: int, text: Callable[[RecordedAttempt], str]) -> int:
        return max([least, *(len(text(attempt)) for attempt in attempts)])

    fixed = Columns(
        number=widest(4, lambda one: _number(one, showing, style)),
        start=widest(8, lambda one: moment_text(one.started, showing.now, style)),
        wait=widest(5, lambda one: format_duration(one.waited)),
        took=widest(5, _took),
        controller=widest(10, lambda one: one.controller) if several else 0,
        request=widest(6, lambda one: _request(one, style)) if others else 0,
        calls=widest(5, _counts),
    )
    if style.width is None:
        return fixed
    room = style.width - fixed.left - fixed.calls - len(_GAP)
    if style.width < ROOMY or room < _BOTH:
        return replace(fixed, outcome=max(room, _LEAST))
    room -= len(_GAP)
    spare = room - widest(_LEAST, lambda one: _why(one, style))
    outcome = min(widest(_USUAL, lambda one: _outcome(one, style)), max(spare, room * 2 // 5))
    return replace(fixed, why=max(room - outcome, _LEAST), outcome=max(outcome, _LEAST))


def header(widths: Columns, style: Style) -> str:
    line = _left(("#".rjust(widths.number), "START", "WAIT", "TOOK", "CONTROLLER", "OBJECT"), widths)
    if style.width is None:
        return f"{line}{'CALLS'.ljust(widths.calls)}{_GAP}WHY | WROTE | OUTCOME"
    if not widths.why:
        return f"{line}{'CALLS'.ljust(widths.calls)}{_GAP}OUTCOME"
    return f"{line}{'WHY'.ljust(widths.why)}{_GAP}{'CALLS'.ljust(widths.calls)}{_GAP}OUTCOME"


def row(attempt: RecordedAttempt, widths: Columns, showing: TraceOptions, style: Style) -> Iterator[str]:
    """The lines of one attempt: a single one in a pipe; as many as it needs on a terminal."""
    left = _left(
        (
            _number(attempt, showing, style).rjust(widths.number),
            moment_text(attempt.started, showing.now, style),
            format_duration(attempt.waited).rjust(widths.wait),
            _took(attempt).rjust(widths.took),
            escaped(attempt.controller),
            _request(attempt, style),
        ),
        widths,
    )
    calls = _counts(attempt).ljust(widths.calls)
    if style.width is None:
        primary = style.primaries.get(attempt.controller)
        causes = [cause_text(cause, style, primary) for cause in attempt.causes] or [UNKNOWN]
        if (lost := attempt.causes_total - len(attempt.causes)) > 0:
            causes.append(f"{lost} more not recorded")
        wrote = "; ".join(_deed_text(made, style) for made in that_matter(attempt)) or "nothing"
        yield f"{left}{calls}{_GAP}{'; '.join(causes)} | {wrote} | {_outcome(attempt, style)}"
        return
    outcome = _folded(_outcome(attempt, style), widths.outcome)
    reason = _reason(attempt, widths.why or max(style.width - len(_INDENT), _LEAST), style)
    beside = reason if widths.why else []
    for at in range(max(len(outcome), len(beside))):
        line = left if at == 0 else " " * widths.left
        if widths.why:
            line += _cell(reason[at] if at < len(reason) else "", _why_color(attempt), widths.why, style) + _GAP
        line += (calls if at == 0 else " " * widths.calls) + _GAP
        yield (line + _cell(outcome[at] if at < len(outcome) else "", outcome_color(attempt), 0, style)).rstrip()
    if not widths.why:
        yield from (_INDENT + _cell(part, _why_color(attempt), 0, style) for part in reason)


def _left(cells: tuple[str, ...], widths: Columns) -> str:
    sizes = (widths.number, widths.start, widths.wait, widths.took, widths.controller, widths.request)
    return "".join(cell.ljust(size) + _GAP for cell, size in zip(cells, sizes, strict=True) if size)


# The cells.


def _number(attempt: RecordedAttempt, showing: TraceOptions, style: Style) -> str:
    """The number alone if a separator names the run."""
    return attempt.id if showing.wide or style.width is None else str(attempt.number)


def _request(attempt: RecordedAttempt, style: Style) -> str:
    primary = style.primaries.get(attempt.controller)
    return escaped(f"{primary.kind} {attempt.request}" if primary else str(attempt.request))


def _took(attempt: RecordedAttempt) -> str:
    return "-" if attempt.took is None else format_duration(attempt.took)


def _counts(attempt: RecordedAttempt) -> str:
    reads, writes = len(attempt.reads), len(attempt.writes)
    return " ".join(filter(None, (f"{reads}r" if reads else "", f"{writes}w" if writes else ""))) or "-"


def _why(attempt: RecordedAttempt, style: Style) -> str:
    causes = list(attempt.causes)
    if causes and causes[0].kind is CauseKind.RETRY:
        # The row of the failed attempt has the error in full.
        causes[0] = replace(causes[0], detail=cut(causes[0].detail, _SHORT_ERROR, mark=style.mark))
    return why(causes, attempt.causes_total, style, style.primaries.get(attempt.controller))


def _reason(attempt: RecordedAttempt, room: int, style: Style) -> list[str]:
    text = _why(attempt, style)
    alone = attempt.causes_total == 1 and attempt.causes and attempt.causes[0].kind is CauseKind.RETRY
    return [cut(text, room, mark=style.mark)] if alone else _folded(text, room)


def that_matter(attempt: RecordedAttempt) -> list[RecordedCall]:
    """The writes, and the calls that failed or have no answer."""

    def matters(call: Call) -> bool:
        return bool(call.error) or call.write or (call.code is None and not call.dry_run)

    return [made for made in attempt.calls if matters(made.call)] + [m for m in attempt.background if m.call.error]


def _deed_text(made: RecordedCall, style: Style) -> str:
    """`patch Deployment/web 200 25ms spec.replicas 9→11`."""
    parts = (call_text(made.call), format_duration(made.call.took), changed_text(made, style), escaped(made.call.error))
    return " ".join(filter(None, parts))


def changed_text(made: RecordedCall, style: Style) -> str:
    """`spec.replicas 9→11`, `created`, `no change`."""
    call, changes = made.call, made.changes
    if changes.total:
        return changes_text(changes, style, _SHOWN_CHANGES)
    if call.write and call.new_version and call.new_version == call.old_version:
        return "no change"
    if call.write and call.code == 200 and call.old_version and call.new_version and call.verb != "delete":
        return "managedFields only"  # the object before was known, and no other field differs
    return "created" if call.verb == "create" and call.code == 201 else ""


def _outcome(attempt: RecordedAttempt, style: Style) -> str:
    if attempt.verdict is None:
        return attempt.outcome
    return verdict_text(replace(attempt.verdict, message="") if message_below(attempt, style) else attempt.verdict)


def message_below(attempt: RecordedAttempt, style: Style) -> str:
    """The message of an outcome, if it is too long for its column; it is shown below the row."""
    message = attempt.verdict.message if attempt.verdict is not None else ""
    return message if style.width is not None and len(message) > _LONG_MESSAGE else ""


def _why_color(attempt: RecordedAttempt) -> str:
    return _WHYS.get(attempt.causes[0].kind, _DIM) if attempt.causes else _DIM


def _folded(text: str, width: int) -> list[str]:
    return wrap(text, max(width, _LEAST), break_on_hyphens=False) or [""]


def _cell(text: str, color: str, width: int, style: Style) -> str:
    return painted(text, color, style) + " " * max(width - len(text), 0)


def interval(first: float, last: float, style: Style) -> str:
    """`10:04:06-10:04:09`, or one time if both read the same."""
    texts = list(dict.fromkeys((timestamp(first, style), timestamp(last, style))))
    return ("–" if style.unicode else "-").join(texts)  # noqa: RUF001
