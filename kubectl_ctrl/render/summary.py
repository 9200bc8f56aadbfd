"""The summary at the end of a run."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.attempt import WaitingRequest
from kubectl_ctrl.render.attempts import verdict_text
from kubectl_ctrl.render.style import Style, timestamp
from kubectl_ctrl.runtime.summary import Reason, Summary
from kubectl_ctrl.text import escaped

_SHOWN = 20
# These runs reached their goal: objects that wait for a timer are not unfinished.
_WANTED = (Reason.IDLE, Reason.UNTIL)


def summary_lines(summary: Summary, style: Style) -> list[str]:
    """The unmet conditions, the unfinished objects and the failures; nothing if there are none."""
    unmet = [f"  {escaped(one.what)} (since {timestamp(one.since, style)})" for one in summary.unmet]
    left = [f"  {one.controller} {escaped(str(one.entry.request))}  {_state(one.entry, style)}" for one in summary.left]
    failed = [f"  {one.controller} {escaped(str(one.request))}  {verdict_text(one.verdict)}" for one in summary.failed]
    unmet = unmet if summary.reason is Reason.TIMEOUT else []
    left = left if summary.reason not in _WANTED else []
    return (
        _block("waited for", unmet) + _block("unfinished at exit", left) + _block("failed in the last attempt", failed)
    )


def summary_fields(summary: Summary) -> dict[str, Any]:
    """The summary as JSON, with all objects."""
    return {
        "reason": summary.reason.value,
        "unmet": [{"what": one.what, "since": one.since} for one in summary.unmet],
        "left": [
            {
                "controller": one.controller,
                "object": str(one.entry.request),
                "state": one.entry.state,
                "since": one.entry.since,
                "due": one.entry.due,
                "failures": one.entry.failures,
            }
            for one in summary.left
        ],
        "failed": [
            {
                "controller": one.controller,
                "object": str(one.request),
                "outcome": one.verdict.outcome.value,
                "message": one.verdict.message,
                "errorId": one.verdict.error_id,
            }
            for one in summary.failed
        ],
    }


def _block(title: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    rest = len(lines) - _SHOWN
    return [f"{title}: {len(lines)}", *lines[:_SHOWN], *([f"  and {rest} more"] if rest > 0 else [])]


def _state(entry: WaitingRequest, style: Style) -> str:
    since = timestamp(entry.since, style)
    due = timestamp(entry.due, style) if entry.due is not None else "any time"
    match entry.state:
        case "running":
            return f"running since {since}"
        case "backoff":
            tries = f"{entry.failures} failures in a row" if entry.failures > 1 else "1 failure"
            return f"{tries}, next retry due {due}"
        case "timer":
            return f"next reconcile due {due}"
    return f"in the queue since {since}"
