"""The storage of the server: every object, and the log of every change, numbered by one counter.

Objects are kept as JSON, and those that were written or decoded last also decoded. They are never changed in place; a
write replaces them. Any earlier state is the current one with the log undone, so pages, reads at an old version and
restores need no copies.
"""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter

import orjson

from kubectl_ctrl.model.change import ChangeKind
from kubectl_ctrl.model.objects import Key, Obj, key_of
from kubectl_ctrl.sandbox.answers import encode

# Every test passes from three digits to four, so that code that compares versions as text fails.
FIRST_VERSION = 990
_MOST_DECODED = 1000

Table = Mapping[Key, Obj]


class StoredObject:
    """One state of an object. `recent` has those that are decoded, at most _MOST_DECODED."""

    __slots__ = ("_encoded", "_obj", "_recent", "version")

    def __init__(self, obj: Obj, recent: deque[StoredObject]) -> None:
        self.version = int(obj["metadata"]["resourceVersion"])
        self._obj: Obj | None = obj
        self._encoded = b""
        self._recent = recent
        self._remember()

    @property
    def obj(self) -> Obj:
        if self._obj is None:
            self._obj = orjson.loads(self._encoded)
            self._remember()
        return self._obj

    @property
    def encoded(self) -> bytes:
        """Its JSON, which begins with its kind and apiVersion."""
        if not self._encoded:
            obj = self.obj
            encoded = encode({"kind": obj["kind"], "apiVersion": obj["apiVersion"], **obj})
            self._encoded = bytes(memoryview(encoded))  # the encoder's buffer is larger than its content
        return self._encoded

    def _remember(self) -> None:
        self._recent.append(self)
        if len(self._recent) > _MOST_DECODED:
            self._recent.popleft().pack()

    def pack(self) -> None:
        """Keep only its JSON."""
        self._encoded = self.encoded
        self._obj = None


class Rows(Table):
    """The objects of one table."""

    def __init__(self, stored: dict[Key, StoredObject]) -> None:
        self.stored = stored

    def __getitem__(self, key: Key) -> Obj:
        return self.stored[key].obj

    def __iter__(self) -> Iterator[Key]:
        return iter(self.stored)

    def __len__(self) -> int:
        return len(self.stored)

    def __contains__(self, key: object) -> bool:  # without decoding
        return key in self.stored


_NO_ROWS = Rows({})


class StoredChange:
    """One change of one object, for the log and the watches."""

    __slots__ = ("_new", "_obj", "_old", "key", "kind", "version")

    def __init__(
        self, version: int, kind: ChangeKind, old: StoredObject | None, new: StoredObject | None, obj: StoredObject
    ) -> None:
        self.version = version
        self.kind = kind
        self.key = key_of(obj.obj)
        self._old = old
        self._new = new
        self._obj = obj

    @property
    def old(self) -> Obj | None:
        return None if self._old is None else self._old.obj

    @property
    def new(self) -> Obj | None:
        return None if self._new is None else self._new.obj

    @property
    def obj(self) -> Obj:
        """The object of the watch event: the new state, or the last one with the version of the deletion."""
        return self._obj.obj

    @property
    def encoded(self) -> bytes:
        return self._obj.encoded

    def enter(self, rows: Rows) -> None:
        """Make the change in a table."""
        if self._new is None:
            del rows.stored[self.key]
        else:
            rows.stored[self.key] = self._new

    def leave(self, rows: Rows) -> None:
        """Undo it."""
        if self._old is None:
            rows.stored.pop(self.key, None)
        else:
            rows.stored[self.key] = self._old


_by_version = attrgetter("version")


