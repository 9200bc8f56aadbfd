from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from kubectl_ctrl.errors import ApiError, CallSite, ControllerError, Forbidden, Invalid, TerminalError, TooManyRequests
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.verdict import SLOW_RETRY
from tests.runtime.loops import causes, nothing, outcomes, spec_of
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, toy

BEAR = Key("default", "bear")
SITE = CallSite("patch", "toys default/bear")


async def test_a_failure_is_retried_with_growing_delays_and_says_what_it_retries() -> None:
    async def body(ctx: Context, request: Request) -> None:
        if len(world.attempts) < 3:
            raise ValueError("no wheels")

    world = World(toy("bear"))
    async with world.running(spec_of(body), run_id="r001"):
        await world.rest(5)
    assert outcomes(world) == [Outcome.RETRY] * 3 + [Outcome.DONE]
    delays = [attempt.verdict.delay for attempt in world.attempts[:3]]
    assert delays[0] < delays[1] < delays[2] <= 0.02
    last = world.attempts[3]
    [why] = last.start.causes
    assert (why.kind, why.attempt, why.count, why.detail) == (CauseKind.RETRY, "r001-3", 3, "ValueError: no wheels")
    assert last.start.try_no == 4
    assert world.attempts[0].verdict.where.startswith("runtime/test_controller_follows.py:")
    assert "ValueError: no wheels" in world.attempts[0].traceback


async def test_after_a_success_the_next_failure_is_the_first() -> None:
    failing = [True, True, False, True, False]

    async def body(ctx: Context, request: Request) -> None:
        if failing.pop(0):
            raise ValueError("no wheels")

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(1)
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(1)
    assert [attempt.start.try_no for attempt in world.attempts] == [1, 2, 3, 1, 2]


