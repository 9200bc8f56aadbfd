from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kubectl_ctrl.client.transport import HttpRequest, HttpResponse, HttpStream
from kubectl_ctrl.errors import ControllerError, NotInstalled, Refused, TerminalError, TimedOut
from kubectl_ctrl.model.attempt import Attempt, Observed, Outcome, Started, State, Tally
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.model.summary import Reason
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.predicates import generation_changed
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.version import VERSION
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, crd, toy

Body = Callable[[World, Context, Request], Any]


def spec_of(world: World, body: Body, name: str = "toy") -> ControllerSpec:
    async def reconcile(ctx: Context, request: Request) -> Result | None:
        result: Result | None = await body(world, ctx, request)
        return result

    return controller(name, reconcile).for_(TOYS).owns(CONFIGMAPS)


async def nothing(world: World, ctx: Context, request: Request) -> Result | None:
    return None


async def settings_for(world: World, ctx: Context, request: Request) -> Result | None:
    """One ConfigMap for each Toy, and a status."""
    owner = await ctx.read.get(TOYS, request.name)
    if owner is None:
        return None
    child = {"metadata": {"name": request.name}, "data": {"size": str(owner["spec"].get("size", 1))}}
    await ctx.write.ensure(child, owner=owner, resource=CONFIGMAPS)
    await ctx.write.status(owner, TOYS, {"ready": True})
    return None


def names(attempts: list[Attempt]) -> list[str]:
    return [attempt.start.request.name for attempt in attempts]


# --- start ---


def test_nothing_runs_before_every_cache_is_complete_and_told() -> None:
    seen: list[int] = []

    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        seen.append(len(await ctx.read.list(CONFIGMAPS)))
        return None

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        for number in range(5):
            world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c-{number}"}})
        world.server.faults.delay(Match(plural="configmaps"), before=20)
        async with world.running(spec_of(world, body)):
            await world.rest(19)
            assert seen == []
            [state] = world.told(State)[-1:]
            assert (state.synced, state.message) == (False, "the cache of configmaps is starting")
            await world.rest(10)
        assert seen == [5]

    run_virtual(main())


def test_controllers_share_caches_and_differ_in_manager_and_user_agent() -> None:
    async def write(world: World, ctx: Context, request: Request) -> Result | None:
        await ctx.write.create({"metadata": {"generateName": "one-"}}, CONFIGMAPS)
        return None

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(world, write), spec_of(world, write, "other")):
            assert len(world.server.watches) == 2
        sent = sorted((write.manager, write.user_agent) for write in world.writes())
        assert sent == [
            ("kubectl-ctrl-other", f"kubectl-ctrl/{VERSION} (other)"),
            ("kubectl-ctrl-toy", f"kubectl-ctrl/{VERSION} (toy)"),
        ]

    run_virtual(main())


def test_two_controllers_of_one_name_cannot_run_together() -> None:
    async def main() -> None:
        world = World()
        with pytest.raises(ControllerError, match="Two controllers are named 'toy'"):
            world.manager(spec_of(world, nothing), spec_of(world, nothing))

    run_virtual(main())


def test_a_run_is_of_its_namespace_and_labels() -> None:
    async def main() -> None:
        world = World()
        world.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "attic"}})
        for name, labels in (("bear", {"kind": "soft"}), ("robot", {})):
            for namespace in ("default", "attic"):
                obj = toy(name, namespace)
                obj["metadata"]["labels"] = labels
                owner = world.server.create(obj)
                child: Obj = {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": namespace},
                }
                child["metadata"]["ownerReferences"] = [
                    {
                        "apiVersion": TOYS.api_version,
                        "kind": "Toy",
                        "name": name,
                        "uid": owner["metadata"]["uid"],
                        "controller": True,
                    }
                ]
                world.server.create(child)
        async with world.running(spec_of(world, nothing), namespace="attic", labels="kind=soft"):
            world.server.change(CONFIGMAPS, "robot", {"data": {"a": "b"}}, namespace="attic")
            world.server.change(CONFIGMAPS, "bear", {"data": {"a": "b"}}, namespace="attic")
            await world.rest()
            world.server.delete(TOYS, "bear", "attic")
            await world.rest()
        assert {attempt.start.request for attempt in world.attempts} == {("attic", "bear")}
        assert any(cause.kind is CauseKind.DELETED for cause in world.attempts[-1].start.causes)
        tally = world.told(Tally)[-1]
        assert dict(tally.filtered)["not selected by this run's labels"] == 3  # robot's twice; bear's went after it

    run_virtual(main())


