"""What was observed, as rows: called inside a transaction of the writer's thread, a batch at a time."""

from __future__ import annotations

import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import orjson

from kubectl_ctrl.history.documents import encoded
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.model.attempt import Attempt, Background, Call, Called, Echoed, Observed, Started, State, Tally
from kubectl_ctrl.model.masking import is_secret, masked, may_hold_secrets
from kubectl_ctrl.model.objects import Key, Obj, uid_of, version_of
from kubectl_ctrl.model.record import Known, Played, Recorded, Run, call_told, told
from kubectl_ctrl.model.resources import Resource

K = TypeVar("K")

# Roles of links, and kinds of what comes after an attempt.
WOKE, WROTE = 0, 1
BACKGROUND, ECHO = 0, 1

_MOST_REMEMBERED = 20_000
# A body counts as used for so long without being touched again: pruning keeps it that much longer.
USED_FOR = 600.0
# A bigger object is not kept.
_BIGGEST_BODY = 1_000_000


class _Memory(Generic[K]):
    """Row ids found before, the most recent ones."""

    def __init__(self) -> None:
        self._known: OrderedDict[K, Any] = OrderedDict()

    def get(self, key: K) -> Any:
        return self._known.get(key)

    def put(self, key: K, value: Any) -> None:
        self._known[key] = value
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)

    def clear(self) -> None:
        self._known.clear()


@dataclass(slots=True)
class _Batch:
    """What a batch comes to: of each attempt the last that is known, of each controller the last state."""

    attempts: dict[str, Started | Attempt] = field(default_factory=dict)
    calls: list[Called] = field(default_factory=list)
    later: list[Background | Echoed] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Iterable[Observed]) -> _Batch:
        batch = cls()
        for value in values:
            match value:
                case Started() | Attempt():
                    batch.attempts[value.id] = value
                case Called():
                    batch.calls.append(value)
                case Background() | Echoed():
                    batch.later.append(value)
                case State():
                    batch.states[value.controller] = value
                case Tally():
                    batch.tallies[value.controller] = value
        return batch


class Store:
    """The rows of one run. What it remembers holds as long as nobody deletes rows: then `forget` is called."""

    def __init__(self, connection: sqlite3.Connection, run: Run) -> None:
        self._connection = connection
        self._run = run
        self._row = 0
        self._controllers: dict[str, Played] = {played.name: played for played in run.controllers}
        self._types: dict[Resource, int] = {}
        self._subjects: _Memory[tuple[int, str, Key]] = _Memory()
        self._objects: _Memory[tuple[str, int]] = _Memory()
        self._bodies: _Memory[tuple[int, str]] = _Memory()

    def forget(self) -> None:
        self._row = 0
        self._types.clear()
        for memory in (self._subjects, self._objects, self._bodies):
            memory.clear()

    # The run itself.

    @property
    def row(self) -> int:
        """Of the run, which is made when it is first needed."""
        if not self._row:
            found = self._connection.execute(query("find_run"), (self._run.id, self._run.began)).fetchone()
            values = {"name": self._run.id, "cluster": self._run.cluster, "began": self._run.began}
            if found is None:
                self._connection.execute(query("add_run"), {**values, "document": encoded(self._run)})
                found = self._connection.execute("SELECT last_insert_rowid()").fetchone()
            self._row = found[0]
        return self._row

    def touch(self, *, seen: float, gaps: int, ended: float | None = None) -> None:
        values = {"run": self.row, "seen": seen, "gaps": gaps, "ended": ended}
        self._connection.execute(query("touch_run"), values)

    def know(self, known: Iterable[Known]) -> None:
        for one in known:
            self._types[one.resource] = self._add_type(one)

    # What was observed.

    def put(self, values: Sequence[Observed]) -> None:
        batch = _Batch.of(values)
        rows = {id_: self._attempt(what) for id_, what in batch.attempts.items()}
        self._sent(call for call in batch.calls if not isinstance(batch.attempts.get(call.attempt), Attempt))
        for later in batch.later:
            self._later(later)
        for state in batch.states.values():
            self._connection.execute(query("put_state"), (self.row, state.controller, encoded(state)))
        for tally in batch.tallies.values():
            self._connection.execute(query("put_tally"), (self.row, tally.controller, encoded(tally)))
        assert len(rows) == len(batch.attempts)

    def _attempt(self, what: Started | Attempt) -> int:
        start = what.start if isinstance(what, Attempt) else what
        recorded = told(what)
        primaries = self._primaries(start.controller)
        uids = {resource: found for resource in primaries if (found := _uid(what, resource)) is not None}
        uid = next((uid for uid in uids.values() if uid), "")
        recorded = replace(recorded, uid=uid)
        row: int = self._connection.execute(
            query("add_attempt"),
            {
                "run": self.row,
                "number": recorded.number,
                "controller": start.controller,
                "started": start.started,
                "took": recorded.took,
                "outcome": recorded.verdict.outcome if recorded.verdict else None,
                "calls": len(recorded.calls),
                "writes": len(recorded.writes),
                "document": encoded(recorded),
            },
        ).fetchone()[0]
        for resource in uids or primaries:
            subject = self._subject(resource, start.controller, start.request)
            self._connection.execute(query("add_about"), (subject, row, uids.get(resource, "")))
        self._links(row, recorded)
        if isinstance(what, Attempt):
            self._connection.execute(query("drop_sent"), (row,))
            self._bodies_of(what)
        return row

    def _links(self, row: int, recorded: Recorded) -> None:
        links = [(self._object(*of), version, role, row, call) for of, version, role, call in _versions(recorded)]
        if links:
            self._connection.executemany(query("add_link"), links)

    def _sent(self, calls: Iterable[Called]) -> None:
        for one in calls:
            number = int(one.attempt.rpartition("-")[2])
            found = self._connection.execute(query("find_attempt"), (self.row, number)).fetchone()
            if found:
                self._connection.execute(query("add_sent"), (found[0], one.call.id, encoded(call_told(one.call))))

    def _later(self, what: Background | Echoed) -> None:
        number = int(what.attempt.rpartition("-")[2]) if what.attempt else 0
        kind, value = (ECHO, what) if isinstance(what, Echoed) else (BACKGROUND, call_told(what.call))
        self._connection.execute(query("add_later"), (self.row, number, kind, encoded(value)))

    # Bodies: everything that an attempt was given to look at.

    def _bodies_of(self, attempt: Attempt) -> None:
        for resource, obj in _seen(attempt):
            uid, version = uid_of(obj), version_of(obj)
            if uid and version and not is_secret(resource):
                self._body(self._object(resource, _key(obj), uid), version, obj, attempt.start.started)

    def _body(self, row: int, version: str, obj: Obj, at: float) -> None:
        seen = self._bodies.get((row, version))
        if seen is not None and seen >= at - USED_FOR:
            return
        values = {"object": row, "version": version, "seen": at}
        if not self._connection.execute(query("touch_body"), values).fetchone():
            data = _packed(obj)
            if len(data) > _BIGGEST_BODY:
                return
            self._connection.execute(query("add_body"), {**values, "data": data})
        self._bodies.put((row, version), at)

    # Rows that others refer to.

    def _primaries(self, controller: str) -> tuple[Resource, ...]:
        played = self._controllers.get(controller)
        return played.primaries if played else ()

    def _type(self, resource: Resource) -> int:
        row = self._types.get(resource)
        if row is None:
            row = self._types[resource] = self._add_type(Known(resource=resource))
        return row

    def _add_type(self, known: Known) -> int:
        resource = known.resource
        row: int = self._connection.execute(
            query("add_type"),
            {
                "cluster": self._run.cluster,
                "grp": resource.group,
                "version": resource.version,
                "plural": resource.plural,
                "kind": resource.kind,
                "namespaced": resource.namespaced,
                "singular": known.singular,
                "short_names": " ".join(known.short_names),
            },
        ).fetchone()[0]
        return row

    def _subject(self, resource: Resource, controller: str, key: Key) -> int:
        type_ = self._type(resource)
        row: int | None = self._subjects.get((type_, controller, key))
        if row is None:
            values = (type_, controller, key.namespace, key.name)
            row = self._connection.execute(query("add_subject"), values).fetchone()[0]
            self._subjects.put((type_, controller, key), row)
        assert row is not None
        return row

    def _object(self, resource: Resource, key: Key, uid: str) -> int:
        type_ = self._type(resource)
        row: int | None = self._objects.get((uid, type_))
        if row is None:
            row = self._connection.execute(query("add_object"), (uid, type_, key.namespace, key.name)).fetchone()[0]
            self._objects.put((uid, type_), row)
        assert row is not None
        return row

    def __repr__(self) -> str:
        return f"Store({self._run.id}, row={self._row})"


