"""Text for people: escaping, truncation, counts, tables, and suggestions for mistyped names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# C0, DEL, C1 and the characters that reorder text: data from a cluster must not control a terminal. Lone surrogates,
# which JSON can contain, cannot be printed at all. `re` compiles the pattern when it is first needed.
_CONTROL = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"

# Colours, and the control characters of a layout.
_LAID_OUT = "\x1b\\[[0-9;]*m|[\n\t]"

# Between columns.
_GAP, _CLOSE = 3, 2


class Text(str):
    """Text with a layout: newlines, tabs and colours stay, and all other control characters are escaped.

    Code that prints to a terminal escapes all control characters of a plain str, so a str can neither start a new line
    nor control the terminal. A str that becomes part of a Text must be escaped first.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Text:
        if text.isascii() and text.isprintable():
            return super().__new__(cls, text)
        return super().__new__(cls, re.sub(f"{_LAID_OUT}|{_CONTROL}", _kept_or_number, text))


def verbatim(text: str) -> Text:
    """A document or the output of a program: newlines and tabs stay, colours do not."""
    return Text(text.replace("\x1b", escaped("\x1b")))


def printable(text: str) -> str:
    """The text, safe for a terminal."""
    return text if isinstance(text, Text) else escaped(text)


def escaped(text: str) -> str:
    """The text, safe for one line of a terminal."""
    if text.isascii() and text.isprintable():
        return text  # the usual case, and much faster
    return re.sub(_CONTROL, _number, text)


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _kept_or_number(match: re.Match[str]) -> str:
    return match[0] if len(match[0]) > 1 or match[0] in "\n\t" else _number(match)


def headed(who: str, where: str, width: int | None) -> list[str]:
    """A heading of one line, or of two on a narrow terminal."""
    line = f"{who} {where}"
    return [line] if width is None or len(line) <= width else [who, f"  {where}"]


def cut(text: str, width: int | None, *, mark: str = "…") -> str:
    """At most `width` characters; a truncated text ends with the mark."""
    if width is None or len(text) <= width:
        return text
    return text[: max(width - len(mark), 0)] + mark


def counted(number: int, noun: str, many: str = "") -> str:
    """`1 run`, `2,000 runs`."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def size_text(size: float) -> str:
    """`12.3 MB`, in powers of ten."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean ...?`, or "" without a similar name."""
    from difflib import get_close_matches  # loaded only after a mistake

    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


def table(rows: Sequence[Sequence[str]], *, header: Sequence[str], width: int | None = None) -> Text:
    """Columns as kubectl prints them: separated by three spaces, or by two if the table fits only then."""
    lines = [list(header), *[list(map(escaped, row)) for row in rows]]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    room = None if width is None else width - sum(widths)
    gap = _CLOSE if room is not None and _CLOSE <= room / max(len(widths) - 1, 1) < _GAP else _GAP
    # Loaded when a table is printed. The header is a row, because tabulate pads headers with spaces unlike kubectl.
    from tabulate import DataRow, TableFormat, tabulate

    row = DataRow("", " " * gap, "")
    form = TableFormat(None, None, None, None, row, row, padding=0, with_header_hide=None)
    return Text(tabulate(lines, tablefmt=form, disable_numparse=True, stralign="left", preserve_whitespace=True))
