"""The overlay: the answers of own writes, laid over the store until the watch has reached them.

Readers see their own writes at once, and nothing waits for the watch. Each is for one key at one version: the
object that the server answered, or None when the write moved it out of the selection. It hides the stored object while
the store's version is older. A deletion has no version; its tombstone hides a UID, which is never used again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from kubectl_ctrl.cache.store import Store
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Key, Obj, key_of, uid_of, version_of
from kubectl_ctrl.model.rv import VersionOrder, compare
from kubectl_ctrl.value import Value

# A working watch is never this far behind: it has a bookmark every minute.
_OVERDUE = 180.0

# Only servers with unusual watches let these grow.
_MOST_TOMBSTONES = 10_000
_MOST_SEEN = 1_000


class OwnWrite(Value, kw_only=True):
    """The answer of one write."""

    key: Key
    uid: str
    version: str
    obj: Obj | None  # None: outside of the selection since this version
    number: int  # counts answers, so that a list is known to contain those from before its request
    at: float  # elapsed time


class Tombstone(Value, kw_only=True):
    """An object that the server reported as deleted."""

    key: Key
    number: int
    at: float


class Overlay:
    """Own writes by key and tombstones by UID, over one store."""

    def __init__(self, store: Store, *, clock: Clock, narrowed: bool) -> None:
        self._store = store
        self._clock = clock
        self._narrowed = narrowed  # then DELETED may mean "left the selection", and the object may come back
        self._entries: dict[Key, OwnWrite] = {}
        self._tombstones: OrderedDict[str, Tombstone] = OrderedDict()  # oldest first
        self._queue: list[tuple[int, str, int, Key]] = []  # heap of the entries whose versions have an order
        # (UID, version) of events without an order, (UID, "") of deletions: a write's answer may come after its event.
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._number = 0

    def visible(self, key: Key, stored: Obj | None) -> Obj | None:
        """The object that readers see in place of `stored`."""
        entry = self._entries.get(key)
        obj = entry.obj if entry is not None else stored
        return None if obj is not None and uid_of(obj) in self._tombstones else obj

    def entry_keys(self) -> Iterable[Key]:
        """The keys at which the overlay may show an object."""
        return self._entries.keys()

    def put(self, answer: Obj, kept: Obj | None) -> None:
        """A write was answered; `kept` is the cached form of the answer, or None when it is outside of the selection.

        Events often overtake answers: the event of this write may have arrived, and even the deletion of the object.
        """
        self._add(key_of(answer), uid_of(answer), version_of(answer), kept)

    def delete(self, key: Key, uid: str, version: str) -> None:
        """The server reported the object as deleted; `version` is its last known version, if any.

        With a version, an older object of the same name is hidden too: the store may not have seen the deleted one yet.
        """
        if (uid, "") in self._seen:
            return
        if version:
            self._add(key, uid, version, None)
        self._tombstones[uid] = Tombstone(key=key, number=self._next(), at=self._clock.elapsed())
        if len(self._tombstones) > _MOST_TOMBSTONES:
            self._tombstones.popitem(last=False)

    def saw(self, obj: Obj, *, deleted: bool) -> None:
        """The watch delivered this object, and the store has it."""
        version = version_of(obj)
        if not _ordered(version):
            self._saw_unordered(obj, version, deleted)
        if deleted and not self._narrowed and self._tombstones:
            self._tombstones.pop(uid_of(obj), None)
        self.advance(version)

    def advance(self, version: str) -> None:
        """The watch has reached this version."""
        while self._queue and compare(version, self._queue[0][1]) in (VersionOrder.EQUAL, VersionOrder.NEWER):
            _, _, number, key = heappop(self._queue)
            entry = self._entries.get(key)
            if entry is not None and entry.number == number:
                del self._entries[key]

    def mark(self) -> int:
        """To be called right before a list is requested; `replaced` takes the result when the list is complete."""
        return self._number

    def replaced(self, mark: int, before: str) -> None:
        """A complete list replaced the store, which was at version `before`.

        The list contains every write answered before its request. If versions went back, the server was restored from
        a backup, and writes to the state before that are void.
        """
        version = self._store.version
        went_back = compare(version, before) is VersionOrder.OLDER
        entries = [] if went_back else [one for one in self._entries.values() if self._outlives(one, mark, version)]
        self._entries = {entry.key: entry for entry in entries}
        self._queue = [_place(entry) for entry in entries if _ordered(entry.version)]
        heapify(self._queue)
        for uid in [uid for uid, tombstone in self._tombstones.items() if went_back or tombstone.number <= mark]:
            del self._tombstones[uid]
        self._seen.clear()

    def overdue(self) -> bool:
        """Something waits longer than a working watch allows, so only a new list can show the state.

        To be called at a bookmark. Removes old tombstones of objects that are not in the store.
        """
        latest = self._clock.elapsed() - _OVERDUE
        old = [(uid, tombstone.key) for uid, tombstone in self._tombstones.items() if tombstone.at < latest]
        for uid, key in old:
            if not self._stores(key, uid):
                del self._tombstones[uid]
        waiting = [one.at for one in self._entries.values()] + [one.at for one in self._tombstones.values()]
        return min(waiting, default=latest) < latest

    def _add(self, key: Key, uid: str, version: str, kept: Obj | None) -> None:
        if compare(self._store.version, version) in (VersionOrder.EQUAL, VersionOrder.NEWER) or self._has(
            key, uid, version
        ):
            return
        there = self._entries.get(key)
        if there is not None and compare(version, there.version) in (VersionOrder.OLDER, VersionOrder.EQUAL):
            return
        entry = OwnWrite(key=key, uid=uid, version=version, obj=kept, number=self._next(), at=self._clock.elapsed())
        self._entries[key] = entry
        if _ordered(version):
            heappush(self._queue, _place(entry))

    def _outlives(self, entry: OwnWrite, mark: int, version: str) -> bool:
        if entry.number <= mark or compare(version, entry.version) in (VersionOrder.EQUAL, VersionOrder.NEWER):
            return False
        stored = self._store.get(entry.key)
        return stored is None or version_of(stored) != entry.version

    def _stores(self, key: Key, uid: str) -> bool:
        stored = self._store.get(key)
        return stored is not None and uid_of(stored) == uid

    def _saw_unordered(self, obj: Obj, version: str, deleted: bool) -> None:
        uid = uid_of(obj)
        self._seen[uid, "" if deleted else version] = None
        if len(self._seen) > _MOST_SEEN:
            self._seen.popitem(last=False)
        entry = self._entries.get(key_of(obj))
        if entry is not None and entry.uid == uid and (deleted or entry.version == version):
            del self._entries[entry.key]

    def _has(self, key: Key, uid: str, version: str) -> bool:
        """The watch delivered that very version, or the deletion of the object; needs no order of versions."""
        stored = self._store.get(key)
        return (
            (stored is not None and version_of(stored) == version)
            or (uid, version) in self._seen
            or (uid, "") in self._seen
        )

    def _next(self) -> int:
        self._number += 1
        return self._number

    @property
    def pending(self) -> int:
        """The number of own writes that the watch has not reached.

        Entries that hide nothing of the store do not count: no event follows for an object that was never selected.
        """
        waiting = sum(one.obj is not None or self._stores(one.key, one.uid) for one in self._entries.values())
        return waiting + sum(self._stores(tombstone.key, uid) for uid, tombstone in self._tombstones.items())

    def __bool__(self) -> bool:
        return bool(self._entries or self._tombstones)

    def __repr__(self) -> str:
        return f"Overlay(entries={len(self._entries)}, tombstones={len(self._tombstones)})"


def _ordered(version: str) -> bool:
    return compare(version, "0") is not VersionOrder.UNKNOWN


def _place(entry: OwnWrite) -> tuple[int, str, int, Key]:
    return len(entry.version), entry.version, entry.number, entry.key
