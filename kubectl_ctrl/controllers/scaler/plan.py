"""The changes to a workload and its autoscaler at one time, and why. Pure: objects and a time give patches.

A workload remembers two things in annotations. `original-replicas` is its count before the first stop: the first stop
writes it, a start removes it, and no further stop overwrites it. `last-event` is the last event that was carried out,
as `schedule/action=count/fingerprint@time`: an event is carried out once, and an unknown fingerprint means that the
annotations have changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from kubectl_ctrl import Obj, annotations_of
from kubectl_ctrl.controllers.scaler.annotations import Names, Settings
from kubectl_ctrl.controllers.scaler.schedule import FORCE, Action, Event, latest, upcoming

D = TypeVar("D", int, None)

# After a clock is set back by less than this, events that were already carried out are not repeated. A clock that was
# further ahead was wrong, and its events do not count.
CLOCK_TOLERANCE = 3600.0

_LAST = re.compile(
    r"(?P<name>.+)/(?P<action>start|stop)=(?P<count>\d{1,10})/(?P<print>[0-9a-f]{8})@(?P<time>[-0-9T:]+Z)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The last event that was carried out, as the annotation has it."""

    name: str
    action: Action
    count: int
    fingerprint: str
    at: float

    @classmethod
    def of(cls, text: str) -> Last | None:
        """None for a text that the scaler did not write."""
        match = _LAST.fullmatch(text)
        if match is None:
            return None
        try:
            at = datetime.fromisoformat(match["time"]).timestamp()
        except ValueError:
            return None
        action = Action(match["action"])
        return cls(name=match["name"], action=action, count=int(match["count"]), fingerprint=match["print"], at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An Event to be created for the workload."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPlan:
    """Merge patches, empty where nothing is to be changed."""

    target: Obj = field(default_factory=dict)
    hpa: Obj = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    event: Event | None = None  # the cause of the changes
    due: float | None = None  # wall time of the next plan

    @property
    def changes(self) -> bool:
        return bool(self.target or self.hpa)

    @property
    def reverts(self) -> bool:
        """Whether the changes only revert somebody else's, under `enforce`."""
        return any(note.reason == "Reverted" for note in self.notes)


def plan(target: Obj, hpa: Obj | None, settings: Settings, names: Names, now: float) -> ScalingPlan:
    """The changes to a workload now."""
    if settings.pause:
        return ScalingPlan()
    if settings.exclude or settings.empty:
        return release(target, hpa, names)
    if now < settings.exclude_until:
        return replace(release(target, hpa, names), due=settings.exclude_until)
    if settings.grace and now < (begins := created(target) + settings.grace):
        return ScalingPlan(due=begins)
    event = _effective(settings, now)
    following = None if settings.forced else upcoming(settings.schedules, now)
    due = following.at if following else None
    if event is None:
        return ScalingPlan(due=due)
    last = Last.of(annotations_of(target).get(names.last, ""))
    repeated = last is not None and _same(last, event)
    if last is not None and (not settings.enforce if repeated else _from_ahead(last, event, settings, now)):
        return ScalingPlan(due=due)
    return _Change(target, hpa, names, event, last if repeated else None).plan(due)


def replicas_of(target: Obj) -> int:
    count = target["spec"].get("replicas")
    return 1 if count is None else int(count)


def created(target: Obj) -> float:
    text = target["metadata"].get("creationTimestamp")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _effective(settings: Settings, now: float) -> Event | None:
    if settings.forced is None:
        return latest(settings.schedules, now)
    ((action, _),) = settings.forced.crons()
    return Event(at=float(int(now)), action=action, schedule=settings.forced)


def _same(last: Last, event: Event) -> bool:
    if FORCE in (event.schedule.name, last.name):
        # A force lasts from when it is set until it is removed; it has no time of its own.
        return (last.name, last.fingerprint) == (event.schedule.name, event.fingerprint)
    return (last.fingerprint, last.at) == (event.fingerprint, event.at)


def _from_ahead(last: Last, event: Event, settings: Settings, now: float) -> bool:
    """Whether a newer event was already carried out, and the clock has been set back since."""
    known = {one.fingerprint(action) for one in settings.schedules for action, _ in one.crons()}
    return event.at < last.at <= now + CLOCK_TOLERANCE and last.name != FORCE and last.fingerprint in known


@dataclass(frozen=True, slots=True)
class _Bounds:
    """An autoscaler's bounds: the current ones, and those before the scaler changed them."""

    least: int
    most: int
    first_least: int
    first_most: int

    @classmethod
    def of(cls, hpa: Obj, names: Names) -> _Bounds:
        least, most = int(hpa["spec"].get("minReplicas") or 1), int(hpa["spec"]["maxReplicas"])
        kept = annotations_of(hpa)
        return cls(least, most, _number(kept.get(names.least), least), _number(kept.get(names.most), most))

    def change(self, hpa: Obj, names: Names, least: int, most: int) -> Obj:
        """The patch that sets these bounds; the first ones are remembered until they are set again."""
        spec = {}
        if least != self.least:
            spec["minReplicas"] = least
        if most != self.most:
            spec["maxReplicas"] = most
        given = (least, most) == (self.first_least, self.first_most)
        wanted = {
            names.least: None if given else str(self.first_least),
            names.most: None if given else str(self.first_most),
        }
        return _patch(hpa, wanted, spec)


@dataclass(frozen=True, slots=True)
class _Change:
    """One event carried out: for the first time, or repeated (`again`) because it is enforced."""

    target: Obj
    hpa: Obj | None
    names: Names
    event: Event
    again: Last | None

    def plan(self, due: float | None) -> ScalingPlan:
        now, kept = replicas_of(self.target), annotations_of(self.target)
        original = _number(kept.get(self.names.original), None)
        if self.event.action is Action.STOP:
            count, hpa = self._stop(now)
            remembered = original if original is not None else (now if now > (self.event.count or 0) else None)
        else:
            wanted = self.event.count or (self.again.count or None if self.again else original)
            count, hpa = self._start(now, wanted)
            remembered = None
        event = self.event
        last = f"{event.schedule.name}/{event.action}={count}/{event.fingerprint}@{event.time}"
        state = {
            self.names.last: kept[self.names.last] if self.again else last,
            self.names.original: None if remembered is None else str(remembered),
        }
        target = _patch(self.target, state, {"replicas": count} if count != now else {})
        if not target and not hpa:
            return ScalingPlan(due=due)
        return ScalingPlan(target=target, hpa=hpa, notes=tuple(self._notes(now, count, hpa)), event=self.event, due=due)

    def _stop(self, now: int) -> tuple[int, Obj]:
        """The replicas, and the patch of the autoscaler. A stop never adds pods."""
        count = self.event.count or 0
        if self.hpa is None or not count:
            return min(now, count), {}  # an autoscaler is disabled while its target has 0 replicas
        # Above 0, the autoscaler itself lowers the replicas because of its new bounds.
        bounds = _Bounds.of(self.hpa, self.names)
        least, most = min(bounds.first_least, count), min(bounds.first_most, count)
        return now, bounds.change(self.hpa, self.names, least, most)

    def _start(self, now: int, wanted: int | None) -> tuple[int, Obj]:
        """The replicas, and the patch of the autoscaler."""
        if self.hpa is None:
            return now if wanted is None else wanted, {}
        bounds, floor = _Bounds.of(self.hpa, self.names), self.event.count
        least, most = bounds.first_least, bounds.first_most
        if floor is not None:
            least, most = floor, max(most, floor)
        # An autoscaler sets any count above 0; only from 0 the scaler has to raise it.
        count = now if wanted is None or now else max(least, min(wanted, most))
        return count, bounds.change(self.hpa, self.names, least, most)

    def _notes(self, now: int, count: int, hpa: Obj) -> Iterator[Note]:
        event = self.event
        when = "" if event.schedule.name == FORCE else f" at {event.time}"
        why = f"{event.title}{when}"
        if count != now:
            reason = "Reverted" if self.again else "ScaledUp" if count > now else "ScaledDown"
            yield Note(reason=reason, message=f"Scaled from {now} to {count}: {why}.")
        if hpa.get("spec"):
            assert self.hpa is not None
            bounds = ", ".join(f"{name} {value}" for name, value in hpa["spec"].items())
            message = f"Set {bounds} of HorizontalPodAutoscaler {self.hpa['metadata']['name']!r}: {why}."
            yield Note(reason="Reverted" if self.again else "BoundsChanged", message=message)
        if event.rivals and not self.again:
            others = ", ".join(rival.title for rival in event.rivals)
            yield Note(reason="SameTime", message=f"{why} coincides with {others}; the first takes effect.")
        if event.action is Action.START and not count and not self.again:
            message = f"{why}: there are 0 replicas, and no {self.names.original} to restore; set start-replicas."
            yield Note(reason="NothingToRestore", message=message, warning=True)


def release(target: Obj, hpa: Obj | None, names: Names) -> ScalingPlan:
    """Restore the first count, unless somebody else changed it since, and the bounds; remove the annotations."""
    kept, now = annotations_of(target), replicas_of(target)
    original, last = _number(kept.get(names.original), None), Last.of(kept.get(names.last, ""))
    bounds = _Bounds.of(hpa, names) if hpa is not None else None
    count = now
    if original is not None and last is not None and last.action is Action.STOP and now == last.count:
        count = max(bounds.first_least, min(original, bounds.first_most)) if bounds and not now else original
    target_change = _patch(
        target, {names.last: None, names.original: None}, {"replicas": count} if count != now else {}
    )
    hpa_change = (
        bounds.change(hpa, names, bounds.first_least, bounds.first_most)
        if bounds is not None and hpa is not None
        else {}
    )
    message = f"Scaled from {now} to {count}: the scaler no longer manages it."
    notes = (Note(reason="Released", message=message),) if count != now else ()
    return ScalingPlan(target=target_change, hpa=hpa_change, notes=notes)


def _patch(obj: Obj, annotations: Mapping[str, str | None], spec: Obj) -> Obj:
    """A merge patch of the differences."""
    there = annotations_of(obj)
    changed = {name: value for name, value in annotations.items() if there.get(name) != value}
    patch: Obj = {}
    if changed:
        patch["metadata"] = {"annotations": changed}
    if spec:
        patch["spec"] = spec
    return patch


def _number(text: str | None, default: D) -> int | D:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,10}", text) else default
