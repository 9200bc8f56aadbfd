"""Owned objects below their owner, with READY, REASON and AGE, as kubectl's tree plugin prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import Branch, FactSource
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.text import cut, escaped, table

# Of each kind below one owner, a terminal shows so many; the rest is counted.
_MOST = 20
_LEAST = 12
_COLORS = {"False": "31", "Unknown": "33"}

Row = tuple[str, ...]


def tree_lines(tree: Branch, style: Style, *, now: float) -> list[str]:
    """A table whose first column is the tree; objects that are only recorded and were not read live have a `~`."""
    rows = [_cells(tree, "", style, now), *_below(tree, "", style, now)]
    header = ("OBJECT", "READY", "REASON", "AGE")
    if style.width is not None:
        # Names and reasons share the width beside the ages and the gaps.
        room = style.width - sum(3 + max(len(header[at]), *(len(row[at]) for row in rows)) for at in (1, 3)) - 3
        left = room - max(len(row[0]) for row in rows)
        reasons = min(max(len(row[2]) for row in rows), max(left, room // 3, _LEAST))
        names = max(room - reasons, _LEAST)
        shorten = partial(cut, mark=style.mark)
        rows = [(shorten(row[0], names), row[1], shorten(row[2], reasons), row[3]) for row in rows]
    lines = table(rows, header=header).split("\n")
    return [
        lines[0],
        *(painted(line, _COLORS.get(row[1], ""), style) for line, row in zip(lines[1:], rows, strict=True)),
    ]


def _below(branch: Branch, above: str, style: Style, now: float) -> Iterator[Row]:
    fork, last, bar = ("├─ ", "└─ ", "│  ") if style.unicode else ("|- ", "`- ", "|  ")
    shown, rest = _shown(branch.branches, style)
    count = len(shown) + len(rest)
    for at, one in enumerate(shown):
        ends = at == count - 1
        yield _cells(one, above + (last if ends else fork), style, now)
        yield from _below(one, above + ("   " if ends else bar), style, now)
    for at, text in enumerate(rest, len(shown)):
        yield (above + (last if at == count - 1 else fork) + text, "", "", "")


def _shown(branches: Sequence[Branch], style: Style) -> tuple[list[Branch], list[str]]:
    """The branches to show, and a line for each kind that has too many."""
    if style.width is None:
        return list(branches), []
    seen: Counter[str] = Counter()
    ready: Counter[str] = Counter()  # of those that are not shown
    shown: set[int] = set()
    # Objects that are not ready come first, so that none of them is in the rest.
    for one in sorted(branches, key=lambda one: one.ready == "True"):
        kind = one.resource.kind
        seen[kind] += 1
        if seen[kind] <= _MOST:
            shown.add(id(one))
        else:
            ready[kind] += one.ready == "True"
    rest = [f"and {seen[kind] - _MOST} more {kind}, {well} ready" for kind, well in ready.items()]
    return [one for one in branches if id(one) in shown], rest


def _cells(branch: Branch, stem: str, style: Style, now: float) -> Row:
    remembered = "~" if branch.source is not FactSource.LIVE else ""
    name = f"{stem}{remembered}{branch.resource.kind}/{escaped(branch.key.name)}"
    ready = escaped(branch.ready) or ("?" if remembered else "-")
    age = "?"
    if branch.created is not None:
        full = style.full_times
        age = timestamp(branch.created, style) if full else format_duration(max(now - branch.created, 0.0))
    return name, ready, escaped(branch.reason) or "-", age
