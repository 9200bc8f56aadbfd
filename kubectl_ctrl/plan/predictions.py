"""Lays what one dry run answered over what earlier ones did. Pure; nothing given is changed.

A dry run is answered as if those before it had never been. Of its answer only what it made different from the live
object is taken, and put over the state that is planned so far. Lists are compared by the keys of their items where
there are any, as in `model.diffs`.
"""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.diffs import ABSENT, told_apart
from kubectl_ctrl.model.patches import same

_SETS = frozenset({"finalizers"})


def laid(live: Any, before: Any, local: Any, answer: Any, field: str = "") -> Any:
    """The state after a write: `live` is what the server made `answer` of, `before` the planned state.

    `local` is `before` with the write's own words put in: they tell "set back to what is live" from "not spoken of".
    """
    if same(before, live):
        return answer
    if isinstance(answer, dict) and (isinstance(before, dict) or isinstance(local, dict)):
        return _laid_fields(_opened(live), _opened(before), _opened(local), answer)
    if isinstance(answer, list) and (isinstance(before, list) or isinstance(local, list)):
        lists = [side if isinstance(side, list) else [] for side in (live, before, local, answer)]
        if (keyed := _keyed(field, lists)) is not None:
            items = _laid_fields(*keyed)
            # The write's own words know best what comes first.
            return [items[key] for key in {**keyed[2], **items} if key in items]
    spoken_of = not same(answer, live) or not same(local, before)
    return answer if spoken_of else before


def merged(state: Any, said: Any, field: str = "") -> Any:
    """The state with everything that an apply says in it; what it leaves out stays."""
    if isinstance(state, dict) and isinstance(said, dict):
        return {**state, **{key: merged(state.get(key), value, key) for key, value in said.items()}}
    if not isinstance(state, list) or not isinstance(said, list):
        return said
    if field in _SETS:
        return [*state, *(item for item in said if item not in state)]
    keyed = _keyed(field, [state, said])
    if keyed is None:
        return said
    there, wanted = keyed
    return [*merged(there, wanted).values()]


def _laid_fields(live: Any, before: Any, local: Any, answer: Any) -> dict[Any, Any]:
    out = {}
    for key in [*before, *(key for key in answer if key not in before)]:
        is_, was, said, came = (side.get(key, ABSENT) for side in (live, before, local, answer))
        value = laid(is_, was, said, came, key if isinstance(key, str) else "")
        if value is not ABSENT:
            out[key] = value
    return out


def _opened(side: Any) -> Any:
    return side if isinstance(side, dict) else {}


def _keyed(field: str, lists: list[list[Any]]) -> tuple[dict[Any, Any], ...] | None:
    if field == "managedFields":
        return tuple({_slot(entry): entry for entry in items} for items in lists)
    return told_apart(field, *lists)


def _slot(entry: Any) -> tuple[Any, ...]:
    return tuple(entry.get(key) or "" for key in ("manager", "operation", "subresource"))
