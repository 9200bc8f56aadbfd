"""Combines the result of one dry run with the state planned by earlier ones. Pure; no argument is changed.

Each dry run starts from the live object, without the earlier ones. Only its differences from the live object are
applied to the state planned so far. Lists are compared by the keys of their items, if any, as in `model.diffs`.
"""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.diffs import ABSENT, keyed
from kubectl_ctrl.model.patches import same

_SETS = frozenset({"finalizers"})


def combined(live: Any, before: Any, local: Any, answer: Any, field: str = "") -> Any:
    """The state after a write: the server made `answer` from `live`, and `before` is the planned state.

    `local` is `before` with the fields of the request: they distinguish "set to the live value" from "not mentioned".
    """
    if same(before, live):
        return answer
    if isinstance(answer, dict) and (isinstance(before, dict) or isinstance(local, dict)):
        sides = [side if isinstance(side, dict) else {} for side in (live, before, local, answer)]
        return _combined_fields(*sides)
    if isinstance(answer, list) and (isinstance(before, list) or isinstance(local, list)):
        lists = [side if isinstance(side, list) else [] for side in (live, before, local, answer)]
        if (keyed := _keyed(field, lists)) is not None:
            items = _combined_fields(*keyed)
            # The request determines the order.
            return [items[key] for key in {**keyed[2], **items} if key in items]
    mentioned = not same(answer, live) or not same(local, before)
    return answer if mentioned else before


def merged(state: Any, applied: Any, field: str = "") -> Any:
    """The state with all fields of an apply; fields that it omits stay."""
    if isinstance(state, dict) and isinstance(applied, dict):
        return {**state, **{key: merged(state.get(key), value, key) for key, value in applied.items()}}
    if not isinstance(state, list) or not isinstance(applied, list):
        return applied
    if field in _SETS:
        return [*state, *(item for item in applied if item not in state)]
    keyed = _keyed(field, [state, applied])
    if keyed is None:
        return applied
    there, wanted = keyed
    return [*merged(there, wanted).values()]


def _combined_fields(live: Any, before: Any, local: Any, answer: Any) -> dict[Any, Any]:
    out = {}
    for key in [*before, *(key for key in answer if key not in before)]:
        is_, was, words, result = (side.get(key, ABSENT) for side in (live, before, local, answer))
        value = combined(is_, was, words, result, key if isinstance(key, str) else "")
        if value is not ABSENT:
            out[key] = value
    return out


def _keyed(field: str, lists: list[list[Any]]) -> tuple[dict[Any, Any], ...] | None:
    if field == "managedFields":
        names = ("manager", "operation", "subresource")
        return tuple({tuple(entry.get(name) or "" for name in names): entry for entry in items} for items in lists)
    return keyed(field, *lists)
