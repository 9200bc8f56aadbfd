"""Status conditions: metav1.Condition and its transition time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_ctrl.clock import rfc3339
from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.objects import Obj, generation_of
from kubectl_ctrl.value import Value

_LONGEST_MESSAGE = 32 * 1024  # bytes; the limit in the schema of metav1.Condition
_STATUSES = ("True", "False", "Unknown")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


class Condition(Value):
    """One condition of a controller; `ctx.write.conditions` adds the transition time and the generation."""

    type: str
    status: str
    reason: str
    message: str = ""

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise ControllerError(f"The condition {self.type!r} has status {self.status!r}, not one of {_STATUSES}.")
        if not _REASON.fullmatch(self.reason):
            raise ControllerError(
                f"The condition {self.type!r} needs one CamelCase word as reason, not {self.reason!r}."
            )


def merged(conditions: Sequence[Obj], *new: Condition, now: float, generation: int) -> list[Obj]:
    """The list with the conditions `new`: known types keep their positions, others follow in the given order.

    The transition time changes only with the status. The input is not changed.
    """
    stated = {condition.type: condition for condition in new}
    at = rfc3339(now)
    result = [
        _stated(stated.pop(old["type"]), old, at, generation) if old.get("type") in stated else old
        for old in conditions
    ]
    return result + [_stated(condition, {}, at, generation) for condition in stated.values()]


def status_with(obj: Obj, conditions: Sequence[Condition], status: Mapping[str, Any], now: float) -> Obj:
    """A complete status: the conditions, with transition times from the object, and the other fields."""
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
    message = condition.message
    if len(message.encode()) > _LONGEST_MESSAGE:
        message = message.encode()[: _LONGEST_MESSAGE - 3].decode(errors="ignore") + "..."
    return {
        "type": condition.type,
        "status": condition.status,
        "observedGeneration": generation,
        "lastTransitionTime": (same and old.get("lastTransitionTime")) or now,
        "reason": condition.reason,
        "message": message,
    }
