"""An error as printed: at most three lines, unless several things were tried."""

from __future__ import annotations

from kubectl_ctrl.errors import CtrlError, PrerequisiteMissing
from kubectl_ctrl.text import escaped


def error_lines(error: CtrlError) -> str:
    """`error[ID]: message`, then `tried:` and `next:` if the error has them."""
    lines = [f"error[{error.id}]: {escaped(error.message)}"]
    each = error.each if isinstance(error, PrerequisiteMissing) else ()
    if each or error.tried:
        lines.append("tried: " + "\n       ".join(map(escaped, each or (error.tried,))))
    if error.next_step:
        lines.append(f"next: {escaped(error.next_step)}")
    return "\n".join(lines)
