"""What the cache tells its subscribers: one object's step from one version to another."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.objects import Key, Obj, key_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value


class ChangeKind(StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RESYNC = "resync"  # local, old is new; nothing happened on the server


class Change(Value, kw_only=True):
    """One step of one object; `old` and `new` are the cache's own objects, held by reference."""

    kind: ChangeKind
    resource: Resource
    old: Obj | None
    new: Obj | None
    version: str  # the resourceVersion of the event; for a deletion that of the deletion, "" when it is not known
    initial: bool = False  # part of the first list, or replayed to a late subscriber
    relisted: bool = False  # found by a later list, or after an unusable event: versions in between may be unseen

    @property
    def obj(self) -> Obj:
        """The newest state known: `new`, or for a deletion the last one seen."""
        obj = self.new if self.new is not None else self.old
        assert obj is not None
        return obj

    @property
    def key(self) -> Key:
        return key_of(self.obj)
