"""The notifications of the cache: one change of one object."""

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
    """One change of one object; `old` and `new` are references to the cache's objects."""

    kind: ChangeKind
    resource: Resource
    old: Obj | None
    new: Obj | None
    version: str  # the resourceVersion of the event; "" for a deletion found by a list
    initial: bool = False  # from the first list, or repeated for a later subscriber
    relisted: bool = False  # found by a later list, or after an invalid event: versions in between may have been missed

    @property
    def obj(self) -> Obj:
        """The last known state: `new`, or for a deletion `old`."""
        obj = self.new if self.new is not None else self.old
        assert obj is not None
        return obj

    @property
    def key(self) -> Key:
        return key_of(self.obj)
