"""Reads recordings: every query of the verbs, with values of the model as results.

The connection only reads and keeps no transaction open between two queries. An open one would keep the writer's
checkpoints from truncating the WAL for as long as it lasts, which for `trace -w` can be hours.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypedDict, TypeVar, Unpack

import orjson

from kubectl_ctrl.errors import NotRecorded
from kubectl_ctrl.history import database
from kubectl_ctrl.history.documents import decoded, unpacked
from kubectl_ctrl.history.inventory import ControllerNumbers, RunNumbers
from kubectl_ctrl.history.sql import BACKGROUND, query
from kubectl_ctrl.model.attempt import ControllerState, DroppedEcho, Tally
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import (
    AttemptCounts,
    Incarnation,
    RecordedAttempt,
    RecordedCall,
    RecordedCluster,
    RecordedObject,
    RecordedRun,
    RecordedState,
    RecordedType,
)
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, replace

EVER = float("inf")

T = TypeVar("T", bound=Value)


class AttemptFilter(TypedDict, total=False):
    """A selection of the attempts of an object; all of them by default."""

    uid: str
    controller: str
    run: str
    last: int | None
    since: float | None
    after: str  # an attempt: only later ones


def has_ended(run: RecordedRun) -> bool:
    return run.ended is not None


class Recording:
    """A recording open for reading. `dead`: the process of the run exited; its running attempts are interrupted."""

    def __init__(self, path: Path, connection: sqlite3.Connection, dead: Callable[[RecordedRun], bool]) -> None:
        self.path = path
        self._connection = connection
        self._dead = dead
        self._runs: dict[int, RecordedRun] = {}

    @classmethod
    def open(cls, path: Path, *, dead: Callable[[RecordedRun], bool] = has_ended) -> Recording:
        return cls(path, database.readable(path), dead)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def __repr__(self) -> str:
        return f"Recording({str(self.path)!r})"

    def _rows(self, name: str, /, **values: Any) -> list[Any]:
        with database.mapped(self.path):
            return self._connection.execute(query(name), values).fetchall()

    def _value(self, kind: type[T], document: bytes) -> T:
        with database.mapped(self.path):
            return decoded(kind, document)

    def _object(self, data: bytes) -> Obj:
        with database.mapped(self.path):
            return unpacked(data)

    def changed(self) -> int:
        """A number that changes with every commit of another process."""
        with database.mapped(self.path):
            version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    # Clusters, runs, types.

    def clusters(self) -> tuple[RecordedCluster, ...]:
        """Newest first."""
        found: dict[str, list[RecordedRun]] = defaultdict(list)
        for run in self.runs():
            found[run.cluster].append(run)
        clusters = [
            RecordedCluster(
                key=key,
                servers=tuple(dict.fromkeys((run.server, run.ca) for run in runs)),
                contexts=tuple(dict.fromkeys(run.context for run in runs if run.context)),
                seen=max(run.seen for run in runs),
            )
            for key, runs in found.items()
        ]
        ends = {key: (name, provider, at) for key, name, provider, at in self._rows("list_deleted")}
        for place, one in enumerate(clusters):
            if one.key in ends:
                name, provider, at = ends[one.key]
                clusters[place] = replace(one, name=name, provider=provider, ended=at)
        return tuple(sorted(clusters, key=lambda cluster: -cluster.seen))

    def runs(self, *, cluster: str = "", controller: str = "") -> tuple[RecordedRun, ...]:
        """Newest first."""
        found = []
        for id_, _, _, seen, ended, gaps, document in self._rows("list_runs", cluster=cluster):
            run = replace(self._value(RecordedRun, document), seen=seen, ended=ended, gaps=gaps)
            self._runs[id_] = run
            if not controller or any(played.name == controller for played in run.controllers):
                found.append(run)
        return tuple(found)

    def run(self, id: str) -> RecordedRun | None:  # noqa: A002
        """The newest run of that name."""
        return next((run for run in self.runs() if run.id == id), None)

    def filled(self, *, cluster: str = "", before: float = EVER) -> tuple[RunNumbers, ...]:
        """The runs, newest first, each with its numbers before that time."""
        runs = self.runs(cluster=cluster)
        amounts: dict[int, list[ControllerNumbers]] = defaultdict(list)
        for id_, controller, attempts, failures, unfinished, writes, first, last in self._rows(
            "count_done", before=before
        ):
            amounts[id_].append(
                ControllerNumbers(
                    controller=controller,
                    attempts=attempts,
                    failures=failures or 0,
                    unfinished=unfinished,
                    writes=writes,
                    first=first,
                    last=last,
                )
            )
        rows = {id(run): row for row, run in self._runs.items()}
        return tuple(RunNumbers(run=run, amounts=tuple(amounts[rows[id(run)]]), over=self._dead(run)) for run in runs)

    def known(self, cluster: str = "") -> tuple[RecordedType, ...]:
        found = (
            RecordedType(resource=_resource(*resource), singular=singular, short_names=tuple(short_names.split()))
            for *resource, singular, short_names in self._rows("list_types", cluster=cluster)
        )
        return tuple(dict.fromkeys(found))

    # Objects.

    def subjects(
        self, *, cluster: str, controller: str = "", resource: Resource | None = None, namespace: str = ""
    ) -> tuple[RecordedObject, ...]:
        rows = self._rows(
            "list_subjects",
            cluster=cluster,
            controller=controller,
            namespace=namespace,
            grp=resource.group if resource else "",
            plural=resource.plural if resource else "",
        )
        newest_rows = self._rows("get_attempts", ids=json.dumps([row[-1] for row in rows]))
        last = dict(zip([row[0] for row in newest_rows], self._attempts_of(newest_rows), strict=True))
        return tuple(
            RecordedObject(
                controller=name,
                resource=_resource(*resource_columns),
                key=Key(place, object_name),
                uid=last[newest].uid,
                attempts=attempts,
                failures=failures or 0,
                first=first,
                last=last[newest],
            )
            for name, *resource_columns, place, object_name, attempts, failures, first, newest in rows
        )

    def find(self, *, resource: Resource, key: Key) -> tuple[str, ...]:
        """The keys of the clusters with records of the object."""
        return tuple(cluster for (cluster,) in self._rows("find_clusters", **_place(resource, key)))

    def uids(self, cluster: str, resource: Resource, key: Key) -> tuple[str, ...]:
        """The UIDs of all objects of this name, newest first."""
        # `lived` reads the attempts of all of them, so it is used only to sort several.
        found = tuple(uid for (uid,) in self._rows("list_uids", cluster=cluster, **_place(resource, key)))
        return found if len(found) < 2 else tuple(one.uid for one in self.lived(cluster, resource, key))

    def lived(self, cluster: str, resource: Resource, key: Key) -> tuple[Incarnation, ...]:
        """The same, with the times and number of their attempts."""
        return tuple(
            Incarnation(uid=uid, first=first, last=last, attempts=count)
            for uid, first, last, count in self._rows("list_lived", cluster=cluster, **_place(resource, key))
        )

    # Attempts.

    def attempts(
        self, *, cluster: str, resource: Resource, key: Key, **narrow: Unpack[AttemptFilter]
    ) -> list[RecordedAttempt]:
        """The attempts for an object, oldest first; without a UID, for all objects of its name."""
        last, since, after = narrow.get("last"), narrow.get("since"), narrow.get("after", "")
        rows = self._rows(
            "list_attempts",
            cluster=cluster,
            **_place(resource, key),
            uid=narrow.get("uid", ""),
            controller=narrow.get("controller", ""),
            run=narrow.get("run", ""),
            last=-1 if last is None else last,
            since=since or 0.0,
            after=self._row_of(after) if after else 0,
        )
        return self._attempts_of(rows[::-1])

    def counts(self, *, cluster: str, resource: Resource, key: Key, **narrow: Unpack[AttemptFilter]) -> AttemptCounts:
        """The numbers of all attempts for an object; `last`, `run` and `after` are ignored."""
        rows = self._rows(
            "count_about",
            cluster=cluster,
            **_place(resource, key),
            uid=narrow.get("uid", ""),
            controller=narrow.get("controller", ""),
            since=narrow.get("since") or 0.0,
        )
        return AttemptCounts(
            attempts=sum(row[1] for row in rows),
            writes=sum(row[2] for row in rows),
            errors=sum(row[3] for row in rows),
            interrupted=sum(row[4] for row in rows if self._dead(self._run(row[0]))),
            first=min((row[5] for row in rows), default=0.0),
        )

    def of_controller(self, *, cluster: str, controller: str) -> list[RecordedAttempt]:
        """The attempts of a controller for all objects, oldest first."""
        return self._attempts_of(self._rows("list_controllers", cluster=cluster, controller=controller))

    def related(self, *, cluster: str, uid: str) -> list[RecordedAttempt]:
        """The attempts triggered by an object and those that wrote it, oldest first."""
        return self._attempts_of(self._rows("list_related", cluster=cluster, uid=uid))

    def attempt(self, id: str, *, cluster: str = "") -> RecordedAttempt:  # noqa: A002
        run, number = _parts(id)
        rows = self._rows("get_attempt", run=run, number=number, cluster=cluster)
        if not rows:
            raise NotRecorded(f"The recording {str(self.path)!r} contains no attempt {id!r}.")
        return self._attempts_of(rows)[0]

    def writer_of(self, cluster: str, uid: str, version: str) -> tuple[str, str] | None:
        """The attempt and the call that wrote this version of an object."""
        rows = self._rows("find_writer", cluster=cluster, uid=uid, version=version)
        return (f"{rows[0][0]}-{rows[0][1]}", rows[0][2]) if rows else None

    def triggered_by(self, cluster: str, uid: str, version: str) -> tuple[str, ...]:
        """The attempts triggered by this version of an object."""
        rows = self._rows("list_woken", cluster=cluster, uid=uid, version=version)
        return tuple(f"{run}-{number}" for run, number in rows)

    def body(self, cluster: str, uid: str, version: str) -> Obj | None:
        """The object in that version, if stored: without managedFields; Secrets are never stored."""
        rows = self._rows("get_body", cluster=cluster, uid=uid, version=version)
        if not rows:
            return None
        obj = self._object(rows[0][0])
        return {**obj, "metadata": {name: part for name, part in obj["metadata"].items() if name != "managedFields"}}

    def replayable(self, id: str, *, cluster: str = "") -> RecordedAttempt:  # noqa: A002
        """An attempt with the exact objects that it read and was answered with; deleted bodies are omitted."""
        run, number = _parts(id)
        attempt = self.attempt(id, cluster=cluster)
        rows = self._rows("bodies_of", run=run, number=number, cluster=cluster)
        if not rows[0][0]:
            return attempt
        reads, answers = orjson.loads(rows[0][0])
        wanted = {row for read in (*reads, answers) for row in read if row}
        found = {row: self._object(data) for row, data in self._rows("get_bodies", ids=json.dumps(sorted(wanted)))}
        return replace(
            attempt,
            reads=tuple(
                replace(read, objects=tuple(found[row] for row in kept if row in found))
                for read, kept in zip(attempt.reads, reads, strict=True)
            ),
            wishes=tuple(
                replace(wish, answer=found.get(row)) for wish, row in zip(attempt.wishes, answers, strict=True)
            ),
        )

    def moments(self, *, cluster: str = "", run: str = "") -> tuple[RecordedState, ...]:
        """The last recorded state of each controller of each run, the newest run first."""
        return tuple(
            RecordedState(
                run=name, state=self._value(ControllerState, state), tally=self._value(Tally, tally) if tally else None
            )
            for name, state, tally in self._rows("list_moments", cluster=cluster, run=run)
        )

    def background(self, *, run: str) -> list[RecordedCall]:
        """The calls without an attempt, such as those for leases."""
        self.runs()
        rows = [row for row, known in self._runs.items() if known.id == run]
        later = self._rows("list_later", run=rows[0], first=0, last=0) if rows else []
        return [self._value(RecordedCall, document) for _, kind, document in later if kind == BACKGROUND]

    # From rows to values.

    def _attempts_of(self, rows: Sequence[Any]) -> list[RecordedAttempt]:
        """The attempts of rows, with the rows beside them: calls of running attempts, later echoes and calls."""
        sent: dict[int, list[RecordedCall]] = defaultdict(list)
        if running := [row[0] for row in rows if row[4] is None]:
            for attempt, document in self._rows("list_sent", ids=json.dumps(running)):
                sent[attempt].append(self._value(RecordedCall, document))
        background: dict[tuple[int, int], list[RecordedCall]] = defaultdict(list)
        heard: dict[tuple[int, int], list[DroppedEcho]] = defaultdict(list)
        numbers: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            numbers[row[1]].append(row[3])
        for run, own in numbers.items():
            for number, kind, document in self._rows("list_later", run=run, first=min(own), last=max(own)):
                if kind == BACKGROUND:
                    background[run, number].append(self._value(RecordedCall, document))
                else:
                    heard[run, number].append(self._value(DroppedEcho, document))
        attempts = []
        for id_, run, _, number, outcome, _, document, uid in rows:
            recorded = self._value(RecordedAttempt, document)
            extra: dict[str, Any] = {"uid": uid or recorded.uid}
            if (run, number) in background:
                extra["background"] = tuple(background[run, number])
            if (run, number) in heard:
                extra["heard"] = tuple(heard[run, number])
            if outcome is None:
                extra |= {"calls": tuple(sent[id_]), "interrupted": self._dead(self._run(run))}
            attempts.append(replace(recorded, **extra) if extra != {"uid": recorded.uid} else recorded)
        return attempts

    def _row_of(self, attempt: str) -> int:
        run, number = _parts(attempt)
        rows = self._rows("attempt_row", run=run, number=number)
        return rows[0][0] if rows else 0

    def _run(self, id_: int) -> RecordedRun:
        self.runs()
        return self._runs[id_]


def _parts(attempt: str) -> tuple[str, int]:
    run, _, number = attempt.rpartition("-")
    # SQLite has no larger integers; -1 is no attempt.
    return run, int(number) if number.isascii() and number.isdigit() and len(number) < 18 else -1


def _resource(group: str, version: str, plural: str, kind: str, namespaced: int) -> Resource:
    return Resource(group, version, plural, kind, bool(namespaced))


def _place(resource: Resource, key: Key) -> dict[str, str]:
    return {"grp": resource.group, "plural": resource.plural, "namespace": key.namespace, "name": key.name}
