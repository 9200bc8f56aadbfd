"""Moves field ownership: from the controller's POST to its applies, and to others without losing the value.

A field that an apply omits is removed only if it has no other owner. A POST is an `Update` entry of the manager, which
applies of the same manager do not change: without the first patch here it would keep every omitted field for ever. And
a field whose only owner omits it falls back to its default; so before another manager takes it over, its value gets a
second owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kubectl_ctrl.model.managed_fields import entries, fields_set, own_entry
from kubectl_ctrl.model.objects import Obj, version_of
from kubectl_ctrl.model.patches import json_pointer, same

# Set by patches of `add_finalizer`; applies of a child never contain them.
_FINALIZERS = ("f:metadata", "f:finalizers")


def first_apply_patch(live: Obj, manager: str) -> list[Obj] | None:
    """The JSON patch that turns the manager's `Update` entry into an `Apply`; None without one.

    Finalizers stay in the `Update` entry: in an `Apply`, the next apply would remove them.
    """
    if own_entry(live, manager, "Apply") is not None:
        return None
    for place, entry in enumerate(entries(live)):
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource") or "") == (manager, "Update", ""):
            return [_pinned(live), *_turned(place, entry)]
    return None


def leftovers_patch(live: Obj, entry: Obj, desired: Obj) -> list[Obj] | None:
    """The JSON patch that removes fields which the POST set and `desired` does not have; None without any.

    As a dry run it distinguishes defaults of the server, which come back, from omitted fields, which do not.
    """
    pointers = [json_pointer(path) for path in _extra(entry.get("fieldsV1") or {}, desired, live, ())]
    if not pointers:
        return None
    # From the end, so that the indexes of earlier list items stay correct.
    return [_pinned(live), *({"op": "remove", "path": pointer} for pointer in reversed(pointers))]


def co_owned(live: Obj, entry: Obj | None, paths: Sequence[str]) -> Obj | None:
    """The part of `live` at those paths that the entry owns, for another manager to apply; None without any."""
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
    # With a version the server compares it and answers 409; a failed `test` operation would be a 422.
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
    """The paths in `live` of owned fields that `desired` does not have, in the order of `live`."""
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
    """This element of a fieldsV1 tree is for the item."""
    if name.startswith("v:"):
        return same(json.loads(name[2:]), item)
    if name.startswith("k:") and isinstance(item, dict):
        return all(same(item.get(key), value) for key, value in json.loads(name[2:]).items())
    return False


def _alike(wanted: Any, item: Any, fields: Obj) -> bool:
    """An item of `desired` is the same as one of `live`, by the keys in the fieldsV1 tree.

    A key field that `desired` leaves to its default is ignored.
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
