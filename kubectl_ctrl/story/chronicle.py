"""Stories made out of one cluster's recording: the attempts that are meant, their runs, and what stands around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from kubectl_ctrl.errors import NotRecorded
from kubectl_ctrl.findings.case import Case, qualifier
from kubectl_ctrl.findings.health import savings
from kubectl_ctrl.findings.triggers import next_triggers
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import Played, Recorded, Run, Story, Subject
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runs.liveness import Lives, is_over
from kubectl_ctrl.story import lookup
from kubectl_ctrl.story.generations import counted
from kubectl_ctrl.story.lookup import Meant
from kubectl_ctrl.story.scene import Scene, totals
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value, replace

# Of an object with more attempts than this the last are looked at, unless more are asked for.
_MOST = 300
# So many attempts at the end are looked through for the object as it was last seen.
_LOOKED = 20
# All objects of a type: so many attempts of each, where none is said.
_OF_EACH = 200


class Told(Value, kw_only=True):
    """A story, and what stands around its rows."""

    story: Story
    scene: Scene
    primaries: Mapping[str, Resource]


class Followed(Value, kw_only=True):
    """What is followed: one object, or all objects of a type in a namespace (everywhere where that is "")."""

    chronicle: Chronicle
    resource: Resource
    key: Key | None
    namespace: str = ""
    since: float | None = None
    first: int = 20  # so many reconciles that have ended are shown to begin with

    @property
    def name(self) -> str:
        place = f"namespace {self.namespace} (-A for all)" if self.namespace else "all namespaces"
        return f"{self.resource.kind} {self.key}" if self.key else f"{self.resource.plural} in {place}"

    def concerns(self, run: Run) -> bool:
        """Whether it may reconcile what is followed."""
        place = self.key.namespace if self.key else self.namespace
        played = [one for one in run.controllers if self.chronicle.controller in ("", one.name)]
        asked = any(same_type(one, self.resource) for played in played for one in played.primaries)
        return asked and (not place or run.namespace in ("", place))

    def attempts(self, most: int, known: AbstractSet[str]) -> list[Recorded]:
        """Its last attempts, oldest first; of a type those of the objects that have one that is not known."""
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
    """See the module."""

    def __init__(self, user: User, meant: Meant, now: float, *, controller: str = "", uid: str = "") -> None:
        self._state = user.state
        self._meant = meant
        self._recording = meant.recording
        self._cluster = meant.cluster.key
        self._now = now
        self.controller = controller
        self._uid = uid
        self.refresh(now)

    def refresh(self, now: float) -> None:
        """Look again at what runs."""
        self._now = now
        self.runs = self._recording.runs(cluster=self._cluster)
        self._lives = Lives(self._state, self._recording, self._cluster, self.runs, now)

    def __repr__(self) -> str:
        return f"Chronicle({self._cluster!r}, runs={len(self.runs)})"

    def knows(self, controller: str) -> bool:
        return any(controller in (one.name, one.word) for run in self.runs for one in run.controllers)

    def body(self, uid: str, version: str) -> Obj | None:
        return self._recording.body(self._cluster, uid, version)

    def primaries(self, runs: Sequence[Run], resource: Resource | None) -> dict[str, Resource]:
        """What each controller's requests are about."""
        found: dict[str, Resource] = {}
        for played in (played for run in runs for played in run.controllers):
            own = [one for one in played.primaries if resource is not None and same_type(one, resource)]
            found.setdefault(played.name, (own or list(played.primaries))[0])
        return found

    # One object.

    def told(self, resource: Resource, key: Key, *, last: int | None, since: float | None) -> Told | None:
        """Its story; None where nothing is recorded of it."""
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
        meant = [one for one in attempts if since is None or one.started >= since]
        shown = meant[-last:] if last else meant
        runs = self.runs_of(shown or attempts[-1:])
        story = Story(
            cluster=self._meant.cluster,
            runs=runs,
            resource=resource,
            key=key,
            uid=uid,
            older=tuple(one for one in lived if one.uid != uid),
            attempts=tuple(shown),
            moments=tuple(one for one in self._lives.moments if one.run in {run.id for run in runs}),
            at=self._now,
        )
        scene = self._scene(story, attempts, meant)
        if last:
            scene = self._counted(story, scene, since)
        return Told(story=story, scene=scene, primaries=self.primaries(runs, resource))

    def newest(self, resource: Resource, key: Key) -> str:
        """The UID of the last object of this name; "" where none is known."""
        return next(iter(self._recording.uids(self._cluster, resource, key)), "")

    def attempts(self, resource: Resource, key: Key, uid: str, *, most: int | None = None) -> list[Recorded]:
        """Those about the object; of one that no request is about, those that it caused and that wrote it."""
        found = self._recording.attempts(
            cluster=self._cluster, resource=resource, key=key, controller=self.controller, last=most
        )
        if not found:
            related = self._recording.related(cluster=self._cluster, uid=uid) if uid else []
            return [one for one in related if self.controller in ("", one.controller)]
        # Where an attempt did not learn which object it was about, its name says it.
        return [one for one in found if one.uid in ("", uid)] if uid else found

    def runs_of(self, attempts: Sequence[Recorded]) -> tuple[Run, ...]:
        names = {one.run for one in attempts}
        return tuple(run for run in self.runs if run.id in names)

    def numbered(self, word: str, resource: Resource, key: Key) -> Recorded:
        """The attempt N or RUN-N, of the object or of those that have to do with it."""
        try:
            return lookup.attempt_of(self._meant, word, (resource, key))
        except NotRecorded:
            related = self.attempts(resource, key, self._uid or self.newest(resource, key))
            found = [one for one in related if word.lstrip("#") in (one.id, str(one.number))]
            if not found:
                raise
            return found[-1]

    def story_of(self, attempt: Recorded, resource: Resource | None) -> Story:
        runs = self.runs_of([attempt])
        primary = resource or self.primaries(runs, None).get(attempt.controller)
        return Story(
            cluster=self._meant.cluster,
            runs=runs,
            resource=primary,
            key=attempt.request,
            uid=attempt.uid,
            attempts=(attempt,),
            at=self._now,
        )

    # Around the rows.

    def _scene(self, story: Story, attempts: Sequence[Recorded], meant: Sequence[Recorded]) -> Scene:
        obj, seen = self._last_seen(story.uid, attempts)
        run = story.runs[0] if story.runs else None
        return Scene(
            totals=totals(meant),
            hidden=len(meant) - len(story.attempts),
            runs=self.runs_of(meant),
            over=self.over(self.runs_of(meant) or story.runs),
            object=obj,
            seen=max(seen, self._heard(run)) if run is not None else seen,
            live=run is not None and self._works(run),
            gone=_gone(story.uid, attempts),
            coming=self._coming(story, run, attempts),
            hint=_hint(meant, counted(self._recording, self._cluster, meant)),
            related=_is_related(story, attempts, self.primaries(self.runs, story.resource)),
        )

    def _counted(self, story: Story, scene: Scene, since: float | None) -> Scene:
        """With the counts of all that is meant, where more of it is recorded than was looked at."""
        assert story.resource is not None
        assert story.key is not None
        counts = self._recording.counts(
            cluster=self._cluster,
            resource=story.resource,
            key=story.key,
            uid=story.uid,
            controller=self.controller,
            since=since,
        )
        if counts.attempts <= scene.totals.attempts:
            return scene
        return replace(scene, totals=counts, hidden=counts.attempts - len(story.attempts))

    def over(self, runs: Sequence[Run]) -> dict[str, str]:
        """Of each run that works no more, or not now, how that came, and when."""
        return {name: what + when for name, (what, when) in self.ends(runs).items()}

    def ends(self, runs: Sequence[Run]) -> dict[str, tuple[str, str]]:
        """The same, with the time apart."""
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

    def _heard(self, run: Run) -> float:
        """When the run last told anything: until then it watched."""
        told = [one.state.at for one in self._lives.moments if one.run == run.id]
        return run.ended if run.ended is not None else max([run.seen, run.began, *told])

    def _works(self, run: Run) -> bool:
        return any(one.life is Life.RUNNING for one in self._lives.of(run))

    def _last_seen(self, uid: str, attempts: Sequence[Recorded]) -> tuple[Obj | None, float]:
        """The object in the newest version that was kept, and when that was seen."""
        for one in attempts[: -_LOOKED - 1 : -1]:
            for version in _versions(one, uid):
                obj = self._recording.body(self._cluster, uid, version)
                if obj is not None:
                    return obj, one.end
        return None, 0.0

    def _coming(self, story: Story, run: Run | None, attempts: Sequence[Recorded]) -> tuple[str, ...]:
        played = _played(run, attempts, story)
        if run is None or played is None or story.resource is None or story.key is None:
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
        found = next_triggers(case, qualifier(run, moment, self._now, life=life))
        return tuple(one.text + _in(one.at, self._now) for one in found)

    # Objects of a type.

    def subjects(self, resource: Resource | None, controller: str, namespace: str) -> tuple[Subject, ...]:
        return self._recording.subjects(
            cluster=self._cluster,
            controller=self.controller or self._name(controller),
            resource=resource,
            namespace=namespace if resource is None or resource.namespaced else "",
        )

    def _name(self, word: str) -> str:
        """A controller's name, for what was typed for it."""
        names = [one.name for run in self.runs for one in run.controllers if word in (one.name, one.word)]
        return names[0] if names else word

    def story_of_all(
        self, resource: Resource | None, subjects: Sequence[Subject], *, last: int | None, since: float | None
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
            cluster=self._meant.cluster,
            runs=runs,
            resource=resource,
            attempts=attempts,
            subjects=tuple(subjects),
            moments=tuple(one for one in self._lives.moments if one.run in {run.id for run in runs}),
            at=self._now,
        )

    # What is followed.

    @property
    def changed(self) -> int:
        return self._recording.changed()


