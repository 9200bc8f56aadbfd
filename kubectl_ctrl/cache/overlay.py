"""The overlay: what own writes answered, laid over the store until the watch has got as far.

So a reader sees its own writes at once and nothing has to wait for the watch. An entry stands for one key at one
version: the object that the server answered, or "not here" when the write took it out of the selection. It hides the
store while the store's version is older. A deletion has no version of its own, so it hides a UID, which never returns.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from kubectl_ctrl.cache.store import Store
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Key, Obj, key_of, uid_of, version_of
from kubectl_ctrl.model.rv import Order, compare
from kubectl_ctrl.value import Value

# A watch that works is never this far behind, with a bookmark every minute.
_OVERDUE = 180.0

# Only servers with unusual watches let these grow.
_MOST_GRAVES = 10_000
_MOST_SEEN = 1_000


class Entry(Value, kw_only=True):
    """What one write answered."""

    key: Key
    uid: str
    version: str
    obj: Obj | None  # None: outside of the selection since this version
    number: int  # counts what came in, so that a list knows what had returned before it was asked for
    at: float  # elapsed time


class Grave(Value, kw_only=True):
    """An object that the server said is deleted."""

    key: Key
    number: int
    at: float


class Overlay:
    """Entries by key and graves by UID, over one store."""

    def __init__(self, store: Store, *, clock: Clock, narrowed: bool) -> None:
        self._store = store
        self._clock = clock
        self._narrowed = narrowed  # then an event "deleted" may mean "left the selection", and the object may come back
        self._entries: dict[Key, Entry] = {}
        self._graves: OrderedDict[str, Grave] = OrderedDict()  # oldest first
        self._queue: list[tuple[int, str, int, Key]] = []  # heap of the entries whose versions have an order
        # (UID, version) of events without an order, (UID, "") for a deletion: their write's answer may come after them.
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._number = 0

    def visible(self, key: Key, stored: Obj | None) -> Obj | None:
        """What a reader is shown where the store has `stored`."""
        entry = self._entries.get(key)
        obj = entry.obj if entry is not None else stored
        return None if obj is not None and uid_of(obj) in self._graves else obj

    def places(self) -> Iterable[Key]:
        """Where the overlay may show an object."""
        return self._entries.keys()

    def put(self, answer: Obj, kept: Obj | None) -> None:
        """A write was answered; `kept` is the cached form of the answer, or None when it is outside of the selection.

        Its event may have been seen before, and even the deletion of the object.
        """
        self._lay(key_of(answer), uid_of(answer), version_of(answer), kept)

    def bury(self, key: Key, uid: str, version: str) -> None:
        """A deletion was answered, and nothing is left of the object; `version` is the last one known of it, if any.

        Who deletes what the store has not seen yet does not want to see again what had that name before it.
        """
        if (uid, "") in self._seen:
            return
        if version:
            self._lay(key, uid, version, None)
        self._graves[uid] = Grave(key=key, number=self._next(), at=self._clock.elapsed())
        if len(self._graves) > _MOST_GRAVES:
            self._graves.popitem(last=False)

    def saw(self, obj: Obj, *, deleted: bool) -> None:
        """The watch delivered this, and the store has it."""
        version = version_of(obj)
        if not _ordered(version):
            self._saw_unordered(obj, version, deleted)
        if deleted and not self._narrowed and self._graves:
            self._graves.pop(uid_of(obj), None)
        self.advance(version)

    def advance(self, version: str) -> None:
        """The watch got as far as this version."""
        while self._queue and compare(version, self._queue[0][1]) in (Order.EQUAL, Order.NEWER):
            _, _, number, key = heappop(self._queue)
            entry = self._entries.get(key)
            if entry is not None and entry.number == number:
                del self._entries[key]

    def mark(self) -> int:
        """To be taken right before a list is asked for, and handed to `replaced` when the list is complete."""
        return self._number

    def replaced(self, mark: int, before: str) -> None:
        """A complete list took the place of the store, which was at version `before`.

        What had returned before the list was asked for is in it. When versions went back, the server was restored, and
        what was written in its other past means nothing now.
        """
        version = self._store.version
        went_back = compare(version, before) is Order.OLDER
        entries = [] if went_back else [one for one in self._entries.values() if self._outlives(one, mark, version)]
        self._entries = {entry.key: entry for entry in entries}
        self._queue = [_place(entry) for entry in entries if _ordered(entry.version)]
        heapify(self._queue)
        for uid in [uid for uid, grave in self._graves.items() if went_back or grave.number <= mark]:
            del self._graves[uid]
        self._seen.clear()

    def overdue(self) -> bool:
        """Whether something waits for longer than a working watch lets it, so that only a new list can tell the truth.

        To be asked when the watch just said how far it is. Graves of objects that are not in the store are done with.
        """
        latest = self._clock.elapsed() - _OVERDUE
        old = [(uid, grave.key) for uid, grave in self._graves.items() if grave.at < latest]
        for uid, key in old:
            if not self._stores(key, uid):
                del self._graves[uid]
        waiting = [one.at for one in self._entries.values()] + [one.at for one in self._graves.values()]
        return min(waiting, default=latest) < latest

    def _lay(self, key: Key, uid: str, version: str, kept: Obj | None) -> None:
        if compare(self._store.version, version) in (Order.EQUAL, Order.NEWER) or self._has(key, uid, version):
            return
        there = self._entries.get(key)
        if there is not None and compare(version, there.version) in (Order.OLDER, Order.EQUAL):
            return
        entry = Entry(key=key, uid=uid, version=version, obj=kept, number=self._next(), at=self._clock.elapsed())
        self._entries[key] = entry
        if _ordered(version):
            heappush(self._queue, _place(entry))

    def _outlives(self, entry: Entry, mark: int, version: str) -> bool:
        if entry.number <= mark or compare(version, entry.version) in (Order.EQUAL, Order.NEWER):
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
        """Whether that very version, or the end of the object, was delivered; order does not matter for that."""
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
        """Own writes that the watch has not reached; what hides nothing of the store waits for nothing.

        No event will ever tell of what was never selected.
        """
        waiting = sum(one.obj is not None or self._stores(one.key, one.uid) for one in self._entries.values())
        return waiting + sum(self._stores(grave.key, uid) for uid, grave in self._graves.items())

    def __bool__(self) -> bool:
        return bool(self._entries or self._graves)

    def __repr__(self) -> str:
        return f"Overlay(entries={len(self._entries)}, graves={len(self._graves)})"


def _ordered(version: str) -> bool:
    return compare(version, "0") is not Order.UNKNOWN


def _place(entry: Entry) -> tuple[int, str, int, Key]:
    return len(entry.version), entry.version, entry.number, entry.key
