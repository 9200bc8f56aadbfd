"""A replay as text and as JSON: each write beside the recorded one, with the differences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, NamedTuple

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.masking import MASK
from kubectl_ctrl.render.attempt_json import nonempty, sides_json
from kubectl_ctrl.render.attempts import verdict_text, why
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.replay.deviations import ComparedRequest, ComparisonResult, ReplayedAttempt
from kubectl_ctrl.text import counted, cut, escaped

SCHEMA = "kubectl-ctrl.replay/v1"

_NAMES = {
    ComparisonResult.SAME: "same",
    ComparisonResult.UNREACHED: "not reached",
    ComparisonResult.UNKNOWN: "NOT RECORDED",
}
_EXPLAINED = {
    ComparisonResult.MISSING: "not requested today",
    ComparisonResult.EXTRA: "not recorded",
    ComparisonResult.MOVED: "different order",
    ComparisonResult.UNKNOWN: "the replay stops here",
}
_LOUD = ("DIFFERS", "MISSING", "EXTRA", "MOVED", "NOT RECORDED")
_COLORS = {"-": "31", "+": "32"}
_SHORT = 40  # a longer value gets lines of its own
_MOST_LINES = 40  # of one difference
_WIDEST_NAME = 48
_FIELDS = " " * 8


def replay_lines(replayed: ReplayedAttempt, style: Style, *, code: str) -> list[str]:
    """`code` names the code that was executed."""
    blank = _Line("")
    lines = (*_head(replayed, style, code), blank, *_body(replayed, style), blank, _verdict(replayed, style))
    return [_fitted(line, style) for line in lines]


class _Line(NamedTuple):
    """One line; `loud` is the word to paint in it, a `sign` paints the whole line."""

    text: str
    loud: str = ""
    sign: str = ""


def _fitted(line: _Line, style: Style) -> str:
    text = cut(line.text, style.width, mark=style.mark)
    if code := _COLORS.get(line.sign):
        return painted(text, code, style)
    before, word, after = text.partition(line.loud) if line.loud else (text, "", "")
    return f"{before}{painted(word, '31', style)}{after}"


def _head(replayed: ReplayedAttempt, style: Style, code: str) -> Iterator[_Line]:
    attempt, primaries = replayed.case.attempt, replayed.case.primaries
    parts = (
        f"{attempt.controller} {attempt.request}",
        f"{attempt.id} at {timestamp(attempt.started, style)}",
        f"today's code: {code}",
    )
    yield _Line(escaped(style.dot.join(parts)))
    reason = why(attempt.causes, attempt.causes_total, style, primaries[0] if primaries else None)
    yield _Line(f"why: {reason}")
    if replayed.cut:
        yield _Line(f"Canceled, so only its beginning is compared: {escaped(replayed.recorded.message)}")
    if replayed.hidden:
        yield _Line(f"Compared with masked values: {escaped(', '.join(replayed.hidden))}")


def _body(replayed: ReplayedAttempt, style: Style) -> Iterator[_Line]:
    found = [*replayed.writes, *replayed.events, *([replayed.unknown] if replayed.unknown else [])]
    names = [cut(_name(one), _WIDEST_NAME, mark=style.mark) for one in found]
    widest = max(map(len, (*names, "outcome")))
    for one, name in zip(found, names, strict=True):
        unnumbered = one.verb == "event" or one.fate is ComparisonResult.UNKNOWN
        number = "" if unnumbered else str(one.number or "+")
        yield _row(number, f"{name:<{widest}}", _fate(one))
        for change in one.changes:
            yield from _change(change, style)
    if replayed.unknown is None and not replayed.cut:
        result = "DIFFERS" if replayed.outcome else f"same: {verdict_text(replayed.recorded)}"
        yield _row("", f"{'outcome':<{widest}}", result)
        for change in replayed.outcome:
            yield from _change(change, style)


def _row(number: str, name: str, result: str) -> _Line:
    loud = next((word for word in _LOUD if result.startswith(word)), "")
    return _Line(f"{number:>4}  {name}  {result}", loud=loud)


def _name(one: ComparedRequest) -> str:
    """`ensure Deployment/web`, `event Synced`, `live Secret default/key`."""
    kind = one.resource.kind if one.resource is not None else ""
    if one.verb == "event":
        return escaped(f"event {one.text}")
    if one.fate is ComparisonResult.UNKNOWN:
        return escaped(f"{one.verb} {kind} {one.text}")
    return escaped(f"{one.verb} {kind}/{one.key.name if one.key else ''}")


def _fate(one: ComparedRequest) -> str:
    """The fate, its line in today's code, and an explanation."""
    name = _NAMES.get(one.fate, one.fate.name)
    if one.fate in (ComparisonResult.SAME, ComparisonResult.UNREACHED):
        return name
    return "  ".join(filter(None, (name, escaped(one.where), _EXPLAINED.get(one.fate, ""))))


