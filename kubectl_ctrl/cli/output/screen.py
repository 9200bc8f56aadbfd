"""Redraws lines in one place of a terminal without flicker, by overwriting."""

from __future__ import annotations

import os
from types import TracebackType
from typing import TextIO

from kubectl_ctrl.text import printable

_UP, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[{}F", "\x1b[K", "\x1b[J"
# Hide the cursor, and disable line wrapping: the way back up is counted in lines.
_BEGIN, _END = "\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h"


class Screen:
    """Draws frames over each other; the last one stays after the block."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._drawn = 0  # lines

    def __enter__(self) -> Screen:
        self._write(_BEGIN)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not isinstance(error, BrokenPipeError):
            self._write(_END)

    def draw(self, lines: list[str]) -> None:
        """Draw a frame in one write; of a frame that is too high, the first lines and the number of the others."""
        room = max(_height(self._out) - 1, 2)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"and {len(lines) - room + 1} more lines"]
        up = _UP.format(self._drawn) if self._drawn else ""
        self._write(up + "".join(f"{printable(line)}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)
        self._drawn = len(lines)

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def __repr__(self) -> str:
        return f"Screen({self._drawn} lines)"


def _height(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).lines or 24
    except OSError:
        return 24