# --- resource types that come and go ---


def test_a_missing_crd_is_waited_for_and_the_controller_starts_by_itself() -> None:
    async def main() -> None:
        world = World(installed=False)
        async with world.running(spec_of(world, nothing)):
            await world.rest(600)
            state = world.told(State)[-1]
            assert state.message == "toys.toys.example.com is not installed"
            assert len(world.server.requests) < 400
            world.server.create(crd())
            world.server.create(toy("bear"))
            await world.rest(10)
            assert names(world.attempts) == ["bear"]
            assert world.told(State)[-1].message == ""

    run_virtual(main())


def test_a_crd_that_is_deleted_while_running_stops_the_work_until_it_is_back() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        return Result(1)

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(world, body)):
            await world.rest(3)
            world.server.delete(CRDS, "toys.toys.example.com")
            await world.rest(120)
            assert world.told(State)[-1].message == "toys.toys.example.com is not installed"
            before, asked = len(world.attempts), len(world.server.requests)
            await world.rest(600)
            assert len(world.attempts) == before
            assert len(world.server.requests) - asked < 400
            world.server.create(crd())
            world.server.create(toy("robot"))
            await world.rest(40)
            assert "robot" in names(world.attempts)

    run_virtual(main())


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


def test_once_with_nothing_to_do_ends_at_once() -> None:
    async def main() -> None:
        world = World()
        began = world.clock.elapsed()
        summary = await world.run(spec_of(world, nothing), once=True)
        assert (summary.reason, world.attempts) == (Reason.ONCE, [])
        assert world.clock.elapsed() - began < 1

    run_virtual(main())


def test_once_without_the_crd_ends_saying_so_and_watches_nothing() -> None:
    async def main() -> None:
        world = World(installed=False)
        summary = await world.run(spec_of(world, nothing), once=True)
        assert summary.reason is Reason.NOT_INSTALLED
        problem = summary.problem()
        assert isinstance(problem, NotInstalled)
        assert "toys.toys.example.com (toys.example.com/v1) is not installed" in problem.message
        assert [request.verb for request in world.server.requests if request.verb in ("list", "watch")] == []

    run_virtual(main())


def test_once_without_a_status_subresource_ends_saying_so() -> None:
    async def main() -> None:
        world = World(installed=False)
        world.server.create(crd(status=False))
        world.server.create(toy("bear"))
        summary = await world.run(spec_of(world, settings_for), once=True)
        assert summary.reason is Reason.NOT_INSTALLED
        assert world.attempts[0].verdict.outcome is Outcome.WAITING
        problem = summary.problem()
        assert problem is not None
        assert problem.exit_code == 8
        assert "without a status subresource" in problem.message

    run_virtual(main())


# --- until idle ---


def test_until_idle_ends_a_second_after_the_last_work() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        await settings_for(world, ctx, request)
        if len(world.attempts) < 4:
            raise ValueError("not yet")
        return Result(3600)  # a schedule is not waited for

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        began = world.clock.elapsed()
        summary = await world.run(spec_of(world, body), until_idle=True, timeout=300)
        assert (summary.reason, summary.failed, summary.problem()) == (Reason.IDLE, (), None)
        last = world.attempts[-1]
        assert last.verdict.outcome is Outcome.AFTER
        quiet = world.clock.now() - last.start.started
        assert 1.0 <= quiet < 1.5
        assert world.clock.elapsed() - began < 3

    run_virtual(main())


def test_until_idle_waits_for_objects_that_wait() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        ready = (await ctx.read.get(CONFIGMAPS, "wheels")) is not None
        return None if ready else Result(2, waiting_for="wheels")

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        task = asyncio.create_task(world.run(spec_of(world, body), until_idle=True, timeout=300))
        await world.rest(20)
        assert not task.done()
        world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wheels"}})
        assert (await task).reason is Reason.IDLE

    run_virtual(main())


