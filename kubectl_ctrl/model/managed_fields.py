"""managedFields: what a manager owns, and who wrote a version, as far as the server's notes prove it.

The notes are coarse. Times are whole seconds, a removal is noted for nobody, and a write can shrink the entries of
managers that did nothing. So every answer here is either proven by the entries or says that it is not known.
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

# Names that the server itself puts on entries, when it invents one for the past or merges old ones to save space.
_INVENTED = frozenset({"before-first-apply", "ancient-changes"})

# More names than these would tell nobody anything.
_MOST_CANDIDATES = 3

# What an apply may say without owning it.
_UNOWNED = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields"}
)
_KEY_DEFAULTS = {"protocol": "TCP"}
_NOTHING: Obj = {".": {}}  # in a tree, a node without anything in it means the whole; this is one with nothing in it

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
    """The paths of a fieldsV1 tree, each as its elements: `("f:spec", "f:replicas")`."""
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
    """Whether applying `desired` would leave the entry's set of fields as it is: nothing to take, nothing to give up.

    False may also mean "cannot be told"; True is certain up to fields that are owned as a whole.
    """
    if entry is None or "fieldsV1" not in entry:
        return False
    stripped: Obj = {key: value for key, value in desired.items() if key not in _UNOWNED and key != "metadata"}
    metadata = {key: value for key, value in (desired.get("metadata") or {}).items() if key not in _UNOWNED_METADATA}
    if metadata:
        stripped["metadata"] = metadata
    return _owns(entry["fieldsV1"] or _NOTHING, stripped)


def reduce(obj: Obj, managers: frozenset[str]) -> Obj:
    """Cut a fresh object's managedFields in place: our entries stay whole, of others only who and when."""
    meta = obj["metadata"]
    noted = meta.get("managedFields")
    if noted:
        meta["managedFields"] = [entry if entry.get("manager") in managers else _who_and_when(entry) for entry in noted]
    return obj


def writer(old: Obj | None, new: Obj, changed: Sequence[Difference] = ()) -> tuple[str, ...]:
    """Who made the step from `old` to `new`: one name is proven, several are candidates, none means unknown.

    It holds for one step between two versions that follow each other. Without `old`, for an object just created.
    `changed`, all that differs, tells more where no entry shows a sign: who can have set it.
    """
    if old is None:
        return _creator(new)
    return tuple(sorted(_wrote(old, new) or _could_set(new, changed)))


def made_by(old: Obj | None, new: Obj, manager: str, sent: Obj | None = None) -> bool:
    """Whether the step from `old` to `new` provably is a write of `manager`; False may also mean "cannot be told".

    `sent` is what the manager is known to have applied: it tells a list owned whole from one that was set empty.
    """
    if old is None:
        return _creator(new) == (manager,)
    return manager in _wrote(old, new) or any(
        _moved(slot, old, new, sent) for slot in _stamps(new) if slot[0] == manager and sent is not None
    )


def _slot(entry: Obj) -> _Slot:
    return entry.get("manager") or "", entry.get("operation") or "", entry.get("subresource") or ""


def _who_and_when(entry: Obj) -> Obj:
    # The same few names come back in every object of a cache, so they are shared; hardly any two times are the same.
    kept: Obj = {key: sys.intern(entry[key]) for key in ("manager", "operation", "subresource") if key in entry}
    if "time" in entry:
        kept["time"] = entry["time"]
    return kept


def _creator(obj: Obj) -> tuple[str, ...]:
    """The only manager that ever left a note, if it did so when the object was created."""
    noted = entries(obj)
    names = {entry.get("manager") or "" for entry in noted}
    created = obj["metadata"].get("creationTimestamp")
    if len(names) != 1 or not names.isdisjoint(_INVENTED | {""}) or not created:
        return ()
    born = parse_rfc3339(created)
    # Both stamps are taken within one request, though perhaps on both sides of a full second.
    if any(not entry.get("time") or abs(parse_rfc3339(entry["time"]) - born) > 1 for entry in noted):
        return ()
    return tuple(names)


