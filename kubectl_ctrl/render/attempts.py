"""An attempt in one line: time, object, cause, writes, duration, outcome; and the texts of its parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from textwrap import wrap
from typing import Any

from kubectl_ctrl.model.attempt import Call, Outcome, Verdict
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.masking import MASK
from kubectl_ctrl.model.record import Changes, RecordedAttempt, RecordedCause
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.text import counted, cut, escaped
from kubectl_ctrl.value import replace

_SHOWN_DIFFERENCES = 2
_VALUE_WIDTH = 24
# On a narrow terminal, an object's name and an error keep at least so many columns.
_LEAST = 24
_INDENT = "    "
_CONDITION = re.compile(r"status\.conditions\[type=(?P<type>[^\]]+)\](?:\.(?P<field>\w+))?")
# As kubectl prints it.
UNKNOWN = "<unknown>"
_RED, _YELLOW = "31", "33"
_COLORS = {Outcome.RETRY: _RED, Outcome.TERMINAL: _RED, Outcome.DROPPED: _RED, Outcome.WAITING: _YELLOW}


def attempt_text(attempt: RecordedAttempt, style: Style) -> str:
    """`10:04:01 default/foo r7f3-12  spec.replicas 1→3 by kubectl-edit | apply Deployment/web 200 | 41ms done`.

    One line; on a narrower terminal, the writes and the outcome are on lines below.
    """
    head = f"{timestamp(attempt.started, style)} {_who(attempt, style)}"
    reason = why(attempt.causes, attempt.causes_total, style, style.primaries.get(attempt.controller))
    tail = outcome_text(attempt)
    line = f"{head}  {reason} | {what(attempt)} | "
    if style.width is None or len(line) + len(tail) <= style.width:
        return line + painted(tail, outcome_color(attempt), style)
    return "\n".join((cut(f"{head}  {reason}", style.width, mark=style.mark), *_below(attempt, style, style.width)))


def _below(attempt: RecordedAttempt, style: Style, width: int) -> Iterator[str]:
    """The writes and the outcome; a message that does not fit beside them is below, in full."""
    verdict, done = attempt.verdict, what(attempt)
    tail = outcome_text(attempt)
    room = width - len(_INDENT) - len(" | ")
    apart = bool(verdict and verdict.message) and len(done) + len(tail) > room and len(tail) > room // 2
    if verdict is not None and apart:
        tail = outcome_text(replace(attempt, verdict=replace(verdict, message="")))
    line = f"{_INDENT}{cut(done, max(room - len(tail), len(style.mark)), mark=style.mark)} | "
    fits = len(line) + len(tail) <= width
    yield line + painted(tail, outcome_color(attempt), style) if fits else cut(line + tail, width, mark=style.mark)
    if verdict is not None and apart:
        yield from wrap(escaped(verdict.message), max(width, _LEAST), initial_indent=_INDENT, subsequent_indent=_INDENT)


def _who(attempt: RecordedAttempt, style: Style) -> str:
    """The controller if there are several, the object and the attempt, without the parts that the whole run shares."""
    name = attempt.request.name if style.namespace == attempt.request.namespace else str(attempt.request)
    who = escaped(f"{attempt.controller} {name}" if style.controllers else name)
    if style.width is not None:
        who = cut(who, max(style.width // 3, _LEAST), mark=style.mark)
    return f"{who} {attempt.id if style.namespace is None else attempt.id.rpartition('-')[2]}"


def why(causes: Sequence[RecordedCause], total: int, style: Style, primary: Resource | None) -> str:
    """The first cause in full, and the number of further ones."""
    if not causes:
        return UNKNOWN
    more = f" +{total - 1} more" if total > 1 else ""
    return cause_text(causes[0], style, primary) + more


def cause_text(cause: RecordedCause, style: Style, primary: Resource | None) -> str:
    """One cause; its object is named unless it is the one being reconciled."""
    named = ""
    if cause.resource is not None and cause.key is not None and cause.resource != primary:
        named = f"{cause.resource.kind}/{escaped(cause.key.name)} "
    match cause.kind:
        case CauseKind.RETRY:
            return f"retry {cause.count} after {escaped(cause.detail)}"
        case CauseKind.TIMER:
            return f"timer, {escaped(cause.detail)} requested by {cause.attempt}"
        case CauseKind.AGAIN:
            return f"again, requested by {cause.attempt}"
        case CauseKind.MANUAL:
            return f"requested: {escaped(cause.detail)}" if cause.detail else "requested"
        case CauseKind.ADDED:
            return f"{named}{cause.kind.value}{_by(cause)}"
        case CauseKind.MODIFIED:
            changed = changes_text(cause.changes, style, _SHOWN_DIFFERENCES) if cause.changes.total else "metadata"
            return named + changed + _by(cause)
    return f"{named}{cause.kind.value}"


def _by(cause: RecordedCause) -> str:
    if cause.relisted:
        return " (several versions not seen)"
    return f" by {' or '.join(map(escaped, cause.writers)) or UNKNOWN}"


def changes_text(changes: Changes, style: Style, most: int) -> str:
    """The first `most` differences and the number of further ones: the spec, then conditions, then other status."""
    found = [difference for difference in changes.shown if not _is_stamp(difference, changes)]
    found.sort(key=_rank)
    rest = changes.total - (len(changes.shown) - len(found)) - most
    shown = ", ".join(_brief(difference, style) for difference in found[:most])
    return shown + (f", {rest} more" if rest > 0 else "")


def _is_stamp(difference: Difference, changes: Changes) -> bool:
    """A condition's time, if another field of the same condition changed too."""
    match = _condition(difference.path)
    if match is None or match["field"] not in ("lastTransitionTime", "lastUpdateTime"):
        return False
    whole = difference.path.removesuffix(match["field"])
    return any(one.path.startswith(whole) and not one.path.endswith("Time") for one in changes.shown)


