"""Shared by the tests of this room: make a plan, run the controller, and compare the results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import ObjectRef
from kubectl_ctrl.plan.dry_run import PlanClient
from kubectl_ctrl.plan.planner import Planner, PlanOptions
from kubectl_ctrl.plan.steps import Plan, PlannedWrite
from kubectl_ctrl.plan.world import World as Planned
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.testing.stage import Stage

BEAR = Key("default", "bear")

# Fields that a plan cannot know, or that change by themselves.
_SERVERS_OWN = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


@dataclass(frozen=True, slots=True)
class Told:
    """A plan, and the state of the server before and after it."""

    plan: Plan
    before: dict[str, Any] = field(repr=False)
    after: dict[str, Any] = field(repr=False)

    @property
    def steps(self) -> list[PlannedWrite]:
        return [step for one in self.plan.passes for step in one.steps]

    @property
    def writes(self) -> list[str]:
        return [_named(step.verb, step.resource.plural, step.key, step.subresource) for step in self.steps]


def _named(verb: str, plural: str, key: Key, subresource: str) -> str:
    return " ".join(filter(None, (verb, plural, str(key), subresource)))


def plan_client(stage: Stage) -> PlanClient:
    return PlanClient(stage.server, clock=stage.clock, rng=stage.rng, user_agent="plan", world=Planned())


async def planned(
    stage: Stage,
    spec: ControllerSpec,
    *requests: Request,
    given: Iterable[tuple[ObjectRef, Obj]] = (),
    to_fixpoint: bool = False,
) -> Told:
    """Make a plan and check that this changed nothing."""
    before = contents(stage)
    options = PlanOptions(namespace="default", to_fixpoint=to_fixpoint)
    planner = Planner(spec, plan_client(stage), clock=stage.clock, rng=stage.rng, options=options)
    written = len(stage.server.writes)
    plan = await planner.plan(requests or (BEAR,), given)
    assert len(stage.server.writes) == written, stage.server.writes[written:]
    _check(plan)
    told = Told(plan, before, contents(stage))
    assert told.before == told.after
    return told


async def play_of(stage: Stage, spec: ControllerSpec) -> Plan:
    """Make a plan without the check that nothing changes: another client may write."""
    options = PlanOptions(namespace="default")
    plan = await Planner(spec, plan_client(stage), clock=stage.clock, rng=stage.rng, options=options).plan([BEAR])
    _check(plan)
    return plan


def _check(plan: Plan) -> None:
    """Raise a failed assertion of the reconciler."""
    assert [one.attempt.traceback for one in plan.passes if one.attempt.verdict.error_id == "AssertionError"] == []


async def then_done(stage: Stage, spec: ControllerSpec, told: Told) -> Attempt:
    """Run as `run --once` does, and compare each write and object with the plan."""
    since, seen = len(stage.server.writes), len(stage.attempts)
    before = contents(stage)
    await stage.run(spec, once=True, namespace="default")
    request = told.plan.requests[0]
    found = [one for one in stage.attempts[seen:] if one.start.request == request]
    done = [one for one in stage.server.writes[since:] if one.audit_id.startswith(f"{found[0].id}.")]
    assert told.writes == [_named(one.verb, one.resource.plural, one.key, one.subresource) for one in done]
    after = contents(stage)
    for fate in told.plan.fates:
        place = f"{fate.resource} {fate.key}"
        assert without_servers(fate.before) == without_servers(before.get(place)), place
        if place in after or fate.after is not None:
            assert without_servers(fate.after) == without_servers(after.get(place)), place
    (last,) = told.plan.last
    assert last.attempt.verdict.outcome == found[0].verdict.outcome
    assert last.attempt.verdict.error_id == found[0].verdict.error_id
    if not found[0].verdict.error_id:  # the plan may have other messages of errors
        assert last.attempt.verdict.message == found[0].verdict.message
    said = [(one.type, one.reason, one.message) for one in found[0].intents]
    assert [(one.type, one.reason, one.message) for one in last.attempt.intents] == said
    return found[0]


def contents(stage: Stage) -> dict[str, Obj]:
    """All objects with their versions, except for events."""
    tables = stage.server.storage.tables
    return {f"{table} {key}": obj for table, held in tables.items() for key, obj in held.items() if table != "events"}


def without_servers(obj: Any) -> Any:
    """The part of an object that a plan can know, with its owners by name."""
    if not isinstance(obj, dict) or "metadata" not in obj:
        return obj
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SERVERS_OWN}
    for ref in meta.get("ownerReferences", ()):
        assert ref["uid"]
    if "ownerReferences" in meta:
        meta["ownerReferences"] = [{**ref, "uid": ""} for ref in meta["ownerReferences"]]
    return {**obj, "metadata": meta}
