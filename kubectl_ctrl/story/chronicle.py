"""The stories in the recording of one cluster: selected attempts, their runs, and the facts around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from kubectl_ctrl.errors import NotRecorded
from kubectl_ctrl.findings.case import Case
from kubectl_ctrl.findings.health import savings
from kubectl_ctrl.findings.triggers import next_triggers
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import RecordedAttempt, RecordedObject, RecordedRun, Story
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs.liveness import RunStates, is_over
from kubectl_ctrl.story import lookup
from kubectl_ctrl.story.generations import with_generation
from kubectl_ctrl.story.lookup import SelectedRecording
from kubectl_ctrl.story.scene import Scene, totals
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value, replace

# The number of last attempts of an object that are read, unless --last is higher.
_MOST = 300
# The number of last attempts that are searched for the last state of the object.
_SEARCHED = 20
# The number of last attempts of each object of a type, without --last.
_OF_EACH = 200


class ObjectStory(Value, kw_only=True):
    """The story of one object, and the facts around its rows."""

    story: Story
    scene: Scene
    primaries: Mapping[str, Resource]


class FollowedObjects(Value, kw_only=True):
    """The objects of `trace -w`: one, or all of a type in a namespace ("" for all namespaces)."""

    chronicle: Chronicle
    resource: Resource
    key: Key | None
    namespace: str = ""
    since: float | None = None
    first: int = 20  # the number of ended reconciles shown at the start

    @property
    def name(self) -> str:
        place = f"namespace {self.namespace} (-A for all)" if self.namespace else "all namespaces"
        return f"{self.resource.kind} {self.key}" if self.key else f"{self.resource.plural} in {place}"

    def concerns(self, run: RecordedRun) -> bool:
        """The run may reconcile these objects."""
        place = self.key.namespace if self.key else self.namespace
        played = [one for one in run.controllers if self.chronicle.controller in ("", one.name)]
        primary = any(same_type(one, self.resource) for played in played for one in played.primaries)
        return primary and (not place or run.namespace in ("", place))

    def attempts(self, most: int, known: AbstractSet[str]) -> list[RecordedAttempt]:
        """The last attempts, oldest first; of a type, those of the objects with an unknown last attempt."""
        if self.key is not None:
            uid = self.chronicle.newest(self.resource, self.key)
            found = self.chronicle.attempts(self.resource, self.key, uid, most=most)
        else:
            subjects = self.chronicle.subjects(self.resource, "", self.namespace)
            fresh = [one for one in subjects if one.last.id not in known]
            story = self.chronicle.story_of_all(self.resource, fresh, last=most, since=self.since)
            found = list(story.attempts)[-most:]
        return [one for one in found if self.since is None or one.started >= self.since]


class Chronicle:
    """The recording of one cluster; `controller` and `uid` narrow it to one controller and one object."""

    def __init__(
        self, user: User, selected: SelectedRecording, now: float, *, controller: str = "", uid: str = ""
    ) -> None:
        self._state = user.state
        self._selected = selected
        self._recording = selected.recording
        self._cluster = selected.cluster.key
        self._now = now
        self.controller = controller
        self._uid = uid
        self.refresh(now)

    def refresh(self, now: float) -> None:
        """Read the runs again."""
        self._now = now
        self.runs = self._recording.runs(cluster=self._cluster)
        self._lives = RunStates(self._state, self._recording, self._cluster, self.runs, now)

    def __repr__(self) -> str:
        return f"Chronicle({self._cluster!r}, runs={len(self.runs)})"

    def knows(self, controller: str) -> bool:
        return any(controller in (one.name, one.word) for run in self.runs for one in run.controllers)

    def body(self, uid: str, version: str) -> Obj | None:
        return self._recording.body(self._cluster, uid, version)

    def primaries(self, runs: Sequence[RecordedRun], resource: Resource | None) -> dict[str, Resource]:
        """The primary type of each controller, `resource` if it is one of several."""
        found: dict[str, Resource] = {}
        for played in (played for run in runs for played in run.controllers):
            own = [one for one in played.primaries if resource is not None and same_type(one, resource)]
            found.setdefault(played.name, (own or list(played.primaries))[0])
        return found

    # One object.

    def object_story(
        self, resource: Resource, key: Key, *, last: int | None, since: float | None
    ) -> ObjectStory | None:
        """The story of an object; None without records of it."""
        uids = self._recording.uids(self._cluster, resource, key)
        uid = self._uid or next(iter(uids), "")
        if self._uid and self._uid not in uids:
            raise NotRecorded(
                f"Nothing is recorded about {resource.kind} {key} with UID {self._uid!r}.",
                tried=f"recorded: {', '.join(uids) or 'none'}",
            )
        attempts = self.attempts(resource, key, uid, most=max(_MOST, last or 0) if last else None)
        if not attempts and not uids:
            return None
        lived = self._recording.lived(self._cluster, resource, key) if len(uids) > 1 else ()
        selected = [one for one in attempts if since is None or one.started >= since]
        shown = selected[-last:] if last else selected
        runs = self.runs_of(shown or attempts[-1:])
        story = Story(
            cluster=self._selected.cluster,
            runs=runs,
            resource=resource,
            key=key,
            uid=uid,
            older=tuple(one for one in lived if one.uid != uid),
            attempts=tuple(shown),
            moments=tuple(one for one in self._lives.moments if one.run in {run.id for run in runs}),
            at=self._now,
        )
        scene = self._scene(story, attempts, selected)
        if last:
            # More attempts may be recorded than were read.
            counts = self._recording.counts(
                cluster=self._cluster, resource=resource, key=key, uid=uid, controller=self.controller, since=since
            )
            if counts.attempts > scene.totals.attempts:
                scene = replace(scene, totals=counts, hidden=counts.attempts - len(shown))
        return ObjectStory(story=story, scene=scene, primaries=self.primaries(runs, resource))

    def newest(self, resource: Resource, key: Key) -> str:
        """The UID of the last object of this name, "" if unknown."""
        return next(iter(self._recording.uids(self._cluster, resource, key)), "")

    def attempts(self, resource: Resource, key: Key, uid: str, *, most: int | None = None) -> list[RecordedAttempt]:
        """The attempts for the object; without any, those that it triggered or that wrote it."""
        found = self._recording.attempts(
            cluster=self._cluster, resource=resource, key=key, controller=self.controller, last=most
        )
        if not found:
            related = self._recording.related(cluster=self._cluster, uid=uid) if uid else []
            return [one for one in related if self.controller in ("", one.controller)]
        # An attempt with an unknown UID is selected by name.
        return [one for one in found if one.uid in ("", uid)] if uid else found

    def runs_of(self, attempts: Sequence[RecordedAttempt]) -> tuple[RecordedRun, ...]:
        names = {one.run for one in attempts}
        return tuple(run for run in self.runs if run.id in names)

    def numbered(self, word: str, resource: Resource, key: Key) -> RecordedAttempt:
        """The attempt N or RUN-N of the object, or one related to it."""
        try:
            return lookup.attempt_of(self._selected, word, (resource, key))
        except NotRecorded:
            related = self.attempts(resource, key, self._uid or self.newest(resource, key))
            found = [one for one in related if word.lstrip("#") in (one.id, str(one.number))]
            if not found:
                raise
            return found[-1]

    def story_of(self, attempt: RecordedAttempt, resource: Resource | None) -> Story:
        runs = self.runs_of([attempt])
        primary = resource or self.primaries(runs, None).get(attempt.controller)
        return Story(
            cluster=self._selected.cluster,
            runs=runs,
            resource=primary,
            key=attempt.request,
            uid=attempt.uid,
            attempts=(attempt,),
            at=self._now,
        )

    # Facts around the rows.

    def _scene(self, story: Story, attempts: Sequence[RecordedAttempt], selected: Sequence[RecordedAttempt]) -> Scene:
        obj, seen = self._last_seen(story.uid, attempts)
        run = story.runs[0] if story.runs else None
        return Scene(
            totals=totals(selected),
            hidden=len(selected) - len(story.attempts),
            runs=self.runs_of(selected),
            over=self.over(self.runs_of(selected) or story.runs),
            object=obj,
            seen=max(seen, self._heard(run)) if run is not None else seen,
            live=run is not None and any(one.life is Life.RUNNING for one in self._lives.of(run)),
            gone=_gone(story.uid, attempts),
            triggers=self._triggers(story, run, attempts),
            hint=_hint(selected, with_generation(self._recording, self._cluster, selected)),
            related=_is_related(story, attempts, self.primaries(self.runs, story.resource)),
        )

    def over(self, runs: Sequence[RecordedRun]) -> dict[str, str]:
        """The end of each inactive run, with its time."""
        return {name: what + when for name, (what, when) in self.ends(runs).items()}

    def ends(self, runs: Sequence[RecordedRun]) -> dict[str, tuple[str, str]]:
        """The end of each inactive run, and its time as a text of its own."""
        found = {}
        for run in runs:
            lives = self._lives.of(run)
            if run.ended is not None:
                found[run.id] = ("ended", f" {self._clock(run.ended)}")
            elif any(one.life is Life.STOPPED for one in lives):
                found[run.id] = ("suspended by a signal", "")
            elif any(one.life is Life.GONE for one in lives) or is_over(run, self._now):
                found[run.id] = ("exited unexpectedly", f", last seen {self._clock(run.seen)}")
        return found

    def _clock(self, at: float) -> str:
        seconds = round(self._now - at)
        return f"{format_duration(seconds)} ago" if seconds > 0 else "just now"

    def _heard(self, run: RecordedRun) -> float:
        """The last sign of life of the run: until then it watched."""
        states = [one.state.at for one in self._lives.moments if one.run == run.id]
        return run.ended if run.ended is not None else max([run.seen, run.began, *states])

    def _last_seen(self, uid: str, attempts: Sequence[RecordedAttempt]) -> tuple[Obj | None, float]:
        """The newest stored version of the object, and its time."""
        for one in attempts[: -_SEARCHED - 1 : -1]:
            for version in _versions(one, uid):
                obj = self._recording.body(self._cluster, uid, version)
                if obj is not None:
                    return obj, one.end
        return None, 0.0

    def _triggers(self, story: Story, run: RecordedRun | None, attempts: Sequence[RecordedAttempt]) -> tuple[str, ...]:
        if run is None or not attempts or story.resource is None or story.key is None:
            return ()
        played = next((one for one in run.controllers if one.name == attempts[-1].controller), None)
        if played is None or not any(same_type(one, story.resource) for one in played.primaries):
            return ()
        moment = self._lives.moment(run, played.name)
        life = self._lives.life(run, played.name)
        case = Case(
            resource=story.resource,
            key=story.key,
            uid=story.uid,
            word=story.resource.kind.lower(),
            now=self._now,
            controller=played,
            run=run,
            life=life,
            moment=moment,
            attempts=tuple(attempts),
        )
        texts = []
        for one in next_triggers(case, case.qualifier):
            delay = None if one.at is None else one.at - self._now
            texts.append(one.text + ("" if delay is None else f" in {format_duration(delay)}" if delay > 0 else " now"))
        return tuple(texts)

    # Objects of a type.

    def subjects(self, resource: Resource | None, controller: str, namespace: str) -> tuple[RecordedObject, ...]:
        names = [one.name for run in self.runs for one in run.controllers if controller in (one.name, one.word)]
        name = names[0] if names else controller  # the user may have typed a path
        return self._recording.subjects(
            cluster=self._cluster,
            controller=self.controller or name,
            resource=resource,
            namespace=namespace if resource is None or resource.namespaced else "",
        )

    def story_of_all(
        self, resource: Resource | None, subjects: Sequence[RecordedObject], *, last: int | None, since: float | None
    ) -> Story:
        found = [
            one
            for subject in subjects
            for one in self._recording.attempts(
                cluster=self._cluster,
                resource=subject.resource,
                key=subject.key,
                controller=subject.controller,
                last=last or _OF_EACH,
                since=since,
            )
        ]
        attempts = tuple(sorted(found, key=lambda one: one.started))
        runs = self.runs_of(attempts)
        return Story(
            cluster=self._selected.cluster,
            runs=runs,
            resource=resource,
            attempts=attempts,
            subjects=tuple(subjects),
            moments=tuple(one for one in self._lives.moments if one.run in {run.id for run in runs}),
            at=self._now,
        )

    @property
    def changed(self) -> int:
        return self._recording.changed()


def same_type(one: Resource, other: Resource) -> bool:
    return (one.group, one.plural) == (other.group, other.plural)


def _versions(attempt: RecordedAttempt, uid: str) -> list[str]:
    """The versions of an object in an attempt, newest first: written, read, and of its causes."""
    found = [made.call.new_version for made in attempt.writes if made.call.uid == uid and made.call.code]
    found = found[::-1] + [version for read in attempt.reads[::-1] for one, version in read.found if one == uid]
    found += [cause.new_version for cause in attempt.causes[::-1] if cause.uid == uid]
    return list(dict.fromkeys(filter(None, found)))


def _gone(uid: str, attempts: Sequence[RecordedAttempt]) -> float | None:
    """The time of the object's deletion, if it triggered an attempt."""
    for one in attempts[::-1]:
        for cause in one.causes:
            if cause.kind is CauseKind.DELETED and cause.uid == uid:
                return cause.at
    return None


def _hint(attempts: Sequence[RecordedAttempt], types: AbstractSet[Resource]) -> str:
    """The attempts that a predicate would have saved, if it would have prevented none with effect."""
    for controller in dict.fromkeys(one.controller for one in reversed(attempts)):
        own = [one for one in attempts if one.controller == controller]
        found = [one for one in savings(own, types) if not one.useful and one.noops > 1]
        if found:
            most = max(found, key=lambda one: one.noops)
            saved = f"when={most.predicate} on {most.resource.kind} would have saved {most.noops} of {len(own):,}"
            return f"{saved} reconciles that changed nothing: {ctrl('explain', controller)}"
    return ""


def _is_related(story: Story, attempts: Sequence[RecordedAttempt], primaries: Mapping[str, Resource]) -> bool:
    """The attempts are for other objects: this one triggered them, or they wrote it."""
    return story.resource is not None and not any(
        one.request == story.key and same_type(primaries[one.controller], story.resource)
        for one in attempts
        if one.controller in primaries
    )
