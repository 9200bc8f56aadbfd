"""Code to be swapped: reconcilers that note when they begin and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubectl_ctrl.model.attempt import Attempt
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Result
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World

Body = Callable[[Context, Request], Any]


def code(world: World, said: list[str], version: str, seconds: float = 0.0, result: Result | None = None) -> Body:
    """A reconciler that takes its time and notes who it was, for what, when it began and when it ended."""

    async def reconcile(ctx: Context, request: Request) -> Result | None:
        said.append(f"{version}+{request.name}")
        try:
            await world.clock.sleep(seconds)
        finally:
            said.append(f"{version}-{request.name}")
        return result

    return reconcile


def spec_of(body: Body) -> ControllerSpec:
    return controller("toy", body).for_(TOYS).owns(CONFIGMAPS)


def kinds(attempt: Attempt) -> list[CauseKind]:
    return [cause.kind for cause in attempt.start.causes]