def _uid(what: Started | Attempt, resource: Resource) -> str | None:
    """UID of the object that a request named; "" when only its place was seen, None when nothing of that type."""
    start = what.start if isinstance(what, Attempt) else what
    calls: tuple[Call, ...] = what.calls if isinstance(what, Attempt) else ()
    found = None
    for reads in reversed(what.reads if isinstance(what, Attempt) else ()):
        if reads.resource == resource and reads.verb in ("get", "live") and reads.query == str(start.request):
            if reads.found:
                return reads.found[0][0]
            found = ""
    for call in calls:
        if call.resource == resource and (call.namespace, call.name) == start.request and call.uid:
            return call.uid
    for cause in reversed(start.causes):
        if cause.resource == resource and cause.key == start.request:
            if cause.uid:
                return cause.uid
            found = ""
    return found


_Versions = Iterator[tuple[tuple[Resource, Key, str], str, int, str]]


def _versions(recorded: Recorded) -> _Versions:
    """((resource, key, UID), version, role, call) of what woke the attempt and of what it wrote."""
    for why in recorded.causes:
        if why.resource and why.key and why.uid and why.new_version:
            yield (why.resource, why.key, why.uid), why.new_version, WOKE, ""
    for made in recorded.writes:
        call = made.call
        # A write that changed nothing was answered with the version that somebody else made.
        if call.resource and call.uid and call.new_version and not call.error and call.new_version != call.old_version:
            yield (call.resource, Key(call.namespace, call.name), call.uid), call.new_version, WROTE, call.id


def _seen(attempt: Attempt) -> Iterator[tuple[Resource, Obj]]:
    for read in attempt.reads:
        for obj in read.objects:
            yield read.resource, obj
    for wish in attempt.wishes:
        if wish.answer is not None:
            yield wish.resource, wish.answer
    for call in attempt.writes:
        if call.resource is not None and call.answer is not None and call.answer.get("kind") != "Status":
            yield call.resource, call.answer


def _key(obj: Obj) -> Key:
    meta = obj["metadata"]
    return Key(meta.get("namespace") or "", meta.get("name") or "")


def _packed(obj: Obj) -> bytes:
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    bare = {**obj, "metadata": meta}
    text = orjson.dumps(bare)
    if may_hold_secrets(text):
        text = orjson.dumps(masked(bare)[0])
    return zlib.compress(text, 1)
