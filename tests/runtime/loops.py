"""What tests of the loop share: a toy controller with any body, and what became of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubectl_ctrl.model.attempt import Attempt, Outcome
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Result
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World

Body = Callable[[Context, Request], Awaitable[Result | None]]


def spec_of(body: Body) -> ControllerSpec:
    return controller("toy", body).for_(TOYS).owns(CONFIGMAPS)


def outcomes(world: World, name: str = "bear") -> list[Outcome]:
    return [attempt.verdict.outcome for attempt in world.attempts if attempt.start.request.name == name]


def causes(attempt: Attempt) -> list[CauseKind]:
    return [cause.kind for cause in attempt.start.causes]


async def nothing(ctx: Context, request: Request) -> None:
    pass
