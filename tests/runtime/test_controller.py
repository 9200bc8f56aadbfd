from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from kubectl_ctrl.errors import ApiError, CallSite, ControllerError, Invalid, TerminalError, TooManyRequests
from kubectl_ctrl.model.attempt import Attempt, Called, Observed, Outcome, Started, State
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.runs import current_attempt
from kubectl_ctrl.runtime.verdict import SLOW_RETRY
from kubectl_ctrl.testing.loop import run_virtual
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, toy

Body = Callable[[Context, Request], Awaitable[Result | None]]

BEAR = Key("default", "bear")
SITE = CallSite("patch", "toys default/bear")


def spec_of(body: Body) -> ControllerSpec:
    return controller("toy", body).for_(TOYS).owns(CONFIGMAPS)


def virtually(main: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await main()

    run_virtual(run())


def outcomes(world: World, name: str = "bear") -> list[Outcome]:
    return [attempt.verdict.outcome for attempt in world.attempts if attempt.start.request.name == name]


def causes(attempt: Attempt) -> list[CauseKind]:
    return [cause.kind for cause in attempt.start.causes]


async def nothing(ctx: Context, request: Request) -> Result | None:
    return None


# --- attempts and their names ---


def test_an_attempt_is_told_when_it_starts_calls_and_ends_under_one_name() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        await ctx.write.create({"metadata": {"name": "settings"}}, CONFIGMAPS)
        return None

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body), run_id="r7f3"):
            pass
        told = [value for value in world.observed if isinstance(value, Started | Called | Attempt)]
        assert [type(value) for value in told] == [Started, Called, Called, Attempt]
        start, sent, answered, attempt = told
        assert isinstance(start, Started)
        assert isinstance(sent, Called)
        assert isinstance(answered, Called)
        assert isinstance(attempt, Attempt)
        assert start.id == sent.attempt == answered.attempt == attempt.id == "r7f3-1"
        assert (sent.answered, sent.call.code, answered.answered, answered.call.code) == (False, None, True, 201)
        assert attempt.calls == (answered.call,)
        [write] = world.writes()
        assert write.audit_id == answered.call.id == "r7f3-1.1"
        assert (start.try_no, start.causes_total, causes(attempt)) == (1, 1, [CauseKind.INITIAL])

    virtually(main)


def test_attempts_are_numbered_over_all_objects_and_controllers_of_a_run() -> None:
    async def main() -> None:
        world = World()
        for name in ("bear", "robot"):
            world.server.create(toy(name))
        other = controller("other", nothing).for_(TOYS)
        async with world.running(spec_of(nothing), other, run_id="r001"):
            pass
        assert sorted(attempt.id for attempt in world.attempts) == ["r001-1", "r001-2", "r001-3", "r001-4"]

    virtually(main)


def test_the_attempt_is_known_wherever_its_code_runs() -> None:
    seen: list[str] = []

    async def deeper() -> None:
        seen.append(current_attempt())

    async def body(ctx: Context, request: Request) -> Result | None:
        await asyncio.create_task(deeper())
        seen.append(await ctx.in_thread(current_attempt))
        assert ctx.log.extra is not None
        seen.append(str(ctx.log.extra["attempt"]))
        seen.append(ctx.attempt)
        return None

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body), run_id="r001"):
            pass
        assert seen == ["r001-1"] * 4
        assert current_attempt() == ""

    virtually(main)


def test_time_and_chance_of_an_attempt_are_kept_with_it() -> None:
    drawn: list[tuple[float, float]] = []

    async def body(ctx: Context, request: Request) -> Result | None:
        drawn.append((ctx.now(), ctx.random.random()))
        return None

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            pass
        [attempt] = world.attempts
        [(now, chance)] = drawn
        assert attempt.times == (now,)
        assert Random(attempt.seed).random() == chance

    virtually(main)


# --- causes ---


def test_changes_that_come_while_it_runs_make_one_more_run_that_knows_them_all() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        await world.clock.sleep(10)
        return None

    world: World

    async def main() -> None:
        nonlocal world
        world = World()
        world.server.create(toy("bear"))
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

    virtually(main)


