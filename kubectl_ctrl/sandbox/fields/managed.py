"""managedFields: the owners of fields after an update, and the result of server-side apply."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.fields import fieldsets
from kubectl_ctrl.sandbox.fields.fieldsets import Comparison, FieldSet
from kubectl_ctrl.sandbox.kinds import schemas, structs
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.value import Value, replace

# Fields that only the server writes have no owner.
_UNOWNED = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"),
)
_NEVER: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{f"f:{name}": {} for name in _UNOWNED}},
}
_MOST_UPDATERS = 10
_ANCIENT = "ancient-changes"


class Owner(NamedTuple):
    """The identity of an entry."""

    manager: str
    operation: str  # Apply or Update
    api_version: str  # "" for Apply: an applier stays the same over versions
    subresource: str


class ManagedFieldsEntry(Value, kw_only=True):
    fields: FieldSet
    api_version: str
    time: str


Entries = dict[Owner, ManagedFieldsEntry]


class WriteOrigin(Value, kw_only=True):
    """The manager, endpoint and time of a write."""

    manager: str
    api_version: str
    subresource: str
    now: str

    def owner(self, operation: str) -> Owner:
        return Owner(self.manager, operation, self.api_version if operation == "Update" else "", self.subresource)


def decode(listed: list[Obj] | None) -> Entries:
    entries: Entries = {}
    for entry in listed or ():
        if not entry.get("manager"):
            continue
        operation, version = entry.get("operation") or "Update", entry.get("apiVersion") or ""
        owner = Owner(
            entry["manager"], operation, version if operation == "Update" else "", entry.get("subresource") or ""
        )
        fields = entry.get("fieldsV1") or {}
        entries[owner] = ManagedFieldsEntry(fields=fields, api_version=version, time=entry.get("time") or "")
    return entries


def encode(entries: Entries) -> list[Obj]:
    """Appliers first, then by time and name, as the server sorts them."""
    ordered = sorted(entries.items(), key=lambda item: (item[0].operation, item[1].time, *item[0]))
    return [_encoded(owner, entry) for owner, entry in ordered if entry.fields]


def _encoded(owner: Owner, entry: ManagedFieldsEntry) -> Obj:
    listed: Obj = {"manager": owner.manager, "operation": owner.operation, "apiVersion": entry.api_version}
    if entry.time:
        listed["time"] = entry.time
    listed["fieldsType"] = "FieldsV1"
    listed["fieldsV1"] = entry.fields
    if owner.subresource:
        listed["subresource"] = owner.subresource
    return listed


def schema_of(kind: ServedKind) -> Obj:
    return schemas.full(kind.schema) if kind.custom else kind.schema


def updated(kind: ServedKind, old: Obj | None, new: Obj, change: WriteOrigin) -> Obj:
    """`new` with the managedFields that this create, update or patch leaves."""
    given = new["metadata"].get("managedFields")
    if old is not None and not old["metadata"].get("managedFields") and not given:
        return with_entries(new, {})  # not tracked yet: the first apply starts tracking
    before = _before(old, given, change.subresource)
    live = bare(old) if old is not None else _empty(kind, new)
    comparison = _compare(kind, live, bare(new), change.subresource)
    entries = _after(before, comparison)
    if comparison.taken:
        owner = change.owner("Update")
        mine = entries[owner].fields if owner in entries else {}
        entries[owner] = _entry(fieldsets.union(mine, comparison.taken), change.api_version, change.now)
    return with_entries(new, _capped(entries))


def _capped(entries: Entries) -> Entries:
    """At most ten updaters: the oldest ones of each version become one."""
    oldest = sorted(
        (owner for owner in entries if owner.operation == "Update"), key=lambda one: (entries[one].time, one)
    )
    excess, entries, firsts = len(oldest) - _MOST_UPDATERS, dict(entries), dict[str, Owner]()
    for owner in oldest:
        if excess <= 0:
            break
        first = firsts.setdefault(owner.api_version, owner)
        if first is owner:
            continue
        bucket = Owner(_ANCIENT, "Update", owner.api_version, "")
        if bucket not in entries:
            entries[bucket] = entries.pop(first)
        if owner != bucket:
            last = entries.pop(owner)
            fields = fieldsets.union(entries[bucket].fields, last.fields)
            entries[bucket] = _entry(fields, last.api_version, last.time)
        excess -= 1
    return entries


def _before(old: Obj | None, given: list[Obj] | None, subresource: str) -> Entries:
    """The entries to start from: those of the request, so that clients can edit them, else the stored ones."""
    live = decode(old["metadata"].get("managedFields")) if old is not None else {}
    if subresource or not given or not all(fieldsets.is_set(entry.get("fieldsV1") or {}) for entry in given):
        return live
    return decode(given)  # a client removes all entries by sending one empty entry


def _after(entries: Entries, comparison: Comparison) -> Entries:
    """Changed fields leave their former owners, and removed fields have no owner."""
    if not entries:
        return {}
    lost = fieldsets.union(comparison.taken, comparison.removed)
    left = {owner: replace(entry, fields=fieldsets.difference(entry.fields, lost)) for owner, entry in entries.items()}
    return {owner: entry for owner, entry in left.items() if entry.fields}


def _entry(fields: FieldSet, api_version: str, time: str) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(fields=fields, api_version=api_version, time=time)


def with_entries(obj: Obj, entries: Entries) -> Obj:
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    if listed := encode(entries):
        meta["managedFields"] = listed
    return {**obj, "metadata": meta}


def bare(obj: Obj) -> Obj:
    """The object without its managedFields, which have no owners themselves."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": meta}


