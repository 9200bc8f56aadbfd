"""The store: the last state of every object that list and watch delivered, and indexes over it.

Every method changes objects, order and indexes together and returns the changes; it calls no subscriber.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Key, Obj, key_of, uid_of, version_of
from kubectl_ctrl.model.resources import Resource

IndexFn = Callable[[Obj], Iterable[str]]

_log = logging.getLogger(__name__)

_NOTHING: frozenset[Key] = frozenset()


class Index:
    """Value -> keys of the objects that have it, by a pure function of the object."""

    def __init__(self, name: str, values: IndexFn) -> None:
        self.name = name
        self.errors = 0  # objects for which the function raised; they have no values
        self._function = values
        self._keys: dict[str, set[Key]] = {}
        # The values of each key, so that it can be removed from them even if the object was changed in place.
        self._filed: dict[Key, tuple[str, ...]] = {}

    def values(self, obj: Obj) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(self._function(obj)))
        except Exception:  # noqa: BLE001  # one odd object must not stop the watch
            self.errors += 1
            if self.errors == 1:
                _log.exception(
                    "An index function raised; objects like this one are not found through the index.",
                    extra={"action": "cache.index_raised", "index": self.name, "object": str(key_of(obj))},
                )
            return ()

    def file(self, key: Key, obj: Obj | None) -> None:
        """Index the object that is now at that key; None when it is gone."""
        before = self._filed.get(key, ())
        after = self.values(obj) if obj is not None else ()
        if after == before:
            return
        for value in before:
            self._remove(value, key)
        for value in after:
            self._keys.setdefault(value, set()).add(key)
        if after:
            self._filed[key] = after
        else:
            del self._filed[key]

    def keys_of(self, value: str) -> AbstractSet[Key]:
        return self._keys.get(value, _NOTHING)

    def _remove(self, value: str, key: Key) -> None:
        keys = self._keys[value]
        keys.discard(key)
        if not keys:
            del self._keys[value]

    def __repr__(self) -> str:
        return f"Index({self.name}, values={len(self._keys)}, objects={len(self._filed)}, errors={self.errors})"


class Store:
    """Objects of one resource type by key. They are shared with all readers: nobody changes one in place."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self.objects: dict[Key, Obj] = {}
        self.version = ""  # the one that list and watch have reached; "" before the first list
        self._order: list[Key] = []  # the keys of `objects`, sorted
        self._indexes: dict[str, Index] = {}

    def get(self, key: Key) -> Obj | None:
        return self.objects.get(key)

    def sorted_keys(self, namespace: str = "") -> list[Key]:
        """All of them, or those of one namespace."""
        if not namespace:
            return self._order[:]
        start = bisect_left(self._order, (namespace, ""))
        return self._order[start : bisect_left(self._order, (namespace + "\0", ""))]

    def index(self, name: str) -> Index:
        return self._indexes[name]

    @property
    def indexes(self) -> tuple[str, ...]:
        return tuple(self._indexes)

    def add_index(self, name: str, values: IndexFn) -> None:
        """Indexes the present objects too. The name must not be in use."""
        index = Index(name, values)
        for key, obj in self.objects.items():
            index.file(key, obj)
        self._indexes[name] = index

    def drop_index(self, name: str) -> None:
        del self._indexes[name]

    def put(self, obj: Obj) -> tuple[Change, ...]:
        """The object's new state. Another UID is another object: the deletion of the old one was not seen."""
        key = key_of(obj)
        old = self.objects.get(key)
        if old is obj:
            return ()
        if old is None:
            insort(self._order, key)
        self.objects[key] = obj
        self._file(key, obj)
        return self._step(old, obj)

    def remove(self, last: Obj) -> tuple[Change, ...]:
        """The object was deleted, or left the selection; `last` is its final state and carries the event's version."""
        key = key_of(last)
        old = self.objects.pop(key, None)
        if old is None:
            return ()
        del self._order[bisect_left(self._order, key)]
        self._file(key, None)
        if uid_of(old) != uid_of(last):
            return (self._gone(old),)
        return (Change(kind=ChangeKind.DELETED, resource=self._resource, old=last, new=None, version=version_of(last)),)

    def replace(self, objects: Mapping[Key, Obj], *, initial: bool) -> list[Change]:
        """Replace all objects. Returns the changes: first deletions, then the others, each sorted by key."""
        before, before_order = self.objects, self._order
        self.objects = dict(objects)
        self._order = sorted(self.objects)
        gone = [key for key in before_order if key not in self.objects]
        changed = [key for key in self._order if self.objects[key] is not before.get(key)]
        for key in (*gone, *changed):
            self._file(key, self.objects.get(key))
        changes = [self._gone(before[key]) for key in gone]
        for key in changed:
            changes += self._step(before.get(key), self.objects[key], initial=initial, relisted=not initial)
        return changes

    def _file(self, key: Key, obj: Obj | None) -> None:
        for index in self._indexes.values():
            index.file(key, obj)

    def _step(self, old: Obj | None, new: Obj, *, initial: bool = False, relisted: bool = False) -> tuple[Change, ...]:
        if old is not None and uid_of(old) != uid_of(new):
            return self._gone(old), *self._step(None, new, relisted=relisted)
        kind = ChangeKind.ADDED if old is None else ChangeKind.MODIFIED
        version = version_of(new)
        change = Change(
            kind=kind, resource=self._resource, old=old, new=new, version=version, initial=initial, relisted=relisted
        )
        return (change,)

    def _gone(self, old: Obj) -> Change:
        """A deletion that no event reported: it has the last known state and no version."""
        return Change(kind=ChangeKind.DELETED, resource=self._resource, old=old, new=None, version="", relisted=True)

    def __len__(self) -> int:
        return len(self.objects)

    def __repr__(self) -> str:
        return f"Store({self._resource}, objects={len(self)}, indexes={len(self._indexes)})"
