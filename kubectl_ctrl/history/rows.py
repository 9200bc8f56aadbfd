"""What was observed, as rows: called inside a transaction of the writer's thread, a batch at a time."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from kubectl_ctrl.history.bodies import Bodies
from kubectl_ctrl.history.documents import encoded
from kubectl_ctrl.history.sql import BACKGROUND, ECHO, query
from kubectl_ctrl.model.attempt import Attempt, Background, Call, Called, Echoed, Observed, Started, State, Tally
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Known, Played, Recorded, Run, call_told, told
from kubectl_ctrl.model.resources import LEASES, Resource
from kubectl_ctrl.model.secrecy import Secrecy, secrets_in
from kubectl_ctrl.value import Struct, field, replace

K = TypeVar("K")

# Roles of links.
WOKE, WROTE = 0, 1

_MOST_REMEMBERED = 20_000
# Of the renewals of a lease, which go on for as long as a run, one is kept in so long.
_RENEWALS_EVERY = 60.0


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


class _Batch(Struct):
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
        self._uids: _Memory[tuple[Resource, Key]] = _Memory()
        self._bodies = Bodies(connection, self._object)
        self._secrecy = Secrecy()
        self._renewed: dict[tuple[str, str], float] = {}
        self._pruned = -1

    def forget(self) -> None:
        """Nothing that was remembered holds any more."""
        self._row = 0
        self._types.clear()
        self._subjects.clear()
        self._objects.clear()
        self._bodies.forget()

    def _check(self) -> None:
        """Forget, when rows have been taken away since."""
        pruned: int = self._connection.execute(query("pruned")).fetchone()[0]
        if pruned != self._pruned:
            self.forget()
        self._pruned = pruned

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
        self._check()
        batch = _Batch.of(values)
        for what in batch.attempts.values():
            self._attempt(what)
        self._sent(call for call in batch.calls if not isinstance(batch.attempts.get(call.attempt), Attempt))
        for later in batch.later:
            self._later(later)
        for state in batch.states.values():
            shown = replace(state, message=self._secrecy.text(state.message)) if state.message else state
            self._connection.execute(query("put_state"), (self.row, state.controller, encoded(shown)))
        for tally in batch.tallies.values():
            self._connection.execute(query("put_tally"), (self.row, tally.controller, encoded(tally)))

    def _attempt(self, what: Started | Attempt) -> None:
        start = what.start if isinstance(what, Attempt) else what
        if isinstance(what, Attempt):
            self._secrecy.learn(secrets_in(what))
        primaries = self._primaries(start.controller)
        uids = {resource: found for resource in primaries if (found := _uid(what, resource)) is not None}
        for resource in uids or primaries:
            uids[resource] = self._named(resource, start, uids.get(resource, ""))
        uid = next((uid for uid in uids.values() if uid), "")
        recorded = self._secrecy.told(told(what, uid=uid))
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
                "bodies": self._bodies.of(what, self._secrecy) if isinstance(what, Attempt) else None,
            },
        ).fetchone()[0]
        for resource, uid in uids.items():
            subject = self._subject(resource, start.controller, start.request)
            self._connection.execute(query("add_about"), (subject, row, uid))
        self._links(row, recorded)
        if isinstance(what, Attempt):
            self._connection.execute(query("drop_sent"), (row,))

    def _named(self, resource: Resource, start: Started, uid: str) -> str:
        """The UID; of an object that this attempt did not come to see, or that is gone, the last that was known."""
        place = (resource, start.request)
        if uid:
            self._uids.put(place, uid)
        return uid or self._uids.get(place) or ""

    def _links(self, row: int, recorded: Recorded) -> None:
        links = [(self._object(*of), version, role, row, call) for of, version, role, call in _versions(recorded)]
        if links:
            self._connection.executemany(query("add_link"), links)

    def _sent(self, calls: Iterable[Called]) -> None:
        for one in calls:
            number = int(one.attempt.rpartition("-")[2])
            found = self._connection.execute(query("find_attempt"), (self.row, number)).fetchone()
            if found:
                document = encoded(self._secrecy.early(call_told(one.call)))
                self._connection.execute(query("add_sent"), (found[0], one.call.id, document))

    def _later(self, what: Background | Echoed) -> None:
        if isinstance(what, Background) and self._is_renewal(what.call):
            return
        number = int(what.attempt.rpartition("-")[2]) if what.attempt else 0
        kind, document = (ECHO, encoded(what)) if isinstance(what, Echoed) else (BACKGROUND, self._made(what.call))
        self._connection.execute(query("add_later"), (self.row, number, kind, document))

    def _made(self, call: Call) -> bytes:
        return encoded(self._secrecy.made(call_told(call)))

    def _is_renewal(self, call: Call) -> bool:
        """One more of the same lease, as uneventful as the one before."""
        if call.resource != LEASES or call.error:
            return False
        last = self._renewed.get((call.namespace, call.name))
        if last is not None and call.started - last < _RENEWALS_EVERY:
            return True
        self._renewed[call.namespace, call.name] = call.started
        return False

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