def _empty(kind: ServedKind, new: Obj) -> Obj:
    """The base that a created object is compared with: the structs that always exist, empty."""
    empty = _named(new)
    if not kind.custom:
        empty |= structs.empty(kind.schema)
    if kind.resource.kind == "Namespace":
        empty["spec"] = new.get("spec")  # written by the server
    return empty


def _named(obj: Obj) -> Obj:
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {}}


def _compare(kind: ServedKind, old: Obj, new: Obj, subresource: str) -> Comparison:
    found = fieldsets.compare(old, new, schema_of(kind))
    return Comparison(_ownable(kind, found.removed, subresource), _ownable(kind, found.taken, subresource))


def _ownable(kind: ServedKind, fields: FieldSet, subresource: str) -> FieldSet:
    """Of a field set what can be owned through this endpoint."""
    left = fieldsets.difference(fields, _NEVER)
    if subresource == "status":
        left = {element: node for element, node in left.items() if element != "f:spec"}
        kept = {f"f:{name}" for name in kind.kept_metadata(subresource)}
        meta = {element: node for element, node in left.pop("f:metadata", {}).items() if element not in kept}
        return {"f:metadata": meta, **left} if meta else left
    if kind.has_status and not subresource:
        return {element: node for element, node in left.items() if element != "f:status"}
    return left


def applied(kind: ServedKind, old: Obj | None, config: Obj, change: WriteOrigin, *, force: bool) -> Obj:
    """The result of server-side apply; raises the 409 of a conflict."""
    schema = schema_of(kind)
    entries = _first(kind, old, change)
    live = bare(old) if old is not None else _named(config)
    owner = change.owner("Apply")
    last = entries.pop(owner, None)
    named = fieldsets.fields_of(config, schema)
    mine = _ownable(kind, named, change.subresource)
    result = fieldsets.merged(live, config, schema)
    owned = last.fields if last is not None else {}
    if fieldsets.difference(owned, named):
        # The name has no owner but is in the set: it keeps metadata when all other fields are removed.
        everyone = reduce(fieldsets.union, (entry.fields for entry in entries.values()), named)
        result = _pruned(result, owned, everyone, schema)
    comparison = _compare(kind, live, result, change.subresource)
    if not force:
        _check_conflicts(entries, comparison)
    entries = _after(entries, comparison)
    # An apply that changes no value keeps the time, even if it takes fields: a new entry then has none.
    before = last.time if last is not None else ""
    time = before if same(live, result) else change.now
    entries[owner] = _entry(mine, change.api_version, time)
    return with_entries(result, entries)


def _first(kind: ServedKind, old: Obj | None, change: WriteOrigin) -> Entries:
    """The entries before an apply; all fields of an untracked object belong to the manager before-first-apply."""
    if old is None:
        return {}
    if old["metadata"].get("managedFields"):
        return decode(old["metadata"]["managedFields"])
    taken = _compare(kind, _empty(kind, old), bare(old), change.subresource).taken
    return {
        Owner("before-first-apply", "Update", change.api_version, ""): _entry(taken, change.api_version, change.now)
    }


def _pruned(result: Obj, last: FieldSet, everyone: FieldSet, schema: Obj) -> Obj:
    """Without the fields that this applier no longer sends and nobody else owns."""
    present = _named_fields(result, schema)
    last = fieldsets.with_named(last, schema)
    owned = fieldsets.with_named(everyone, schema)
    left = fieldsets.union(_named_fields(fieldsets.without(result, last, schema), schema), owned)
    cut = fieldsets.without(result, fieldsets.difference(present, left), schema)
    gone = fieldsets.difference(present, _named_fields(cut, schema))
    return dict(fieldsets.without(result, fieldsets.intersection(gone, last), schema) or {})


def _named_fields(obj: Obj | None, schema: Obj) -> FieldSet:
    return {} if obj is None else fieldsets.with_named(fieldsets.fields_of(obj, schema), schema)


def _check_conflicts(entries: Entries, comparison: Comparison) -> None:
    causes: list[Obj] = []
    for owner, entry in sorted(entries.items(), key=lambda item: item[0]):
        words = f'conflict with "{owner.manager}"'
        if owner.subresource:
            words += f' with subresource "{owner.subresource}"'
        if owner.operation == "Update":
            words += f" using {entry.api_version}"
        causes += [
            {"reason": "FieldManagerConflict", "message": words, "field": fieldsets.shown(path)}
            for path in fieldsets.in_order(fieldsets.intersection(entry.fields, comparison.taken))
        ]
    if causes:
        raise answers.apply_conflict(causes)