@pytest.mark.parametrize(
    "error",
    [
        TerminalError("It can never fly."),
        Invalid("Its wheels are square.", site=SITE, code=422),
        ControllerError("It was used wrongly."),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_terminal_error_is_not_retried_until_something_changes(error: Exception) -> None:
    async def body(ctx: Context, request: Request) -> None:
        raise error

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(3600)
        assert outcomes(world) == [Outcome.TERMINAL]
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest()
    assert outcomes(world) == [Outcome.TERMINAL] * 2


@pytest.mark.parametrize(
    ("error", "least"),
    [
        (TooManyRequests("Slow down.", site=SITE, code=429, retry_after=7), 7.0),
        (ApiError("No.", site=SITE, code=418), 0.0),
    ],
    ids=["with a time", "without"],
)
async def test_a_time_that_an_error_names_is_kept_to(error: Exception, least: float) -> None:
    async def body(ctx: Context, request: Request) -> None:
        if not world.attempts:
            raise error

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(60)
    first, second = world.attempts
    assert first.verdict.delay == pytest.approx(least, abs=0.01)
    assert second.start.started - first.start.started == pytest.approx(first.verdict.delay, abs=0.001)


async def test_a_forbidden_write_is_retried_slowly() -> None:
    async def body(ctx: Context, request: Request) -> None:
        await ctx.write.create({"metadata": {"name": "settings"}}, resource=CONFIGMAPS)

    from kubectl_ctrl.testing.faults import Match

    world = World(toy("bear"))
    world.server.faults.fail(Match(verb="create"), 403, reason="Forbidden", message="exceeded quota: small")
    async with world.running(spec_of(body)):
        await world.rest(SLOW_RETRY - 1)
        assert outcomes(world) == [Outcome.RETRY]
        await world.rest(2)
    assert outcomes(world) == [Outcome.RETRY, Outcome.DONE]
    assert "exceeded quota: small" in world.attempts[0].verdict.message


async def test_a_schedule_runs_again_then_and_an_earlier_change_replaces_it() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        return Result(10)

    world = World(toy("bear"))
    async with world.running(spec_of(body), run_id="r001"):
        await world.rest(12)  # at 0 and 10
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(9)  # at 12, and the timer of 20 is gone
        assert [causes(attempt)[0] for attempt in world.attempts] == [
            CauseKind.INITIAL,
            CauseKind.TIMER,
            CauseKind.MODIFIED,
        ]
        await world.rest(2)
    timer = world.attempts[-1].start
    [why] = timer.causes
    assert (why.kind, why.attempt, why.detail) == (CauseKind.TIMER, "r001-3", "10s")
    assert timer.started - world.attempts[2].start.started == pytest.approx(10)


async def test_waiting_runs_when_something_changes_or_after_the_time_it_gave() -> None:
    results = [Result(waiting_for="wheels"), Result(30, waiting_for="wheels"), None]

    async def body(ctx: Context, request: Request) -> Result | None:
        return results.pop(0)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(3600)
        assert outcomes(world) == [Outcome.WAITING]
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(31)
    assert outcomes(world) == [Outcome.WAITING, Outcome.WAITING, Outcome.DONE]
    assert causes(world.attempts[2]) == [CauseKind.TIMER]


async def test_an_object_deleted_during_a_task_group_is_done() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = await ctx.read.get(TOYS, request.name)
        if bear is None:
            return
        world.server.delete(TOYS, request.name)
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.write.status(bear, {"seen": 1}))

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(60)
    assert set(outcomes(world)) == {Outcome.DONE}
    assert world.attempts[0].verdict.message == "The object was deleted during the reconcile."
    assert world.attempts[0].traceback == ""


async def test_another_pass_at_once_is_run_and_a_loop_of_them_slows_down() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        return Result(again=True)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(60)
        starts = [attempt.start.started for attempt in world.attempts]
        gaps = [late - early for early, late in pairwise(starts)]
        assert gaps[0] == 0
        assert gaps == sorted(gaps)
        assert len(starts) < 20
    assert causes(world.attempts[1]) == [CauseKind.AGAIN]


async def test_returning_nonsense_is_a_terminal_mistake() -> None:
    async def body(ctx: Context, request: Request) -> Any:
        return {"requeue": True}

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(60)
    assert outcomes(world) == [Outcome.TERMINAL]


async def test_a_result_of_zero_seconds_runs_once_and_names_the_mistake() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        return Result(0)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(60)
    [verdict] = [attempt.verdict for attempt in world.attempts]
    assert (verdict.outcome, verdict.error_id) == (Outcome.TERMINAL, "CTRL-CONTROLLER")
    assert verdict.message.startswith("Result(after=0) could mean at once, or never")


@pytest.mark.parametrize("error", [Invalid("No.", site=SITE, code=422), ValueError("No.")], ids=["terminal", "retried"])
async def test_a_failure_leaves_the_schedule_that_stood_before_it(error: Exception) -> None:
    """The object is to run every hour; from half past on it fails."""
    failing = False

    async def body(ctx: Context, request: Request) -> Result | None:
        if failing:
            raise error
        return Result(3600)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        began = world.clock.now()
        await world.rest(1800)
        failing = True
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(1900)
    [timed] = [attempt for attempt in world.attempts if CauseKind.TIMER in causes(attempt)]
    assert timed.start.started - began == pytest.approx(3600, abs=1)
    assert not isinstance(error, Invalid) or len(world.attempts) == 3


async def test_a_schedule_that_passes_during_a_failure_runs_at_once() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if len(world.attempts) == 1:
            await world.clock.sleep(20)
            raise Invalid("No.", site=SITE, code=422)
        return Result(10)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(5)
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(21)
    assert outcomes(world) == [Outcome.AFTER, Outcome.TERMINAL, Outcome.AFTER]
    assert causes(world.attempts[2]) == [CauseKind.TIMER]


async def test_a_terminal_failure_of_the_scheduled_run_itself_is_the_last_one() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if world.attempts:
            raise Invalid("No.", site=SITE, code=422)
        return Result(10)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(3600)
    assert outcomes(world) == [Outcome.AFTER, Outcome.TERMINAL]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Invalid("No.", site=SITE, code=422), Outcome.TERMINAL),
        (Forbidden("No.", site=SITE, code=403), Outcome.RETRY),
        (ExceptionGroup("two", [Invalid("No.", site=SITE, code=422), ValueError("x")]), Outcome.RETRY),
    ],
    ids=["terminal", "retried slowly", "group"],
)
async def test_a_failure_can_name_when_the_next_run_must_come(error: Exception, outcome: Outcome) -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        return Result(10, failed=error)

    world = World(toy("bear"))
    async with world.running(spec_of(body)) as running:
        await world.rest(3600)
        summary = await running.stopped()
    assert set(outcomes(world)) == {outcome}
    starts = [attempt.start.started for attempt in world.attempts]
    assert max(late - early for early, late in pairwise(starts)) <= 10.01
    assert [one.verdict.message for one in summary.failed] == [world.attempts[0].verdict.message]
    assert "No." in world.attempts[0].traceback
    if outcome is Outcome.TERMINAL:
        assert {attempt.verdict.delay for attempt in world.attempts} == {10}
        assert causes(world.attempts[1]) == [CauseKind.TIMER]


async def test_somebody_can_ask_for_a_run(world: World) -> None:
    async with world.running(spec_of(nothing)) as running:
        running.manager.ask("toy", BEAR, "by hand")
        await world.rest()
        with pytest.raises(ControllerError, match="No controller 'other'"):
            running.manager.ask("other", BEAR)
    [why] = world.attempts[0].start.causes
    assert (why.kind, why.detail) == (CauseKind.MANUAL, "by hand")


async def test_objects_that_fail_together_are_retried_at_a_limited_rate(world: World) -> None:
    """As in client-go: a burst of 100, then ten each second, for all objects of a controller together."""

    async def body(ctx: Context, request: Request) -> None:
        raise ValueError("The webhook is down.")

    for number in range(300):
        world.server.create(toy(f"toy-{number}"))
    async with world.running(spec_of(body)):
        await world.rest(10)
        retried = [attempt for attempt in world.attempts if attempt.start.try_no > 1]
        assert len(world.attempts) - len(retried) == 300
        assert 190 <= len(retried) <= 201