class Storage:
    """All tables and their logs."""

    def __init__(self) -> None:
        self.version = FIRST_VERSION
        self.compacted = 0  # watches and reads from before this version get a 410
        self.tables: dict[str, Rows] = {}
        self._recent: deque[StoredObject] = deque()
        self.logs: dict[str, list[StoredChange]] = {}
        self.guards: list[Callable[[str, StoredChange], None]] = []  # called before each step; an error prevents it
        self.listeners: list[Callable[[str, StoredChange], None]] = []  # called after each step

    def get(self, table: str, key: Key) -> Obj | None:
        stored = self.stored(table, key)
        return None if stored is None else stored.obj

    def stored(self, table: str, key: Key) -> StoredObject | None:
        return self.tables[table].stored.get(key) if table in self.tables else None

    def rows(self, table: str) -> Rows:
        return self.tables.get(table, _NO_ROWS)

    def put(self, table: str, obj: Obj) -> Obj:
        """Store a new state under the next version; the storage owns `obj` from then on."""
        version = self.version + 1
        obj["metadata"]["resourceVersion"] = str(version)
        old, new = self.stored(table, key_of(obj)), StoredObject(obj, self._recent)
        self._commit(table, StoredChange(version, ChangeKind.MODIFIED if old else ChangeKind.ADDED, old, new, new))
        return obj

    def remove(self, table: str, key: Key) -> Obj:
        """Remove an object; watches show its last state, with its last finalizer."""
        old, version = self.tables[table].stored[key], self.version + 1
        shown = {**old.obj, "metadata": {**old.obj["metadata"], "resourceVersion": str(version)}}
        last = StoredObject(shown, self._recent)
        self._commit(table, StoredChange(version, ChangeKind.DELETED, old, None, last))
        return shown

    def _commit(self, table: str, step: StoredChange) -> None:
        for guard in self.guards:
            guard(table, step)
        self.version = step.version
        self.logs.setdefault(table, []).append(step)
        self._enter(table, step)

    def _enter(self, table: str, step: StoredChange) -> None:
        step.enter(self.tables.setdefault(table, Rows({})))
        failures: list[Exception] = []
        for listener in self.listeners:
            try:
                listener(table, step)
            except Exception as error:  # noqa: BLE001 - the change is made, and the others must hear of it
                failures.append(error)
        if failures:
            raise failures[0]

    def load(self, tables: Mapping[str, Table], version: int) -> None:
        """Replace everything by a saved state, which the listeners hear as changes; there is no log of earlier ones."""
        for table, rows in list(self.tables.items()):
            for key in list(rows):
                self.remove(table, key)
        for table, saved in tables.items():
            for obj in saved.values():
                number = int(obj["metadata"]["resourceVersion"])
                new = StoredObject(obj, self._recent)
                self._enter(table, StoredChange(number, ChangeKind.ADDED, None, new, new))
        self.version = version
        self.compact()

    def after(self, table: str, version: int) -> int:
        """The index in the table's log of the first step after a version."""
        return bisect.bisect_right(self.logs.setdefault(table, []), version, key=_by_version)

    def at(self, table: str, version: int) -> Rows:
        """The table at a version, which is not before `compacted`."""
        rows = self.rows(table)
        if version >= self.version:
            return rows
        rows = Rows(dict(rows.stored))
        for step in reversed(self.logs.get(table, [])[self.after(table, version) :]):
            step.leave(rows)
        return rows

    def introduced(self) -> Iterator[tuple[str, StoredChange]]:
        """Every object with its table, as if it were new."""
        for table, rows in list(self.tables.items()):
            for stored in list(rows.stored.values()):
                yield table, StoredChange(self.version, ChangeKind.ADDED, None, stored, stored)

    def skip(self) -> None:
        """Use a version, as a write to any other object does."""
        self.version += 1

    def compact(self, version: int | None = None) -> None:
        """Drop the log up to a version (default: the current one), as etcd does every five minutes."""
        self.compacted = self.version if version is None else version
        for table, log in self.logs.items():
            del log[: self.after(table, self.compacted)]

    def restore(self, version: int) -> None:
        """Restore an earlier state and continue from its version, as an etcd restore does."""
        if not self.compacted <= version <= self.version:
            raise ValueError(f"Version {version} is not between {self.compacted} and {self.version}.")
        for table in list(self.tables):
            self.tables[table] = Rows(dict(self.at(table, version).stored))
            del self.logs.setdefault(table, [])[self.after(table, version) :]
        self.version = version

    def __repr__(self) -> str:
        objects = sum(map(len, self.tables.values()))
        return f"Storage(version={self.version}, objects={objects}, steps={sum(map(len, self.logs.values()))})"
