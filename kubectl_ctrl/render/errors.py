"""An error as a user sees it: at most three lines."""

from __future__ import annotations

from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.render.text import escaped


def error_lines(error: CtrlError) -> str:
    """`error[ID]: what failed`, then what was tried and what to do next where there is something to say."""
    lines = [f"error[{error.id}]: {escaped(error.message)}"]
    if error.tried:
        lines.append(f"tried: {escaped(error.tried)}")
    if error.next_step:
        lines.append(f"next: {escaped(error.next_step)}")
    return "\n".join(lines)
