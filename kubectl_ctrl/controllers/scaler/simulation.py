"""What the scaler would do with one workload, event by event, without a cluster: its own plans, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kubectl_ctrl import Obj, apply_merge, name_of, namespace_of
from kubectl_ctrl.controllers.scaler.annotations import Names, Settings
from kubectl_ctrl.controllers.scaler.owners import gitops_problem, owner_problem
from kubectl_ctrl.controllers.scaler.plan import Plan, plan, replicas_of
from kubectl_ctrl.controllers.scaler.schedule import Event

MOST_STEPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A workload, and the objects that decide with it."""

    target: Obj
    hpa: Obj | None = None
    namespace: Obj | None = None

    @property
    def title(self) -> str:
        return f"{self.target['kind']} {namespace_of(self.target) or 'default'}/{name_of(self.target)}"

    @property
    def count(self) -> str:
        """Its replicas; the bounds of its autoscaler where one is on."""
        replicas = replicas_of(self.target)
        if self.hpa is None or not replicas:
            return str(replicas)
        spec = self.hpa["spec"]
        return f"{spec.get('minReplicas') or 1}..{spec['maxReplicas']}"

    def after(self, planned: Plan) -> Scene:
        """With the changes made; an autoscaler that is on brings the count within its bounds."""
        hpa = None if self.hpa is None else apply_merge(self.hpa, planned.hpa)
        target = apply_merge(self.target, planned.target)
        if hpa is not None and (now := replicas_of(target)):
            count = max(int(hpa["spec"].get("minReplicas") or 1), min(now, int(hpa["spec"]["maxReplicas"])))
            target = apply_merge(target, {"spec": {"replicas": count}})
        return replace(self, target=target, hpa=hpa)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One event and its effect; without an event, counts are given back."""

    at: float  # when the scaler acts: later than the event's time when that was before the beginning
    event: Event | None
    before: str
    after: str
    notes: tuple[str, ...]


def simulate(scene: Scene, settings: Settings, names: Names, begin: float, end: float) -> Iterator[Step]:
    """Each step from `begin` to `end`; the first may be an event that is caught up."""
    now, count = begin, 0
    while now <= end and count < MOST_STEPS:
        planned = plan(scene.target, scene.hpa, settings, names, now)
        if planned.changes:
            after = scene.after(planned)
            notes = tuple(note.message for note in planned.notes)
            yield Step(at=now, event=planned.event, before=scene.count, after=after.count, notes=notes)
            scene, count = after, count + 1
        if planned.look is None:
            return
        now = planned.look


def remarks(scene: Scene, settings: Settings, names: Names, begin: float, steps: Sequence[Step]) -> Iterator[str]:
    """What a reader of the steps should know besides."""
    if settings.empty:
        yield f"{scene.title} has no annotations under {names.prefix} that say when."
    elif not steps:
        yield "nothing happens in this time" + (": it is paused" if settings.pause else "")
    if len(steps) == MOST_STEPS:
        yield f"these are the first {MOST_STEPS} events; --from shows later ones"
    for schedule in settings.schedules:
        for action, cron in schedule.crons():
            if cron.both_days:
                yield f"{action} of {schedule.name!r} ({cron.text}): the day of the month or the weekday is enough"
    yield from (note for step in steps for note in step.notes if not note.startswith("Scaled "))
    if problem := owner_problem(scene.target, settings, names):
        yield problem
    first = plan(scene.target, scene.hpa, settings, names, begin)
    if problem := gitops_problem(scene.target, scene.hpa, first, settings):
        yield problem
