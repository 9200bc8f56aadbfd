"""`trace` of an object without a recording: the rows that can be inferred from the cluster, each marked `~`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from textwrap import wrap
from typing import Any

from kubectl_ctrl.findings.inference import Evidence, InferredState, Sign
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.render.attempt_json import stamp, time_json
from kubectl_ctrl.render.attempts import UNKNOWN
from kubectl_ctrl.render.style import Style, moment_text, painted
from kubectl_ctrl.text import cut, escaped

SCHEMA = "kubectl-ctrl.inferred/v1"

FOOTER = "inferred; for exact data, run the controller with kubectl ctrl run"
_TELLING = ("Ready", "Available", "Progressing")
# From this width on, WHY is a column; on a narrower terminal it is a line of its own.
_ROOMY = 100
_LEAST = 16
_GAP = "  "
_SINCE = "since "
_INDENT = " " * 6
_RED, _BOLD, _DIM = "31", "1", "2"

Cells = tuple[str, str, str, str, str, str, str]


def inferred_lines(found: InferredState, style: Style, *, now: float) -> list[str]:
    rows = [_cells(sign, style, now) for sign in found.signs]
    lines = [
        *_joined(list(_about(found, now)), style),
        _fitted("not recorded; the rows below are inferred from the object and its events", style),
        "",
        *_table(rows, found, style, now),
    ]
    if not rows:
        lines.append(f"{_INDENT}no events, managedFields or conditions to infer from")
    return [*lines, "", *(escaped(text) for text in found.lacking), FOOTER]


def _about(found: InferredState, now: float) -> Iterator[str]:
    yield f"{found.resource.kind} {escaped(str(found.key))}"
    yield escaped(found.context)
    if found.generation and found.observed is not None:
        yield f"generation {found.generation} observed {found.observed}"
    if found.deleting:
        yield "being deleted"
    standing = {name: (status, since) for name, status, since in found.standing}
    for name in _TELLING:
        if name in standing:
            status, since = standing[name]
            text = f"{name}={escaped(status)}"
            yield f"{text} for {format_duration(max(now - since, 0.0))}" if since is not None else text
            return


def _joined(parts: list[str], style: Style) -> list[str]:
    lines = [parts[0]]
    for part in parts[1:]:
        longer = f"{lines[-1]}{style.dot}{part}"
        if style.width is None or len(longer) <= style.width:
            lines[-1] = longer
        else:
            lines.append(part)
    return [_fitted(line, style) for line in lines]


def _fitted(line: str, style: Style) -> str:
    return cut(line, style.width, mark=style.mark)


# Rows.


def _cells(sign: Sign, style: Style, now: float) -> Cells:
    """WAIT and TOOK cannot be inferred, nor CALLS of an event or a condition, nor OUTCOME of a write."""
    calls = outcome = "?"
    if sign.evidence is Evidence.FIELDS:
        calls = escaped(f"{sign.verb} /{sign.subresource}" if sign.subresource else sign.verb)
    else:
        times = f" x{sign.count}" if sign.count > 1 else ""
        # A terminal has the message on lines of its own, in full.
        message = _message(sign, style, now) if style.width is None else ""
        gap = " " if message.startswith(_SINCE) else ": " if message else ""
        outcome = f"{'Warning ' if sign.warning else ''}{escaped(sign.came)}{times}{gap}{message}"
    return ("~", _at(sign.at, now, style), "?", "?", _why(sign, style), calls, outcome)


def _at(at: float, now: float, style: Style) -> str:
    """The API server stores whole seconds, so full times have no fractions."""
    if not style.full_times:
        return moment_text(at, now, style)
    return datetime.fromtimestamp(at, UTC).astimezone(style.zone).isoformat(timespec="seconds")


def _why(sign: Sign, style: Style, width: int | None = None) -> str:
    who = escaped(" or ".join(sign.by)) or UNKNOWN
    match sign.evidence:
        case Evidence.FIELDS:
            room = None if width is None else max(width - len(f" by {who}"), len(style.mark))
            return f"{cut(escaped(sign.wrote) or 'fields', room, mark=style.mark)} by {who}"
        case Evidence.CONDITION:
            return f"condition of {who}"
    return f"event by {who}"


def _message(sign: Sign, style: Style, now: float) -> str:
    """The message; of several events also the time of the first."""
    since = f"{_SINCE}{_at(sign.first, now, style)}" if sign.count > 1 and sign.first is not None else ""
    return ": ".join(filter(None, (since, escaped(sign.message))))


def _table(rows: list[Cells], found: InferredState, style: Style, now: float) -> Iterator[str]:
    header: Cells = ("#", "START", "WAIT", "TOOK", "WHY", "CALLS", "OUTCOME")
    widths = [4, *(max(len(row[at]) for row in (header, *rows)) for at in range(1, len(header)))]
    narrow = style.width is not None and style.width < _ROOMY
    if narrow:
        widths[4] = 0
    elif style.width is not None:
        widths[4] = max(style.width - sum(widths) + widths[4] - len(_GAP) * (len(widths) - 1), _LEAST)
    yield painted(_line(header, widths, style), _BOLD, style)
    for row, sign in zip(rows, found.signs, strict=True):
        # Fields are shortened, never their writers.
        room = None if narrow or style.width is None else widths[4]
        line = _line((*row[:4], _why(sign, style, room), *row[5:]), widths, style)
        yield painted(line, _RED if sign.warning else "", style)
        if style.width is not None:
            for text in filter(None, (row[4] if narrow else "", _message(sign, style, now))):
                below = wrap(text, style.width, initial_indent=_INDENT, subsequent_indent=_INDENT)
                yield from (painted(line, _DIM, style) for line in below)


def _line(row: Cells, widths: list[int], style: Style) -> str:
    """The first cell aligned right, the last in full, and those in between that have a width."""
    cells = [row[0].rjust(widths[0])]
    for cell, width in zip(row[1:-1], widths[1:-1], strict=True):
        if width:
            cells.append((cut(cell, width, mark=style.mark) if style.width else cell).ljust(width))
    return _fitted(_GAP.join([*cells, row[-1]]).rstrip(), style)


# For machines.


def inferred_json(found: InferredState) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "source": "inferred",
        "time": stamp(found.at),
        "context": found.context,
        "resource": found.resource.full_name,
        "kind": found.resource.kind,
        "namespace": found.key.namespace,
        "name": found.key.name,
        "uid": found.uid,
        "generation": found.generation,
        "observedGeneration": found.observed,
        "deleting": found.deleting,
        "conditions": [
            {"type": name, "status": status, "since": time_json(since)} for name, status, since in found.standing
        ],
        "signs": [_sign(one) for one in found.signs],
        "lacking": list(found.lacking),
    }


def _sign(sign: Sign) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "time": stamp(sign.at),
        "evidence": sign.evidence.value,
        "by": list(sign.by),
        "count": sign.count,
        "first": time_json(sign.first),
        "warning": sign.warning,
    }
    if sign.evidence is Evidence.FIELDS:
        return fields | {"fields": sign.wrote, "operation": sign.verb, "subresource": sign.subresource}
    return fields | {"reason": sign.came, "message": sign.message}
