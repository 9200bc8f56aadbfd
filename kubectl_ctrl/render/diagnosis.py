"""The findings and repairs of `doctor`, as text and as JSON."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from kubectl_ctrl.clock import rfc3339
from kubectl_ctrl.doctor.diagnosis import Diagnosis, Group, Line, Mark, Repair, RepairOutcome
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
_NAMES = {Mark.OK: "ok", Mark.INFO: "info", Mark.WARN: "warn", Mark.FAIL: "FAIL"}
_SIGNS = {Mark.OK: "✓", Mark.INFO: "·", Mark.WARN: "!", Mark.FAIL: "✗"}
_COLORS = {Mark.OK: "32", Mark.INFO: "2", Mark.WARN: "33", Mark.FAIL: "31"}
_OUTCOMES = {
    RepairOutcome.DONE: Mark.OK,
    RepairOutcome.LISTED: Mark.WARN,
    RepairOutcome.BY_HAND: Mark.WARN,
    RepairOutcome.REFUSED: Mark.FAIL,
    RepairOutcome.FAILED: Mark.FAIL,
}
_NEXT = "next: "
# Never wrapped between its words: half of it is another command.
_OURS, _UNBROKEN = "kubectl ctrl", "kubectl\N{NO-BREAK SPACE}ctrl"
_LEAST = 20  # columns for text on the narrowest terminal
_LONGEST = max(map(len, RepairOutcome))


def diagnosis_lines(found: Diagnosis, style: Style) -> list[str]:
    """A heading for each group that has lines; a line for each repair."""
    lines: list[str] = []
    for group in found.groups:
        if group.lines:
            lines += ["", _HEADINGS[group.group]] if lines else [_HEADINGS[group.group]]
            for line in group.lines:
                lines += _block(line.mark, f"{_NAMES[line.mark]:<6}", line, style)
    for repair in found.repairs:
        lines += _block(_OUTCOMES[repair.outcome], f"{repair.outcome.value:<{_LONGEST + 2}}", repair, style)
    return lines


def _block(mark: Mark, name: str, shown: Line | Repair, style: Style) -> list[str]:
    """The mark and the text, and the next step on lines below."""
    head = f"  {_SIGNS[mark]} {name}" if style.unicode else f"  {name}"
    size = len(head)
    first, *more = _wrapped(escaped(shown.text), style.width, size)
    lines = [painted(head, _COLORS[mark], style) + first, *(" " * size + one for one in more)]
    inner = size + len(_NEXT)
    below = _wrapped(escaped(shown.advice), style.width, inner) if shown.advice else []
    below += _copied(escaped(shown.command), style.width, inner) if shown.command else []
    return lines + [" " * size + (" " * len(_NEXT) if at else _NEXT) + one for at, one in enumerate(below)]


def _wrapped(text: str, width: int | None, indent: int) -> list[str]:
    if width is None:
        return [text]
    room = max(width - indent, _LEAST)
    whole = text.replace(_OURS, _UNBROKEN)
    lines = textwrap.wrap(whole, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [line.replace(_UNBROKEN, _OURS) for line in lines]


def _copied(command: str, width: int | None, indent: int) -> list[str]:
    """A command for the shell, broken by backslashes at blanks outside of quotes."""
    if width is None or indent + len(command) <= width:
        return [command]
    room = max(width - indent - 2, _LEAST)
    lines = [""]
    # Each argument with its quotes.
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
        "checks": [
            {
                "group": group.group.value,
                "check": line.check,
                "state": line.mark.value,
                "text": line.text,
                "advice": line.advice,
                "command": line.command,
                "exitCode": line.code,
            }
            for group in found.groups
            for line in group.lines
        ],
        "repairs": [
            {
                "state": one.outcome.value.replace(" ", "-"),
                "text": one.text,
                "advice": one.advice,
                "command": one.command,
            }
            for one in found.repairs
        ],
    }
