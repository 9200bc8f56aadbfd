"""Shared by the tests of this room: record attempts and replay them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.diffs import Difference
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import to_recorded
from kubectl_ctrl.replay.casefile import ReplayCase, dumps, loads
from kubectl_ctrl.replay.deviations import ComparedRequest, ComparisonResult, ReplayedAttempt
from kubectl_ctrl.replay.execution import replay
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Reconciler, Result
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import run_virtual
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, toy


def spec_of(reconcile: Reconciler) -> ControllerSpec:
    return controller("toy", reconcile).for_(TOYS).owns(CONFIGMAPS)


def recorded(
    reconcile: Reconciler, scene: Callable[[World], Awaitable[None]] | None = None, **options: Any
) -> list[ReplayCase]:
    """All attempts of a run of the scene, written to a case file and read again."""

    async def main() -> list[Attempt]:
        world = World(toy("bear", size=3))
        async with world.running(spec_of(reconcile), **options):
            await world.rest(1)
            if scene is not None:
                await scene(world)
                await world.rest(1)
        return world.attempts

    return [case_of(attempt) for attempt in run_virtual(main())]


def case_of(attempt: Attempt) -> ReplayCase:
    return loads(dumps(ReplayCase(controller="toy", primaries=(TOYS,), attempt=to_recorded(attempt))))


def again(case: ReplayCase, reconcile: Reconciler, timeout: float = 60.0) -> ReplayedAttempt:
    async def main() -> ReplayedAttempt:
        return await replay(case, reconcile, clock=FakeClock(), timeout=timeout)

    return run_virtual(main())


def fates(replayed: ReplayedAttempt) -> list[tuple[ComparisonResult, str]]:
    """The result for each write."""
    return [(one.fate, f"{one.verb} {one.key.name if one.key else ''}") for one in replayed.writes]


def fields(finding: ComparedRequest) -> list[tuple[str, Any, Any]]:
    return [shown(one) for one in finding.changes]


def shown(one: Difference) -> tuple[str, Any, Any]:
    return one.path, one.old, one.new


def config(name: str, **data: Any) -> Obj:
    return {"metadata": {"name": name}, "data": {key: str(value) for key, value in data.items()}}


async def dress(ctx: Context, request: Request) -> Result | None:
    bear = await ctx.read.get(TOYS, request.name)
    if bear is None:
        return None
    made = await ctx.write.ensure(config("coat", size=bear["spec"]["size"]), owner=bear, resource=CONFIGMAPS)
    seen = await ctx.read.children(bear, CONFIGMAPS)
    await ctx.write.status(bear, {"seen": len(seen), "names": [made.obj["metadata"]["name"]]})
    ctx.write.event(bear, reason="Dressed", message=f"Coat {made.how}.")
    return Result(after=30 + ctx.random.random())
