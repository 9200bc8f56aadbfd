"""The step between two versions of an object as a unified diff of YAML, as far as the versions were kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN
from kubectl_ctrl.model.masking import MASK
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import Changes
from kubectl_ctrl.render.style import Style, painted
from kubectl_ctrl.text import escaped

_COLORS = {"+": "32", "-": "31"}
# Fields that change with every write and say nothing about it.
_NOISE = ("managedFields", "resourceVersion", "generation")


class Side(NamedTuple):
    """Which object, and in which version it was before; "" when it was not there or not known."""

    uid: str
    version: str


def unified_lines(
    old: Side, new: str, changes: Changes, *, body: Callable[[str, str], Obj | None], style: Style
) -> list[str]:
    """The diff's lines; where a version was not kept, what was noted of the step instead."""
    before = body(old.uid, old.version) if old.version else None
    after = body(old.uid, new)
    if after is None or (before is None and old.version):
        return _noted(old, new, changes, style)
    from difflib import unified_diff

    lines = list(unified_diff(_lines(before), _lines(after), lineterm="", n=2))[2:]
    return [_colored(escaped(line), style) for line in lines if not line.startswith("@@")] or [
        "(only server-managed fields)"
    ]


def _noted(old: Side, new: str, changes: Changes, style: Style) -> list[str]:
    """Field by field: of most steps the differences are kept longer than the objects."""
    step = f"{old.version} to {new}" if old.version else new
    if not changes.shown:
        return [f"(version {escaped(step)}: not recorded)"]
    lines = [f"(version {escaped(step)}: objects not recorded, only these differences)"]
    for one in changes.shown:
        sides = (("-", one.old), ("+", one.new))
        lines += [
            _colored(f"{sign}{escaped(one.path)}: {_value(side)}", style) for sign, side in sides if side is not ABSENT
        ]
    rest = changes.total - len(changes.shown)
    return [*lines, *([f"and {rest} more differences"] if rest > 0 else [])]


def _value(side: Any) -> str:
    return MASK if side is HIDDEN else escaped(json.dumps(side, ensure_ascii=False))


def _lines(obj: Obj | None) -> list[str]:
    if obj is None:
        return []
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _NOISE}
    text = yaml.dump({**obj, "metadata": metadata}, Dumper=dumper, sort_keys=True, width=4096, allow_unicode=True)
    return list(map(escaped, str(text).splitlines()))


def _colored(line: str, style: Style) -> str:
    return painted(line, _COLORS.get(line[:1], ""), style)
