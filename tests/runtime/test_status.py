from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest

from kubectl_ctrl.errors import NotFound, NotInstalled
from kubectl_ctrl.model.objects import Obj, generation_of, version_of
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.testing.faults import Match
from tests.objects import present
from tests.runtime.doors import Doors, doors
from tests.runtime.toy import TOYS, do_nothing
from tests.runtime.world import World, crd, toy

SPEC = controller("toy", do_nothing).for_(TOYS)
READY = {"ready": True, "seen": 1, "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture
async def world() -> World:
    return World()


@pytest.fixture
async def bear(world: World) -> Obj:
    return world.server.create(toy("bear"))


@pytest.fixture
async def its(world: World, bear: Obj) -> AsyncIterator[Doors]:
    async with doors(world, SPEC) as its:
        yield its


def status_of(world: World) -> Obj:
    found = present(world.server.get(TOYS, "bear"))
    return found.get("status") or {}


async def test_a_status_is_applied_on_its_subresource_and_read_at_once(world: World, its: Doors, bear: Obj) -> None:
    world.server.hang_watches()
    attempt = its.next()
    after = await attempt.write.status(bear, READY)
    assert attempt.calls == ["apply toys/bear/status 200"]
    assert status_of(world) == after["status"] == READY
    assert version_of(present(await attempt.read.get(TOYS, "bear"))) == version_of(after)
    assert generation_of(after) == generation_of(bear)


async def test_a_status_that_says_nothing_new_is_not_sent(world: World, its: Doors, bear: Obj) -> None:
    after = await its.next().write.status(bear, READY)
    for _ in range(2):
        its.forget()  # also by a process that knows nothing yet
        attempt = its.next()
        assert version_of(await attempt.write.status(bear, READY)) == version_of(after)
        assert attempt.calls == []
        assert attempt.attempt.skipped == ("apply toys.toys.example.com default/bear/status: nothing would change",)


async def test_a_field_that_is_not_said_any_more_goes_away_and_those_of_others_stay(
    world: World, its: Doors, bear: Obj
) -> None:
    await its.next().write.status(bear, READY)
    theirs = {"status": {"seen": 7}}
    world.server.change(TOYS, "bear", theirs, subresource="status", manager="somebody")
    await its.next().write.status(bear, {"ready": False})
    assert status_of(world) == {"ready": False, "seen": 7}


async def test_drift_of_a_status_is_repaired(world: World, its: Doors, bear: Obj) -> None:
    await its.next().write.status(bear, READY)
    world.server.change(TOYS, "bear", {"status": {"ready": False}}, subresource="status", manager="somebody")
    await world.rest()
    await its.next().write.status(bear, READY)
    assert status_of(world) == READY


async def test_fields_that_the_crd_lacks_are_left_out_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture, world: World, its: Doors, bear: Obj
) -> None:
    with caplog.at_level(logging.WARNING):
        for seen in (1, 2):
            await its.next().write.status(bear, {"seen": seen, "mood": "fine", "conditions": [{"type": "A", "age": 3}]})
    assert status_of(world) == {"seen": 2, "conditions": [{"type": "A"}]}
    told = [record for record in caplog.records if record.name == "kubectl_ctrl.runtime.status"]
    assert [record.__dict__["fields"] for record in told] == ["status.mood, status.conditions[].age"]


async def test_at_rest_an_old_crd_makes_no_writes(world: World, its: Doors, bear: Obj) -> None:
    await its.next().write.status(bear, {"seen": 1, "mood": "fine"})
    attempt = its.next()
    await attempt.write.status(bear, {"seen": 1, "mood": "fine"})
    assert attempt.calls == []
    assert attempt.attempt.skipped[0].endswith("nothing would change that the CRD has fields for")


async def test_without_a_status_subresource_it_says_so_and_notices_when_that_changes() -> None:
    world = World(crd(status=False), installed=False)
    bear = world.server.create(toy("bear"))
    async with doors(world, SPEC) as its:
        attempt = its.next()
        with pytest.raises(NotInstalled, match="without a status subresource") as caught:
            await attempt.write.status(bear, READY)
        assert caught.value.next_step == "kubectl ctrl install toy"
        assert attempt.calls == []
        fixed = crd()
        world.server.change(CRDS, str(fixed["metadata"]["name"]), {"spec": {"versions": fixed["spec"]["versions"]}})
        await world.rest(10)
        await its.next().write.status(bear, READY)
        assert status_of(world) == READY


async def test_the_status_of_a_successor_is_never_written(world: World, its: Doors, bear: Obj) -> None:
    world.server.hang_watches()
    world.server.delete(TOYS, "bear")
    world.server.create(toy("bear"))
    with pytest.raises(NotFound):
        await its.next().write.status(bear, READY)
    assert status_of(world) == {}


async def test_the_schema_is_asked_for_once_a_minute_at_most(world: World, its: Doors, bear: Obj) -> None:
    def asked() -> int:
        return sum(request.path.startswith("/openapi") for request in world.server.requests)

    for seen in (1, 2, 3):
        await its.next().write.status(bear, {"seen": seen})
    assert asked() == 2  # the index and the document
    await world.rest(61)
    await its.next().write.status(bear, {"seen": 4})
    assert asked() == 3


async def test_a_server_that_publishes_no_schema_is_taken_to_know_every_field(
    world: World, its: Doors, bear: Obj
) -> None:
    world.server.faults.fail(Match(path="/openapi/*"), 403, times=None)
    await its.next().write.status(bear, READY)
    assert status_of(world) == READY
