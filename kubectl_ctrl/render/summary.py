"""How a run went, for whoever started it."""

from __future__ import annotations

from kubectl_ctrl.model.summary import Failed, Left, Summary
from kubectl_ctrl.render.attempts import Style, timestamp, verdict_text
from kubectl_ctrl.render.text import escaped

_SHOWN = 20


def summary_lines(summary: Summary, style: Style) -> list[str]:
    """What was left undone and what failed last; nothing when there is nothing to say."""
    left = [_left(one, style) for one in summary.left]
    failed = [_failed(one) for one in summary.failed]
    return _block("not done when it ended", left) + _block("failed at their last attempt", failed)


def _block(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    rest = len(lines) - _SHOWN
    return [f"{title}: {len(lines)}", *lines[:_SHOWN], *([f"  and {rest} more"] if rest > 0 else [])]


def _left(one: Left, style: Style) -> str:
    entry = one.entry
    due = f", due {timestamp(entry.due, style)}" if entry.due is not None else ""
    tries = f", {entry.failures} failures in a row" if entry.failures else ""
    who = f"{one.controller} {escaped(str(entry.request))}"
    return f"  {who}  {entry.state} since {timestamp(entry.since, style)}{due}{tries}"


def _failed(one: Failed) -> str:
    return f"  {one.controller} {escaped(str(one.request))}  {verdict_text(one.verdict)}"
