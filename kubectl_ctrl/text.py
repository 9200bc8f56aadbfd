"""Text for people: escaping, cutting, counting, columns, the name that is near to a mistyped one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# C0, DEL, C1 and the marks that reorder text: data from a cluster must not drive a terminal.
# Surrogates on their own, which JSON can bring, cannot be printed at all. Compiled by `re` when first needed.
_CONTROL = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"

# What painted() writes, and the control characters that lay out text.
_LAID_OUT = "\x1b\\[[0-9;]*m|[\n\t]"

# Between columns.
_GAP, _CLOSE = 3, 2


class Text(str):
    """Text that is laid out: lines and colours are kept, and any other control character in it is escaped.

    Whatever prints to a terminal escapes all control characters of a plain str, so it can neither start a line of its
    own nor drive the terminal. What is quoted in a Text is escaped where the Text is laid out.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Text:
        if text.isascii() and text.isprintable():
            return super().__new__(cls, text)
        return super().__new__(cls, re.sub(f"{_LAID_OUT}|{_CONTROL}", _kept_or_number, text))


def verbatim(text: str) -> Text:
    """A document or the output of a program: its lines and tabs are kept, and no colour."""
    return Text(text.replace("\x1b", escaped("\x1b")))


def printable(text: str) -> str:
    """The text as it may be written to a terminal."""
    return text if isinstance(text, Text) else escaped(text)


def escaped(text: str) -> str:
    """Text that is quoted, made safe to print on one line."""
    if text.isascii() and text.isprintable():
        return text  # nearly all of it, and far quicker
    return re.sub(_CONTROL, _number, text)


def _number(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def _kept_or_number(match: re.Match[str]) -> str:
    return match[0] if len(match[0]) > 1 or match[0] in "\n\t" else _number(match)


def headed(who: str, where: str, width: int | None) -> list[str]:
    """What runs where, in one line, or in two on a terminal that is too narrow for it."""
    line = f"{who} {where}"
    return [line] if width is None or len(line) <= width else [who, f"  {where}"]


def cut(text: str, width: int | None, *, mark: str = "…") -> str:
    """At most `width` characters, the last of them telling that there was more."""
    if width is None or len(text) <= width:
        return text
    return text[: max(width - len(mark), 0)] + mark


def counted(number: int, noun: str, many: str = "") -> str:
    """`1 run`, `2,000 runs`."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def size_text(size: float) -> str:
    """`12.3 MB`, in powers of ten as disks are sold."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean ...?` where something is near; importing what finds it is left to those who mistyped."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]}?" if close else ""


def table(rows: Sequence[Sequence[str]], *, header: Sequence[str], width: int | None = None) -> Text:
    """Columns as kubectl prints them: three blanks between, two where that has it fit; nothing after the last."""
    lines = [list(header), *[list(map(escaped, row)) for row in rows]]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    room = None if width is None else width - sum(widths)
    gap = _CLOSE if room is not None and _CLOSE <= room / max(len(widths) - 1, 1) < _GAP else _GAP
    # Loaded when a table is printed. The header is a row: as headers it would get blanks that kubectl does not print.
    from tabulate import DataRow, TableFormat, tabulate

    row = DataRow("", " " * gap, "")
    form = TableFormat(None, None, None, None, row, row, padding=0, with_header_hide=None)
    return Text(tabulate(lines, tablefmt=form, disable_numparse=True, stralign="left", preserve_whitespace=True))
