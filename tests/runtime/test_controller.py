from __future__ import annotations

import asyncio
from random import Random

from kubectl_ctrl.model.attempt import Attempt, AttemptStarted, CallProgress, ControllerState, Observed, Outcome
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.ids import current_attempt
from kubectl_ctrl.testing.loop import run_virtual
from tests.objects import present
from tests.runtime.loops import causes, nothing, outcomes, spec_of
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, toy

# --- attempts and their names ---


async def test_an_attempt_is_told_when_it_starts_calls_and_ends_under_one_name() -> None:
    async def body(ctx: Context, request: Request) -> None:
        await ctx.write.create({"metadata": {"name": "settings"}}, resource=CONFIGMAPS)

    world = World(toy("bear"))
    async with world.running(spec_of(body), run_id="r7f3"):
        pass
    told = [value for value in world.observed if isinstance(value, AttemptStarted | CallProgress | Attempt)]
    assert [type(value) for value in told] == [AttemptStarted, CallProgress, CallProgress, Attempt]
    start, sent, answered, attempt = told
    assert isinstance(start, AttemptStarted)
    assert isinstance(sent, CallProgress)
    assert isinstance(answered, CallProgress)
    assert isinstance(attempt, Attempt)
    assert start.id == sent.attempt == answered.attempt == attempt.id == "r7f3-1"
    assert (sent.answered, sent.call.code, answered.answered, answered.call.code) == (False, None, True, 201)
    assert attempt.calls == (answered.call,)
    [write] = world.writes()
    assert write.audit_id == answered.call.id == "r7f3-1.1"
    assert (start.try_no, start.causes_total, causes(attempt)) == (1, 1, [CauseKind.INITIAL])


async def test_attempts_are_numbered_over_all_objects_and_controllers_of_a_run(world: World) -> None:
    for name in ("bear", "robot"):
        world.server.create(toy(name))
    other = controller("other", nothing).for_(TOYS)
    async with world.running(spec_of(nothing), other, run_id="r001"):
        pass
    assert sorted(attempt.id for attempt in world.attempts) == ["r001-1", "r001-2", "r001-3", "r001-4"]


async def test_the_attempt_is_known_wherever_its_code_runs() -> None:
    seen: list[str] = []

    async def deeper() -> None:
        seen.append(current_attempt())

    async def body(ctx: Context, request: Request) -> None:
        await asyncio.create_task(deeper())
        seen.append(await ctx.in_thread(current_attempt))
        assert ctx.log.extra is not None
        seen.append(str(ctx.log.extra["attempt"]))
        seen.append(ctx.attempt)

    world = World(toy("bear"))
    async with world.running(spec_of(body), run_id="r001"):
        pass
    assert seen == ["r001-1"] * 4
    assert current_attempt() == ""


async def test_time_and_chance_of_an_attempt_are_kept_with_it() -> None:
    drawn: list[tuple[float, float]] = []

    async def body(ctx: Context, request: Request) -> None:
        drawn.append((ctx.now(), ctx.random.random()))

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        pass
    [attempt] = world.attempts
    [(now, chance)] = drawn
    assert attempt.times == (now,)
    assert Random(attempt.seed).random() == chance


# --- causes ---


async def test_changes_that_come_while_it_runs_make_one_more_run_that_knows_them_all() -> None:
    async def body(ctx: Context, request: Request) -> None:
        await world.clock.sleep(10)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        for size in range(3):
            world.server.change(TOYS, "bear", {"spec": {"size": size}})
            await world.rest(1)
        await world.rest(30)
    first, second = world.attempts
    assert causes(first) == [CauseKind.INITIAL]
    assert causes(second) == [CauseKind.MODIFIED] * 3
    versions = [(cause.old_version, cause.new_version) for cause in second.start.causes]
    assert [old for old, _ in versions[1:]] == [new for _, new in versions[:-1]]


async def test_many_causes_are_counted_and_the_first_and_the_last_are_kept() -> None:
    async def body(ctx: Context, request: Request) -> None:
        await world.clock.sleep(10)

    world = World(toy("bear"))
    async with world.running(spec_of(body)):
        for size in range(40):
            last = world.server.change(TOYS, "bear", {"spec": {"size": size}})
        await world.rest(30)
    second = world.attempts[1]
    assert (len(second.start.causes), second.start.causes_total) == (16, 40)
    assert second.start.causes[-1].new_version == last["metadata"]["resourceVersion"]


