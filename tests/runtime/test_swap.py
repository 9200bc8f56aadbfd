"""Other code for a controller that runs: what is under way ends, nothing is forgotten, caches and lease stay."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterable
from typing import Any

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.edition import Edition
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present
from tests.runtime.swaps import code, kinds, spec_of
from tests.runtime.toy import CONFIGMAPS, TOYS, do_nothing
from tests.runtime.world import World, crd, toy


def watches_asked(world: World) -> int:
    return sum(1 for one in world.server.requests if one.verb in ("watch", "list"))


async def test_every_object_is_looked_at_anew_on_the_caches_that_are_there() -> None:
    world, said = World(), list[str]()
    for name in ("bear", "robot"):
        world.server.create(toy(name))
    async with world.running(spec_of(code(world, said, "old"))) as running:
        await world.rest(5)
        before, asked = len(world.attempts), watches_asked(world)
        began = world.clock.elapsed()
        await running.manager.swap(spec_of(code(world, said, "new")))
        await world.rest()
        assert world.clock.elapsed() == began, "nothing was waited for"
        assert sorted(said[4:]) == ["new+bear", "new+robot", "new-bear", "new-robot"]
        assert [kinds(attempt) for attempt in world.attempts[before:]] == [[CauseKind.RELOADED]] * 2
        assert watches_asked(world) == asked
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest()
        assert said[-1] == "new-bear"
        assert kinds(world.attempts[-1]) == [CauseKind.MODIFIED]


async def test_what_runs_ends_before_new_code_begins_and_nobody_overlaps() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    async with world.running(spec_of(code(world, said, "old", seconds=10))) as running:
        await world.rest(1)
        swapping = asyncio.create_task(running.manager.swap(spec_of(code(world, said, "new"))))
        await world.rest(5)
        assert said == ["old+bear"]
        assert len(running.manager.members[0].under_way) == 1
        await swapping
        await world.rest()
        assert said == ["old+bear", "old-bear", "new+bear", "new-bear"]
        assert world.attempts[0].verdict.outcome is Outcome.DONE


async def test_what_does_not_end_within_the_drain_time_is_cut_and_told_why() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    async with world.running(spec_of(code(world, said, "old", seconds=50)), drain=20.0) as running:
        await world.rest(1)
        began = world.clock.elapsed()
        await running.manager.swap(spec_of(code(world, said, "new")))
        assert world.clock.elapsed() - began == pytest.approx(20)
        await world.rest()
        cut, fresh = world.attempts
        assert cut.verdict.message == "The attempt was cut: its code was replaced."
        assert CauseKind.RELOADED in kinds(fresh)


async def test_f54_code_that_ignores_being_cut_holds_the_new_code_up_for_its_grace_alone() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))

    async def stubborn(ctx: Context, request: Request) -> None:
        for _ in range(10):
            try:
                await world.clock.sleep(50)
            except asyncio.CancelledError:
                continue
            break
        await ctx.write.create({"metadata": {"name": "late"}}, resource=CONFIGMAPS)

    async with world.running(spec_of(stubborn), drain=20.0) as running:
        await world.rest(1)
        await running.manager.swap(spec_of(code(world, said, "new")))
        await world.rest()
        assert said == ["new+bear", "new-bear"]
        await world.rest(600)
        assert list(world.writes()) == [], "its doors were closed"


async def test_queued_work_goes_over_with_its_causes() -> None:
    world, said = World(), list[str]()
    for name in ("ant", "bear", "cat"):
        world.server.create(toy(name))
    async with world.running(spec_of(code(world, said, "old")), workers=1) as running:
        await world.rest(5)
        slow = spec_of(code(world, said, "slow", seconds=10))
        await running.manager.swap(slow)
        await world.rest(1)
        assert said[-1] == "slow+ant"
        world.server.change(TOYS, "cat", {"spec": {"size": 9}})
        await world.rest()
        await running.manager.swap(spec_of(code(world, said, "new")))
        await world.rest()
        assert [one for one in said if one.startswith("slow")] == ["slow+ant", "slow-ant"]
        causes = {attempt.start.request.name: kinds(attempt) for attempt in world.attempts[-3:]}
        assert sorted(causes) == ["ant", "bear", "cat"]
        assert CauseKind.MODIFIED in causes["cat"]
        assert all(CauseKind.RELOADED in kinds for kinds in causes.values())


@pytest.mark.parametrize("when", ["queued", "while it drains", "in backoff"])
async def test_the_end_of_an_object_reaches_the_new_code(when: str) -> None:
    """What is gone is in no cache any more, so nobody would look at it anew."""
    world, said = World(), list[str]()
    world.server.create(toy("ant"))

    async def failing(ctx: Context, request: Request) -> None:
        if await ctx.read.get(TOYS, request.name) is None:
            raise RuntimeError("It cannot be cleaned up.")

    old = failing if when == "in backoff" else code(world, said, "old", seconds=10)
    async with world.running(spec_of(old), workers=1) as running:
        await world.rest(15)
        world.server.change(TOYS, "ant", {"spec": {"size": 9}})
        await world.rest(1)
        if when != "while it drains":
            world.server.delete(TOYS, "ant")
            await world.rest(1)
        swapping = asyncio.create_task(running.manager.swap(spec_of(code(world, said, "new"))))
        await world.rest(1)
        if when == "while it drains":
            world.server.delete(TOYS, "ant")
        await swapping
        await world.rest()
        assert said[-2:] == ["new+ant", "new-ant"]


async def test_an_attempt_that_fails_while_it_drains_is_run_again_by_the_new_code() -> None:
    world, said = World(), list[str]()

    async def failing(ctx: Context, request: Request) -> None:
        await world.clock.sleep(5)
        raise RuntimeError("no")

    async with world.running(spec_of(failing)) as running:
        bear = world.server.create(toy("bear"))
        await world.rest(1)
        world.server.delete(TOYS, name_of(bear))
        await running.manager.swap(spec_of(code(world, said, "new")))
        await world.rest()
        assert said == ["new+bear", "new-bear"]


async def test_caches_are_started_for_what_is_new_and_stopped_for_what_nobody_uses() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    other = controller("other", do_nothing).for_(TOYS).reads(EVENTS)
    async with world.running(spec_of(code(world, said, "old")), other) as running:
        await world.rest(5)

        def watched() -> list[str]:
            return sorted(str(watch.ask.resource) for watch in world.server.watches)

        assert watched() == ["configmaps", "events", "toys.toys.example.com"]
        await running.manager.swap(controller("toy", code(world, said, "new")).for_(TOYS).owns(DEPLOYMENTS))
        await world.rest(1)
        assert watched() == ["deployments.apps", "events", "toys.toys.example.com"]
        assert len(running.manager.informers.all()) == 3
        assert said[-1] == "new-bear"
        await running.manager.swap(controller("other", do_nothing).for_(TOYS))
        await world.rest(1)
        assert watched() == ["deployments.apps", "toys.toys.example.com"]


async def test_a_cache_is_kept_while_old_code_of_another_controller_still_reads_it() -> None:
    world, found = World(), list[int]()
    world.server.create(toy("bear"))

    async def slow(ctx: Context, request: Request) -> None:
        await world.clock.sleep(10)
        found.append(len(await ctx.read.list(CONFIGMAPS)))

    two = controller("two", slow).for_(TOYS).reads(CONFIGMAPS)
    async with world.running(controller("one", do_nothing).for_(TOYS), two) as running:
        await world.rest(1)
        swaps = asyncio.gather(
            running.manager.swap(controller("two", do_nothing).for_(TOYS)),
            running.manager.swap(controller("one", do_nothing).for_(TOYS)),
        )
        await world.rest(1)
        world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}})
        await swaps
        assert found == [1]
        assert [str(watch.ask.resource) for watch in world.server.watches] == ["toys.toys.example.com"]


async def test_failing_new_code_is_retried_and_replaced_without_waiting_for_its_backoff() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))

    async def broken(ctx: Context, request: Request) -> None:
        raise RuntimeError("a typo")

    async with world.running(spec_of(code(world, said, "old"))) as running:
        await running.manager.swap(spec_of(broken))
        await world.rest(300)
        assert {attempt.verdict.outcome for attempt in world.attempts[1:]} == {Outcome.RETRY}
        began = world.clock.elapsed()
        await running.manager.swap(spec_of(code(world, said, "new")))
        await world.rest()
        assert (said[-1], world.clock.elapsed()) == ("new-bear", began)
        assert world.attempts[-1].start.try_no == 1
        await world.rest(3600)
        assert said.count("new+bear") == 1


async def test_events_of_the_old_code_are_still_sent() -> None:
    stage = Stage()
    stage.install(crd())
    stage.server.create(toy("bear"))

    async def tells(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        ctx.write.event(bear, reason="Hello", message="I am old")

    async with stage.running(spec_of(tells)) as running:
        await running.manager.swap(spec_of(do_nothing))
        await stage.rest(10)
    assert stage.events() == [("Normal", "Hello", "I am old")]


async def test_old_code_keeps_its_indexes_while_it_drains() -> None:
    world, found = World(), list[list[str]]()
    world.server.create(toy("bear", colour="brown", size="big"))

    def spec(part: str, value: str) -> ControllerSpec:
        def values(obj: Obj) -> Iterable[str]:
            return (obj["spec"][part],)

        async def reconcile(ctx: Context, request: Request) -> None:
            await world.clock.sleep(5)
            found.append([name_of(one) for one in await ctx.read.indexed(TOYS, "look", value)])

        return controller("toy", reconcile).for_(TOYS).index(TOYS, "look", values)

    async with world.running(spec("colour", "brown")) as running:
        await running.manager.swap(spec("size", "big"))
        await world.rest(10)
    assert found == [["bear"], ["bear"]]


async def test_code_of_somebody_else_and_code_without_an_end_are_refused() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    async with world.running(spec_of(code(world, said, "old"))) as running:
        with pytest.raises(ControllerError, match=r"No controller 'other' is part of this run\."):
            await running.manager.swap(controller("other", do_nothing).for_(TOYS))
        with pytest.raises(ControllerError, match="has no primary resource"):
            await running.manager.swap(controller("toy", do_nothing))
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest()
        assert said == ["old+bear", "old-bear"] * 2


async def test_a_hundred_swaps_leave_nothing_behind() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    editions: list[weakref.ref[Edition]] = []
    async with world.running(spec_of(code(world, said, "0"))) as running:
        [member] = running.manager.members
        await world.rest(5)

        def held() -> dict[str, Any]:
            informers = running.manager.informers.all()
            return {
                "tasks": sorted(task.get_name().partition("-")[0] for task in asyncio.all_tasks()),
                "subscriptions": [len(informer.subscriptions) for informer in informers],
                "indexes": [len(informer.indexes) for informer in informers],
                "listeners": [len(informer._listeners) for informer in informers],
            }

        before = held()
        for number in range(1, 101):
            editions.append(weakref.ref(member._edition))
            await running.manager.swap(spec_of(code(world, said, str(number), result=Result(after=60))))
            await world.rest(0.1)
        assert held() == before
        world.observed.clear()
        gc.collect()
        assert [edition() for edition in editions if edition() is not None] == []
        assert said == [f"{number}{sign}bear" for number in range(101) for sign in "+-"]


def test_the_cause_is_told() -> None:
    from kubectl_ctrl.model.record import to_why
    from kubectl_ctrl.render.attempts import cause_text
    from kubectl_ctrl.render.style import Style

    assert cause_text(to_why(Cause(kind=CauseKind.RELOADED, at=0.0)), Style(), None) == "code reloaded"
