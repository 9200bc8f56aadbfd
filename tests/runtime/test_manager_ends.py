from __future__ import annotations

import asyncio
import threading

import pytest

from kubectl_ctrl.errors import Forbidden, NotInstalled, TerminalError, TimedOut
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.services import NoEvents, Services
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Reason
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from tests.objects import present
from tests.runtime.managers import names, nothing, settings_for, spec_of
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, crd, toy

# --- once ---


def test_once_runs_every_object_once_and_ends() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        await settings_for(world, ctx, request)
        if request.name == "bad":
            raise ValueError("bad")
        return Result(again=True) if request.name == "again" else Result(5, waiting_for="rain")

    async def main() -> None:
        world = World()
        for name in ("bad", "again", "fine"):
            world.server.create(toy(name))
        summary = await world.run(spec_of(world, body), once=True)
        assert sorted(names(world.attempts)) == ["again", "bad", "fine"]
        assert (summary.reason, summary.left, summary.problem()) == (Reason.ONCE, (), None)
        assert [(one.controller, one.request.name, one.verdict.outcome) for one in summary.failed] == [
            ("toy", "bad", Outcome.RETRY)
        ]

    run_virtual(main())


async def test_once_tells_when_the_object_wants_to_be_looked_at_again() -> None:
    world = World(toy("bear"))

    async def later(world: World, ctx: Context, request: Request) -> Result:
        return Result(after=3600)

    await world.run(spec_of(world, later), once=True)
    [verdict] = [attempt.verdict for attempt in world.attempts]
    assert (verdict.outcome, verdict.delay, verdict.last) == (Outcome.AFTER, 3600.0, True)


async def test_once_with_nothing_to_do_ends_at_once(world: World) -> None:
    began = world.clock.elapsed()
    summary = await world.run(spec_of(world, nothing), once=True)
    assert (summary.reason, world.attempts) == (Reason.ONCE, [])
    assert world.clock.elapsed() - began < 1


async def test_once_without_the_crd_ends_saying_so_and_watches_nothing() -> None:
    world = World(installed=False)
    summary = await world.run(spec_of(world, nothing), once=True)
    assert summary.reason is Reason.NOT_INSTALLED
    problem = summary.problem()
    assert isinstance(problem, NotInstalled)
    assert "toys.toys.example.com (toys.example.com/v1) is not installed" in problem.message
    assert [request.verb for request in world.server.requests if request.verb in ("list", "watch")] == []


async def test_once_without_a_status_subresource_ends_saying_so() -> None:
    world = World(crd(status=False), toy("bear"), installed=False)
    summary = await world.run(spec_of(world, settings_for), once=True)
    assert summary.reason is Reason.NOT_INSTALLED
    assert world.attempts[0].verdict.outcome is Outcome.WAITING
    problem = present(summary.problem())
    assert problem.exit_code == 8
    assert "without a status subresource" in problem.message


# --- until idle ---


def test_until_idle_ends_a_second_after_the_last_work() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        await settings_for(world, ctx, request)
        if len(world.attempts) < 4:
            raise ValueError("not yet")
        return Result(3600)  # a schedule is not waited for

    async def main() -> None:
        world = World(toy("bear"))
        began = world.clock.elapsed()
        summary = await world.run(spec_of(world, body), until_idle=True, timeout=300)
        assert (summary.reason, summary.failed, summary.problem()) == (Reason.IDLE, (), None)
        last = world.attempts[-1]
        assert last.verdict.outcome is Outcome.AFTER
        quiet = world.clock.now() - last.start.started
        assert 1.0 <= quiet < 1.5
        assert world.clock.elapsed() - began < 3

    run_virtual(main())


async def test_until_idle_waits_for_objects_that_wait() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        ready = (await ctx.read.get(CONFIGMAPS, "wheels")) is not None
        return None if ready else Result(2, waiting_for="wheels")

    world = World(toy("bear"))
    task = asyncio.create_task(world.run(spec_of(world, body), until_idle=True, timeout=300))
    await world.rest(20)
    assert not task.done()
    world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wheels"}})
    assert (await task).reason is Reason.IDLE


async def test_until_idle_waits_until_own_writes_were_seen() -> None:
    world = World(toy("bear"))
    world.server.watch_delay = 8
    summary = await world.run(spec_of(world, settings_for), until_idle=True, timeout=300)
    assert summary.reason is Reason.IDLE
    wrote = world.attempts[-1].calls[-1].started
    assert 9 <= world.clock.now() - wrote < 10  # the event's eight seconds, and one of quiet