def _change(one: Difference, style: Style) -> Iterator[_Line]:
    """`spec.replicas   3 → 4`, recorded and today; long values as a unified diff."""
    old, new = _value(one.old), _value(one.new)
    path = escaped(one.path)
    if max(map(len, (*old, *new))) <= _SHORT and len(old) == len(new) == 1:
        yield _Line(f"{_FIELDS}{path}   {escaped(old[0])} {style.arrow} {escaped(new[0])}")
        return
    yield _Line(f"{_FIELDS}{path}")
    lines = list(unified_diff(old, new, lineterm="", n=2))[3:]  # without the headers and the first @@
    for line in lines[:_MOST_LINES]:
        sign, text = line[0], line[1:]
        yield _Line(f"{_FIELDS}  {style.mark}" if sign == "@" else f"{_FIELDS}  {sign} {escaped(text)}", sign=sign)
    if len(lines) > _MOST_LINES:
        yield _Line(f"{_FIELDS}  {style.mark} {len(lines) - _MOST_LINES} more lines")


def _value(value: Any) -> list[str]:
    if value is ABSENT:
        return ["<none>"]
    if value is HIDDEN:
        return [MASK]
    if isinstance(value, dict | list):
        return json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    if isinstance(value, str):
        return value.splitlines() or ['""']
    return [json.dumps(value)]


def _verdict(replayed: ReplayedAttempt, style: Style) -> _Line:
    """The last line: SAME or DIFFERS, with counts."""
    writes = [one for one in replayed.writes if one.fate is not ComparisonResult.UNREACHED]
    if replayed.same:
        reads = counted(len(replayed.case.attempt.reads), "recorded read")
        parts = [counted(len(writes), "write"), counted(len(replayed.events), "event")]
        return _Line(f"SAME: {', '.join(parts)}, {reads}")
    wrong = [one for one in writes if one.fate is not ComparisonResult.SAME]
    events = [one for one in replayed.events if one.fate is not ComparisonResult.SAME]
    parts = [f"{len(wrong)} of {counted(len(writes), 'write')}"] if wrong else []
    parts += [counted(len(events), "event")] if events else []
    parts += ["the outcome"] if replayed.outcome else []
    parts += ["a read that is not in the recording"] if replayed.unknown else []
    return _Line(f"DIFFERS: {', '.join(parts)} (recorded {style.arrow} today)", loud="DIFFERS")


# For machines.


def replay_json(replayed: ReplayedAttempt, *, code: str) -> dict[str, Any]:
    attempt = replayed.case.attempt
    return {
        "schema": SCHEMA,
        "attempt": attempt.id,
        "controller": attempt.controller,
        "request": {"namespace": attempt.request.namespace, "name": attempt.request.name},
        "code": code,
        "same": replayed.same,
        "cut": replayed.cut,
        "hidden": list(replayed.hidden),
        "writes": [_finding(one) for one in replayed.writes],
        "events": [_finding(one) for one in replayed.events],
        "unknownRead": _finding(replayed.unknown) if replayed.unknown else None,
        "outcome": [_compared(one) for one in replayed.outcome],
    }


def _finding(one: ComparedRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {"fate": one.fate.value, "verb": one.verb}
    if one.resource is not None:
        fields |= {"resource": str(one.resource), "kind": one.resource.kind}
    if one.key is not None:
        fields |= {"namespace": one.key.namespace, "name": one.key.name}
    more = {"recorded": one.number, "today": one.today, "text": one.text, "where": one.where}
    return {
        **fields,
        **nonempty(more),
        "changes": [_compared(change) for change in one.changes],
    }


def _compared(one: Difference) -> dict[str, Any]:
    return {"path": one.path, **sides_json(recorded=one.old, today=one.new)}
