from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import cast

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.summary import Reason
from tests.objects import present
from tests.runtime.loops import Body, causes, outcomes, spec_of
from tests.runtime.thrones import Throne, on_throne
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import Running, World, toy


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Shapeless:
    def __repr__(self) -> str:
        raise ValueError("no words")


def broken(kind: str, world: Callable[[], World]) -> Body:
    async def body(ctx: Context, request: Request) -> Result | None:
        if request.name != "broken":
            return None
        match kind:
            case "raises":
                raise RuntimeError("broken")
            case "raises what cannot be said":
                raise Unspeakable
            case "returns what cannot be shown":
                return cast(Result, Shapeless())
            case "hangs":
                await asyncio.Event().wait()
            case "cancels itself":
                task = present(asyncio.current_task())
                task.cancel()
                await asyncio.Event().wait()
            case "awaits something cancelled":
                inner = asyncio.create_task(asyncio.Event().wait())
                inner.cancel()
                await inner
            case "exits":
                raise SystemExit(3)
            case "loops in awaits":
                for _ in range(10_000):
                    await world().clock.sleep(0.1)
        return None

    return body


@pytest.mark.parametrize(
    "kind",
    [
        "raises",
        "raises what cannot be said",
        "hangs",
        "cancels itself",
        "awaits something cancelled",
        "exits",
        "loops in awaits",
    ],
)
async def test_an_object_whose_reconcile_is_broken_delays_no_other(kind: str) -> None:
    world = World(toy("broken"))
    for number in range(20):
        world.server.create(toy(f"toy-{number:02}"))
    async with world.running(spec_of(broken(kind, lambda: world)), workers=2, attempt_timeout=60):
        await world.rest(1)
        done = {attempt.start.request.name for attempt in world.attempts if attempt.verdict.outcome is Outcome.DONE}
        assert len(done) == 20
        for number in range(20):
            world.server.change(TOYS, f"toy-{number:02}", {"spec": {"size": 2}})
        await world.rest(1)
        assert sum(attempt.verdict.outcome is Outcome.DONE for attempt in world.attempts) == 40
        await world.rest(200)
    mine = [one.verdict for one in world.attempts if one.start.request.name == "broken"]
    assert len(mine) >= 2
    assert mine[0].outcome is Outcome.RETRY


async def test_a_result_that_cannot_be_shown_is_a_mistake_of_its_object_alone() -> None:
    world = World(toy("broken"))
    async with world.running(spec_of(broken("returns what cannot be shown", lambda: world)), workers=1):
        await world.rest(1)
        world.server.create(toy("other"))
        await world.rest(1)
    assert outcomes(world, "broken") == [Outcome.TERMINAL]
    assert outcomes(world, "other") == [Outcome.DONE]


async def test_an_attempt_that_takes_too_long_is_cut_and_retried() -> None:
    cleaned: list[float] = []

    async def body(ctx: Context, request: Request) -> None:
        if world.attempts:
            return
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(world.clock.elapsed())

    world = World(toy("bear"))
    async with world.running(spec_of(body), attempt_timeout=20):
        await world.rest(30)
    first, second = world.attempts
    assert first.verdict.message == "The attempt was canceled after its timeout of 20 s."
    assert (first.verdict.outcome, len(cleaned)) == (Outcome.RETRY, 1)
    assert first.took == pytest.approx(20)
    assert causes(second) == [CauseKind.RETRY]


async def test_a_reconciler_that_ignores_being_cut_loses_its_doors_and_holds_only_its_own_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[str] = []  # what became of the call that it made after it was cut

    async def body(ctx: Context, request: Request) -> None:
        if request.name != "stubborn" or tried:
            return
        try:
            await world.clock.sleep(1000)
        except asyncio.CancelledError:
            await world.clock.sleep(100)
            try:
                await ctx.write.create({"metadata": {"name": "late"}}, resource=CONFIGMAPS)
            except ControllerError as error:
                tried.append(str(error))

    with caplog.at_level(logging.ERROR):
        world = World(toy("stubborn"))
        async with world.running(spec_of(body), workers=1, attempt_timeout=10) as running:
            world.server.create(toy("bear"))
            await world.rest(16)  # its timeout, and what it gets for cleaning up
            assert outcomes(world, "bear") == [Outcome.DONE]
            assert outcomes(world, "stubborn") == []
            world.server.change(TOYS, "stubborn", {"spec": {"size": 2}})
            await world.rest(50)
            assert outcomes(world, "stubborn") == []  # it still runs, so it is not run by a second one
            state = running.manager.members[0].state()
            assert [(entry.request.name, entry.state) for entry in state.entries] == [("stubborn", "running")]
            await world.rest(60)
        first, second = (one for one in world.attempts if one.start.request.name == "stubborn")
        assert (first.verdict.outcome, second.verdict.outcome) == (Outcome.RETRY, Outcome.DONE)
        assert causes(second) == [CauseKind.MODIFIED]
        assert len(tried) == 1
        assert "has ended" in tried[0]
        assert world.server.get(CONFIGMAPS, "late") is None
    assert "ignores its cancellation" in caplog.text