async def test_until_idle_waits_for_no_event_after_a_watch_broke_and_was_opened_again() -> None:
    world = World(toy("bear"))
    task = asyncio.create_task(world.run(spec_of(world, settings_for), until_idle=True, timeout=300))
    await world.rest(0.5)
    world.server.drop_watches(cleanly=False)
    await world.rest(5)
    assert task.done()
    assert (await task).reason is Reason.IDLE


async def test_idle_with_a_terminal_failure_names_it() -> None:
    async def body(world: World, ctx: Context, request: Request) -> None:
        raise TerminalError("It can never fly.")

    world = World(toy("bear"))
    summary = await world.run(spec_of(world, body), until_idle=True, timeout=300)
    assert summary.reason is Reason.IDLE
    assert [one.verdict.message for one in summary.failed] == ["It can never fly."]


async def test_a_timeout_names_everything_that_was_waited_for_and_since_when(world: World) -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        match request.name:
            case "bad":
                raise ValueError("bad")
            case "stuck":
                await asyncio.Event().wait()
            case "waiting":
                return Result(waiting_for="rollout 3/5")
        return None

    for name in ("bad", "stuck", "waiting", "fine"):
        world.server.create(toy(name))
    began = world.clock.now()
    summary = await world.run(spec_of(world, body), until_idle=True, timeout=50, drain=1)
    assert summary.reason is Reason.TIMEOUT
    told = {one.what: one.since - began for one in summary.unmet}
    failures = names(world.attempts).count("bad")
    assert set(told) == {
        "toy default/stuck runs",
        f"toy default/bad ({failures} failures) waits for its retry",
        "toy default/waiting waits for rollout 3/5",
    }
    assert told["toy default/waiting waits for rollout 3/5"] == pytest.approx(0, abs=0.1)
    problem = summary.problem()
    assert isinstance(problem, TimedOut)
    assert problem.message == "The run timed out: toy default/stuck runs (and 2 more)."


async def test_a_timeout_before_the_caches_are_there_says_what_is_missing(world: World) -> None:
    world.server.down()
    summary = await world.run(spec_of(world, nothing), once=True, timeout=30)
    assert summary.reason is Reason.TIMEOUT
    assert [one.what.split(":")[0] for one in summary.unmet] == [
        "the cache of toys.toys.example.com is retrying",
        "the cache of configmaps is retrying",
    ]


async def test_once_without_the_right_to_look_ends_at_once_and_names_the_rule(world: World) -> None:
    denied = 'User "ann" cannot watch resource "configmaps" in API group "" at the cluster scope'
    world.server.faults.fail(
        Match(plural="configmaps"),
        403,
        message=f"configmaps is forbidden: {denied}",
        reason="Forbidden",
        times=None,
    )
    began = world.clock.elapsed()
    summary = await world.run(spec_of(world, nothing), once=True)
    problem = summary.problem()
    assert isinstance(problem, Forbidden)
    assert problem.exit_code == 7
    rule = 'Add to a ClusterRole: apiGroups [""], resources ["configmaps"], verbs ["watch"].'
    assert problem.message.endswith(rule)
    assert world.clock.elapsed() - began < 5


# --- stop ---


async def ten_seconds(world: World, ctx: Context, request: Request) -> None:
    await world.clock.sleep(10)
    if request.name == "bad":
        raise ValueError("bad")


async def test_the_first_stop_finishes_what_is_under_way_and_lists_the_rest(world: World) -> None:
    for name in ("a", "b", "bad", "c", "d"):
        world.server.create(toy(name))
    async with world.running(spec_of(world, ten_seconds), workers=3) as running:
        await world.rest(5)
        world.server.change(TOYS, "a", {"spec": {"size": 2}})
        await world.rest()
        stopped = world.clock.elapsed()
        summary = await running.stopped()
    assert world.clock.elapsed() - stopped == pytest.approx(5)
    assert summary.reason is Reason.STOPPED
    assert sorted(names(world.attempts)) == ["a", "b", "bad"]
    left = sorted((one.entry.request.name, str(one.entry.state)) for one in summary.left)
    assert left == [("a", "ready"), ("bad", "backoff"), ("c", "ready"), ("d", "ready")]
    assert {one.controller for one in summary.left} == {"toy"}