def _rank(difference: Difference) -> int:
    if not difference.path.startswith("status"):
        return 0
    match = _condition(difference.path)
    if match is None:
        return 2
    return 1 if match["field"] in ("status", None) else 3


def _brief(difference: Difference, style: Style) -> str:
    """`Ready False→True` for a condition's status, `spec.replicas 1→3` for any other field."""
    match = _condition(difference.path)
    if match is None:
        return difference_text(difference, style)
    sides = (difference.old, difference.new)
    old, new = (side.get("status") if isinstance(side, dict) else side for side in sides)
    field = "" if match["field"] in ("status", None) else f" {match['field']}"
    return _sides_text(f"{match['type']}{field}", old, new, style)


@lru_cache(1000)
def _condition(path: str) -> re.Match[str] | None:
    """The parts of a path in a condition. Cached: a recording repeats the same few paths."""
    return _CONDITION.fullmatch(path)


def difference_text(difference: Difference, style: Style) -> str:
    """`spec.replicas 1→3`; the path alone if a value is long."""
    return _sides_text(difference.path, difference.old, difference.new, style)


def _sides_text(path: str, before: Any, after: Any, style: Style) -> str:
    old, new = value_text(before), value_text(after)
    if isinstance(before, dict | list) or isinstance(after, dict | list) or max(len(old), len(new)) > _VALUE_WIDTH:
        return escaped(path)
    return f"{escaped(path)} {old}{style.arrow}{new}"


def value_text(value: Any, absent: str = "-") -> str:
    """A value of a field on one line: `3`, `true`, `{2 fields}`."""
    if value is ABSENT:
        return absent
    if value is HIDDEN:
        return MASK
    match value:
        case dict():
            return f"{{{counted(len(value), 'field')}}}"
        case list():
            return f"[{counted(len(value), 'item')}]"
        case str():
            return escaped(value) or '""'
    return json.dumps(value)


def what(attempt: RecordedAttempt) -> str:
    """The writes, and the calls that failed."""
    harmless = ("get", "list")
    calls = [made.call for made in attempt.calls]
    shown = [call_text(one) for one in calls if one.error or not (one.dry_run or one.verb in harmless)]
    return ", ".join(shown) or "no writes"


def call_text(call: Call) -> str:
    """`apply Deployment/web 200`, `patch Foo/x/status 409`, `create Deployment/web outcome unknown`."""
    return f"{call.verb} {place_text(call)} {answer_text(call)}{' (dry run)' if call.dry_run else ''}"


def label_text(call: Call) -> str:
    """A call without its answer, which has a column of its own."""
    return f"{call.verb} {place_text(call)}{' (dry run)' if call.dry_run else ''}"


def place_text(call: Call) -> str:
    """The object of a call: `Deployment/web`, `Foo/x/status`."""
    kind = call.resource.kind if call.resource else ""
    return escaped("/".join(part for part in (kind, call.name, call.subresource) if part))


def answer_text(call: Call) -> str:
    """The HTTP status. A write without an answer may or may not have been done."""
    return str(call.code) if call.code is not None else "outcome unknown" if call.write else "no response"


def outcome_text(attempt: RecordedAttempt) -> str:
    """`41ms done`; `running` or `interrupted` for an attempt without a verdict."""
    if attempt.verdict is None:
        return attempt.outcome
    return f"{format_duration(attempt.took or 0.0)} {verdict_text(attempt.verdict)}"


def verdict_text(verdict: Verdict) -> str:
    match verdict.outcome:
        case Outcome.DONE:
            return "done"
        case Outcome.AGAIN:
            return "again immediately"
        case Outcome.AFTER:
            return f"again in {format_duration(verdict.delay)}"
        case Outcome.WAITING:
            text = "waiting"
        case Outcome.RETRY:
            text = "FAILED" if verdict.last else f"FAILED, retry in {format_duration(verdict.delay)}"
        case Outcome.TERMINAL:
            text = f"FAILED, again in {format_duration(verdict.delay)}" if verdict.delay else "FAILED, no retry"
        case Outcome.DROPPED:
            text = "canceled"
    return f"{text}: {escaped(verdict.message)}" if verdict.message else text


def outcome_color(attempt: RecordedAttempt) -> str:
    if attempt.verdict is None:
        return _RED if attempt.interrupted else ""
    return _COLORS.get(attempt.verdict.outcome, "")
