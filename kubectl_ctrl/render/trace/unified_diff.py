"""The step between two versions of an object as a unified diff of YAML, if both versions are recorded."""

from __future__ import annotations

import json
from typing import Any

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN
from kubectl_ctrl.model.masking import MASK
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import Changes, RecordedCall, RecordedCause
from kubectl_ctrl.render.style import Style, painted
from kubectl_ctrl.render.trace.rows import TraceOptions
from kubectl_ctrl.text import escaped

_COLORS = {"+": "32", "-": "31"}
# Fields that change with every write and say nothing about it.
_NOISE = ("managedFields", "resourceVersion", "generation")


def cause_diff(cause: RecordedCause, showing: TraceOptions, style: Style) -> list[str]:
    return _diff(cause.uid, (cause.old_version, cause.new_version), cause.changes, showing, style)


def call_diff(made: RecordedCall, showing: TraceOptions, style: Style) -> list[str]:
    call = made.call
    if call.verb == "delete":
        return []
    return _diff(call.uid, (call.old_version, call.new_version), made.changes, showing, style)


def _diff(uid: str, versions: tuple[str, str], changes: Changes, showing: TraceOptions, style: Style) -> list[str]:
    old, new = versions
    if not uid or not new or old == new:
        return []
    before = showing.body(uid, old) if old else None
    after = showing.body(uid, new)
    if after is not None and (before is not None or not old):
        from difflib import unified_diff

        diff = list(unified_diff(_lines(before), _lines(after), lineterm="", n=2))[2:]
        lines = [_colored(escaped(line), style) for line in diff if not line.startswith("@@")]
        return lines or ["(only server-managed fields)"]
    # The differences of a step are kept longer than the objects.
    step = escaped(f"{old} to {new}" if old else new)
    if not changes.shown:
        return [f"(version {step}: not recorded)"]
    lines = [f"(version {step}: objects not recorded, only these differences)"]
    for one in changes.shown:
        for sign, side in (("-", one.old), ("+", one.new)):
            if side is not ABSENT:
                value = MASK if side is HIDDEN else escaped(json.dumps(side, ensure_ascii=False))
                lines.append(_colored(f"{sign}{escaped(one.path)}: {value}", style))
    rest = changes.total - len(changes.shown)
    return [*lines, *([f"and {rest} more differences"] if rest > 0 else [])]


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