def test_many_causes_are_counted_and_the_first_and_the_last_are_kept() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        await world.clock.sleep(10)
        return None

    world: World

    async def main() -> None:
        nonlocal world
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            for size in range(40):
                last = world.server.change(TOYS, "bear", {"spec": {"size": size}})
            await world.rest(30)
        second = world.attempts[1]
        assert (len(second.start.causes), second.start.causes_total) == (16, 40)
        assert second.start.causes[-1].new_version == last["metadata"]["resourceVersion"]

    virtually(main)


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
            if isinstance(value, Started):
                assert value.request not in open_now
                open_now.add(value.request)
            elif isinstance(value, Attempt):
                open_now.discard(value.start.request)
        assert not open_now

    for seed in range(5):
        run_virtual(run(seed))


# --- what follows ---


def test_a_failure_is_retried_with_growing_delays_and_says_what_it_retries() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if len(world.attempts) < 3:
            raise ValueError("no wheels")
        return None

    world: World

    async def main() -> None:
        nonlocal world
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body), run_id="r001"):
            await world.rest(5)
        assert outcomes(world) == [Outcome.RETRY] * 3 + [Outcome.DONE]
        delays = [attempt.verdict.delay for attempt in world.attempts[:3]]
        assert delays[0] < delays[1] < delays[2] <= 0.02
        last = world.attempts[3]
        [why] = last.start.causes
        assert (why.kind, why.attempt, why.count, why.detail) == (CauseKind.RETRY, "r001-3", 3, "ValueError: no wheels")
        assert last.start.try_no == 4
        assert world.attempts[0].verdict.where.startswith("runtime/test_controller.py:")
        assert "ValueError: no wheels" in world.attempts[0].traceback

    virtually(main)


def test_after_a_success_the_next_failure_is_the_first() -> None:
    failing = [True, True, False, True, False]

    async def body(ctx: Context, request: Request) -> Result | None:
        if failing.pop(0):
            raise ValueError("no wheels")
        return None

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            await world.rest(1)
            world.server.change(TOYS, "bear", {"spec": {"size": 2}})
            await world.rest(1)
        assert [attempt.start.try_no for attempt in world.attempts] == [1, 2, 3, 1, 2]

    virtually(main)


