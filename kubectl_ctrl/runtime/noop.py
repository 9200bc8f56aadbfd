"""Would an apply change anything? Asked before each one, so that a controller at rest writes nothing.

(a) No, when the object has all that is desired and we own exactly that. (b) No, when this was found out before, for
this desired state and what the object then held at the same places. (c) Else a dry run tells: defaults and normal forms
of the server (cpu "1000m" is stored as "1") look like differences and are none.
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

# Bookkeeping follows from the rest, and an apply to an object with a status subresource does not touch its status.
_NOT_COMPARED = BOOKKEEPING | {"status"}


class Settled(Value):
    """A desired state that needed no apply, and what the object held at the same places; both as hashes."""

    desired: str
    differing: str


class Settlements:
    """What is known to be settled, by UID and subresource; kept over attempts, so that nobody asks twice."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], Settled] = OrderedDict()
        self._children: OrderedDict[tuple[str, ObjectRef], None] = OrderedDict()  # (UID of the owner, child)

    def note_child(self, owner: Obj, child: ObjectRef) -> None:
        """The owner has this child."""
        self._children[uid_of(owner), child] = None
        self._children.move_to_end((uid_of(owner), child))
        if len(self._children) > _MOST_REMEMBERED:
            self._children.popitem(last=False)

    def had_child(self, owner: Obj, child: ObjectRef) -> bool:
        """Whether it ever had, as far as is known."""
        return (uid_of(owner), child) in self._children

    def get(self, obj: Obj, subresource: str) -> Settled | None:
        return self._known.get((uid_of(obj), subresource))

    def put(self, obj: Obj, desired: Obj, subresource: str) -> None:
        key = (uid_of(obj), subresource)
        self._known[key] = _settled(desired, _differing(desired, obj))
        self._known.move_to_end(key)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def __repr__(self) -> str:
        return f"Settlements({len(self._known)})"


class Need:
    """The question, for the objects that one attempt would apply."""

    def __init__(self, writes: Writes, settlements: Settlements) -> None:
        self._writes = writes
        self._settlements = settlements

    async def of_child(self, live: Obj, desired: Obj, ref: ObjectRef) -> bool:
        """Whether applying `desired` over `live`, a child of ours, would change anything."""
        applied, posted = self._entries(live, ref)
        if is_subset(desired, live) and owns_exactly(applied or posted, desired):
            return False
        differing = _differing(desired, live)
        now, known = _settled(desired, differing), self._settlements.get(live, ref.subresource)
        if known == now:
            return False
        if known is not None and _surely(differing):
            return True  # a dry run would only say so
        try:
            if await self._changes(live, desired, ref):
                return True
        except Invalid:
            # Over our POST an apply drops nothing, and what stays may not go with what comes: two ports of one name.
            if posted is None:
                raise
            return True
        # For the same reason a dry run does not tell what it would drop.
        if posted is not None and await self._drops(live, posted, desired, ref):
            return True
        self._settlements.put(live, desired, ref.subresource)
        return False

    async def of_status(self, live: Obj, desired: Obj, ref: ObjectRef) -> bool:
        """The same for a status, which nobody else puts into normal forms: what differs is different."""
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
        """A write of `desired` was answered so: whatever differs in it is the server's doing."""
        self._settlements.put(answer, desired, ref.subresource)

    def _entries(self, live: Obj, ref: ObjectRef) -> tuple[Obj | None, Obj | None]:
        """Our managedFields entry as an applier; and, where there is none, that of our POST."""
        applied = own_entry(live, self._writes.manager, "Apply", ref.subresource)
        posted = own_entry(live, self._writes.manager, "Update", ref.subresource) if applied is None else None
        return applied, posted

    async def _changes(self, live: Obj, desired: Obj, ref: ObjectRef) -> bool:
        answer = await self._writes.try_out(ref, with_uid(desired, live), PatchKind.APPLY)
        if _same(answer, live, ref):
            return False
        if version_of(answer) == version_of(live):
            return True
        # The dry run was made on a newer object than ours: what differs may be somebody else's news.
        newer = await self._writes.client.get(ref.sub(""))
        return not _same(answer, newer, ref)

    async def _drops(self, live: Obj, posted: Obj, desired: Obj, ref: ObjectRef) -> bool:
        """Whether our POST set something that is no longer desired; its defaults come back when they are taken away."""
        patch = leftovers_patch(live, posted, desired)
        if patch is None:
            return False
        try:
            answer = await self._writes.try_out(ref, patch, PatchKind.JSON)
        except Invalid:  # something of it must be there, so it was not dropped
            return False
        return not _same(answer, live, ref)


def with_uid(desired: Obj, live: Obj) -> Obj:
    """The body of an apply that can only ever hit this very object."""
    return {**desired, "metadata": {**desired["metadata"], "uid": uid_of(live)}}


def _same(answer: Obj, live: Obj, ref: ObjectRef) -> bool:
    if ref.subresource:
        return not diff(answer.get(ref.subresource), live.get(ref.subresource))
    return not diff(answer, live, ignore=_NOT_COMPARED)


def _differing(desired: Obj, live: Obj) -> list[Difference]:
    """What differs at the places that `desired` speaks of; what others have elsewhere is theirs."""
    return list(diff(desired, live, of_old=True))


def _surely(differing: list[Difference]) -> bool:
    """Whether something differs that has only one normal form: text may be a quantity or a default in other words."""
    return any(isinstance(one.old, int) and isinstance(one.new, int) for one in differing)


def _settled(desired: Obj, differing: list[Difference]) -> Settled:
    held = [(one.path, [] if one.new is ABSENT else [one.new]) for one in differing]
    return Settled(_hash(desired), _hash(held))


def _hash(value: Any) -> str:
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # text that is not Unicode, or a number beyond 64 bits
        text = json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()