def _wrote(old: Obj, new: Obj) -> set[str]:
    """Managers with a sign that only their own write leaves.

    That is an entry that is new, has another time or owns more, or another plain value at what it owns afterwards:
    whoever changes a value takes it from the others. An entry that owns less proves nothing: its manager may have given
    the field up, or have been robbed of it.
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
    """The managers of all entries that can be for these values, if they are few.

    Whoever sets a value has an entry for it afterwards. With a status subresource, status is set through that alone.
    What was only taken away is noted for nobody, and a deletion is the server's own note.
    """
    values = [one.path for one in changed if one.new is not ABSENT]
    parts = {path.partition(".")[0].partition("[")[0] for path in values}
    if not parts or any(path.startswith("metadata.deletion") for path in values):
        return set()
    apart = any(entry.get("subresource") == "status" for entry in entries(new))
    names = {entry.get("manager") or "" for entry in entries(new) if _can_be_for(entry, parts, apart)}
    return names if len(names) <= _MOST_CANDIDATES and names.isdisjoint(_INVENTED | {""}) else set()


def _can_be_for(entry: Obj, parts: set[str], apart: bool) -> bool:
    """Whether the entry can be the one of a write that set something in each of these parts of the object."""
    if entry.get("fieldsV1") and not all(f"f:{part}" in entry["fieldsV1"] for part in parts):
        return False
    subresource = entry.get("subresource") or ""
    if parts == {"status"} and apart:
        return subresource not in ("", "scale")
    return "metadata" in parts or "status" in parts or subresource != "status"


def _stamps(obj: Obj) -> dict[_Slot, Counter[str]]:
    """The times of each slot's entries; a slot has several when they differ in apiVersion, which is not kept."""
    stamps: dict[_Slot, Counter[str]] = {}
    for entry in entries(obj):
        stamps.setdefault(_slot(entry), Counter())[entry.get("time") or ""] += 1
    return stamps


def _renamed(slot: _Slot, time: str, before: dict[_Slot, Counter[str]], after: dict[_Slot, Counter[str]]) -> bool:
    """Whether another entry of this time went away: then anybody may have rewritten what it says."""
    return any(other != slot and (times - after.get(other, Counter()))[time] > 0 for other, times in before.items())


def _grew(slot: _Slot, old: Obj, new: Obj) -> bool:
    before = [entry.get("fieldsV1") for entry in entries(old) if _slot(entry) == slot]
    after = [entry.get("fieldsV1") for entry in entries(new) if _slot(entry) == slot]
    if before == after or None in before or None in after:
        return False
    return bool(_union(after) - _union(before))


def _moved(slot: _Slot, old: Obj, new: Obj, sent: Obj | None = None) -> bool:
    whole = [entry for entry in entries(new) if _slot(entry) == slot and entry.get("fieldsV1")]
    return any(_set_anew(entry["fieldsV1"], old, new, sent) for entry in whole)


def _set_anew(fields: Obj, old: Any, new: Any, sent: Any = None) -> bool:
    """Whether a value at these fields is new, so that its owner must have set it.

    A value that is gone may have been dropped by the server, under whoever's write. And an object or a list that is
    noted without anything below it is either owned whole, as it must be when its owner sent what is in it now, or was
    set empty, and then others fill it.
    """
    if old is new:
        return False
    children = [name for name in fields if name != "."]
    if not children:
        if "." in fields or new is None or same(old, new):
            return False
        return not isinstance(new, dict | list) or bool(new and same(sent, new))
    return any(_set_anew(fields[name], *(_part(name, one) for one in (old, new, sent))) for name in children)


def _part(name: str, value: Any) -> Any:
    """What one element of a fieldsV1 tree means below this value; None for nothing."""
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
        # Without a dot the field is a scalar or owned as a whole; with one, an object of which nothing is owned.
        return "." not in fields or value in ({}, [])
    if isinstance(value, dict):
        # A null asks for nothing, and yet the server notes it as owned (creationTimestamp in a pod template).
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
    # A key field that the item leaves to its default may still be noted as owned.
    keys = {f"f:{key}" for key in json.loads(name[2:]) if key not in item}
    return _owns({name: inner for name, inner in fields.items() if name not in keys}, item)


def _item(name: str, items: list[Any]) -> Obj | None:
    """The one item that a `k:{...}` element names; None when there is none or it cannot be told."""
    if not name.startswith("k:"):
        return None
    keys = json.loads(name[2:])
    found = [item for item in items if isinstance(item, dict) and _has_keys(item, keys)]
    return found[0] if len(found) == 1 else None


def _has_keys(item: Obj, keys: Obj) -> bool:
    return all(same(item.get(key, _KEY_DEFAULTS.get(key)), value) for key, value in keys.items())
