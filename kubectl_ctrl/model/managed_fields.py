"""managedFields: the fields that a manager owns, and the manager that wrote a version, as far as the entries prove it.

The entries are coarse. Times are whole seconds, a removal of a field leaves no entry, and a write can shrink the
entries of managers that did not write. So each result here is either proven by the entries, or states that it is
unknown.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.diffs import ABSENT, Difference
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same

# Manager names from the server itself: for fields set before the first apply, and for merged old entries.
_INVENTED = frozenset({"before-first-apply", "ancient-changes"})

# More candidates than these are of no use.
_MOST_CANDIDATES = 3

# Fields of an apply that it does not own.
_UNOWNED = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"}
)
_KEY_DEFAULTS = {"protocol": "TCP"}
_NOTHING: Obj = {".": {}}  # an empty object; in a fieldsV1 tree, {} would mean a whole value

_Slot = tuple[str, str, str]  # manager, operation, subresource


def entries(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("managedFields") or []


def own_entry(obj: Obj, manager: str, operation: str, subresource: str = "") -> Obj | None:
    """The entry of that manager, operation (`Apply`, `Update`) and subresource."""
    for entry in entries(obj):
        if _slot(entry) == (manager, operation, subresource):
            return entry
    return None


def fields_set(fields: Obj) -> frozenset[tuple[str, ...]]:
    """The paths of a fieldsV1 tree, such as `("f:spec", "f:replicas")`."""
    return frozenset(_paths(fields, ()))


def _paths(fields: Obj, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, inner in fields.items():
        if name == ".":
            yield above
            continue
        path = (*above, name)
        if inner:
            yield from _paths(inner, path)
        else:
            yield path


def owns_exactly(entry: Obj | None, desired: Obj) -> bool:
    """Whether an apply of `desired` would neither add fields to the entry nor remove some.

    False may also mean "unknown". True is certain, except for the content of fields that are owned as a whole.
    """
    if entry is None or "fieldsV1" not in entry:
        return False
    stripped: Obj = {key: value for key, value in desired.items() if key not in _UNOWNED and key != "metadata"}
    metadata = {key: value for key, value in (desired.get("metadata") or {}).items() if key not in _UNOWNED_METADATA}
    if metadata:
        stripped["metadata"] = metadata
    return _owns(entry["fieldsV1"] or _NOTHING, stripped)


def reduce(obj: Obj, managers: frozenset[str]) -> Obj:
    """Reduce a new object's managedFields in place: only entries of `managers` keep their fields."""
    meta = obj["metadata"]
    noted = meta.get("managedFields")
    if noted:
        meta["managedFields"] = [entry if entry.get("manager") in managers else _who_and_when(entry) for entry in noted]
    return obj


def writer(old: Obj | None, new: Obj, changed: Sequence[Difference] = ()) -> tuple[str, ...]:
    """The writer of the change from `old` to `new`: one name is proven, several are candidates, none means unknown.

    It is valid for two consecutive versions; without `old`, for a new object. If no entry proves a writer, the
    differences `changed` select the candidates that may have set them.
    """
    if old is None:
        return _creator(new)
    return tuple(sorted(_wrote(old, new) or _could_set(new, changed)))


def made_by(old: Obj | None, new: Obj, manager: str, sent: Obj | None = None) -> bool:
    """Whether the change from `old` to `new` is provably a write of `manager`; False may also mean "unknown".

    `sent` is the applied object: it distinguishes a list that is owned as a whole from one that was set empty.
    """
    if old is None:
        return _creator(new) == (manager,)
    return manager in _wrote(old, new) or any(
        _moved(slot, old, new, sent) for slot in _stamps(new) if slot[0] == manager and sent is not None
    )


def _slot(entry: Obj) -> _Slot:
    return entry.get("manager") or "", entry.get("operation") or "", entry.get("subresource") or ""


def _who_and_when(entry: Obj) -> Obj:
    # The same few names occur in all objects of a cache, so they are interned; times are mostly different.
    kept: Obj = {key: sys.intern(entry[key]) for key in ("manager", "operation", "subresource") if key in entry}
    if "time" in entry:
        kept["time"] = entry["time"]
    return kept


def _creator(obj: Obj) -> tuple[str, ...]:
    """The manager of all entries, if there is only one, and it wrote when the object was created."""
    noted = entries(obj)
    names = {entry.get("manager") or "" for entry in noted}
    created = obj["metadata"].get("creationTimestamp")
    if len(names) != 1 or not names.isdisjoint(_INVENTED | {""}) or not created:
        return ()
    born = parse_rfc3339(created)
    # Both times are from one request, but perhaps in two different seconds.
    if any(not entry.get("time") or abs(parse_rfc3339(entry["time"]) - born) > 1 for entry in noted):
        return ()
    return tuple(names)


def _wrote(old: Obj, new: Obj) -> set[str]:
    """Managers that have certainly written.

    The proof is an entry that is new, has a new time, or owns more fields; or a new scalar at a field that it owns
    afterwards, because a writer takes the ownership of a value that it changes. An entry that owns less proves nothing:
    its manager may have removed the field, or another manager may have taken it.
    """
    before, after = _stamps(old), _stamps(new)
    found: set[str] = set()
    for slot, times in after.items():
        fresh = times - before.get(slot, Counter())
        stamped = any(not _renamed(slot, time, before, after) for time in fresh)
        if stamped or (not fresh and (_grew(slot, old, new) or _moved(slot, old, new))):
            found.add(slot[0])
    return found - _INVENTED - {""}


