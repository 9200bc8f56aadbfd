"""Collects the recorded facts on an object of a controller, or on a whole run, for the findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kubectl_ctrl.findings.case import Body, Case, Place, Version, qualifier
from kubectl_ctrl.findings.health import HealthInput
from kubectl_ctrl.loader.code_errors import shown
from kubectl_ctrl.model.objects import Key, key_of, uid_of
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedController, RecordedRun
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runs.liveness import RunStates
from kubectl_ctrl.story.commands import Places
from kubectl_ctrl.story.generations import with_generation
from kubectl_ctrl.story.lookup import SelectedRecording
from kubectl_ctrl.story.query import Query
from kubectl_ctrl.value import Value, replace

# The number of last attempts that are examined, and of those joined with the writes that caused them.
_ATTEMPTS = 300
_JOINED = 60
_CAUSES = 8
# The number of last attempts whose reads show the state of objects, and of objects in one list.
_LOOKED = 12
_LISTED = 20
# The health of a controller: the number of attempts in all, and at least of each object.
_HEALTH = 5000
_LEAST_HEALTH = 10


class CaseQuery(Value, kw_only=True):
    """The object to explain."""

    resource: Resource
    key: Key
    word: str  # the type as the user typed it
    uid: str = ""
    controller: str = ""


class Cases:
    """The cases in the recording of one cluster."""

    def __init__(self, query: Query, selected: SelectedRecording, now: float) -> None:
        self._selected = selected
        self._recording = selected.recording
        self._cluster = selected.cluster.key
        self._now = now
        self._runs = self._recording.runs(cluster=self._cluster)
        self.places = Places(query, selected.cluster)
        self.lives = RunStates(query.user.state, self._recording, self._cluster, self._runs, now)

    def controllers(self, asked: CaseQuery) -> list[str]:
        """The controllers for that type, those with attempts for the object first."""
        known = dict.fromkeys(played.name for run in self._runs for played in run.controllers if _is_for(played, asked))
        if len(known) < 2:
            return list(known)
        seen = {one.controller for one in self._attempts(asked, "", 50)}
        return sorted(known, key=lambda name: name not in seen)  # stable: otherwise in the order of the runs

    def case(self, asked: CaseQuery, controller: str, live: Mapping[Place, Body]) -> Case:
        attempts = self._attempts(asked, controller, _ATTEMPTS)
        cut = len(attempts) >= _ATTEMPTS
        uids = self._recording.uids(self._cluster, asked.resource, asked.key)
        body = live.get((asked.resource, asked.key))
        found = uid_of(body.obj) if body is not None and body.obj is not None else ""
        uid = asked.uid or found or next(iter(uids), "")
        attempts = [one for one in attempts if one.uid in ("", uid)] if uid else attempts
        run, played = self._run(asked, controller, attempts)
        versions = {
            (cause.uid, cause.new_version)
            for one in attempts[-_JOINED:]
            for cause in one.causes[:_CAUSES]
            if cause.uid and cause.new_version
        }
        found_writers = ((version, self._recording.writer_of(self._cluster, *version)) for version in sorted(versions))
        writers = {version: writer for version, writer in found_writers if writer is not None}
        others = {attempt for attempt, _ in writers.values()} - {one.id for one in attempts}
        return Case(
            resource=asked.resource,
            key=asked.key,
            uid=uid,
            word=asked.word,
            **self.places.of(asked.key.namespace),
            now=self._now,
            controller=_here(played) if played is not None else None,
            run=run,
            life=self.lives.life(run, controller),
            moment=self.lives.moment(run, controller),
            attempts=tuple(attempts),
            cut=cut,
            others={one: self._recording.attempt(one, cluster=self._cluster) for one in sorted(others)},
            writers=writers,
            bodies={**self._bodies(asked, attempts), **live},
            older=len([one for one in uids if one != uid]) if uid in uids else 0,
            deleted=self._selected.cluster.ended is not None,
        )

    def work(self, run: RecordedRun, controller: str) -> HealthInput:
        """The run of a controller; with very many objects, the last attempts of each."""
        played = _played(run, controller)
        assert played is not None
        moment = self.lives.moment(run, played.name)
        subjects = [
            one
            for one in self._recording.subjects(cluster=self._cluster, controller=played.name)
            if one.last.run == run.id
        ]
        last = max(_HEALTH // max(len(subjects), 1), _LEAST_HEALTH)
        attempts = [
            attempt
            for one in subjects
            for attempt in self._recording.attempts(
                cluster=self._cluster,
                resource=one.resource,
                key=one.key,
                controller=played.name,
                run=run.id,
                last=last,
            )
        ]
        life = self.lives.life(run, played.name)
        case = Case(
            resource=played.primaries[0],
            key=Key("", ""),
            uid="",
            word="",
            **self.places.of(""),
            now=self._now,
            controller=_here(played),
            run=run,
            life=life,
            moment=moment,
            deleted=self._selected.cluster.ended is not None,
        )
        worked = max((attempt.started for attempt in attempts), default=0.0)
        unique = list({one.id: one for one in attempts}.values())
        return HealthInput(
            controller=played,
            run=run,
            case=case,
            attempts=unique,
            qualifier=qualifier(run, moment, self._now, life=life, worked=worked),
            counted=with_generation(self._recording, self._cluster, unique),
            bodies=self._last_read(unique),
        )

    def _last_read(self, attempts: Iterable[RecordedAttempt]) -> dict[Place, Body]:
        """The state of requested objects at their last read, unless an attempt wrote their status."""
        written = {one.request for one in attempts if any(wish.verb == "status" for wish in one.wishes)}
        found: dict[Place, Body] = {}
        unwritten = [one for one in attempts if one.request not in written]
        for one in sorted(unwritten, key=lambda one: one.started, reverse=True):
            for read in one.reads[::-1]:
                place = (read.resource, one.request)
                if place not in found and read.verb in ("get", "live") and _key(read.query) == one.request:
                    obj = self._recording.body(self._cluster, *read.found[0]) if read.found else None
                    found[place] = Body(obj=obj, source=FactSource.RECORDED, at=one.started)
        return found

    def runs_of(self, controller: str) -> list[RecordedRun]:
        """Newest first; `controller` is its name or the word that the user typed for it."""
        return [run for run in self._runs if _played(run, controller) is not None]

    def _run(
        self, asked: CaseQuery, controller: str, attempts: Sequence[RecordedAttempt]
    ) -> tuple[RecordedRun | None, RecordedController | None]:
        """The run that decides the verdict: an active one that covers the object, else its last one."""
        runs = self.runs_of(controller)
        covering = [run for run in runs if run.namespace in ("", asked.key.namespace) or not asked.key.namespace]
        working = [run for run in covering if self.lives.life(run, controller).here]
        having = [run for run in covering if attempts and run.id == attempts[-1].run]
        later = covering if attempts else runs
        run = next(iter([*working, *having, *later]), None)
        # A later run that covers the object would have reconciled it: that run is the one with the problem.
        if not working and covering and having and covering[0] is not having[0]:
            run = covering[0]
        return run, _played(run, controller) if run is not None else None

    def _attempts(self, asked: CaseQuery, controller: str, last: int) -> list[RecordedAttempt]:
        return self._recording.attempts(
            cluster=self._cluster, resource=asked.resource, key=asked.key, controller=controller, last=last
        )

    def _bodies(self, asked: CaseQuery, attempts: Sequence[RecordedAttempt]) -> dict[Place, Body]:
        """The newest recorded states of the object and of those that its last attempts read or wrote."""
        found: dict[Place, Body] = {}
        for one in attempts[:-_LOOKED:-1]:
            for resource, key, version, at in _seen(one):
                if key is not None and (resource, key) in found:
                    continue
                obj = self._recording.body(self._cluster, *version) if version is not None else None
                if version is not None and obj is None:
                    continue
                place = (resource, key if obj is None else key_of(obj))
                if place[1] is not None and place not in found:
                    found[resource, place[1]] = Body(obj=obj, source=FactSource.RECORDED, at=at)
        own = found.get((asked.resource, asked.key))
        if own is not None and own.obj is None:
            del found[asked.resource, asked.key]  # GONE is derived from the events and reads of attempts
        return found


def _seen(attempt: RecordedAttempt) -> Iterator[tuple[Resource, Key | None, Version | None, float]]:
    """The objects that an attempt wrote, then those that it read. No version: the object does not exist."""
    at = attempt.started
    for wish in attempt.wishes[::-1]:
        if wish.uid and wish.version:
            yield wish.resource, wish.key, (wish.uid, wish.version), at
    for read in attempt.reads[::-1]:
        single = read.verb in ("get", "live")
        for version in read.found[:_LISTED]:
            yield read.resource, _key(read.query) if single else None, version, at
        if single and not read.found:
            yield read.resource, _key(read.query), None, at


def _key(query: str) -> Key:
    namespace, _, name = query.rpartition("/")
    return Key(namespace, name)


def _is_for(played: RecordedController, asked: CaseQuery) -> bool:
    if asked.controller not in ("", played.name, played.word):
        return False
    wanted = (asked.resource.group, asked.resource.plural)
    return any((one.group, one.plural) == wanted for one in played.primaries)


def _here(played: RecordedController) -> RecordedController:
    """With the path of its code relative to the current folder: the user may have typed it in another one."""
    path, colon, attribute = played.word.rpartition(":")
    if not (colon and attribute.isidentifier()):
        path, attribute = played.word, ""
    if not played.code or not ("/" in path or path.endswith(".py") or path in (".", "..")):
        return played
    word = shown(Path(played.code))
    return replace(played, word=f"{word}:{attribute}" if attribute else word)


def _played(run: RecordedRun, controller: str) -> RecordedController | None:
    return next((one for one in run.controllers if controller in (one.name, one.word)), None)
