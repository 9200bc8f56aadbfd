"""Other code for a controller that waits: for its lease, for a type that is missing, for its start or its end."""

from __future__ import annotations

import asyncio

import pytest

from kubectl_ctrl.model.attempt import ControllerState
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Reason
from tests.runtime.swaps import code, kinds, spec_of
from tests.runtime.thrones import Throne, on_throne
from tests.runtime.toy import BOXES, do_nothing
from tests.runtime.world import World, toy


@pytest.mark.parametrize("swaps", [0, 1, 2])
async def test_nobody_stands_for_election_with_code_that_waits_for_a_missing_type(swaps: int) -> None:
    world, throne = World(), Throne()
    throne.set(True)
    wrong = controller("toy", do_nothing).for_(BOXES)
    async with world.running(wrong, services=on_throne(throne)) as running:
        for _ in range(swaps):
            await world.rest(10)
            await running.manager.swap(wrong)
        await world.rest(30)
        assert "not installed" in world.told(ControllerState)[-1].message
    assert not throne.released, "it never stood"


async def test_code_that_waits_for_a_missing_type_gives_way_to_code_that_needs_another() -> None:
    world, said, throne = World(), list[str](), Throne()
    throne.set(True)
    world.server.create(toy("bear"))
    wrong = controller("toy", code(world, said, "old")).for_(BOXES)
    async with world.running(wrong, services=on_throne(throne)) as running:
        await world.rest(30)
        await running.manager.swap(spec_of(code(world, said, "new")))
        await world.rest(1)
        assert said == ["new+bear", "new-bear"]
        await running.manager.swap(wrong)
        await world.rest(1)
        await running.manager.swap(spec_of(code(world, said, "newer")))
        await world.rest(1)
        assert said[-1] == "newer-bear"


async def test_what_was_held_for_want_of_the_lease_keeps_its_causes() -> None:
    world, said, throne = World(), list[str](), Throne()
    world.server.create(toy("bear"))
    async with world.running(spec_of(code(world, said, "old")), services=on_throne(throne)) as running:
        await world.rest(5)
        await running.manager.swap(spec_of(code(world, said, "new")))
        throne.set(True)
        await world.rest(5)
    assert said == ["new+bear", "new-bear"]
    assert {CauseKind.INITIAL, CauseKind.RELOADED} <= set(kinds(world.attempts[0]))


async def test_the_lease_is_kept_and_a_lost_one_cuts_what_drains() -> None:
    world, said, throne = World(), list[str](), Throne()
    world.server.create(toy("bear"))
    spec = spec_of(code(world, said, "old", seconds=10))
    async with world.running(spec, services=on_throne(throne)) as running:
        throne.set(True)
        await world.rest(1)
        swapping = asyncio.create_task(running.manager.swap(spec_of(code(world, said, "new"))))
        await world.rest(1)
        assert not throne.released
        throne.set(False)
        await swapping
        await world.rest(60)
        assert said == ["old+bear", "old-bear"]
        assert world.attempts[0].verdict.message == "The attempt was cut: the lease was lost."
        throne.set(True)
        await world.rest()
        assert said[-1] == "new-bear"


async def test_a_run_that_is_over_takes_no_new_code() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    async with world.running(spec_of(code(world, said, "old", seconds=10))) as running:
        await world.rest(1)
        running.stop.request()
        await world.rest(1)
        await running.manager.swap(spec_of(code(world, said, "new")))
        summary = await running.stopped()
    assert (summary.reason, said) == (Reason.STOPPED, ["old+bear", "old-bear"])


@pytest.mark.parametrize(("stops", "reason", "took"), [(1, Reason.STOPPED, 10.0), (2, Reason.CUT, 2.0)])
async def test_a_stop_comes_before_a_swap_that_drains(stops: int, reason: Reason, took: float) -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    began = world.clock.elapsed()
    async with world.running(spec_of(code(world, said, "old", seconds=10))) as running:
        await world.rest(1)
        swapping = asyncio.create_task(running.manager.swap(spec_of(code(world, said, "new"))))
        await world.rest(1)
        for _ in range(stops):
            running.stop.request()
        summary = await running.stopped()
        await swapping
    assert summary.reason is reason
    assert world.clock.elapsed() - began == pytest.approx(took)
    assert said == ["old+bear", "old-bear"]
    assert [str(left.entry.request) for left in summary.left] == ["default/bear"]


async def test_a_swap_before_the_run_has_begun_counts_from_its_start() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    manager = world.manager(spec_of(code(world, said, "old")), until_idle=True)
    await manager.swap(spec_of(code(world, said, "new")))
    await manager.run(Stop())
    assert said == ["new+bear", "new-bear"]


async def test_a_run_until_idle_is_not_idle_in_the_middle_of_a_swap() -> None:
    world, said = World(), list[str]()
    world.server.create(toy("bear"))
    async with world.running(spec_of(code(world, said, "old", seconds=10)), until_idle=True) as running:
        await world.rest(1)
        swapping = asyncio.create_task(running.manager.swap(spec_of(code(world, said, "new", seconds=10))))
        await running.task
        await swapping
    assert said == ["old+bear", "old-bear", "new+bear", "new-bear"]
