from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

from kubectl_ctrl.model.attempt import Attempt, DroppedEcho
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.change import Change
from kubectl_ctrl.model.objects import Key, Obj, key_of
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Cached, Context, Result
from kubectl_ctrl.runtime.echoes import AwaitedEcho, Echoes
from kubectl_ctrl.runtime.triggers import cause_of
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.value import replace
from tests.objects import present
from tests.runtime.toy import CONFIGMAPS, TOYS, added, at, deleted, made, modified
from tests.runtime.world import World, toy

US, THEM = "kubectl-ctrl-toy", "kubectl-edit"
BEAR, ROBOT = Key("default", "bear"), Key("default", "robot")
BEFORE = made(TOYS, "bear")


def by(manager: str, obj: Obj, version: str, time: str = "2026-01-01T00:00:00Z") -> Obj:
    """The object after a write of that manager."""
    entry = {"manager": manager, "operation": "Apply", "time": time, "fieldsV1": {}}
    others = [other for other in obj["metadata"].get("managedFields", ()) if other["manager"] != manager]
    return at(obj, version, metadata={"managedFields": [*others, entry]})


def written(version: str, *, request: Key = BEAR, at: float = 0.0, certain: bool = False) -> AwaitedEcho:
    return AwaitedEcho(
        request=request, attempt="r7f3-1", resource=TOYS, uid="uid-bear", version=version, at=at, certain=certain
    )


def why(change: Change) -> Cause:
    return cause_of(change, 5.0)


OURS = why(modified(TOYS, BEFORE, by(US, BEFORE, "2")))
THEIRS = why(modified(TOYS, BEFORE, by(THEM, BEFORE, "2")))


def echoes(*writes: AwaitedEcho) -> Echoes:
    found = Echoes(US)
    for write in writes:
        found.wrote(write)
    return found


def test_the_event_of_an_own_write_is_an_echo_once() -> None:
    book = echoes(written("2"))
    assert book.match(BEAR, OURS) == written("2")
    assert book.match(BEAR, OURS) is None


def test_it_is_an_echo_only_for_the_request_that_made_the_write() -> None:
    assert echoes(written("2")).match(ROBOT, OURS) is None


def test_another_version_or_another_object_is_news() -> None:
    assert echoes(written("3"), replace(written("2"), uid="of the one before")).match(BEAR, OURS) is None


def test_a_write_that_changed_nothing_answers_a_foreign_version_which_stays_news() -> None:
    assert echoes(written("2")).match(BEAR, THEIRS) is None


def test_an_answer_that_proves_itself_needs_no_managed_fields() -> None:
    plain = why(added(TOYS, BEFORE))
    assert echoes(written("1")).match(BEAR, plain) is None
    assert echoes(written("1", certain=True)).match(BEAR, plain) is not None


def test_the_proof_of_a_write_is_not_weakened_by_a_later_one_that_changed_nothing() -> None:
    assert echoes(written("2", certain=True), written("2")).match(BEAR, THEIRS) is not None


def test_what_a_later_list_found_is_never_an_echo() -> None:
    relisted = why(modified(TOYS, BEFORE, by(US, BEFORE, "2"), relisted=True))
    assert echoes(written("2", certain=True)).match(BEAR, relisted) is None


def test_a_deletion_an_initial_object_and_a_cause_without_object_are_news() -> None:
    book = echoes(written("1", certain=True), written("9", certain=True))
    assert book.match(BEAR, why(deleted(TOYS, BEFORE))) is None
    assert book.match(BEAR, why(added(TOYS, BEFORE, initial=True))) is None
    assert book.match(BEAR, replace(OURS, new_version="", uid="")) is None


def test_a_new_epoch_forgets_the_writes_of_that_resource() -> None:
    book = echoes(written("2"), replace(written("7"), resource=CONFIGMAPS))
    book.new_epoch(TOYS)
    assert book.match(BEAR, OURS) is None
    assert repr(book) == "Echoes(kubectl-ctrl-toy, awaited=1)"


