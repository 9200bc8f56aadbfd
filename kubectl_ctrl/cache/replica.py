"""A local copy of the objects of a selection: list and watch deliver into it, readers and subscribers read from it.

The order inside of each delivery is the promise of this room: store and indexes first, then the overlay, then
subscribers. It all happens on the event loop's thread and without waiting, so a reader never sees half of it.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from random import Random

from kubectl_ctrl.cache.fanout import Fanout, Handler, Subscription
from kubectl_ctrl.cache.overlay import Overlay
from kubectl_ctrl.cache.projection import Projection, StringPool
from kubectl_ctrl.cache.selection import ParsedSelection, Selection
from kubectl_ctrl.cache.store import IndexFn, Store
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.change import Change
from kubectl_ctrl.model.objects import Key, Obj, key_of, labels_of, uid_of, version_of
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.value import replace

_MOST_FAMILIES = 1000


class Staging:
    """A list under way; invisible until it is complete."""

    def __init__(self, mark: int) -> None:
        self.mark = mark  # of the overlay, from before the request
        self.objects: dict[Key, Obj] = {}

    def __repr__(self) -> str:
        return f"Staging(objects={len(self.objects)})"


class Replica:
    """The copy behind one informer."""

    def __init__(
        self,
        selection: Selection,
        *,
        managers: frozenset[str],
        texts: StringPool,
        clock: Clock,
        rng: Random,
        read_only_objects: bool,
    ) -> None:
        self.selection = selection
        self.store = Store(selection.resource)
        self.overlay = Overlay(self.store, clock=clock, narrowed=selection.narrowed)
        self.fanout = Fanout(selection.resource, clock=clock, rng=rng, view=lambda: list(self.store.objects.values()))
        self.epoch = 0  # completed lists
        self._scope = ParsedSelection(selection)
        self._projection = Projection(selection, managers=managers, texts=texts, read_only_objects=read_only_objects)
        self._missed = False  # since the last list an event of some object was malformed
        self._families: dict[str, Key] = {}  # the last object of each family, as a pattern for the next

    @property
    def synced(self) -> bool:
        return self.epoch > 0

    # Reads; each is consistent.

    def get(self, key: Key) -> Obj | None:
        stored = self.store.get(key)
        return self.overlay.visible(key, stored) if self.overlay else stored

    def list(self, namespace: str = "", selector: Selector | None = None) -> list[Obj]:
        """Sorted by key."""
        keys = self.store.sorted_keys(namespace)
        if self.overlay:
            added = [key for key in self.overlay.entry_keys() if self.store.get(key) is None]
            added = [key for key in added if namespace in ("", key.namespace)]
            keys = sorted([*keys, *added]) if added else keys
        found = [obj for key in keys if (obj := self.get(key)) is not None]
        return found if selector is None else [obj for obj in found if selector.matches(labels_of(obj))]

    def by_index(self, name: str, value: str) -> builtins.list[Obj]:
        """The objects for which the index function gives that value now, sorted by key."""
        index = self.store.index(name)
        if not self.overlay:
            return [self.store.objects[key] for key in sorted(index.keys_of(value))]
        filed, found = index.keys_of(value), []
        for key in sorted({*filed, *self.overlay.entry_keys()}):
            obj = self.get(key)
            if obj is None:
                continue
            as_stored = obj is self.store.get(key)
            if key in filed if as_stored else value in index.values(obj):
                found.append(obj)
        return found

    def add_index(self, name: str, values: IndexFn) -> None:
        self.store.add_index(name, values)

    def drop_index(self, name: str) -> None:
        self.store.drop_index(name)

    @property
    def indexes(self) -> tuple[str, ...]:
        return self.store.indexes

    # Deliveries of list and watch.

    def stage(self) -> Staging:
        """To be called right before a list is requested."""
        self._missed = False
        return Staging(self.overlay.mark())

    def add(self, staging: Staging, fresh: Obj) -> None:
        """One object of a list; raises for a malformed one."""
        key = key_of(fresh)
        staging.objects[key] = self._projection.of(fresh, self._like(key, fresh, staging))

    def keep(self, staging: Staging, broken: Obj) -> None:
        """The list has a malformed version of this object: the last good one stays."""
        key = key_of(broken)
        if (known := self.store.get(key)) is not None:
            staging.objects[key] = known

    def drop(self, staging: Staging, obj: Obj) -> None:
        """The object was deleted while its list was under way."""
        staging.objects.pop(key_of(obj), None)

    def missed(self) -> None:
        """An event was malformed. Until the next list any change may hide versions in between."""
        self._missed = True

    def replace(self, staging: Staging, version: str) -> None:
        """The list is complete."""
        before, self.store.version = self.store.version, version
        changes = self.store.replace(staging.objects, initial=not self.synced)
        self.overlay.replaced(staging.mark, before)
        self.epoch += 1
        self.fanout.deliver_list(changes)

    def put(self, fresh: Obj) -> None:
        """ADDED or MODIFIED."""
        obj = self._projection.of(fresh, self._like(key_of(fresh), fresh, None))
        changes = self.store.put(obj)
        if self._missed:
            changes = tuple(replace(change, relisted=True) for change in changes)
        self._deliver(obj, changes, deleted=False)

    def remove(self, fresh: Obj) -> None:
        """DELETED: it is gone, or left the selection."""
        key = key_of(fresh)
        last = self._projection.of(fresh, self._like(key, fresh, None))
        self._deliver(last, self.store.remove(last), deleted=True)

    def bookmark(self, version: str) -> bool:
        """BOOKMARK: the watch has reached this version. Returns False when only a new list can show the state."""
        self.store.version = version
        self.overlay.advance(version)
        return not (self.overlay and self.overlay.overdue())

    # Answers of own writes.

    def wrote(self, answer: Obj) -> None:
        """A write was answered with this object."""
        if not self._is_ours(answer):
            return
        inside = self._scope.holds(answer)
        like = self.get(key_of(answer))
        self.overlay.put(answer, self._projection.of_shared(answer, like) if inside else None)

    def removed(self, key: Key, uid: str, version: str) -> None:
        """The server reported the object as deleted."""
        if uid and self._scope.reaches(key.namespace):
            self.overlay.delete(key, uid, version)

    def subscribe(
        self, name: str, handler: Handler, *, resync: float | None, replaced: Callable[[], None] | None
    ) -> Subscription:
        view = [self.store.objects[key] for key in self.store.sorted_keys()] if self.synced else None
        return self.fanout.add(name, handler, resync=resync, replaced=replaced, view=view)

    def _deliver(self, obj: Obj, changes: tuple[Change, ...], *, deleted: bool) -> None:
        self.store.version = version_of(obj) or self.store.version
        self.overlay.saw(obj, deleted=deleted)
        self.fanout.tell(changes)

    def _like(self, key: Key, fresh: Obj, staging: Staging | None) -> Obj | None:
        """The object that shares most with it: its last version, else the last object with its generateName."""
        known = self.get(key) or self.store.get(key)
        if known is not None:
            return known
        family = fresh["metadata"].get("generateName") or ""
        pattern = self._families.get(family)
        if len(self._families) >= _MOST_FAMILIES:
            self._families.clear()
        self._families[family] = key
        if pattern is None:
            return None
        staged = staging.objects.get(pattern) if staging is not None else None
        return staged if staged is not None else self.store.get(pattern)

    def _is_ours(self, answer: Obj) -> bool:
        """A write to a subresource may be answered with another kind, such as a Scale; that is not the object."""
        kind = answer.get("kind") or self.selection.resource.kind
        known = bool(uid_of(answer) and version_of(answer))
        return known and kind == self.selection.resource.kind and self._scope.reaches(key_of(answer).namespace)

    def __repr__(self) -> str:
        return f"Replica({self.selection}, epoch={self.epoch}, {self.store!r}, {self.overlay!r}, {self.fanout!r})"
