"""Who owns which field, moved on purpose: from our POST to our applies, and away from us without losing the value.

A field that an apply leaves out goes away only if nobody else is noted as its owner. Our POST is noted as an `Update`
of ours, which the same manager's applies do not touch: without the first patch here it would hold every dropped field
for ever. And a field of which we are the only owner falls back to its default when we leave it out; so before somebody
else is to decide about it, its value gets a second owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kubectl_ctrl.model.managed_fields import entries, fields_set, own_entry
from kubectl_ctrl.model.objects import Obj, version_of
from kubectl_ctrl.model.patches import json_pointer, same

# What a patch put there for its own sake; no apply of a child speaks of it.
_FINALIZERS = ("f:metadata", "f:finalizers")


def first_apply_patch(live: Obj, manager: str) -> list[Obj] | None:
    """The JSON patch that turns our `Update` entry into an `Apply`; None when there is nothing to turn.

    Finalizers stay behind in the `Update` entry: taken over, the next apply would strip them.
    """
    if own_entry(live, manager, "Apply") is not None:
        return None
    for place, entry in enumerate(entries(live)):
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "") == (manager, "Update", ""):
            return [_pinned(live), *_turned(place, entry)]
    return None


def leftovers_patch(live: Obj, entry: Obj, desired: Obj) -> list[Obj] | None:
    """The JSON patch that removes what our POST set and `desired` does not say; None when there is nothing of the kind.

    Sent as a dry run it tells defaults of the server, which come back, from fields that were dropped, which do not.
    """
    pointers = [json_pointer(path) for path in _extra(entry.get("fieldsV1") or {}, desired, live, ())]
    if not pointers:
        return None
    # From the back, so that the places of list items still to come stay right.
    return [_pinned(live), *({"op": "remove", "path": pointer} for pointer in reversed(pointers))]


def co_owned(live: Obj, entry: Obj | None, paths: Sequence[str]) -> Obj | None:
    """The part of `live` at those paths that we own, for another manager to apply; None when we own none of them."""
    owned = fields_set((entry or {}).get("fieldsV1") or {})
    body: Obj = {}
    for path in paths:
        parts = path.split(".")
        value = _value(live, parts)
        if value is not None and tuple(f"f:{part}" for part in parts) in owned:
            _put(body, parts, value)
    return body or None


def without(obj: Obj, paths: Sequence[str]) -> Obj:
    """A copy of the object without the fields at these paths."""
    for path in paths:
        obj = _without(obj, path.split("."))
    return obj


def _pinned(live: Obj) -> Obj:
    # Setting the version makes the server compare it and answer 409; a test that fails would be a 422.
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": version_of(live)}


def _turned(place: int, entry: Obj) -> Iterator[Obj]:
    fields = entry.get("fieldsV1") or {}
    held = fields.get(_FINALIZERS[0], {}).get(_FINALIZERS[1])
    where = f"/metadata/managedFields/{place}"
    if held is None:
        yield {"op": "replace", "path": f"{where}/operation", "value": "Apply"}
        return
    rest = {
        **fields,
        _FINALIZERS[0]: {key: value for key, value in fields[_FINALIZERS[0]].items() if key != _FINALIZERS[1]},
    }
    yield {"op": "replace", "path": f"{where}/fieldsV1", "value": {_FINALIZERS[0]: {_FINALIZERS[1]: held}}}
    yield {"op": "add", "path": "/metadata/managedFields/-", "value": {**entry, "operation": "Apply", "fieldsV1": rest}}


def _extra(fields: Obj, desired: Any, live: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The places in `live` of owned fields that `desired` does not have, each before what lies behind it."""
    if isinstance(live, list):
        yield from _extra_items(fields, desired, live, path)
        return
    if not isinstance(live, dict):
        return
    for name, inner in fields.items():
        key = name[2:]
        if not name.startswith("f:") or key not in live or (path, name) == (("metadata",), _FINALIZERS[1]):
            continue
        said = desired.get(key) if isinstance(desired, dict) else None
        if set(inner) - {"."}:
            yield from _extra(inner, said, live[key], (*path, key))
        elif said is None:
            yield (*path, key)


def _extra_items(
    fields: Obj, desired: Any, live: list[Any], path: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    wanted = desired if isinstance(desired, list) else []
    for place, item in enumerate(live):
        inner = next((inner for name, inner in fields.items() if _names(name, item)), None)
        if inner is None:
            continue
        said = [one for one in wanted if _alike(one, item, fields)]
        if not said:
            yield (*path, place)
        elif isinstance(item, dict):
            yield from _extra(inner, said[0], item, (*path, place))


def _names(name: str, item: Any) -> bool:
    """Whether this element of a fieldsV1 tree is about the item."""
    if name.startswith("v:"):
        return same(json.loads(name[2:]), item)
    if name.startswith("k:") and isinstance(item, dict):
        return all(same(item.get(key), value) for key, value in json.loads(name[2:]).items())
    return False


def _alike(wanted: Any, item: Any, fields: Obj) -> bool:
    """Whether an item of `desired` is the one that stands in `live`, by the keys that the fieldsV1 tree names.

    A key field that `desired` leaves to its default is not held against it.
    """
    if not isinstance(wanted, dict) or not isinstance(item, dict):
        return same(wanted, item)
    keys: Obj = next((json.loads(name[2:]) for name in fields if name.startswith("k:") and _names(name, item)), {})
    return all(key not in wanted or same(wanted[key], value) for key, value in keys.items())


def _value(obj: Any, parts: Sequence[str]) -> Any:
    for part in parts:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _put(body: Obj, parts: Sequence[str], value: Any) -> None:
    for part in parts[:-1]:
        body = body.setdefault(part, {})
    body[parts[-1]] = value


def _without(obj: Any, parts: Sequence[str]) -> Any:
    head, *rest = parts
    if not isinstance(obj, dict) or head not in obj:
        return obj
    if rest:
        return {**obj, head: _without(obj[head], rest)}
    return {key: value for key, value in obj.items() if key != head}