def test_writes_whose_events_never_come_are_forgotten() -> None:
    book = echoes(*(written(str(version), at=version) for version in range(1000)))
    assert len(book) == 601
    book = echoes(*(written(str(version)) for version in range(20_010)))
    assert len(book) == 20_000


# --- in the loop ---

Body = Callable[[World, Context], Awaitable[Result | None]]


def spec_of(world: World, body: Body) -> ControllerSpec:
    async def reconcile(ctx: Context, request: Request) -> Result | None:
        return await body(world, ctx)

    return controller("toy", reconcile).for_(TOYS).owns(CONFIGMAPS)


async def say_seen(world: World, ctx: Context) -> None:
    """Count the attempts in the status, so that each of them writes."""
    bear = present(await ctx.read.get(TOYS, "bear"))
    await ctx.write.status(bear, {"seen": len(world.attempts) + 1})


@asynccontextmanager
async def running_toy(body: Body) -> AsyncIterator[World]:
    world = World(toy("bear"))
    async with world.running(spec_of(world, body)):
        yield world


def kinds(attempt: Attempt) -> list[CauseKind]:
    return [cause.kind for cause in attempt.start.causes]


async def test_a_reconcile_does_not_run_because_of_its_own_writes() -> None:
    async with running_toy(say_seen) as world:
        await world.rest(60)
        assert [attempt.echoes for attempt in world.attempts] == [1]
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(60)
        assert [attempt.echoes for attempt in world.attempts] == [1, 1]


async def test_an_echo_after_the_end_of_its_attempt_is_dropped_and_told(world: World) -> None:
    world.server.watch_delay = 0.5
    world.server.create(toy("bear"))
    async with world.running(spec_of(world, say_seen)):
        await world.rest(60)
    [attempt] = world.attempts
    [echo] = world.told(DroppedEcho)
    assert (echo.attempt, echo.request, echo.version) == (attempt.id, BEAR, attempt.writes[0].new_version)
    assert (attempt.echoes, round(echo.after, 3)) == (0, 0.5)


def test_an_echo_that_comes_while_its_attempt_runs_is_counted_with_the_attempt() -> None:
    async def body(world: World, ctx: Context) -> None:
        await say_seen(world, ctx)
        await world.clock.sleep(10)

    async def main() -> None:
        world = World()
        world.server.watch_delay = 0.5
        world.server.create(toy("bear"))
        async with world.running(spec_of(world, body)):
            await world.rest(60)
        assert [attempt.echoes for attempt in world.attempts] == [1]
        assert world.told(DroppedEcho) == []

    run_virtual(main())


async def test_a_foreign_change_between_read_and_write_is_never_lost() -> None:
    async def body(world: World, ctx: Context) -> None:
        bear = present(await ctx.read.get(TOYS, "bear"))
        if not world.attempts:
            world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await ctx.write.status(bear, {"seen": bear["spec"].get("size", 1)})

    async with running_toy(body) as world:
        await world.rest(60)
        first, second = world.attempts
        assert kinds(second) == [CauseKind.MODIFIED]
        assert second.start.causes[0].new_version != first.writes[0].new_version
        assert present(world.server.get(TOYS, "bear"))["status"]["seen"] == 2


async def test_a_foreign_change_after_the_write_is_never_lost() -> None:
    async def body(world: World, ctx: Context) -> None:
        await say_seen(world, ctx)
        if not world.attempts:
            world.server.change(TOYS, "bear", {"status": {"ready": True}}, subresource="status", manager="somebody")

    async with running_toy(body) as world:
        await world.rest(60)
        first, second = world.attempts
        assert (first.echoes, kinds(second)) == (1, [CauseKind.MODIFIED])


