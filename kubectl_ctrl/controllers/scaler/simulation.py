"""The scaler's plans for one workload, event by event, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kubectl_ctrl import Obj, apply_merge, name_of, namespace_of
from kubectl_ctrl.controllers.scaler.annotations import Names, Settings
from kubectl_ctrl.controllers.scaler.owners import gitops_problem, owner_problem
from kubectl_ctrl.controllers.scaler.plan import ScalingPlan, plan, replicas_of
from kubectl_ctrl.controllers.scaler.schedule import Event

MOST_STEPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedWorkload:
    """A workload with its autoscaler and namespace."""

    target: Obj
    hpa: Obj | None = None
    namespace: Obj | None = None

    @property
    def title(self) -> str:
        return f"{self.target['kind']} {namespace_of(self.target) or 'default'}/{name_of(self.target)}"

    @property
    def count(self) -> str:
        """Its replicas, or the bounds of its autoscaler where one is enabled."""
        replicas = replicas_of(self.target)
        if self.hpa is None or not replicas:
            return str(replicas)
        spec = self.hpa["spec"]
        return f"{spec.get('minReplicas') or 1}..{spec['maxReplicas']}"

    def after(self, planned: ScalingPlan) -> SimulatedWorkload:
        """The workload after the changes; an enabled autoscaler moves the count into its bounds."""
        hpa = None if self.hpa is None else apply_merge(self.hpa, planned.hpa)
        target = apply_merge(self.target, planned.target)
        if hpa is not None and (now := replicas_of(target)):
            count = max(int(hpa["spec"].get("minReplicas") or 1), min(now, int(hpa["spec"]["maxReplicas"])))
            target = apply_merge(target, {"spec": {"replicas": count}})
        return replace(self, target=target, hpa=hpa)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationStep:
    """One event and its effect; without an event, the scaler restores the replicas."""

    at: float  # when the scaler acts: after the event's time if that was before the beginning
    event: Event | None
    before: str
    after: str
    notes: tuple[str, ...]


def simulate(
    scene: SimulatedWorkload, settings: Settings, names: Names, begin: float, end: float
) -> Iterator[SimulationStep]:
    """Each step from `begin` to `end`; the first may be an earlier event that is still due."""
    now, count = begin, 0
    while now <= end and count < MOST_STEPS:
        planned = plan(scene.target, scene.hpa, settings, names, now)
        if planned.changes:
            after = scene.after(planned)
            notes = tuple(note.message for note in planned.notes)
            yield SimulationStep(at=now, event=planned.event, before=scene.count, after=after.count, notes=notes)
            scene, count = after, count + 1
        if planned.due is None:
            return
        now = planned.due


def remarks(
    scene: SimulatedWorkload, settings: Settings, names: Names, begin: float, steps: Sequence[SimulationStep]
) -> Iterator[str]:
    """Remarks below the table of steps."""
    if settings.empty:
        yield f"{scene.title} has no start or stop in its annotations under {names.prefix}."
    elif not steps:
        yield "nothing changes in this period" + (": the workload is paused" if settings.pause else "")
    if len(steps) == MOST_STEPS:
        yield f"these are the first {MOST_STEPS} events; --from shows later ones"
    for schedule in settings.schedules:
        for action, cron in schedule.crons():
            if cron.both_days:
                yield f"{action} of {schedule.name!r} ({cron.text}): the day of month or the day of week must match"
    yield from (note for step in steps for note in step.notes if not note.startswith("Scaled "))
    if problem := owner_problem(scene.target, settings, names):
        yield problem
    first = plan(scene.target, scene.hpa, settings, names, begin)
    if problem := gitops_problem(scene.target, scene.hpa, first, settings):
        yield problem
