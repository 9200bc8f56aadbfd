"""Turns observed values into rows, one batch in one transaction of the writer's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from kubectl_ctrl.history.bodies import Bodies
from kubectl_ctrl.history.documents import encoded
from kubectl_ctrl.history.sql import BACKGROUND, ECHO, query
from kubectl_ctrl.model.attempt import (
    Attempt,
    AttemptStarted,
    BackgroundCall,
    Call,
    CallProgress,
    ControllerState,
    DroppedEcho,
    Observed,
    Tally,
)
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import (
    RecordedAttempt,
    RecordedController,
    RecordedRun,
    RecordedType,
    to_made,
    to_recorded,
)
from kubectl_ctrl.model.resources import LEASES, Resource
from kubectl_ctrl.model.secrecy import Secrecy, secrets_in
from kubectl_ctrl.value import Struct, field, replace

K = TypeVar("K")
V = TypeVar("V")

# Roles of links.
TRIGGERED, WROTE = 0, 1

_MOST_REMEMBERED = 20_000
# A leader renews its lease every few seconds; one renewal in this time is recorded.
_RENEWALS_EVERY = 60.0


class _Memory(dict[K, V]):
    """The last values that were looked up or added, of a limited number."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > _MOST_REMEMBERED:
            del self[next(iter(self))]


class _Batch(Struct):
    """One batch: the last value of each attempt, and the last state and tally of each controller."""

    attempts: dict[str, AttemptStarted | Attempt] = field(default_factory=dict)
    calls: list[CallProgress] = field(default_factory=list)
    later: list[BackgroundCall | DroppedEcho] = field(default_factory=list)
    states: dict[str, ControllerState] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Iterable[Observed]) -> _Batch:
        batch = cls()
        for value in values:
            match value:
                case AttemptStarted() | Attempt():
                    batch.attempts[value.id] = value
                case CallProgress():
                    batch.calls.append(value)
                case BackgroundCall() | DroppedEcho():
                    batch.later.append(value)
                case ControllerState():
                    batch.states[value.controller] = value
                case Tally():
                    batch.tallies[value.controller] = value
        return batch