def test_until_idle_waits_until_own_writes_were_seen() -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        world.server.watch_delay = 8
        summary = await world.run(spec_of(world, settings_for), until_idle=True, timeout=300)
        assert summary.reason is Reason.IDLE
        wrote = world.attempts[-1].calls[-1].started
        assert 9 <= world.clock.now() - wrote < 10  # the event's eight seconds, and one of quiet

    run_virtual(main())


def test_idle_with_a_terminal_failure_names_it() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        raise TerminalError("It can never fly.")

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        summary = await world.run(spec_of(world, body), until_idle=True, timeout=300)
        assert summary.reason is Reason.IDLE
        assert [one.verdict.message for one in summary.failed] == ["It can never fly."]

    run_virtual(main())


def test_a_timeout_names_everything_that_was_waited_for_and_since_when() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        match request.name:
            case "bad":
                raise ValueError("bad")
            case "stuck":
                await asyncio.Event().wait()
            case "waiting":
                return Result(waiting_for="rollout 3/5")
        return None

    async def main() -> None:
        world = World()
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
        assert "rollout 3/5" in problem.message

    run_virtual(main())


def test_a_timeout_before_the_caches_are_there_says_what_is_missing() -> None:
    async def main() -> None:
        world = World()
        world.server.down()
        summary = await world.run(spec_of(world, nothing), once=True, timeout=30)
        assert summary.reason is Reason.TIMEOUT
        assert [one.what.split(":")[0] for one in summary.unmet] == [
            "the cache of toys.toys.example.com is retrying",
            "the cache of configmaps is retrying",
        ]

    run_virtual(main())


# --- stop ---


async def ten_seconds(world: World, ctx: Context, request: Request) -> Result | None:
    await world.clock.sleep(10)
    if request.name == "bad":
        raise ValueError("bad")
    return None


def test_the_first_stop_finishes_what_is_under_way_and_lists_the_rest() -> None:
    async def main() -> None:
        world = World()
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

    run_virtual(main())


def test_no_attempt_starts_after_the_first_stop() -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("a"))
        async with world.running(spec_of(world, ten_seconds)) as running:
            await world.rest(1)
            running.stop.request()
            await world.rest(1)
            world.server.create(toy("b"))
            await world.rest(1)
        assert names(world.attempts) == ["a"]

    run_virtual(main())


def test_timers_that_were_not_due_are_listed_too() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        return Result(100)

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(world, body)) as running:
            await world.rest(1)
            summary = await running.stopped()
        [left] = summary.left
        assert (left.entry.state, left.entry.due is not None) == ("timer", True)

    run_virtual(main())


@pytest.mark.parametrize("how", ["second stop", "drain deadline"])
def test_what_does_not_end_in_time_is_cut_and_listed(how: str) -> None:
    cut: list[str] = []

    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        try:
            await world.clock.sleep(1000)
        except asyncio.CancelledError:
            cut.append(request.name)
            raise
        return None

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
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


def test_a_reconciler_that_cannot_be_cut_does_not_hold_up_the_end() -> None:
    async def main() -> None:
        world = World()
        hold = asyncio.Event()

        async def body(world: World, ctx: Context, request: Request) -> Result | None:
            while not hold.is_set():
                try:
                    await hold.wait()
                except asyncio.CancelledError:
                    continue
            return None

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

    run_virtual(main())


def test_a_stop_before_the_caches_are_there_ends_at_once() -> None:
    async def main() -> None:
        world = World()
        world.server.down()
        async with world.running(spec_of(world, nothing)) as running:
            await world.rest(100)
            began = world.clock.elapsed()
            summary = await running.stopped()
        assert (summary.reason, summary.left) == (Reason.STOPPED, ())
        assert world.clock.elapsed() - began < 0.1

    run_virtual(main())