def _could_set(new: Obj, changed: Sequence[Difference]) -> set[str]:
    """The managers of all entries that may be for these values, if there are few.

    The writer of a value has an entry for it afterwards. With a status subresource, only that sets the status. A
    removed value has no entry, and the deletion timestamp is set by the server.
    """
    values = [one.path for one in changed if one.new is not ABSENT]
    parts = {path.partition(".")[0].partition("[")[0] for path in values}
    if not parts or any(path.startswith("metadata.deletion") for path in values):
        return set()
    has_status = any(entry.get("subresource") == "status" for entry in entries(new))
    names = {entry.get("manager") or "" for entry in entries(new) if _can_be_for(entry, parts, has_status)}
    return names if len(names) <= _MOST_CANDIDATES and names.isdisjoint(_INVENTED | {""}) else set()


def _can_be_for(entry: Obj, parts: set[str], has_status: bool) -> bool:
    """Whether the entry may be from a write that set something in each of these top-level fields."""
    if entry.get("fieldsV1") and not all(f"f:{part}" in entry["fieldsV1"] for part in parts):
        return False
    subresource = entry.get("subresource") or ""
    if parts == {"status"} and has_status:
        return subresource not in ("", "scale")
    return "metadata" in parts or "status" in parts or subresource != "status"


def _stamps(obj: Obj) -> dict[_Slot, Counter[str]]:
    """The times of each slot's entries; entries of one slot differ in apiVersion, which is not kept."""
    stamps: dict[_Slot, Counter[str]] = {}
    for entry in entries(obj):
        stamps.setdefault(_slot(entry), Counter())[entry.get("time") or ""] += 1
    return stamps


def _renamed(slot: _Slot, time: str, before: dict[_Slot, Counter[str]], after: dict[_Slot, Counter[str]]) -> bool:
    """Whether another entry with this time has disappeared: then this entry may be that one, renamed by anybody."""
    return any(other != slot and (times - after.get(other, Counter()))[time] > 0 for other, times in before.items())


def _grew(slot: _Slot, old: Obj, new: Obj) -> bool:
    before = [entry.get("fieldsV1") for entry in entries(old) if _slot(entry) == slot]
    after = [entry.get("fieldsV1") for entry in entries(new) if _slot(entry) == slot]
    if before == after or None in before or None in after:
        return False
    return bool(_union(after) - _union(before))


def _moved(slot: _Slot, old: Obj, new: Obj, sent: Obj | None = None) -> bool:
    whole = [entry for entry in entries(new) if _slot(entry) == slot and entry.get("fieldsV1")]
    return any(_has_new_value(entry["fieldsV1"], old, new, sent) for entry in whole)


def _has_new_value(fields: Obj, old: Any, new: Any, sent: Any = None) -> bool:
    """Whether a value at these fields is new, so that its owner must have written it.

    A missing value proves nothing, because the server may drop one during any write. An object or list without fields
    below it in the tree is either owned as a whole, certainly so if its owner sent the current content, or it was set
    empty, and others fill it.
    """
    if old is new:
        return False
    children = [name for name in fields if name != "."]
    if not children:
        if "." in fields or new is None or same(old, new):
            return False
        return not isinstance(new, dict | list) or bool(new and same(sent, new))
    return any(_has_new_value(fields[name], *(_part(name, one) for one in (old, new, sent))) for name in children)


def _part(name: str, value: Any) -> Any:
    """The part of the value that an element of a fieldsV1 tree names; None if missing."""
    if isinstance(value, dict):
        return value.get(name[2:])
    if not isinstance(value, list):
        return None
    if name.startswith("v:"):
        return True if any(same(json.loads(name[2:]), item) for item in value) else None
    return _item(name, value)


def _union(sets: list[Any]) -> frozenset[tuple[str, ...]]:
    return frozenset().union(*map(fields_set, sets))


def _owns(fields: Obj, value: Any) -> bool:
    children = [name for name in fields if name != "."]
    if not children:
        # Without "." the field is a scalar, or owned as a whole; with it, it is an object with no owned fields.
        return "." not in fields or value in ({}, [])
    if isinstance(value, dict):
        # A null has no effect, but the server records it as owned (creationTimestamp in a pod template).
        asked = {f"f:{key}": inner for key, inner in value.items()}
        return all(name in fields for name, inner in asked.items() if inner is not None) and all(
            name in asked and _owns(fields[name], asked[name]) for name in children
        )
    if isinstance(value, list):
        return len(children) == len(value) and all(_owns_item(name, fields[name], value) for name in children)
    return False


def _owns_item(name: str, fields: Obj, items: list[Any]) -> bool:
    if name.startswith("v:"):
        return any(same(json.loads(name[2:]), item) for item in items)
    item = _item(name, items)
    if item is None:
        return False
    # A key with a default value, which the item omits, may still be recorded as owned.
    keys = {f"f:{key}" for key in json.loads(name[2:]) if key not in item}
    return _owns({name: inner for name, inner in fields.items() if name not in keys}, item)


def _item(name: str, items: list[Any]) -> Obj | None:
    """The item that a `k:{...}` element names; None if there is none or more than one."""
    if not name.startswith("k:"):
        return None
    keys = json.loads(name[2:])
    found = [
        item
        for item in items
        if isinstance(item, dict)
        and all(same(item.get(key, _KEY_DEFAULTS.get(key)), value) for key, value in keys.items())
    ]
    return found[0] if len(found) == 1 else None