class RowWriter:
    """The rows of one run. Remembered row ids are valid until rows are deleted, by this process or another one."""

    def __init__(self, connection: sqlite3.Connection, run: RecordedRun) -> None:
        self._connection = connection
        self._run = run
        self._row = 0
        self._controllers: dict[str, RecordedController] = {played.name: played for played in run.controllers}
        self._types: dict[Resource, int] = {}
        self._subjects: _Memory[tuple[int, str, Key], int] = _Memory()
        self._objects: _Memory[tuple[str, int], int] = _Memory()
        self._uids: _Memory[tuple[Resource, Key], str] = _Memory()
        self._bodies = Bodies(connection, self._object)
        self._secrecy = Secrecy()
        self._renewed: dict[tuple[str, str], float] = {}
        self._pruned = -1

    def forget(self) -> None:
        self._row = 0
        self._types.clear()
        self._subjects.clear()
        self._objects.clear()
        self._bodies.forget()

    @property
    def row(self) -> int:
        """The row of the run, added when it is first needed."""
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

    def know(self, known: Iterable[RecordedType]) -> None:
        for one in known:
            self._types[one.resource] = self._add_type(one)

    def put(self, values: Sequence[Observed]) -> None:
        pruned: int = self._connection.execute(query("pruned")).fetchone()[0]
        if pruned != self._pruned:  # another process may have deleted remembered rows
            self.forget()
        self._pruned = pruned
        batch = _Batch.of(values)
        for attempt in batch.attempts.values():
            self._attempt(attempt)
        for call in batch.calls:
            if not isinstance(batch.attempts.get(call.attempt), Attempt):  # whose document contains its calls
                self._sent(call)
        for later in batch.later:
            self._later(later)
        for state in batch.states.values():
            shown = replace(state, message=self._secrecy.text(state.message)) if state.message else state
            self._connection.execute(query("put_state"), (self.row, state.controller, encoded(shown)))
        for tally in batch.tallies.values():
            self._connection.execute(query("put_tally"), (self.row, tally.controller, encoded(tally)))

    def _attempt(self, value: AttemptStarted | Attempt) -> None:
        start = value.start if isinstance(value, Attempt) else value
        if isinstance(value, Attempt):
            self._secrecy.learn(secrets_in(value))
        played = self._controllers.get(start.controller)
        primaries = played.primaries if played else ()
        uids = {resource: found for resource in primaries if (found := _uid(value, resource)) is not None}
        for resource in uids or primaries:
            place = (resource, start.request)
            if uid := uids.get(resource, ""):
                self._uids[place] = uid
            uids[resource] = uid or self._uids.get(place, "")  # of a deleted or unread object, the last known UID
        uid = next((uid for uid in uids.values() if uid), "")
        recorded = self._secrecy.attempt(to_recorded(value, uid=uid))
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
                "bodies": self._bodies.of(value, self._secrecy) if isinstance(value, Attempt) else None,
            },
        ).fetchone()[0]
        for resource, uid in uids.items():
            subject = self._subject(resource, start.controller, start.request)
            self._connection.execute(query("add_about"), (subject, row, uid))
        links = [(self._object(*of), version, role, row, call) for of, version, role, call in _versions(recorded)]
        if links:
            self._connection.executemany(query("add_link"), links)
        if isinstance(value, Attempt):
            self._connection.execute(query("drop_sent"), (row,))

    def _sent(self, value: CallProgress) -> None:
        number = int(value.attempt.rpartition("-")[2])
        found = self._connection.execute(query("find_attempt"), (self.row, number)).fetchone()
        if found:
            document = encoded(self._secrecy.early(to_made(value.call)))
            self._connection.execute(query("add_sent"), (found[0], value.call.id, document))

    def _later(self, value: BackgroundCall | DroppedEcho) -> None:
        if isinstance(value, BackgroundCall) and self._is_renewal(value.call):
            return
        number = int(value.attempt.rpartition("-")[2]) if value.attempt else 0
        if isinstance(value, DroppedEcho):
            kind, document = ECHO, encoded(value)
        else:
            kind, document = BACKGROUND, encoded(self._secrecy.made(to_made(value.call)))
        self._connection.execute(query("add_later"), (self.row, number, kind, document))

    def _is_renewal(self, call: Call) -> bool:
        """One more successful renewal of a lease, shortly after a recorded one."""
        if call.resource != LEASES or call.error:
            return False
        last = self._renewed.get((call.namespace, call.name))
        if last is not None and call.started - last < _RENEWALS_EVERY:
            return True
        self._renewed[call.namespace, call.name] = call.started
        return False

    # Rows with references to them.

    def _type(self, resource: Resource) -> int:
        row = self._types.get(resource)
        if row is None:
            row = self._types[resource] = self._add_type(RecordedType(resource=resource))
        return row

    def _add_type(self, known: RecordedType) -> int:
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
        row = self._subjects.get((type_, controller, key))
        if row is None:
            values = (type_, controller, key.namespace, key.name)
            row = self._subjects[type_, controller, key] = self._id("add_subject", values)
        return row

    def _object(self, resource: Resource, key: Key, uid: str) -> int:
        type_ = self._type(resource)
        row = self._objects.get((uid, type_))
        if row is None:
            row = self._objects[uid, type_] = self._id("add_object", (uid, type_, key.namespace, key.name))
        return row

    def _id(self, name: str, values: tuple[object, ...]) -> int:
        row: int = self._connection.execute(query(name), values).fetchone()[0]
        return row

    def __repr__(self) -> str:
        return f"RowWriter({self._run.id}, row={self._row})"


def _uid(value: AttemptStarted | Attempt, resource: Resource) -> str | None:
    """The UID of the requested object; "" if only its name was seen, None if the attempt met nothing of that type."""
    start = value.start if isinstance(value, Attempt) else value
    calls: tuple[Call, ...] = value.calls if isinstance(value, Attempt) else ()
    found = None
    for reads in reversed(value.reads if isinstance(value, Attempt) else ()):
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


def _versions(recorded: RecordedAttempt) -> _Versions:
    """((resource, key, UID), version, role, call) of the versions that triggered the attempt or that it wrote."""
    for why in recorded.causes:
        if why.resource and why.key and why.uid and why.new_version:
            yield (why.resource, why.key, why.uid), why.new_version, TRIGGERED, ""
    for made in recorded.writes:
        call = made.call
        # A write without effect returns a version that another client wrote.
        if call.resource and call.uid and call.new_version and not call.error and call.new_version != call.old_version:
            yield (call.resource, Key(call.namespace, call.name), call.uid), call.new_version, WROTE, call.id
