"""Status conditions: metav1.Condition and the rule for its transition time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_ctrl.clock import rfc3339
from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.objects import Obj, generation_of
from kubectl_ctrl.value import Value

_LONGEST_MESSAGE = 32 * 1024
_CUT = "..."
_STATUSES = ("True", "False", "Unknown")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class Condition(Value):
    """One condition as a controller states it; `ctx.write.conditions` adds the transition time and the generation."""

    type: str
    status: str
    reason: str
    message: str = ""

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise ControllerError(
                f"The condition {self.type!r} has status {self.status!r}, which is none of {_STATUSES}."
            )
        if not _REASON.fullmatch(self.reason):
            raise ControllerError(
                f"The condition {self.type!r} needs one CamelCase word as reason, not {self.reason!r}."
            )


def merged(conditions: Sequence[Obj], *new: Condition, now: float, generation: int) -> list[Obj]:
    """The list after stating `new`: known types stay in their place, others follow in the order given.

    The transition time moves only when the status does. The input is not changed.
    """
    stated = {condition.type: condition for condition in new}
    at = rfc3339(now)
    result = [
        _stated(stated.pop(old["type"]), old, at, generation) if old.get("type") in stated else old
        for old in conditions
    ]
    return result + [_stated(condition, {}, at, generation) for condition in stated.values()]


def status_with(obj: Obj, conditions: Sequence[Condition], status: Mapping[str, Any], now: float) -> Obj:
    """A whole status: these conditions with the transition times that the object has for them, and the other fields."""
    types = {condition.type for condition in conditions}
    before = [one for one in (obj.get("status") or {}).get("conditions") or [] if one.get("type") in types]
    generation = generation_of(obj)
    stated = merged(before, *conditions, now=now, generation=generation)
    return {**status, "observedGeneration": generation, "conditions": stated}


def find(obj: Obj, kind: str) -> Obj | None:
    """The condition of that type in the object's status."""
    conditions: list[Obj] = (obj.get("status") or {}).get("conditions") or []
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def is_true(obj: Obj, kind: str) -> bool:
    condition = find(obj, kind)
    return condition is not None and condition.get("status") == "True"


def _stated(condition: Condition, old: Obj, now: str, generation: int) -> Obj:
    same = old.get("status") == condition.status
    return {
        "type": condition.type,
        "status": condition.status,
        "observedGeneration": generation,
        "lastTransitionTime": (same and old.get("lastTransitionTime")) or now,
        "reason": condition.reason,
        "message": _cut(condition.message),
    }


def _cut(message: str) -> str:
    raw = message.encode()
    if len(raw) <= _LONGEST_MESSAGE:
        return message
    return raw[: _LONGEST_MESSAGE - len(_CUT)].decode(errors="ignore") + _CUT
