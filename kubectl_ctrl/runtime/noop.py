"""Decides whether an apply would change anything, so that a controller at rest writes nothing.

(a) No, if the object has all desired fields and the controller owns exactly those. (b) No, if it was found before, for
this desired state and the same values of the object in its fields. (c) Else a dry run decides: defaults and normal
forms of the server (cpu "1000m" is stored as "1") look like differences, but are none.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from typing import Any

import orjson

from kubectl_ctrl.client.options import PatchKind
from kubectl_ctrl.errors import Invalid
from kubectl_ctrl.model.diffs import ABSENT, BOOKKEEPING, Difference, diff, is_subset
from kubectl_ctrl.model.managed_fields import own_entry, owns_exactly
from kubectl_ctrl.model.objects import Obj, uid_of, version_of
from kubectl_ctrl.model.resources import ObjectRef
from kubectl_ctrl.runtime.handover import leftovers_patch
from kubectl_ctrl.runtime.writes import Writes
from kubectl_ctrl.value import Value

_MOST_REMEMBERED = 50_000

# The server derives bookkeeping from the rest; an apply to an object with a status subresource ignores the status.
_NOT_COMPARED = BOOKKEEPING | {"status"}


class SettledState(Value):
    """A desired state that needs no apply, and the differing values of the object in its fields; both as hashes."""

    desired: str
    differing: str


class Settlements:
    """The settled states by UID and subresource; kept over attempts, so that each needs one dry run."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], SettledState] = OrderedDict()
        self._children: OrderedDict[tuple[str, ObjectRef], None] = OrderedDict()  # (UID of the owner, child)

    def note_child(self, owner: Obj, child: ObjectRef) -> None:
        self._children[uid_of(owner), child] = None
        self._children.move_to_end((uid_of(owner), child))
        if len(self._children) > _MOST_REMEMBERED:
            self._children.popitem(last=False)

    def had_child(self, owner: Obj, child: ObjectRef) -> bool:
        """The owner has had this child, as far as is known."""
        return (uid_of(owner), child) in self._children

    def get(self, obj: Obj, subresource: str) -> SettledState | None:
        return self._known.get((uid_of(obj), subresource))

    def put(self, obj: Obj, desired: Obj, subresource: str) -> None:
        key = (uid_of(obj), subresource)
        self._known[key] = _settled(desired, _differing(desired, obj))
        self._known.move_to_end(key)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def __repr__(self) -> str:
        return f"Settlements({len(self._known)})"


class ApplyNeed:
    """The decision, for the applies of one attempt."""

    def __init__(self, writes: Writes, settlements: Settlements) -> None:
        self._writes = writes
        self._settlements = settlements

    async def of_child(self, live: Obj, desired: Obj, ref: ObjectRef) -> bool:
        """Applying `desired` over `live`, an own child, would change something."""
        applied, posted = self._entries(live, ref)
        if is_subset(desired, live) and owns_exactly(applied or posted, desired):
            return False
        differing = _differing(desired, live)
        now, known = _settled(desired, differing), self._settlements.get(live, ref.subresource)
        if known == now:
            return False
        if known is not None and _surely(differing):
            return True  # a dry run would only confirm it
        try:
            if await self._changes(live, desired, ref):
                return True
        except Invalid:
            # After a POST an apply removes nothing, and old fields may conflict with new ones: two ports of one name.
            if posted is None:
                raise
            return True
        # For the same reason a dry run does not show the fields to remove.
        if posted is not None and await self._drops(live, posted, desired, ref):
            return True
        self._settlements.put(live, desired, ref.subresource)
        return False

    async def of_status(self, live: Obj, desired: Obj, ref: ObjectRef) -> bool:
        """The same for a status, which has no normal forms of a server: each difference is one."""
        if not is_subset(desired["status"], live.get("status") or {}):
            return True
        applied, _ = self._entries(live, ref)
        if owns_exactly(applied, desired):
            return False
        if self._settlements.get(live, ref.subresource) == _settled(desired, _differing(desired, live)):
            return False
        if await self._changes(live, desired, ref):
            return True
        self._settlements.put(live, desired, ref.subresource)
        return False

    def note_child(self, owner: Obj, child: ObjectRef) -> None:
        self._settlements.note_child(owner, child)

    def had_child(self, owner: Obj, child: ObjectRef) -> bool:
        return self._settlements.had_child(owner, child)

    def settle(self, answer: Obj, desired: Obj, ref: ObjectRef) -> None:
        """A write of `desired` got this answer: the server made the differences."""
        self._settlements.put(answer, desired, ref.subresource)

    def _entries(self, live: Obj, ref: ObjectRef) -> tuple[Obj | None, Obj | None]:
        """The managedFields entry of own applies and, without one, that of the POST."""
        applied = own_entry(live, self._writes.manager, "Apply", ref.subresource)
        posted = own_entry(live, self._writes.manager, "Update", ref.subresource) if applied is None else None
        return applied, posted

    async def _changes(self, live: Obj, desired: Obj, ref: ObjectRef) -> bool:
        answer = await self._writes.try_out(ref, with_uid(desired, live), PatchKind.APPLY)
        if _same(answer, live, ref):
            return False
        if version_of(answer) == version_of(live):
            return True
        # The dry run was made on a newer object: another client may have made the differences.
        newer = await self._writes.client.get(ref.sub(""))
        return not _same(answer, newer, ref)

    async def _drops(self, live: Obj, posted: Obj, desired: Obj, ref: ObjectRef) -> bool:
        """The POST set a field that is no longer desired; a dry run restores defaults that the patch removes."""
        patch = leftovers_patch(live, posted, desired)
        if patch is None:
            return False
        try:
            answer = await self._writes.try_out(ref, patch, PatchKind.JSON)
        except Invalid:  # a field is required, so it was not omitted
            return False
        return not _same(answer, live, ref)


def with_uid(desired: Obj, live: Obj) -> Obj:
    """The body of an apply to this very object, not to a new one of its name."""
    return {**desired, "metadata": {**desired["metadata"], "uid": uid_of(live)}}


def _same(answer: Obj, live: Obj, ref: ObjectRef) -> bool:
    if ref.subresource:
        return not diff(answer.get(ref.subresource), live.get(ref.subresource))
    return not diff(answer, live, ignore=_NOT_COMPARED)


def _differing(desired: Obj, live: Obj) -> list[Difference]:
    """The differences in the fields of `desired`; other fields belong to other managers."""
    return list(diff(desired, live, of_old=True))


def _surely(differing: list[Difference]) -> bool:
    """A number differs, which has only one normal form; a text may be a quantity in another form."""
    return any(isinstance(one.old, int) and isinstance(one.new, int) for one in differing)


def _settled(desired: Obj, differing: list[Difference]) -> SettledState:
    held = [(one.path, [] if one.new is ABSENT else [one.new]) for one in differing]
    return SettledState(_hash(desired), _hash(held))


def _hash(value: Any) -> str:
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # text that is not Unicode, or a number beyond 64 bits
        text = json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()