@pytest.mark.parametrize(
    "error",
    [
        TerminalError("It can never fly."),
        Invalid("Its wheels are square.", site=SITE, code=422),
        ControllerError("It was used wrongly."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_terminal_error_is_not_retried_until_something_changes(error: Exception) -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        raise error

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            await world.rest(3600)
            assert outcomes(world) == [Outcome.TERMINAL]
            world.server.change(TOYS, "bear", {"spec": {"size": 2}})
            await world.rest()
        assert outcomes(world) == [Outcome.TERMINAL] * 2

    virtually(main)


@pytest.mark.parametrize(
    ("error", "least"),
    [
        (TooManyRequests("Slow down.", site=SITE, code=429, retry_after=7), 7.0),
        (ApiError("No.", site=SITE, code=418), 0.0),
    ],
    ids=["with a time", "without"],
)
def test_a_time_that_an_error_names_is_kept_to(error: Exception, least: float) -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if not world.attempts:
            raise error
        return None

    world: World

    async def main() -> None:
        nonlocal world
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            await world.rest(60)
        first, second = world.attempts
        assert first.verdict.delay == pytest.approx(least, abs=0.01)
        assert second.start.started - first.start.started == pytest.approx(first.verdict.delay, abs=0.001)

    virtually(main)


def test_a_forbidden_write_is_retried_slowly() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        await ctx.write.create({"metadata": {"name": "settings"}}, CONFIGMAPS)
        return None

    async def main() -> None:
        from kubectl_ctrl.testing.faults import Match

        world = World()
        world.server.create(toy("bear"))
        world.server.faults.fail(Match(verb="create"), 403, reason="Forbidden", message="exceeded quota: small")
        async with world.running(spec_of(body)):
            await world.rest(SLOW_RETRY - 1)
            assert outcomes(world) == [Outcome.RETRY]
            await world.rest(2)
        assert outcomes(world) == [Outcome.RETRY, Outcome.DONE]
        assert "exceeded quota: small" in world.attempts[0].verdict.message

    virtually(main)


def test_a_schedule_runs_again_then_and_an_earlier_change_replaces_it() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        return Result(10)

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
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

    virtually(main)


def test_waiting_runs_when_something_changes_or_after_the_time_it_gave() -> None:
    results = [Result(waiting_for="wheels"), Result(30, waiting_for="wheels"), None]

    async def body(ctx: Context, request: Request) -> Result | None:
        return results.pop(0)

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            await world.rest(3600)
            assert outcomes(world) == [Outcome.WAITING]
            world.server.change(TOYS, "bear", {"spec": {"size": 2}})
            await world.rest(31)
        assert outcomes(world) == [Outcome.WAITING, Outcome.WAITING, Outcome.DONE]
        assert causes(world.attempts[2]) == [CauseKind.TIMER]

    virtually(main)


def test_another_pass_at_once_is_run_and_a_loop_of_them_slows_down() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        return Result(again=True)

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            await world.rest(60)
            starts = [attempt.start.started for attempt in world.attempts]
            gaps = [late - early for early, late in pairwise(starts)]
            assert gaps[0] == 0
            assert gaps == sorted(gaps)
            assert len(starts) < 20
        assert causes(world.attempts[1]) == [CauseKind.AGAIN]

    virtually(main)


def test_returning_nonsense_is_a_terminal_mistake() -> None:
    async def body(ctx: Context, request: Request) -> Any:
        return {"requeue": True}

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            await world.rest(60)
        assert outcomes(world) == [Outcome.TERMINAL]

    virtually(main)


def test_somebody_can_ask_for_a_run() -> None:
    async def main() -> None:
        world = World()
        async with world.running(spec_of(nothing)) as running:
            running.manager.ask("toy", BEAR, "by hand")
            await world.rest()
            with pytest.raises(ControllerError, match="No controller 'other'"):
                running.manager.ask("other", BEAR)
        [why] = world.attempts[0].start.causes
        assert (why.kind, why.detail) == (CauseKind.MANUAL, "by hand")

    virtually(main)


# --- one costs nobody else anything ---


def broken(kind: str, world: Callable[[], World]) -> Body:
    async def body(ctx: Context, request: Request) -> Result | None:
        if request.name != "broken":
            return None
        match kind:
            case "raises":
                raise RuntimeError("broken")
            case "hangs":
                await asyncio.Event().wait()
            case "cancels itself":
                task = asyncio.current_task()
                assert task is not None
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
    "kind", ["raises", "hangs", "cancels itself", "awaits something cancelled", "exits", "loops in awaits"]
)
def test_an_object_whose_reconcile_is_broken_delays_no_other(kind: str) -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("broken"))
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

    virtually(main)


def test_an_attempt_that_takes_too_long_is_cut_and_retried() -> None:
    cleaned: list[float] = []

    async def body(ctx: Context, request: Request) -> Result | None:
        if world.attempts:
            return None
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(world.clock.elapsed())
        return None

    world: World

    async def main() -> None:
        nonlocal world
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body), attempt_timeout=20):
            await world.rest(30)
        first, second = world.attempts
        assert first.verdict.message == "The attempt was cut after 20 s, its timeout."
        assert (first.verdict.outcome, len(cleaned)) == (Outcome.RETRY, 1)
        assert first.took == pytest.approx(20)
        assert causes(second) == [CauseKind.RETRY]

    virtually(main)