def test_every_attempt_has_a_cause_and_none_of_one_object_overlap() -> None:
    """Random durations, results, failures and changes; several seeds."""

    async def run(seed: int) -> None:
        world = World(seed=seed)
        chance = Random(seed)
        active: set[Request] = set()

        async def body(ctx: Context, request: Request) -> Result | None:
            assert request not in active
            active.add(request)
            try:
                await world.clock.sleep(chance.choice([0, 0.5, 3]))
                match chance.randrange(5):
                    case 0:
                        raise ValueError("bad luck")
                    case 1:
                        return Result(chance.random() * 5)
                    case 2:
                        return Result(again=True)
            finally:
                active.discard(request)
            return None

        names = [f"toy-{number}" for number in range(6)]
        for name in names:
            world.server.create(toy(name))
        async with world.running(spec_of(body), workers=3):
            for step in range(60):
                world.server.change(TOYS, chance.choice(names), {"spec": {"step": step}})
                await world.rest(chance.random())
        assert all(attempt.start.causes_total >= 1 and attempt.start.causes for attempt in world.attempts)
        assert not active
        open_now: set[Request] = set()
        for value in world.observed:
            if isinstance(value, AttemptStarted):
                assert value.request not in open_now
                open_now.add(value.request)
            elif isinstance(value, Attempt):
                open_now.discard(value.start.request)
        assert not open_now

    for seed in range(5):
        run_virtual(run(seed))


# --- order ---


async def test_live_changes_go_before_the_rest_of_the_initial_list(world: World) -> None:
    order: list[str] = []

    async def body(ctx: Context, request: Request) -> None:
        order.append(request.name)
        await world.clock.sleep(0.1)

    for number in range(30):
        world.server.create(toy(f"toy-{number:02}"))
    async with world.running(spec_of(body), workers=1):
        await world.rest(0.95)
        world.server.change(TOYS, "toy-29", {"spec": {"size": 2}})
        await world.rest(5)
    assert order.index("toy-29") == 10
    assert len(order) == 30


async def test_a_resync_runs_everything_again_in_the_background() -> None:
    world = World(toy("bear"))
    async with world.running(spec_of(nothing), resync=3600):
        await world.rest(2 * 3600)
    assert [causes(attempt)[0] for attempt in world.attempts][:2] == [CauseKind.INITIAL, CauseKind.RESYNC]


# --- observers ---


async def test_an_observer_that_raises_changes_neither_order_nor_verdicts(world: World) -> None:
    def broken_observer(value: Observed) -> None:
        raise OSError("disk full")

    for name in ("bear", "robot"):
        world.server.create(toy(name))
    async with world.running(spec_of(nothing), observers=[broken_observer]):
        pass
    assert outcomes(world, "bear") == outcomes(world, "robot") == [Outcome.DONE]


async def test_the_queue_is_told_again_and_again_as_a_sign_of_life(world: World) -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if request.name == "bad":
            raise ValueError("bad")
        return Result(100) if request.name == "timed" else None

    for name in ("bad", "timed", "fine"):
        world.server.create(toy(name))
    async with world.running(spec_of(body)):
        await world.rest(20)
        states = world.told(ControllerState)
        assert 9 <= len(states) <= 40
        latest = states[-1]
        entries = {entry.request.name: entry for entry in latest.entries}
        assert {name: str(entry.state) for name, entry in entries.items()} == {"bad": "backoff", "timed": "timer"}
        assert entries["bad"].failures > 3
        assert 75 < present(entries["timed"].due) - latest.at < 85
        assert (latest.leading, latest.synced, latest.message) == (True, True, "")


async def test_it_can_be_looked_at() -> None:
    world = World(toy("bear"))
    async with world.running(spec_of(nothing)) as running:
        look = repr(running.manager.members[0].controller)
        assert look == "Controller(toy, open, running=0, <Queue 'toy': 0 ready, 0 running, 0 timers>)"
        assert "attempts=1" in repr(running.manager)


async def test_a_child_of_another_kind_wakes_nobody(world: World) -> None:
    async with world.running(spec_of(nothing)):
        other: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
        world.server.create(other)
        await world.rest()
    assert world.attempts == []
    assert DEPLOYMENTS not in spec_of(nothing).resources