async def test_an_apply_that_changed_nothing_and_answered_a_foreign_version_hides_nothing() -> None:
    async def body(world: World, ctx: Context) -> None:
        bear = present(await ctx.read.get(TOYS, "bear"))
        if len(world.attempts) == 1:
            # Somebody writes what we are about to write, and something else; our apply then changes nothing.
            entry = {"status": {"seen": 2}}
            world.server.apply({**toy("bear"), **entry}, manager=US, force=True, subresource="status")
            world.server.change(TOYS, "bear", {"spec": {"size": 2}}, manager="somebody")
        await ctx.write.status(bear, {"seen": min(2, len(world.attempts) + 1)})

    async with running_toy(body) as world:
        world.server.change(TOYS, "bear", {"spec": {"size": 1}})
        await world.rest(60)
        second = world.attempts[1]
        [call] = second.writes
        last_change = world.attempts[2].start.causes[-1]
        assert call.new_version == last_change.new_version  # the very version that must not be taken for an echo
        assert last_change.new is not None
        assert last_change.new["spec"]["size"] == 2


async def test_a_list_that_is_owned_whole_and_set_twice_within_a_second_is_an_echo(world: World) -> None:
    """The times in managedFields have seconds, so only what was sent tells that the second step was ours too."""

    async def reconcile(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.status(bear, {"names": ["a", str(bear["spec"]["size"])]})

    world.server.create(toy("bear", size=1))
    async with world.running(controller("toy", reconcile).for_(TOYS)):
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        await world.rest(0.1)
        await world.rest(60)
    assert [len(attempt.writes) for attempt in world.attempts] == [1, 1]


async def test_an_own_write_is_news_for_every_other_request(world: World) -> None:
    def both(obj: Obj, cached: Cached) -> Iterable[Request]:
        return [key_of(toy) for toy in cached.list(TOYS)]

    async def reconcile(ctx: Context, request: Request) -> None:
        if request == BEAR:
            settings = await ctx.read.get(CONFIGMAPS, "settings")
            if settings is None:
                await ctx.write.create({"metadata": {"name": "settings"}}, resource=CONFIGMAPS)

    for name in ("bear", "robot"):
        world.server.create(toy(name))
    async with world.running(controller("toy", reconcile).for_(TOYS).watches(CONFIGMAPS, to=both), workers=1):
        await world.rest(60)
    woken = [attempt.start.request for attempt in world.attempts if CauseKind.ADDED in kinds(attempt)]
    assert woken == [ROBOT]


async def test_when_causes_overflowed_nothing_is_dropped() -> None:
    async def body(world: World, ctx: Context) -> None:
        if not world.attempts:
            bear = present(await ctx.read.get(TOYS, "bear"))
            for seen in range(40):
                bear = await ctx.write.status(bear, {"seen": seen})

    async with running_toy(body) as world:
        await world.rest(60)
        first, second = world.attempts
        assert (first.echoes, second.start.causes_total) == (0, 40)


async def test_an_own_write_that_only_a_later_list_shows_runs_once_more() -> None:
    async def body(world: World, ctx: Context) -> None:
        if not world.attempts:
            world.server.hang_watches()
            await say_seen(world, ctx)

    async with running_toy(body) as world:
        await world.rest(1)
        world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})
        world.server.compact()
        world.server.drop_watches(cleanly=False)
        await world.rest(120)
        first, second = world.attempts
        assert [cause.relisted for cause in second.start.causes] == [True]
        assert second.start.causes[0].new_version == first.writes[0].new_version
        assert second.verdict.outcome == "done"


async def test_writes_of_an_attempt_that_was_cut_before_their_answer_are_news() -> None:
    async def body(world: World, ctx: Context) -> None:
        if world.attempts:
            return
        world.server.faults.delay(Match(verb="patch"), after=1000)
        task = asyncio.create_task(say_seen(world, ctx))
        await world.clock.sleep(1)
        task.cancel()
        await asyncio.wait([task])

    async with running_toy(body) as world:
        await world.rest(60)
        assert [attempt.echoes for attempt in world.attempts] == [0, 0]
        assert kinds(world.attempts[1]) == [CauseKind.MODIFIED]
