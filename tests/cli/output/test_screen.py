"""Frames over frames: what a terminal that understands the four codes shows in the end."""

from __future__ import annotations

import io
import re

from kubectl_ctrl.cli.output.screen import Screen


def shown(text: str) -> list[str]:
    """The lines that a terminal would show."""
    lines, row = [""], 0
    for code, number, plain in re.findall(r"\x1b\[(\??\d*)([FKJhl])|([^\x1b]+)", text):
        if number == "F":
            row -= int(code)
        elif number == "J":
            del lines[row + 1 :]
            lines[row] = ""
        for part in re.findall(r"[^\n]+|\n", plain):
            if part == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            else:
                lines[row] = part
    return lines


def test_each_frame_stands_in_the_place_of_the_one_before() -> None:
    out = io.StringIO()
    with Screen(out) as screen:
        screen.draw(["a", "b", "c"])
        assert shown(out.getvalue()) == ["a", "b", "c", ""]
        screen.draw(["x"])
        assert shown(out.getvalue()) == ["x", ""]
        screen.draw(["y", "z"])
    assert shown(out.getvalue()) == ["y", "z", ""]


def test_the_cursor_and_the_wrapping_of_lines_are_given_back() -> None:
    out = io.StringIO()
    with Screen(out) as screen:
        screen.draw(["a"])
    assert out.getvalue().startswith("\x1b[?25l\x1b[?7l")
    assert out.getvalue().endswith("\x1b[?7h\x1b[?25h")


def test_no_frame_is_higher_than_the_terminal() -> None:
    out = io.StringIO()
    with Screen(out) as screen:
        screen.draw([str(number) for number in range(100)])
    lines = shown(out.getvalue())
    assert len(lines) == 24
    assert lines[-2] == "and 78 more lines"
