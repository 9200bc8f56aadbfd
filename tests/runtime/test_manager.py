from __future__ import annotations

import asyncio
from random import Random

import pytest

from kubectl_ctrl.errors import ControllerError, Refused
from kubectl_ctrl.model.attempt import Attempt, AttemptStarted, ControllerState, Observed, Tally
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.predicates import generation_changed
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Reason
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.version import VERSION
from tests.objects import present
from tests.runtime.managers import names, nothing, settings_for, spec_of
from tests.runtime.toy import CONFIGMAPS, TOYS, do_nothing
from tests.runtime.world import World, crd, toy

# --- start ---


async def test_nothing_runs_before_every_cache_is_complete_and_told() -> None:
    seen: list[int] = []

    async def body(world: World, ctx: Context, request: Request) -> None:
        seen.append(len(await ctx.read.list(CONFIGMAPS)))

    world = World(toy("bear"))
    for number in range(5):
        world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c-{number}"}})
    world.server.faults.delay(Match(plural="configmaps"), before=20)
    async with world.running(spec_of(world, body)):
        await world.rest(19)
        assert seen == []
        [state] = world.told(ControllerState)[-1:]
        assert (state.synced, state.message) == (False, "the cache of configmaps is starting")
        await world.rest(10)
    assert seen == [5]


def test_controllers_share_caches_and_differ_in_manager_and_user_agent() -> None:
    async def write(world: World, ctx: Context, request: Request) -> None:
        await ctx.write.create({"metadata": {"generateName": "one-"}}, resource=CONFIGMAPS)

    async def main() -> None:
        world = World(toy("bear"))
        async with world.running(spec_of(world, write), spec_of(world, write, "other")):
            assert len(world.server.watches) == 2
        sent = sorted((write.manager, write.user_agent) for write in world.writes())
        assert sent == [
            ("kubectl-ctrl-other", f"kubectl-ctrl/{VERSION} (other)"),
            ("kubectl-ctrl-toy", f"kubectl-ctrl/{VERSION} (toy)"),
        ]

    run_virtual(main())


async def test_two_controllers_of_one_name_cannot_run_together(world: World) -> None:
    with pytest.raises(ControllerError, match="Two controllers are named 'toy'"):
        world.manager(spec_of(world, nothing), spec_of(world, nothing))


async def test_a_run_is_of_its_namespace_and_labels() -> None:
    world = World({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "attic"}})
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


# --- resource types that come and go ---


async def test_f27_a_missing_crd_is_waited_for_and_the_controller_starts_by_itself() -> None:
    world = World(installed=False)
    async with world.running(spec_of(world, nothing)):
        await world.rest(600)
        assert world.told(ControllerState)[-1].message == "toys.toys.example.com is not installed"
        assert len(world.server.requests) < 400
        world.server.create(crd())
        world.server.create(toy("bear"))
        await world.rest(10)
        assert names(world.attempts) == ["bear"]
        assert world.told(ControllerState)[-1].message == ""


async def test_f27_a_crd_that_is_deleted_while_running_stops_the_work_until_it_is_back() -> None:
    async def body(world: World, ctx: Context, request: Request) -> Result | None:
        return Result(1)

    world = World(toy("bear"))
    async with world.running(spec_of(world, body)):
        await world.rest(3)
        world.server.delete(CRDS, "toys.toys.example.com")
        await world.rest(120)
        assert world.told(ControllerState)[-1].message == "toys.toys.example.com is not installed"
        before, asked = len(world.attempts), len(world.server.requests)
        await world.rest(600)
        assert len(world.attempts) == before
        assert len(world.server.requests) - asked < 400
        world.server.create(crd())
        world.server.create(toy("robot"))
        await world.rest(40)
        assert "robot" in names(world.attempts)


# --- what goes wrong outside ---


async def test_f24_an_api_server_that_is_away_for_minutes_costs_no_restart() -> None:
    world = World(toy("bear"))
    async with world.running(spec_of(world, settings_for)):
        await world.rest(5)
        world.server.down()
        await world.rest(300)
        assert "retrying" in world.told(ControllerState)[-1].message
        world.server.up()
        world.server.change(TOYS, "bear", {"spec": {"size": 7}})
        await world.rest(60)
        assert present(world.server.get(CONFIGMAPS, "bear"))["data"] == {"size": "7"}
        assert world.told(ControllerState)[-1].message == ""


@pytest.mark.parametrize("grouped", [False, True])
async def test_an_attempt_that_finds_another_cluster_ends_the_run(grouped: bool) -> None:
    async def body(world: World, ctx: Context, request: Request) -> None:
        error = Refused("The credentials lead to another cluster now.")
        raise ExceptionGroup("unhandled errors in a TaskGroup", [error]) if grouped else error

    world = World(toy("bear"))
    summary = await world.run(spec_of(world, body), timeout=60)
    assert summary.reason is Reason.FATAL
    problem = summary.problem()
    assert isinstance(problem, Refused)
    assert problem.exit_code == 6


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


async def test_a_watch_that_finds_another_cluster_ends_the_run(world: World) -> None:
    from kubectl_ctrl.client.client import Client

    transport = Switching(world)
    client = Client(transport, clock=world.clock, rng=world.rng, user_agent="test-run")
    manager = Manager([spec_of(world, nothing)], client=client, clock=world.clock, rng=Random(1), options=RunOptions())
    task = asyncio.create_task(manager.run(Stop()))
    await world.rest(1)
    transport.switched = True
    world.server.drop_watches()
    summary = await task
    assert (summary.reason, isinstance(summary.problem(), Refused)) == (Reason.FATAL, True)


# --- what can be seen ---


async def test_held_back_changes_and_store_versions_are_tallied() -> None:
    world = World(toy("bear"))

    async def reconcile(ctx: Context, request: Request) -> None:
        pass

    spec = controller("toy", reconcile).for_(TOYS, when=generation_changed)
    async with world.running(spec):
        last = world.server.change(TOYS, "bear", {"status": {"seen": 1}}, subresource="status")
        await world.rest(15)
        tally = world.told(Tally)[-1]
        assert tally.filtered == (("generation changed", 1),)
        [(resource, version)] = tally.versions
        assert (resource, version) == (TOYS, last["metadata"]["resourceVersion"])
        [held] = tally.held
        assert (held.key.name, held.version, held.by) == ("bear", version, ("generation changed",))
        assert held.changed == ("status.seen",)
    assert len(world.attempts) == 1


def test_what_was_held_back_is_tallied_soon() -> None:
    async def main() -> None:
        world = World(toy("bear"))
        async with world.running(controller("toy", do_nothing).for_(TOYS, when=generation_changed)):
            world.server.change(TOYS, "bear", {"status": {"seen": 1}}, subresource="status")
            await world.rest(2.5)
            assert [held.changed for held in world.told(Tally)[-1].held] == [("status.seen",)]

    run_virtual(main())

    run_virtual(main())


def test_one_seed_gives_one_run() -> None:
    async def body(world: World, ctx: Context, request: Request) -> None:
        await world.clock.sleep(ctx.random.random())
        if ctx.random.random() < 0.4:
            raise ValueError("bad luck")
        await settings_for(world, ctx, request)

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
    if isinstance(value, AttemptStarted):
        return (value.id, value.request, value.started, tuple(cause.new_version for cause in value.causes))
    if isinstance(value, Attempt):
        return (value.id, value.verdict, value.took, tuple((call.id, call.verb, call.code) for call in value.calls))
    return ()
