"""An error as a user sees it: at most three lines, but for several things that were tried."""

from __future__ import annotations

from kubectl_ctrl.errors import CtrlError, PrerequisiteMissing
from kubectl_ctrl.text import escaped


def error_lines(error: CtrlError) -> str:
    """`error[ID]: what failed`, then what was tried and what to do next where there is something to say."""
    lines = [f"error[{error.id}]: {escaped(error.message)}"]
    each = error.each if isinstance(error, PrerequisiteMissing) else ()
    if each or error.tried:
        lines.append("tried: " + "\n       ".join(map(escaped, each or (error.tried,))))
    if error.next_step:
        lines.append(f"next: {escaped(error.next_step)}")
    return "\n".join(lines)