def same_type(one: Resource, other: Resource) -> bool:
    return (one.group, one.plural) == (other.group, other.plural)


def _versions(attempt: Recorded, uid: str) -> list[str]:
    """The versions of an object that an attempt met, newest first: what it wrote, what it read, what woke it."""
    found = [made.call.new_version for made in attempt.writes if made.call.uid == uid and made.call.code]
    found = found[::-1] + [version for read in attempt.reads[::-1] for one, version in read.found if one == uid]
    found += [cause.new_version for cause in attempt.causes[::-1] if cause.uid == uid]
    return list(dict.fromkeys(filter(None, found)))


def _gone(uid: str, attempts: Sequence[Recorded]) -> float | None:
    """When the object was seen deleted, as far as an attempt was woken by it."""
    for one in attempts[::-1]:
        for cause in one.causes:
            if cause.kind is CauseKind.DELETED and cause.uid == uid:
                return cause.at
    return None


def _played(run: Run | None, attempts: Sequence[Recorded], story: Story) -> Played | None:
    """The controller that the last attempt was of, where the object is what its requests are about."""
    if run is None or not attempts or story.resource is None:
        return None
    found = next((one for one in run.controllers if one.name == attempts[-1].controller), None)
    if found is None or not any(same_type(one, story.resource) for one in found.primaries):
        return None
    return found


def _in(at: float | None, now: float) -> str:
    if at is None:
        return ""
    return f" in {format_duration(at - now)}" if at > now else " now"


def _hint(attempts: Sequence[Recorded], types: AbstractSet[Resource]) -> str:
    """What a filter would have spared, where it would have held back nothing that was of use."""
    for controller in dict.fromkeys(one.controller for one in reversed(attempts)):
        own = [one for one in attempts if one.controller == controller]
        found = [one for one in savings(own, types) if not one.useful and one.noops > 1]
        if found:
            most = max(found, key=lambda one: one.noops)
            saved = f"when={most.predicate} on {most.resource.kind} would have saved {most.noops} of {len(own):,}"
            return f"{saved} reconciles that changed nothing: {ctrl('explain', controller)}"
    return ""


def _is_related(story: Story, attempts: Sequence[Recorded], primaries: Mapping[str, Resource]) -> bool:
    """Whether the attempts are about other objects: they were caused by this one, or wrote it."""
    return story.resource is not None and not any(
        one.request == story.key and same_type(primaries[one.controller], story.resource)
        for one in attempts
        if one.controller in primaries
    )