async def test_what_a_reconcile_leaves_running_cannot_use_its_doors() -> None:
    caught: list[str] = []

    async def body(ctx: Context, request: Request) -> None:
        async def later() -> None:
            await world.clock.sleep(5)
            try:
                await ctx.write.create({"metadata": {"name": "late"}}, resource=CONFIGMAPS)
            except ControllerError as error:
                caught.append(str(error))

        tasks.append(asyncio.create_task(later()))

    world: World
    tasks: list[asyncio.Task[None]] = []
    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        await world.rest(10)
    assert len(caught) == 1
    assert list(world.writes()) == []


async def test_a_worker_whose_attempt_ignores_a_lost_lease_is_free_again_soon() -> None:
    world, throne, hold = World(), Throne(), asyncio.Event()

    async def body(ctx: Context, request: Request) -> None:
        while request.name == "stubborn" and not hold.is_set():
            try:
                await hold.wait()
            except asyncio.CancelledError:
                continue

    world.server.create(toy("stubborn"))
    async with world.running(spec_of(body), workers=1, attempt_timeout=1000, services=on_throne(throne)):
        throne.set(True)
        await world.rest(1)
        throne.set(False)
        await world.rest(1)
        throne.set(True)
        world.server.create(toy("bear"))
        await world.rest(5)
        assert outcomes(world, "bear") == [Outcome.DONE]
        hold.set()
        await world.rest()
    assert outcomes(world, "stubborn")[0] is Outcome.DROPPED


async def test_requests_that_hung_before_leave_a_worker_to_the_others(world: World) -> None:
    """As many as there are workers hang in every attempt; the others wait for the first cut, and then never again."""

    async def body(ctx: Context, request: Request) -> None:
        if request.name.startswith("stuck"):
            await asyncio.Event().wait()

    for at in range(4):
        world.server.create(toy(f"stuck-{at}"))
    async with world.running(spec_of(body), workers=2, attempt_timeout=60.0):
        await world.rest(200)
        for at in range(20):
            world.server.create(toy(f"bear-{at}"))
            await world.rest(37)
    waits = [one.start.waited for one in world.attempts if one.start.request.name.startswith("bear")]
    assert len(waits) == 20
    assert max(waits) == 0
    hung = {one.start.request.name for one in world.attempts if one.start.started > world.clock.now() - 700}
    assert {f"stuck-{at}" for at in range(4)} <= hung, "they get their turns all the same"


@pytest.mark.parametrize("once", [False, True])
async def test_an_attempt_that_ignores_its_cancellation_is_left_and_reported(once: bool) -> None:
    release = asyncio.Event()

    async def body(ctx: Context, request: Request) -> None:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    world = World(toy("bear"))
    running = Running(world.manager(spec_of(body), once=once, drain=20, attempt_timeout=60, run_id="r001"))
    await world.rest(100)
    began = world.clock.elapsed()
    summary = await running.stopped()
    assert world.clock.elapsed() - began <= 25  # the drain time, and a moment for what was cancelled
    [left] = summary.left
    assert (left.entry.request.name, left.entry.state, left.entry.attempt) == ("bear", "running", "r001-1")
    [attempt] = world.attempts
    assert (attempt.id, attempt.verdict.outcome) == ("r001-1", Outcome.DROPPED)
    assert attempt.verdict.message == "The attempt ignored its cancellation (timeout) and was abandoned."
    assert summary.reason is (Reason.ONCE if once else Reason.CUT)
    assert [one.verdict for one in summary.failed] == ([attempt.verdict] if once else [])
    release.set()
    await world.rest(1)
    assert len(world.attempts) == 1, "its end is told once"


async def test_an_attempt_that_ends_late_after_its_timeout_is_waited_for_at_the_end() -> None:
    async def body(ctx: Context, request: Request) -> None:
        try:
            await world.clock.sleep(1000)
        except asyncio.CancelledError:
            await world.clock.sleep(15)

    world = World(toy("bear"))
    async with world.running(spec_of(body), drain=20, attempt_timeout=60) as running:
        await world.rest(66)
        summary = await running.stopped()
    assert [attempt.verdict.error_id for attempt in world.attempts] == ["AttemptTimeout"]
    assert (summary.reason, [one.entry.state for one in summary.left]) == (Reason.STOPPED, ["backoff"])
