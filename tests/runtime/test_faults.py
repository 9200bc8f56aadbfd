"""What the loop holds whatever a controller does under it; the names are the rows of docs/faults.md."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Obj, is_deleting
from kubectl_ctrl.model.resources import EVENTS
from kubectl_ctrl.runtime.contract import Context
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present
from tests.runtime.loops import causes, outcomes, spec_of
from tests.runtime.managers import names
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import Running, World, toy

HOLD = "toys.example.com/hold"


async def copied(ctx: Context, request: Request) -> None:
    """One ConfigMap for each Toy, a status, and an event when the status says something new."""
    own = await ctx.read.get(TOYS, request.name)
    if own is None:
        return
    child = {"metadata": {"name": request.name}, "data": {"size": str(own["spec"].get("size", 1))}}
    await ctx.write.ensure(child, owner=own, resource=CONFIGMAPS)
    after = await ctx.write.status(own, {"seen": own["spec"].get("size", 1)})
    if after["metadata"]["resourceVersion"] != own["metadata"]["resourceVersion"]:
        ctx.write.event(own, reason="Copied", message="The Toy was copied")


def child(world: World, name: str = "bear") -> Obj | None:
    found = world.server.get(CONFIGMAPS, name)
    return None if found is None else found["data"]


async def test_f03_dead_between_the_status_and_the_event() -> None:
    world = World(toy("bear"))
    sent = world.server.faults.hang(Match(verb="create", plural="events"), after_commit=True)
    running = Running(world.manager(spec_of(copied), services=Stage.services(world)))
    await world.rest(5)
    assert sent.hits == 1
    running.task.cancel()
    await asyncio.wait([running.task])
    world.server.change(TOYS, "bear", {"spec": {"size": 2}})
    async with world.running(spec_of(copied), services=Stage.services(world)):
        await world.rest(60)
        assert child(world) == {"size": "2"}
    assert present(world.server.get(TOYS, "bear"))["status"] == {"seen": 2}
    assert sum(event["count"] for event in world.server.objects(EVENTS)) == 2, "one of each run, none three times"


async def test_f07_conflicts_for_ever_back_off_and_others_go_on(world: World) -> None:
    for name in ("bear", "robot"):
        world.server.create(toy(name))
    bears = Match(plural="configmaps", verb="create", when=lambda request: b'"bear"' in (request.body or b""))
    refused = world.server.faults.fail(bears, 409, reason="Conflict", times=None)
    async with world.running(spec_of(copied)):
        await world.rest(3600)
        assert child(world, "robot") == {"size": "1"}
        world.server.change(TOYS, "robot", {"spec": {"size": 3}})
        await world.rest(1)
        assert child(world, "robot") == {"size": "3"}, "others do not wait"
        tries = [attempt.start.started for attempt in world.attempts if attempt.start.request.name == "bear"]
        pauses = [later - earlier for earlier, later in pairwise(tries)]
        assert max(pauses) <= 1100, "a cap"
        assert 10 <= len(tries) <= 40, "no storm"
        assert sum(pauses[-4:]) > 10 * sum(pauses[:4])
        assert not any(attempt.traceback for attempt in world.attempts)
        refused.stop()
        await world.rest(1100)
        assert child(world) == {"size": "1"}


@pytest.mark.parametrize("how", ["gone", "made again", "ending", "nobody may ask"])
async def test_f14_no_child_comes_back_for_an_owner_whose_end_was_not_seen(how: str) -> None:
    """The watch of the owners is away, that of the children tells at once what the garbage collector took."""
    world = World(toy("bear"))
    async with world.running(spec_of(copied)):
        away = world.server.faults.fail(Match(verb="watch list", plural="toys"), 503, times=None)
        world.server.drop_watches(TOYS, cleanly=False)
        world.server.writes.clear()
        if how == "nobody may ask":
            world.server.faults.fail(Match(verb="get", plural="toys"), 403, times=None)
        if how == "ending":
            world.server.change(TOYS, "bear", {"metadata": {"finalizers": [HOLD]}})
        world.server.collecting = how != "nobody may ask"
        world.server.delete(TOYS, "bear")
        if how == "made again":
            world.server.create(toy("bear", size=9))
        if child(world) is not None:
            world.server.delete(CONFIGMAPS, "bear")
        await world.rest(20)
        created = [write for write in world.writes() if write.verb == "create"]
        assert len(created) == (how == "nobody may ask"), "then it is left to the garbage collector"
        assert not any(attempt.traceback for attempt in world.attempts)
        away.stop()
        await world.rest(60)
        world.server.collecting = True
        world.server.settle()
        await world.rest(60)
        assert child(world) == ({"size": "9"} if how == "made again" else None)


async def test_f14_one_that_somebody_deleted_is_made_again() -> None:
    world = World(toy("bear"))
    async with world.running(spec_of(copied)):
        for _ in range(3):
            world.server.delete(CONFIGMAPS, "bear")
            await world.rest(1)
            assert child(world) == {"size": "1"}


async def test_f15_a_change_while_a_watch_is_away_is_told() -> None:
    world = World(toy("bear"))
    async with world.running(spec_of(copied)):
        for size in range(2, 12):
            world.server.drop_watches(cleanly=bool(size % 2))
            world.server.change(TOYS, "bear", {"spec": {"size": size}})
            await world.rest(30)
            assert child(world) == {"size": str(size)}
    lists = [one for one in world.server.requests if one.verb == "list" or dict(one.query).get("sendInitialEvents")]
    assert len(lists) == 2, "one for each resource, at the start"


async def test_f16_a_watch_that_is_too_old_to_go_on(world: World) -> None:
    seen: list[tuple[str, object]] = []

    async def look(ctx: Context, request: Request) -> None:
        own = await ctx.read.get(TOYS, request.name)
        seen.append((request.name, own and own["spec"].get("size")))

    for name in ("bear", "robot"):
        world.server.create(toy(name, size=1))
    async with world.running(spec_of(look)):
        away = world.server.faults.fail(Match(verb="watch list"), 503, times=None)
        world.server.drop_watches(cleanly=False)
        world.server.delete(TOYS, "robot")
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(20)
        world.server.compact()
        away.stop()
        await world.rest(60)
        assert sorted(seen[2:], key=str) == [("bear", 2), ("robot", None)]
        gone = [attempt for attempt in world.attempts if attempt.start.request.name == "robot"][-1]
        assert causes(gone) == [CauseKind.DELETED]


async def test_f17_events_that_come_again_write_nothing() -> None:
    world = World(toy("bear"))
    async with world.running(spec_of(copied)):
        world.server.writes.clear()
        for again in range(5):
            world.server.drop_watches(cleanly=False)
            world.server.compact()
            await world.rest(60)
            world.server.garble(TOYS, lambda line: line.replace(b'"type":"MODIFIED"', b'"type":"ADDED"'))
            world.server.change(TOYS, "bear", {"metadata": {"labels": {"again": str(again)}}})
            await world.rest(60)
        assert list(world.writes()) == []
        assert set(outcomes(world)) == {Outcome.DONE}


async def test_f18_what_came_and_went_unseen_leaves_nothing_to_do(world: World) -> None:
    async with world.running(spec_of(copied)):
        away = world.server.faults.fail(Match(verb="watch list"), 503, times=None)
        world.server.drop_watches(cleanly=False)
        for size in (1, 2):
            world.server.create(toy("bear", size=size))
            world.server.delete(TOYS, "bear")
        world.server.create(toy("robot", size=1))
        world.server.change(TOYS, "robot", {"spec": {"size": 7}})
        world.server.change(TOYS, "robot", {"spec": {"size": 1}})
        away.stop()
        await world.rest(60)
        assert child(world, "robot") == {"size": "1"}
        assert set(names(world.attempts)) <= {"bear", "robot"}
        assert [write.verb for write in world.writes() if write.resource == CONFIGMAPS] == ["create"]


async def test_f19_a_deletion_that_was_missed_is_told_by_the_next_list() -> None:
    seen: list[bool] = []

    async def look(ctx: Context, request: Request) -> None:
        seen.append(await ctx.read.get(TOYS, request.name) is not None)

    world = World(toy("bear"))
    async with world.running(spec_of(look)):
        away = world.server.faults.fail(Match(verb="watch list"), 503, times=None)
        world.server.drop_watches(cleanly=False)
        world.server.delete(TOYS, "bear")
        world.server.compact()
        await world.rest(5)
        assert seen == [True]
        away.stop()
        await world.rest(60)
        assert seen == [True, False]
        assert world.attempts[-1].start.causes[0].relisted


async def test_f56_a_cleanup_that_fails_for_ever_holds_its_object_alone(world: World) -> None:
    mended: list[bool] = []

    async def clean(ctx: Context, request: Request) -> None:
        own = await ctx.read.get(TOYS, request.name)
        if own is None:
            return
        if not is_deleting(own):
            await ctx.write.add_finalizer(own, HOLD)
            return
        if request.name == "bear" and not mended:
            refused = {"type": "CleanedUp", "status": "False"}
            await ctx.write.status(own, {"conditions": [refused]})
            raise RuntimeError("the shelf does not let go")
        await ctx.write.remove_finalizer(own, HOLD)

    for name in ("bear", "robot"):
        world.server.create(toy(name))
    async with world.running(spec_of(clean)) as running:
        await world.rest(1)
        for name in ("bear", "robot"):
            world.server.delete(TOYS, name)
        await world.rest(3600)
        assert world.server.get(TOYS, "robot") is None
        held = present(world.server.get(TOYS, "bear"))
        assert held["metadata"]["finalizers"] == [HOLD]
        assert (find(held, "CleanedUp") or {})["status"] == "False"
        (member,) = running.manager.members
        standing = member.controller.standings[Request("default", "bear")]
        assert standing.verdict.message == "RuntimeError: the shelf does not let go"
        assert len(outcomes(world)) <= 40, "slower and slower"
        mended.append(True)
        await world.rest(1100)
        assert world.server.get(TOYS, "bear") is None