def test_a_reconciler_that_ignores_being_cut_loses_its_doors_and_holds_only_its_own_object(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tried: list[str] = []  # what became of the call that it made after it was cut

    async def body(ctx: Context, request: Request) -> Result | None:
        if request.name != "stubborn" or tried:
            return None
        try:
            await world.clock.sleep(1000)
        except asyncio.CancelledError:
            await world.clock.sleep(100)
            try:
                await ctx.write.create({"metadata": {"name": "late"}}, CONFIGMAPS)
            except ControllerError as error:
                tried.append(str(error))
        return None

    world: World

    async def main() -> None:
        nonlocal world
        world = World()
        world.server.create(toy("stubborn"))
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
        assert "is over" in tried[0]
        assert world.server.get(CONFIGMAPS, "late") is None

    with caplog.at_level(logging.ERROR):
        virtually(main)
    assert "goes on although it was cancelled" in caplog.text


def test_what_a_reconcile_leaves_running_cannot_use_its_doors() -> None:
    caught: list[str] = []

    async def body(ctx: Context, request: Request) -> Result | None:
        async def later() -> None:
            await world.clock.sleep(5)
            try:
                await ctx.write.create({"metadata": {"name": "late"}}, CONFIGMAPS)
            except ControllerError as error:
                caught.append(str(error))

        tasks.append(asyncio.create_task(later()))
        return None

    world: World
    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        nonlocal world
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(body)):
            await world.rest(10)
        assert len(caught) == 1
        assert list(world.writes()) == []

    virtually(main)


# --- order ---


def test_live_changes_go_before_the_rest_of_the_initial_list() -> None:
    order: list[str] = []

    async def body(ctx: Context, request: Request) -> Result | None:
        order.append(request.name)
        await world.clock.sleep(0.1)
        return None

    world: World

    async def main() -> None:
        nonlocal world
        world = World()
        for number in range(30):
            world.server.create(toy(f"toy-{number:02}"))
        async with world.running(spec_of(body), workers=1):
            await world.rest(0.95)
            world.server.change(TOYS, "toy-29", {"spec": {"size": 2}})
            await world.rest(5)
        assert order.index("toy-29") == 10
        assert len(order) == 30

    virtually(main)


def test_a_resync_runs_everything_again_in_the_background() -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(nothing), resync=3600):
            await world.rest(2 * 3600)
        kinds = [causes(attempt)[0] for attempt in world.attempts]
        assert kinds[:2] == [CauseKind.INITIAL, CauseKind.RESYNC]

    virtually(main)


# --- observers ---


def test_an_observer_that_raises_changes_neither_order_nor_verdicts() -> None:
    async def main() -> None:
        def broken_observer(value: Observed) -> None:
            raise OSError("disk full")

        world = World()
        for name in ("bear", "robot"):
            world.server.create(toy(name))
        async with world.running(spec_of(nothing), observers=[broken_observer]):
            pass
        assert outcomes(world, "bear") == outcomes(world, "robot") == [Outcome.DONE]

    virtually(main)


def test_the_queue_is_told_again_and_again_as_a_sign_of_life() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        if request.name == "bad":
            raise ValueError("bad")
        return Result(100) if request.name == "timed" else None

    async def main() -> None:
        world = World()
        for name in ("bad", "timed", "fine"):
            world.server.create(toy(name))
        async with world.running(spec_of(body)):
            await world.rest(20)
            states = world.told(State)
            assert 9 <= len(states) <= 12
            latest = states[-1]
            entries = {entry.request.name: entry for entry in latest.entries}
            assert {name: str(entry.state) for name, entry in entries.items()} == {"bad": "backoff", "timed": "timer"}
            assert entries["bad"].failures > 3
            due = entries["timed"].due
            assert due is not None
            assert 75 < due - latest.at < 85
            assert (latest.leading, latest.synced, latest.message) == (True, True, "")

    virtually(main)


def test_it_can_be_looked_at() -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(nothing)) as running:
            look = repr(running.manager.members[0].controller)
            assert look == "Controller(toy, open, running=0, <Queue 'toy': 0 ready, 0 running, 0 timers>)"
            assert "attempts=1" in repr(running.manager)

    virtually(main)


def test_a_child_of_another_kind_wakes_nobody() -> None:
    async def main() -> None:
        world = World()
        async with world.running(spec_of(nothing)):
            other: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
            world.server.create(other)
            await world.rest()
        assert world.attempts == []
        assert DEPLOYMENTS not in spec_of(nothing).resources

    virtually(main)
