"""Values of objects as the cells of a Table show them."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.encoding.ages import since

_OPERATORS = {"In": "in", "NotIn": "notin"}


def at(obj: Any, path: str) -> Any:
    """The value at a path of fields; None if there is none."""
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def age(obj: Obj, now: float) -> str:
    return since(at(obj, "metadata.creationTimestamp"), now)


def count(value: Any) -> int:
    return len(value or ())


def labels(value: Obj | None) -> str:
    return ",".join(f"{key}={text}" for key, text in sorted((value or {}).items())) or "<none>"


def selector(value: Obj | None) -> str:
    return (requirements(value) if value else "") or "<none>"


def requirements(value: Obj) -> str:
    """A LabelSelector as text."""
    found = [(key, f"{key}={text}") for key, text in (value.get("matchLabels") or {}).items()]
    for one in value.get("matchExpressions") or ():
        key, operator = one.get("key", ""), one.get("operator", "")
        listed = ",".join(sorted(one.get("values") or ()))
        exists = key if operator == "Exists" else f"!{key}"
        found.append((key, f"{key} {_OPERATORS[operator]} ({listed})" if operator in _OPERATORS else exists))
    return ",".join(text for _, text in sorted(found, key=lambda one: one[0]))


def elided(items: list[str], most: int = 3) -> str:
    """The first items, and the number of the others."""
    more = f" + {len(items) - most} more..." if len(items) > most else ""
    return ",".join(items[:most]) + more or "<unset>"