async def test_a_thread_sees_which_attempt_holds_the_loop(world: World) -> None:
    for name in ("blocks", "waits"):
        world.server.create(toy(name))
    at_work: list[tuple[str, bool]] = []

    async def body(world: World, ctx: Context, request: Request) -> None:
        await world.clock.sleep(1 if request.name == "blocks" else 2)
        if request.name == "blocks":
            other = threading.Thread(target=lambda: at_work.extend(running.manager.members[0].at_work))
            other.start()
            other.join()

    async with world.running(spec_of(world, body), workers=2) as running:
        await world.rest(3)
    assert sorted((text.partition(" ")[2], holds) for text, holds in at_work) == [
        ("(toy default/blocks)", True),
        ("(toy default/waits)", False),
    ]
    assert {text.partition(" ")[0] for text, _ in at_work} == {attempt.start.id for attempt in world.attempts}


async def test_no_attempt_starts_after_the_first_stop() -> None:
    world = World(toy("a"))
    async with world.running(spec_of(world, ten_seconds)) as running:
        await world.rest(1)
        running.stop.request()
        await world.rest(1)
        world.server.create(toy("b"))
        await world.rest(1)
    assert names(world.attempts) == ["a"]


async def test_timers_that_were_not_due_are_listed_too() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        return Result(100)

    world = World(toy("bear"))
    async with world.running(spec_of(world, body)) as running:
        await world.rest(1)
        summary = await running.stopped()
    [left] = summary.left
    assert (left.entry.state, left.entry.due is not None) == ("timer", True)


@pytest.mark.parametrize("how", ["second stop", "drain deadline"])
def test_what_does_not_end_in_time_is_cut_and_listed(how: str) -> None:
    cut: list[str] = []

    async def body(world: World, ctx: Context, request: Request) -> None:
        try:
            await world.clock.sleep(1000)
        except asyncio.CancelledError:
            cut.append(request.name)
            raise

    async def main() -> None:
        world = World(toy("bear"))
        async with world.running(spec_of(world, body), drain=20, attempt_timeout=5000) as running:
            await world.rest(1)
            began = world.clock.elapsed()
            running.stop.request()
            await world.rest(5)
            if how == "second stop":
                running.stop.request()
            summary = await running.stopped()
        assert summary.reason is Reason.CUT
        assert world.clock.elapsed() - began == pytest.approx(5 if how == "second stop" else 20)
        assert cut == ["bear"]
        [attempt] = world.attempts
        assert (attempt.verdict.outcome, attempt.verdict.message) == (
            Outcome.DROPPED,
            "The attempt was cut: the run was stopped.",
        )
        assert [(one.entry.request.name, str(one.entry.state)) for one in summary.left] == [("bear", "ready")]

    run_virtual(main())


async def test_a_reconciler_that_cannot_be_cut_does_not_hold_up_the_end(world: World) -> None:
    hold = asyncio.Event()

    async def body(world: World, ctx: Context, request: Request) -> None:
        while not hold.is_set():
            try:
                await hold.wait()
            except asyncio.CancelledError:
                continue

    world.server.create(toy("bear"))
    async with world.running(spec_of(world, body), drain=20, attempt_timeout=5000) as running:
        await world.rest(1)
        began = world.clock.elapsed()
        summary = await running.stopped()
    assert summary.reason is Reason.CUT
    assert world.clock.elapsed() - began == pytest.approx(25)
    assert [(one.entry.request.name, str(one.entry.state)) for one in summary.left] == [("bear", "running")]
    hold.set()
    await world.rest()


async def test_a_second_stop_does_not_wait_for_events(world: World) -> None:
    class Slow(NoEvents):
        async def flush(self) -> None:
            await asyncio.Event().wait()

    services = Services(recorder=lambda name, client, tell: Slow())
    async with world.running(spec_of(world, nothing), services=services) as running:
        began = world.clock.elapsed()
        running.stop.request()
        await world.rest(1)
        running.stop.request()
        await running.task
    assert world.clock.elapsed() - began == pytest.approx(1)


async def test_a_stop_before_the_caches_are_there_ends_at_once(world: World) -> None:
    world.server.down()
    async with world.running(spec_of(world, nothing)) as running:
        await world.rest(100)
        began = world.clock.elapsed()
        summary = await running.stopped()
    assert (summary.reason, summary.left) == (Reason.STOPPED, ())
    assert world.clock.elapsed() - began < 0.1


async def test_a_cancelled_run_leaves_nothing_behind() -> None:
    world = World(toy("bear"))
    task = asyncio.create_task(world.manager(spec_of(world, ten_seconds)).run(Stop()))
    await world.rest(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await world.rest()  # run_virtual fails when a task is left
