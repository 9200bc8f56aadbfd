"""What `doctor` found or mended, as lines of text and as a document."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from kubectl_ctrl.clock import rfc3339
from kubectl_ctrl.doctor.diagnosis import Diagnosis, Group, Line, Mark, Outcome, Repair
from kubectl_ctrl.render.style import Style, painted
from kubectl_ctrl.text import escaped

SCHEMA = "kubectl-ctrl.doctor/v1"

_HEADINGS = {
    Group.MACHINE: "This machine",
    Group.PROVIDERS: "Cluster providers",
    Group.CLUSTER: "The cluster",
    Group.CONTROLLERS: "Controllers in the cluster",
    Group.LEFTOVERS: "Leftovers",
    Group.RECORDINGS: "Recordings",
}
_WORDS = {Mark.OK: "ok", Mark.INFO: "info", Mark.WARN: "warn", Mark.FAIL: "FAIL"}
_SIGNS = {Mark.OK: "✓", Mark.INFO: "·", Mark.WARN: "!", Mark.FAIL: "✗"}
_COLORS = {Mark.OK: "32", Mark.INFO: "2", Mark.WARN: "33", Mark.FAIL: "31"}
_OUTCOMES = {
    Outcome.DONE: Mark.OK,
    Outcome.LISTED: Mark.WARN,
    Outcome.BY_HAND: Mark.WARN,
    Outcome.REFUSED: Mark.FAIL,
    Outcome.FAILED: Mark.FAIL,
}
_NEXT = "next: "
# Who copies half of it calls another program.
_OURS, _UNBROKEN = "kubectl ctrl", "kubectl\N{NO-BREAK SPACE}ctrl"
_LEAST = 20  # columns for text, on whatever terminal
_LONGEST = max(map(len, Outcome))


def diagnosis_lines(found: Diagnosis, style: Style) -> list[str]:
    """A heading for each group with something to tell, its lines below; or a line for each repair."""
    lines: list[str] = []
    for told in found.told:
        if told.lines:
            lines += ["", _HEADINGS[told.group]] if lines else [_HEADINGS[told.group]]
            for line in told.lines:
                lines += _line(line, style)
    for repair in found.repairs:
        lines += _repair(repair, style)
    return lines


def _line(line: Line, style: Style) -> list[str]:
    head = f"{_sign(line.mark, style)}{_WORDS[line.mark]:<6}"
    return _block(painted(head, _COLORS[line.mark], style), len(head), line, style)


def _repair(repair: Repair, style: Style) -> list[str]:
    mark = _OUTCOMES[repair.outcome]
    head = f"{_sign(mark, style)}{repair.outcome.value:<{_LONGEST + 2}}"
    return _block(painted(head, _COLORS[mark], style), len(head), repair, style)


def _sign(mark: Mark, style: Style) -> str:
    return f"  {_SIGNS[mark]} " if style.unicode else "  "


def _block(head: str, size: int, what: Line | Repair, style: Style) -> list[str]:
    """The text beside its mark, and below it what to do, each on lines of its own."""
    indent = " " * size
    first, *more = _wrapped(escaped(what.text), style.width, size)
    lines = [head + first, *(indent + one for one in more)]
    inner = size + len(_NEXT)
    below = _wrapped(escaped(what.advice), style.width, inner) if what.advice else []
    below += _copied(escaped(what.command), style.width, inner) if what.command else []
    return lines + [indent + (" " * len(_NEXT) if at else _NEXT) + one for at, one in enumerate(below)]


def _wrapped(text: str, width: int | None, indent: int) -> list[str]:
    if width is None:
        return [text]
    room = max(width - indent, _LEAST)
    whole = text.replace(_OURS, _UNBROKEN)
    lines = textwrap.wrap(whole, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(_UNBROKEN, _OURS) for line in lines]


def _copied(command: str, width: int | None, indent: int) -> list[str]:
    """A command for the shell, broken where that means nothing to it: at a blank that no quote is around."""
    if width is None or indent + len(command) <= width:
        return [command]
    room = max(width - indent - 2, _LEAST)
    lines = [""]
    # Words with their quotes, each with what separates it from the last one.
    for word in re.findall(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", command):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines[-1] += " \\"
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return lines


def diagnosis_json(found: Diagnosis) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "time": rfc3339(found.at),
        "state": found.mark.value,
        "exitCode": found.code,
        "checks": [_line_json(told.group, line) for told in found.told for line in told.lines],
        "repairs": [_repair_json(repair) for repair in found.repairs],
    }


def _line_json(group: Group, line: Line) -> dict[str, Any]:
    return {
        "group": group.value,
        "check": line.check,
        "state": line.mark.value,
        "text": line.text,
        "advice": line.advice,
        "command": line.command,
        "exitCode": line.code,
    }


def _repair_json(repair: Repair) -> dict[str, Any]:
    return {
        "state": repair.outcome.value.replace(" ", "-"),
        "text": repair.text,
        "advice": repair.advice,
        "command": repair.command,
    }
