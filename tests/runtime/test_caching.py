"""Controllers that keep less than everything: objects that leave the selection, and writes on metadata alone."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind, Request
from kubectl_ctrl.model.objects import Obj, labels_of
from kubectl_ctrl.model.record import to_recorded
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.testing.faults import Match
from tests.objects import present
from tests.runtime.loops import outcomes, spec_of
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, toy


def pod(name: str, phase: str = "Running") -> Obj:
    spec = {"containers": [{"name": "c", "image": "busybox:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


def to_bear(obj: Obj, cached: object) -> tuple[Request, ...]:
    return (Request("default", "bear"),)


async def test_an_object_that_leaves_the_selection_is_told_as_deleted_and_one_that_enters_as_added() -> None:
    seen: list[tuple[list[str], list[CauseKind]]] = []
    world = World()

    async def look(ctx: Context, request: Request) -> None:
        seen.append(([obj["metadata"]["name"] for obj in await ctx.read.list(PODS)], []))

    spec = spec_of(look).watches(PODS, to=to_bear).caching(PODS, fields="status.phase!=Succeeded", labels="app!=no")
    world.server.create(toy("bear"))
    world.server.create(pod("a"))
    async with world.running(spec):
        world.server.change(PODS, "a", {"status": {"phase": "Succeeded"}}, subresource="status")
        await world.rest(1)
        world.server.change(PODS, "a", {"status": {"phase": "Running"}}, subresource="status")
        await world.rest(1)
        world.server.change(PODS, "a", {"metadata": {"labels": {"app": "no"}}})
        await world.rest(1)
    causes = [cause.kind for attempt in world.attempts for cause in attempt.start.causes]
    assert [names for names, _ in seen] == [["a"], [], ["a"], []]
    assert causes[-3:] == [CauseKind.DELETED, CauseKind.ADDED, CauseKind.DELETED]


async def test_of_metadata_alone_nothing_else_is_fetched_or_kept(world: World) -> None:
    kept: list[Obj] = []

    async def look(ctx: Context, request: Request) -> None:
        kept.extend(await ctx.read.list(PODS))

    world.server.create(pod("a"))
    world.server.create(toy("bear"))
    await world.run(spec_of(look).reads(PODS).caching(PODS, metadata_only=True), once=True)
    assert [set(obj) for obj in kept] == [{"apiVersion", "kind", "metadata"}]
    assert all("fieldsV1" not in entry for entry in kept[0]["metadata"].get("managedFields", []))


async def test_a_patch_of_metadata_alone_is_read_at_once_and_its_echo_wakes_nobody(world: World) -> None:
    read: list[dict[str, str]] = []
    world.server.watch_delay = 5.0

    async def label(ctx: Context, request: Request) -> None:
        own = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.patch(own, {"metadata": {"labels": {"seen": "yes"}}}, resource=TOYS)
        again = present(await ctx.read.get(TOYS, request.name))
        assert set(again) == {"apiVersion", "kind", "metadata"}
        read.append(labels_of(again))
        await ctx.write.patch(again, {"metadata": {"labels": {"seen": "yes"}}}, resource=TOYS)

    world.server.create(toy("bear", size=3))
    async with world.running(spec_of(label).caching(TOYS, metadata_only=True)):
        await world.rest(60)
    found = present(world.server.get(TOYS, "bear"))
    assert (found["spec"], labels_of(found)) == ({"size": 3}, {"seen": "yes"})
    assert read == [{"seen": "yes"}]
    assert len(list(world.writes())) == 1
    assert outcomes(world) == [Outcome.DONE]
    (made,) = to_recorded(world.attempts[0]).calls
    assert [one.path for one in made.changes.shown] == ["metadata.labels"], "the rest was not known, and did not change"


async def test_an_object_that_is_written_out_of_the_selection_is_gone_at_once(world: World) -> None:
    read: list[Obj | None] = []
    world.server.watch_delay = 5.0

    async def label(ctx: Context, request: Request) -> None:
        own = await ctx.read.get(TOYS, request.name)
        if own is not None:
            await ctx.write.patch(own, {"metadata": {"labels": {"done": "yes"}}}, resource=TOYS)
            read.append(await ctx.read.get(TOYS, request.name))

    world.server.create(toy("bear"))
    async with world.running(spec_of(label).caching(TOYS, labels="!done", metadata_only=True)):
        await world.rest(60)
    assert read == [None]
    assert len(list(world.writes())) == 1


async def test_finalizers_and_deletions_work_on_metadata_alone(world: World) -> None:

    async def go(ctx: Context, request: Request) -> Result | None:
        own = await ctx.read.get(TOYS, request.name)
        if own is None:
            return None
        if own["metadata"].get("deletionTimestamp"):
            await ctx.write.remove_finalizer(own, "example.com/hold", resource=TOYS)
            return None
        held = await ctx.write.add_finalizer(own, "example.com/hold", resource=TOYS)
        await ctx.write.delete(held, resource=TOYS)
        return Result(again=True)

    world.server.create(toy("bear"))
    async with world.running(spec_of(go).caching(TOYS, metadata_only=True)):
        await world.rest(5)
    assert world.server.objects(TOYS) == []
    assert set(outcomes(world)) <= {Outcome.DONE, Outcome.AGAIN}


@pytest.mark.parametrize("verb", ["ensure", "status"])
async def test_what_compares_whole_objects_is_refused_where_only_metadata_is_kept(verb: str, world: World) -> None:

    async def write(ctx: Context, request: Request) -> None:
        own: Any = await ctx.read.live(TOYS, request.name)
        if verb == "status":
            await ctx.write.status(own, {"ready": True})
        else:
            await ctx.write.ensure({"metadata": {"name": "child"}}, owner=own, resource=CONFIGMAPS)

    world.server.create(toy("bear"))
    spec = spec_of(write).caching(TOYS, metadata_only=True).caching(CONFIGMAPS, metadata_only=True)
    await world.run(spec, once=True)
    (attempt,) = world.attempts
    resource = TOYS if verb == "status" else CONFIGMAPS
    assert attempt.verdict.outcome is Outcome.TERMINAL
    assert attempt.verdict.message.startswith(
        f"Controller 'toy' caches only the metadata of {resource}, so {verb}() cannot know what would change."
    )
    assert list(world.writes()) == []


async def test_a_lost_answer_of_a_patch_on_metadata_alone_is_looked_up(world: World) -> None:

    async def label(ctx: Context, request: Request) -> None:
        own = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.patch(own, {"metadata": {"labels": {"seen": "yes"}}}, resource=TOYS)

    world.server.create(toy("bear"))
    world.server.faults.lose(Match(verb="patch"))
    async with world.running(spec_of(label).caching(TOYS, metadata_only=True)):
        await world.rest(60)
    assert len(list(world.writes())) == 1
    assert outcomes(world) == [Outcome.DONE]
