"""The storage of the server: every object, and the log of every change, numbered by one counter.

Stored objects are never changed in place; a write replaces them. Any earlier state is the current one with the log
undone, so pages, reads at an old version and restores need no copies.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from operator import attrgetter

from kubectl_ctrl.model.change import ChangeKind
from kubectl_ctrl.model.objects import Key, Obj, key_of
from kubectl_ctrl.sandbox.answers import encode

# Every test passes from three digits to four, so that code that compares versions as text fails.
FIRST_VERSION = 990

Table = dict[Key, Obj]


class StoredChange:
    """One change of one object, for the log and the watches."""

    __slots__ = ("_encoded", "kind", "new", "obj", "old", "version")

    def __init__(self, version: int, kind: ChangeKind, old: Obj | None, new: Obj | None, obj: Obj) -> None:
        self.version = version
        self.kind = kind
        self.old = old
        self.new = new
        self.obj = obj  # the object of the watch event: the new state, or the last one with the version of the deletion
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = encode(self.obj)
        return self._encoded


_by_version = attrgetter("version")


class Storage:
    """All tables and their logs."""

    def __init__(self) -> None:
        self.version = FIRST_VERSION
        self.compacted = 0  # watches and reads from before this version get a 410
        self.tables: dict[str, Table] = {}
        self.logs: dict[str, list[StoredChange]] = {}
        self.guards: list[Callable[[str, StoredChange], None]] = []  # called before each step; an error prevents it
        self.listeners: list[Callable[[str, StoredChange], None]] = []  # called after each step

    def get(self, table: str, key: Key) -> Obj | None:
        return self.tables.get(table, {}).get(key)

    def put(self, table: str, obj: Obj) -> Obj:
        """Store a new state under the next version; the storage owns `obj` from then on."""
        version = self.version + 1
        obj["metadata"]["resourceVersion"] = str(version)
        old = self.get(table, key_of(obj))
        self._commit(table, StoredChange(version, ChangeKind.MODIFIED if old else ChangeKind.ADDED, old, obj, obj))
        return obj

    def remove(self, table: str, key: Key) -> Obj:
        """Remove an object; watches show its last state, with its last finalizer."""
        old, version = self.tables[table][key], self.version + 1
        shown = dict(old)
        shown["metadata"] = {**shown["metadata"], "resourceVersion": str(version)}
        self._commit(table, StoredChange(version, ChangeKind.DELETED, old, None, shown))
        return shown

    def _commit(self, table: str, step: StoredChange) -> None:
        for guard in self.guards:
            guard(table, step)
        self.version = step.version
        self.logs.setdefault(table, []).append(step)
        self._enter(table, step)

    def _enter(self, table: str, step: StoredChange) -> None:
        rows, key = self.tables.setdefault(table, {}), key_of(step.obj)
        if step.new is None:
            del rows[key]
        else:
            rows[key] = step.new
        for listener in self.listeners:
            listener(table, step)

    def load(self, tables: Mapping[str, Table], version: int) -> None:
        """Replace everything by a saved state, which the listeners hear as changes; there is no log of earlier ones."""
        for table, rows in list(self.tables.items()):
            for key in list(rows):
                self.remove(table, key)
        for table, rows in tables.items():
            for obj in rows.values():
                number = int(obj["metadata"]["resourceVersion"])
                self._enter(table, StoredChange(number, ChangeKind.ADDED, None, obj, obj))
        self.version = version
        self.compact()

    def after(self, table: str, version: int) -> int:
        """The index in the table's log of the first step after a version."""
        return bisect.bisect_right(self.logs.setdefault(table, []), version, key=_by_version)

    def at(self, table: str, version: int) -> Table:
        """The table at a version, which is not before `compacted`."""
        rows = self.tables.get(table, {})
        if version >= self.version:
            return rows
        rows = dict(rows)
        log = self.logs.get(table, [])
        for step in reversed(log[self.after(table, version) :]):
            if step.old is None:
                rows.pop(key_of(step.obj), None)
            else:
                rows[key_of(step.obj)] = step.old
        return rows

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
            self.tables[table] = dict(self.at(table, version))
            del self.logs.setdefault(table, [])[self.after(table, version) :]
        self.version = version

    def __repr__(self) -> str:
        objects = sum(map(len, self.tables.values()))
        return f"Storage(version={self.version}, objects={objects}, steps={sum(map(len, self.logs.values()))})"
