"""What tests of whole runs share: toy controllers that know their world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Result
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World

Body = Callable[[World, Context, Request], Any]


def spec_of(world: World, body: Body, name: str = "toy") -> ControllerSpec:
    async def reconcile(ctx: Context, request: Request) -> Result | None:
        result: Result | None = await body(world, ctx, request)
        return result

    return controller(name, reconcile).for_(TOYS).owns(CONFIGMAPS)


async def nothing(world: World, ctx: Context, request: Request) -> None:
    pass


async def settings_for(world: World, ctx: Context, request: Request) -> None:
    """One ConfigMap for each Toy, and a status."""
    owner = await ctx.read.get(TOYS, request.name)
    if owner is None:
        return
    child = {"metadata": {"name": request.name}, "data": {"size": str(owner["spec"].get("size", 1))}}
    await ctx.write.ensure(child, owner=owner, resource=CONFIGMAPS)
    await ctx.write.status(owner, {"ready": True})


def names(attempts: list[Attempt]) -> list[str]:
    return [attempt.start.request.name for attempt in attempts]
