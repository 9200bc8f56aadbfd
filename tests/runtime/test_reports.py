"""What a run tells of its queues, as somebody who looks at them from another terminal will see it."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from kubectl_ctrl.model.attempt import AttemptStarted, ControllerState, Depth
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.runtime.contract import Context, Result
from tests.runtime.loops import nothing, spec_of
from tests.runtime.world import World, toy


def gaps(states: list[ControllerState]) -> list[float]:
    return [later.at - former.at for former, later in pairwise(states)]


async def test_at_rest_it_is_a_heartbeat(world: World) -> None:
    async with world.running(spec_of(nothing)):
        await world.rest(5)
        before = len(world.told(ControllerState))
        await world.rest(60)
        states = world.told(ControllerState)[before:]
    assert len(states) == 30
    assert all(1.5 < gap < 2.5 for gap in gaps(states))


async def test_what_happens_is_told_within_half_a_second_and_not_more_often(world: World) -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        return Result(0.11)

    async with world.running(spec_of(body)):
        await world.rest(5.3)
        before = len(world.told(ControllerState))
        world.server.create(toy("bear"))
        await world.rest(0.55)
        assert [entry.request.name for entry in world.told(ControllerState)[before].entries] == ["bear"]
        await world.rest(20)
        states = world.told(ControllerState)[before:]
    assert min(gaps(states)) > 0.45
    assert max(gaps(states)) < 0.75


async def test_one_that_runs_is_told_with_its_attempt_and_the_rest_with_where_it_stands(world: World) -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if request.name == "long":
            await asyncio.Event().wait()
        if request.name == "bad":
            raise ValueError("bad")
        return Result(1000) if request.name == "timed" else None

    for name in ("long", "bad", "timed", "fine"):
        world.server.create(toy(name))
    async with world.running(spec_of(body), run_id="r7f3", workers=2):
        await world.rest(30)
        state = world.told(ControllerState)[-1]
    entries = {entry.request.name: entry for entry in state.entries}
    assert {name: entry.state for name, entry in entries.items()} == {
        "long": "running",
        "bad": "backoff",
        "timed": "timer",
    }
    assert [entry.request.name for entry in state.entries if entry.attempt] == ["long"]
    assert entries["long"].attempt in {attempt.id for attempt in world.told(AttemptStarted)}
    assert (state.workers, state.depth) == (2, Depth(running=1, backoff=1, timers=1))
    assert (state.crowds, state.namespaces) == ((), 0)


async def test_of_ten_thousand_the_first_are_told_and_all_are_counted() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if request.name != "timed":
            await asyncio.Event().wait()
        return Result(1000)

    world = World(toy("timed"))
    async with world.running(spec_of(body), workers=1, attempt_timeout=10_000) as running:
        await world.rest(5)
        asked = world.clock.now()
        loop = running.manager.members[0].controller
        for number in range(10_000):
            loop.ask(Request(f"n{number % 29}", f"toy-{number}"))
        await world.rest(4)
        state = world.told(ControllerState)[-1]
    assert state.depth == Depth(ready=9999, running=1, timers=1)
    stages = [entry.state for entry in state.entries]
    assert (stages.count("running"), stages.count("ready"), stages.count("timer")) == (1, 200, 1)
    assert (len(state.crowds), state.namespaces) == (20, 29)
    assert {crowd.ready for crowd in state.crowds} == {345}
    assert {crowd.since for crowd in state.crowds} == {asked}
