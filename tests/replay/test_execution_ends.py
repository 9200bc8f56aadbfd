"""Attempts that were cut, were interrupted or read unrecorded objects; and blessed cases."""

from __future__ import annotations

import asyncio

import pytest

from kubectl_ctrl.errors import NotRecorded
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.resources import SECRETS
from kubectl_ctrl.replay.casefile import dumps, loads
from kubectl_ctrl.replay.deviations import ComparisonResult
from kubectl_ctrl.replay.execution import blessed
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.value import replace
from tests.objects import present
from tests.replay.replays import again, config, dress, fates, recorded
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World

# --- attempts that did not end by themselves


async def endless(ctx: Context, request: Request) -> None:
    await ctx.write.create(config("one"), resource=CONFIGMAPS)
    await asyncio.Event().wait()


def test_an_attempt_that_was_cut_is_compared_up_to_there() -> None:
    (case,) = recorded(endless, drain=0.5)
    assert case.attempt.verdict is not None
    assert case.attempt.verdict.outcome is Outcome.DROPPED

    async def on(ctx: Context, request: Request) -> None:
        await ctx.write.create(config("one"), resource=CONFIGMAPS)
        await ctx.write.create(config("two"), resource=CONFIGMAPS)

    async def not_even_that(ctx: Context, request: Request) -> None:
        await ctx.read.get(TOYS, "bear")

    replayed = again(case, on)
    assert replayed.same
    assert replayed.cut
    assert fates(replayed) == [(ComparisonResult.SAME, "create one")]
    assert again(case, not_even_that).unknown is not None


def test_two_timeouts_are_the_same() -> None:
    async def scene(world: World) -> None:
        await world.rest(10)

    case = recorded(endless, scene, attempt_timeout=5.0)[0]
    assert case.attempt.verdict is not None
    assert case.attempt.verdict.error_id == "AttemptTimeout"
    assert again(case, endless, timeout=2.0).same

    async def quick(ctx: Context, request: Request) -> None:
        await ctx.write.create(config("one"), resource=CONFIGMAPS)

    assert again(case, quick).outcome


def test_the_replay_ends_at_a_call_outside_that_was_cut() -> None:
    async def never() -> bool:
        return await asyncio.Event().wait()

    async def stuck(ctx: Context, request: Request) -> None:
        await ctx.outside("price", never)
        raise AssertionError("it was never answered")

    async def scene(world: World) -> None:
        await world.rest(10)

    assert again(recorded(stuck, scene, attempt_timeout=5.0)[0], stuck).same


def test_the_replay_ends_at_a_write_that_was_cut() -> None:
    async def slow(ctx: Context, request: Request) -> None:
        await ctx.write.create(config("one"), resource=CONFIGMAPS)
        raise AssertionError("it was never answered")

    async def scene(world: World) -> None:
        world.server.faults.hang(Match(verb="create"), times=None)
        world.server.change(TOYS, "bear", {"spec": {"size": 4}})
        await world.rest(10)

    case = recorded(slow, scene, attempt_timeout=5.0)[-1]
    replayed = again(case, slow)
    assert replayed.same
    assert fates(replayed) == [(ComparisonResult.SAME, "create one")]


@pytest.mark.parametrize(
    ("interrupted", "said"), [(False, "it is still running"), (True, "its process stopped before it finished")]
)
def test_an_attempt_without_an_end_cannot_be_replayed(interrupted: bool, said: str) -> None:
    case = recorded(dress)[0]
    with pytest.raises(NotRecorded, match=said):
        again(replace(case, attempt=replace(case.attempt, verdict=None, interrupted=interrupted)), dress)


def test_the_runtimes_message_about_a_deleted_object_may_have_other_words() -> None:
    async def read(ctx: Context, request: Request) -> None:
        await ctx.read.get(TOYS, request.name)

    case = recorded(read)[0]
    verdict = replace(present(case.attempt.verdict), message="It was deleted while it was reconciled.")
    assert again(replace(case, attempt=replace(case.attempt, verdict=verdict)), read).same


def test_a_deleted_object_is_named() -> None:
    case = recorded(dress)[0]
    reads = (replace(case.attempt.reads[0], objects=()), *case.attempt.reads[1:])
    with pytest.raises(NotRecorded, match=r"the objects that it read \(get toys.toys.example.com default/bear\)"):
        again(replace(case, attempt=replace(case.attempt, reads=reads)), dress)
    wishes = (replace(case.attempt.wishes[0], answer=None), *case.attempt.wishes[1:])
    with pytest.raises(NotRecorded, match=r"the answer to ensure configmaps default/coat"):
        again(replace(case, attempt=replace(case.attempt, wishes=wishes)), dress)


def test_an_attempt_that_read_a_secret_cannot_be_replayed() -> None:
    async def reveal(ctx: Context, request: Request) -> None:
        await ctx.read.live(SECRETS, "key")

    async def scene(world: World) -> None:
        world.server.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"a": "Yg=="}})
        world.server.change(TOYS, "bear", {"spec": {"size": 4}})

    cases = recorded(reveal, scene)
    assert again(cases[0], reveal).same  # the recorded attempt found none
    with pytest.raises(NotRecorded, match=r"it reads a Secret \(default/key\)"):
        again(cases[-1], reveal)


# --- blessing


def test_a_blessed_case_expects_the_output_of_todays_code_alone() -> None:
    async def other(ctx: Context, request: Request) -> Result | None:
        bear = present(await ctx.read.get(TOYS, request.name))
        hat = await ctx.write.create(config("hat", at=ctx.now()), resource=CONFIGMAPS)
        await ctx.write.patch(hat, {"data": {"a": "1"}})
        await ctx.write.status(bear, {"seen": 2})
        ctx.write.event(bear, reason="Hatted", message="Hat.")
        return Result(waiting_for="the weather")

    case = recorded(dress)[0]
    replayed = again(case, other)
    assert not replayed.same
    expected = loads(dumps(blessed(replayed)))
    assert expected.attempt.reads == case.attempt.reads
    assert again(expected, other).same
    assert not again(expected, dress).same


def test_an_unrecorded_read_cannot_be_blessed() -> None:
    async def curious(ctx: Context, request: Request) -> None:
        await ctx.read.live(CONFIGMAPS, "settings")

    with pytest.raises(NotRecorded, match="reads objects that are not recorded"):
        blessed(again(recorded(dress)[0], curious))
