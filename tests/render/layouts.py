"""Printed layouts in every style, as the text of one golden file: a section for each style, then the painted parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from kubectl_ctrl.render.style import Style
from kubectl_ctrl.value import replace

STYLES = {
    "80": Style(width=80),
    "120": Style(width=120),
    "ascii": Style(width=80, unicode=False),
    "pipe": Style(full_times=True),
}
_PAINTED = re.compile(r"\x1b\[(\d+)m(.*?)\x1b\[0m")


def in_every_style(
    draw: Callable[[Style], Iterable[str]], styles: Mapping[str, Style] = STYLES, *, folded: bool = True
) -> str:
    """The lines that `draw` returns for each style. Colour changes no character, so its section lists colours alone.

    No line is wider than the terminal, unless `folded` is False because lines are for copying or diffs.
    """
    shown = {name: list(draw(style)) for name, style in styles.items()}
    for name, style in styles.items():
        assert style.unicode or "".join(shown[name]).isascii()
        assert not folded or [line for line in shown[name] if len(line) > (style.width or len(line))] == []
    painted = "\n".join(draw(replace(styles["120"], color=True)))
    assert _PAINTED.sub(r"\2", painted).splitlines() == "\n".join(draw(styles["120"])).splitlines()
    colors = dict.fromkeys(f"{code:>2}  {text}" for code, text in _PAINTED.findall(painted))
    return sections(shown | {"colors": colors})


def sections(parts: Mapping[str, Iterable[str]]) -> str:
    return "\n".join(f"==== {name}\n" + "".join(f"{line}\n" for line in lines) for name, lines in parts.items())