def test_a_cancelled_run_leaves_nothing_behind() -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        task = asyncio.create_task(world.manager(spec_of(world, ten_seconds)).run(Stop()))
        await world.rest(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await world.rest()  # run_virtual fails when a task is left

    run_virtual(main())


# --- what goes wrong outside ---


def test_an_api_server_that_is_away_for_minutes_costs_no_restart() -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        async with world.running(spec_of(world, settings_for)):
            await world.rest(5)
            world.server.down()
            await world.rest(300)
            assert "retrying" in world.told(State)[-1].message
            world.server.up()
            world.server.change(TOYS, "bear", {"spec": {"size": 7}})
            await world.rest(60)
            found = world.server.get(CONFIGMAPS, "bear")
            assert found is not None
            assert found["data"] == {"size": "7"}
            assert world.told(State)[-1].message == ""

    run_virtual(main())


def test_an_attempt_that_finds_another_cluster_ends_the_run() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        raise Refused("The credentials lead to another cluster now.")

    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))
        summary = await world.run(spec_of(world, body))
        assert summary.reason is Reason.FATAL
        problem = summary.problem()
        assert isinstance(problem, Refused)
        assert problem.exit_code == 6

    run_virtual(main())


class Switching:
    """A transport whose credentials lead elsewhere after a while."""

    def __init__(self, world: World) -> None:
        self._inner = world.server
        self.switched = False

    def _check(self) -> None:
        if self.switched:
            raise Refused("The credentials lead to another cluster now.")

    async def send(self, request: HttpRequest) -> HttpResponse:
        self._check()
        return await self._inner.send(request)

    async def open(self, request: HttpRequest) -> HttpStream:
        self._check()
        return await self._inner.open(request)

    async def close(self) -> None:
        await self._inner.close()


def test_a_watch_that_finds_another_cluster_ends_the_run() -> None:
    async def main() -> None:
        from kubectl_ctrl.client.client import Client

        world = World()
        transport = Switching(world)
        client = Client(transport, clock=world.clock, rng=world.rng, user_agent="test-run")
        manager = Manager(
            [spec_of(world, nothing)], client=client, clock=world.clock, rng=Random(1), options=RunOptions()
        )
        task = asyncio.create_task(manager.run(Stop()))
        await world.rest(1)
        transport.switched = True
        world.server.drop_watches()
        summary = await task
        assert (summary.reason, isinstance(summary.problem(), Refused)) == (Reason.FATAL, True)

    run_virtual(main())


# --- what can be seen ---


def test_held_back_changes_and_store_versions_are_tallied() -> None:
    async def main() -> None:
        world = World()
        world.server.create(toy("bear"))

        async def reconcile(ctx: Context, request: Request) -> Result | None:
            return None

        spec = controller("toy", reconcile).for_(TOYS, when=generation_changed)
        async with world.running(spec):
            last = world.server.change(TOYS, "bear", {"status": {"seen": 1}}, subresource="status")
            await world.rest(15)
            tally = world.told(Tally)[-1]
            assert tally.filtered == (("generation changed", 1),)
            [(resource, version)] = tally.versions
            assert (resource, version) == (TOYS, last["metadata"]["resourceVersion"])
        assert len(world.attempts) == 1

    run_virtual(main())


def test_one_seed_gives_one_run() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        await world.clock.sleep(ctx.random.random())
        if ctx.random.random() < 0.4:
            raise ValueError("bad luck")
        await settings_for(world, ctx, request)
        return None

    async def run(seed: int) -> list[tuple[object, ...]]:
        world = World(seed=seed)
        for number in range(10):
            world.server.create(toy(f"toy-{number}"))
        await world.run(spec_of(world, body), until_idle=True, timeout=300)
        return [told for value in world.observed if (told := _essence(value))]

    first, second, other = (run_virtual(run(seed)) for seed in (1, 1, 2))
    assert first == second
    assert first != other


def _essence(value: Observed) -> tuple[object, ...]:
    if isinstance(value, Started):
        return (value.id, value.request, value.started, tuple(cause.new_version for cause in value.causes))
    if isinstance(value, Attempt):
        return (value.id, value.verdict, value.took, tuple((call.id, call.verb, call.code) for call in value.calls))
    return ()
