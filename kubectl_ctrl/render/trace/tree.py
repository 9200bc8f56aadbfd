"""Owned objects below their owner: READY, REASON and AGE, as people know it from kubectl's tree plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import Branch, Source
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.text import cut, escaped, table

# On a terminal so many of one kind below one owner are shown, and the rest is counted.
_MOST = 20
_LEAST = 12
_COLORS = {"False": "31", "Unknown": "33"}

Row = tuple[str, ...]


def tree_lines(tree: Branch, style: Style, *, now: float) -> list[str]:
    """A table whose first column is the tree; what is remembered and was not read again is marked with a `~`."""
    rows = [_cells(tree, "", style, now), *_below(tree, "", style, now)]
    header = ("OBJECT", "READY", "REASON", "AGE")
    if style.width is not None:
        # Beside the ages and the gaps, names and reasons share what there is.
        room = style.width - sum(3 + max(len(header[at]), *(len(row[at]) for row in rows)) for at in (1, 3)) - 3
        left = room - max(len(row[0]) for row in rows)
        reasons = min(max(len(row[2]) for row in rows), max(left, room // 3, _LEAST))
        names = max(room - reasons, _LEAST)
        rows = [(_cut(row[0], names, style), row[1], _cut(row[2], reasons, style), row[3]) for row in rows]
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
    """Those that are shown, and a line for each kind of which there are too many for a terminal."""
    if style.width is None:
        return list(branches), []
    seen: Counter[str] = Counter()
    shown, rest = [], []
    hidden: dict[str, list[Branch]] = {}
    # Those that are not well come first, so that none of them is among the rest.
    for one in sorted(branches, key=lambda one: one.ready == "True"):
        kind = one.resource.kind
        seen[kind] += 1
        if seen[kind] <= _MOST:
            shown.append(one)
        else:
            hidden.setdefault(kind, []).append(one)
    for kind, those in hidden.items():
        well = sum(one.ready == "True" for one in those)
        rest.append(f"and {len(those)} more {kind}, {well} ready")
    order = {id(one): at for at, one in enumerate(branches)}
    return sorted(shown, key=lambda one: order[id(one)]), rest


def _cells(branch: Branch, stem: str, style: Style, now: float) -> Row:
    remembered = "~" if branch.source is not Source.LIVE else ""
    name = f"{stem}{remembered}{branch.resource.kind}/{escaped(branch.key.name)}"
    ready = escaped(branch.ready) or ("?" if remembered else "-")
    return name, ready, escaped(branch.reason) or "-", _age(branch, style, now)


def _age(branch: Branch, style: Style, now: float) -> str:
    if branch.created is None:
        return "?"
    return timestamp(branch.created, style) if style.full_times else format_duration(max(now - branch.created, 0.0))


def _cut(text: str, width: int, style: Style) -> str:
    return cut(text, width, mark=style.mark)
