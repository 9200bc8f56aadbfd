"""Replays: no differences with the same code, and exactly the differences of other code."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ctrl.errors import Conflict, Forbidden, TerminalError
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.diffs import ABSENT
from kubectl_ctrl.model.masking import MASKED
from kubectl_ctrl.model.objects import Obj, version_of
from kubectl_ctrl.model.resources import SECRETS
from kubectl_ctrl.replay.casefile import dumps, loads
from kubectl_ctrl.replay.deviations import ComparisonResult
from kubectl_ctrl.runtime.contract import Context, Reconciler, Result
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.value import replace
from tests.objects import present
from tests.replay.replays import again, config, dress, fates, fields, recorded, shown
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World


def test_the_same_code_does_the_same() -> None:
    cases = recorded(dress)
    assert [len(case.attempt.wishes) for case in cases][:1] == [2]
    for case in cases:
        replayed = again(case, dress)
        assert replayed.same
        assert [fate for fate, _ in fates(replayed)] == [ComparisonResult.SAME] * len(case.attempt.wishes)
        assert replayed.today.verdict.delay == case.attempt.verdict.delay if case.attempt.verdict else False


def test_one_changed_field_is_the_only_difference() -> None:
    async def wider(ctx: Context, request: Request) -> Result | None:
        bear = present(await ctx.read.get(TOYS, request.name))
        size = bear["spec"]["size"] + 1
        made = await ctx.write.ensure(config("coat", size=size), owner=bear, resource=CONFIGMAPS)
        seen = await ctx.read.children(bear, CONFIGMAPS)
        await ctx.write.status(bear, {"seen": len(seen), "names": [made.obj["metadata"]["name"]]})
        ctx.write.event(bear, reason="Dressed", message=f"Coat {made.how}.")
        return Result(after=30 + ctx.random.random())

    replayed = again(recorded(dress)[0], wider)
    assert fates(replayed) == [(ComparisonResult.DIFFERS, "ensure coat"), (ComparisonResult.SAME, "status bear")]
    (finding,) = replayed.differing
    assert fields(finding) == [("data.size", "3", "4")]
    assert finding.where.startswith(f"replay/{Path(__file__).name}:")
    assert not replayed.outcome


def test_missing_and_extra_requests_are_distinguished() -> None:
    async def other(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        hat = await ctx.write.create(config("hat"), resource=CONFIGMAPS)
        assert hat["metadata"]["uid"]
        await ctx.write.status(bear, {"seen": 1, "names": ["coat"]})
        await ctx.write.delete(hat)

    replayed = again(recorded(dress)[0], other)
    assert fates(replayed) == [
        (ComparisonResult.EXTRA, "create hat"),
        (ComparisonResult.MISSING, "ensure coat"),
        (ComparisonResult.SAME, "status bear"),
        (ComparisonResult.EXTRA, "delete hat"),
    ]
    assert [(one.fate, one.text) for one in replayed.events] == [(ComparisonResult.MISSING, "Dressed")]
    assert ("outcome", "after", "done") in [shown(one) for one in replayed.outcome]


def test_the_same_requests_in_another_order_are_moved() -> None:
    async def twice(ctx: Context, request: Request) -> None:
        await ctx.write.create(config("one"), resource=CONFIGMAPS)
        await ctx.write.create(config("two"), resource=CONFIGMAPS)

    async def turned(ctx: Context, request: Request) -> None:
        await ctx.write.create(config("two"), resource=CONFIGMAPS)
        await ctx.write.create(config("one"), resource=CONFIGMAPS)

    replayed = again(recorded(twice)[0], turned)
    assert fates(replayed) == [(ComparisonResult.SAME, "create two"), (ComparisonResult.MOVED, "create one")]
    assert not replayed.same


def test_concurrent_writes_may_come_in_any_order() -> None:
    async def one_by_one(ctx: Context, name: str) -> None:
        made = await ctx.write.create(config(name), resource=CONFIGMAPS)
        await ctx.write.patch(made, {"data": {"a": "1"}})

    async def together(ctx: Context, request: Request) -> None:
        await asyncio.gather(*(one_by_one(ctx, name) for name in ("one", "two", "three")))

    async def scene(world: World) -> None:
        world.server.change(TOYS, "bear", {"spec": {"size": 4}})

    async def main(world: World) -> None:
        world.server.faults.delay(Match(verb="create"), after=0.3)
        await scene(world)

    for case in recorded(together, main):
        assert again(case, together).same


# --- reads


def test_an_unrecorded_read_is_named_and_ends_the_replay() -> None:
    async def curious(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.ensure(config("coat", size=3), owner=bear, resource=CONFIGMAPS)
        await ctx.read.live(CONFIGMAPS, "settings")
        raise AssertionError("nobody answers")

    replayed = again(recorded(dress)[0], curious)
    assert replayed.unknown is not None
    assert (replayed.unknown.verb, replayed.unknown.text) == ("live", "default/settings")
    assert replayed.unknown.where.startswith("replay/test_execution.py:")
    assert fates(replayed) == [(ComparisonResult.SAME, "ensure coat"), (ComparisonResult.UNREACHED, "status bear")]
    assert (replayed.outcome, replayed.differing) == ((), ())
    assert not replayed.same


def test_a_further_read_gets_the_last_response_until_an_object_of_its_type_is_written() -> None:
    async def twice(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        assert await ctx.read.get(TOYS, request.name) == bear
        assert await ctx.read.list(CONFIGMAPS) == []
        assert await ctx.read.list(CONFIGMAPS) == []
        await ctx.write.create(config("coat"), resource=CONFIGMAPS)
        assert await ctx.read.get(TOYS, request.name) == bear
        assert len(await ctx.read.list(CONFIGMAPS)) == 1
        await ctx.write.create(config("hat"), resource=CONFIGMAPS)
        await ctx.read.list(CONFIGMAPS)
        raise AssertionError("nobody knows what is there now")

    async def once(ctx: Context, request: Request) -> None:
        await ctx.read.get(TOYS, request.name)
        await ctx.read.list(CONFIGMAPS)
        await ctx.write.create(config("coat"), resource=CONFIGMAPS)
        await ctx.read.list(CONFIGMAPS)
        await ctx.write.create(config("hat"), resource=CONFIGMAPS)

    replayed = again(recorded(once)[0], twice)
    assert replayed.unknown is not None
    assert replayed.unknown.text == "default"
    assert [fate for fate, _ in fates(replayed)] == [ComparisonResult.SAME, ComparisonResult.SAME]


def test_a_read_that_failed_fails_again() -> None:
    async def spy(ctx: Context, request: Request) -> None:
        try:
            await ctx.read.live(SECRETS, "key")
        except Forbidden as error:
            await ctx.write.create(config("note", code=error.code, said=str(error)), resource=CONFIGMAPS)
            raise

    async def scene(world: World) -> None:
        world.server.faults.fail(Match(verb="get", plural="secrets"), 403, message="No.", times=None)
        world.server.change(TOYS, "bear", {"spec": {"size": 4}})

    cases = recorded(spy, scene)
    assert cases[-1].attempt.wishes
    for case in cases:
        replayed = again(case, spy)
        assert replayed.same
        assert replayed.today.verdict.message == (case.attempt.verdict.message if case.attempt.verdict else None)


# --- answers


async def stubborn(ctx: Context, request: Request) -> Result | None:
    bear = present(await ctx.read.get(TOYS, request.name))
    try:
        await ctx.write.patch(bear, {"spec": {"size": 9}})
    except Conflict as error:
        await ctx.write.create(config("note", code=error.code, reason=error.reason), resource=CONFIGMAPS)
        return Result(waiting_for="peace")
    raise TerminalError("Enough.")


def test_errors_are_raised_again_with_all_attributes() -> None:
    async def scene(world: World) -> None:
        world.server.faults.fail(Match(verb="patch"), 409, reason="Conflict", message="Too late.")
        world.server.change(TOYS, "bear", {"spec": {"size": 4}})

    cases = recorded(stubborn, scene)
    outcomes = [case.attempt.verdict.outcome for case in cases if case.attempt.verdict]
    assert outcomes[:2] == [Outcome.TERMINAL, Outcome.WAITING]
    assert all(again(case, stubborn).same for case in cases)


def test_a_differing_outcome_is_reported_by_field() -> None:
    async def quiet(ctx: Context, request: Request) -> Result | None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.patch(bear, {"spec": {"size": 9}})
        return Result(after=5)

    replayed = again(recorded(stubborn)[0], quiet)
    assert [shown(one) for one in replayed.outcome] == [
        ("outcome", "terminal", "after"),
        ("error", "CTRL-TERMINAL", ABSENT),
        ("message", "Enough.", ABSENT),
    ]
    other = again(recorded(dress)[0], stubborn)
    assert other.outcome


def test_a_differing_delay_is_reported() -> None:
    async def soon(ctx: Context, request: Request) -> Result | None:
        return Result(after=5)

    async def later(ctx: Context, request: Request) -> Result | None:
        return Result(after=6)

    replayed = again(recorded(soon)[0], later)
    assert [shown(one) for one in replayed.outcome] == [("after", 5.0, 6.0)]


def test_a_written_secret_is_compared_by_its_keys_and_returned_as_given() -> None:
    async def seal(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        secret = {"metadata": {"name": "key"}, "stringData": {"word": "canary"}}
        made = await ctx.write.create(secret, resource=SECRETS)
        await ctx.write.status(bear, {"names": [made["metadata"]["name"]]})

    async def open_one(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.create({"metadata": {"name": "key"}, "stringData": {"other": "canary"}}, resource=SECRETS)
        await ctx.write.status(bear, {"names": ["key"]})

    (case, *_) = recorded(seal)
    assert "canary" not in dumps(case)
    assert again(case, seal).same
    (finding,) = again(case, open_one).differing
    assert [path for path, *_ in fields(finding)] == ["stringData.word", "stringData.other"]
    assert "canary" not in repr(finding)


def test_hidden_values_are_compared_as_hidden() -> None:
    async def chatty(ctx: Context, request: Request) -> Result | None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.create(config("note", said="the word is canary!"), resource=CONFIGMAPS)
        ctx.write.event(bear, reason="Said", message="It is canary.")
        return Result(waiting_for="canary to sing")

    text = dumps(recorded(chatty)[0]).replace("canary", "***")
    assert again(loads(text), chatty).same
    replayed = again(
        loads(text.replace("the word", "a word").replace("It is", "It was").replace("sing", "fly")), chatty
    )
    assert [fields(one) for one in replayed.differing] == [
        [("data.said", "a word is ***!", "the word is canary!")],
        [("message", "It was ***.", "It is canary.")],
    ]
    assert [one.path for one in replayed.outcome] == ["message"]


def test_objects_with_hidden_values_are_named_and_the_code_does_not_see_the_mark() -> None:
    async def copy(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.create(
            {"metadata": {"name": "copy"}, "data": {"keys": ",".join(bear["metadata"])}}, resource=CONFIGMAPS
        )

    case = recorded(copy)[0]
    (read,) = case.attempt.reads
    marked = {**read.objects[0], "metadata": {**read.objects[0]["metadata"], MASKED: True}}
    attempt = replace(case.attempt, reads=(replace(read, objects=(marked,)),))
    replayed = again(replace(case, attempt=attempt), copy)
    assert replayed.same
    assert replayed.hidden == ("toys.toys.example.com default/bear",)


def test_times_of_other_clocks_are_not_compared_unless_set_or_removed() -> None:
    def told_at(*moments: str | None) -> Reconciler:
        told = iter(moments)

        async def tell(ctx: Context, request: Request) -> None:
            moment = next(told)
            condition = {"type": "Ready", "status": "True", **({"lastTransitionTime": moment} if moment else {})}
            bear = present(await ctx.read.get(TOYS, request.name))
            await ctx.write.status(bear, {"conditions": [condition]})

        return tell

    first = "2026-11-21T02:03:04Z"
    case = recorded(told_at(first, *[first] * 9))[0]
    assert again(case, told_at("2027-01-01T00:00:00.5+01:00")).same
    (finding,) = again(case, told_at(None)).differing
    assert [path for path, *_ in fields(finding)] == ["status.conditions[type=Ready].lastTransitionTime"]
    assert again(case, told_at("soon")).differing


# --- time and chance


async def gamble(ctx: Context, request: Request) -> Result | None:
    began, stake = ctx.now(), ctx.random.random()
    await asyncio.sleep(0)
    await ctx.write.create(config("ticket", began=began, stake=stake, now=ctx.now()), resource=CONFIGMAPS)
    return Result(after=ctx.random.uniform(5, 10))


def test_times_and_random_numbers_are_the_same() -> None:
    case = recorded(gamble)[0]
    assert len(case.attempt.times) == 2
    assert again(case, gamble).same


def test_further_calls_for_the_time_get_the_last_one() -> None:
    async def impatient(ctx: Context, request: Request) -> None:
        times = [ctx.now() for _ in range(5)]
        await ctx.write.create(config("ticket", times=times[1:] == times[1:2] * 4), resource=CONFIGMAPS)

    case = recorded(gamble)[0]
    (finding,) = again(case, impatient).differing
    assert ("data.times", ABSENT, "True") in fields(finding)


# --- what is outside


def shopper(prices: list[Any], name: str = "price") -> Reconciler:
    async def look() -> Any:
        price = prices.pop(0)
        if isinstance(price, Exception):
            raise price
        return price

    async def stock() -> Any:
        return {"left": [1, None, "ä"]}

    async def shop(ctx: Context, request: Request) -> None:
        first = await ctx.outside(name, look)
        second = await ctx.outside("stock", stock)
        await ctx.write.create(config("ticket", first=first, second=second), resource=CONFIGMAPS)

    return shop


def test_results_from_outside_are_returned_without_a_call() -> None:
    case = recorded(shopper([7, *[8] * 9]))[0]
    assert [(one.name, one.value) for one in case.attempt.outside[:1]] == [("price", "7")]
    assert again(case, shopper([])).same


def test_an_error_from_outside_is_raised_again() -> None:
    case = recorded(shopper([ValueError("closed"), *[8] * 9]))[0]
    replayed = again(case, shopper([]))
    assert replayed.same
    assert replayed.today.verdict.message == "ValueError: closed"


def test_an_unrecorded_call_outside_is_named_and_ends_the_replay() -> None:
    replayed = again(recorded(shopper([7] * 9))[0], shopper([], "colour"))
    assert replayed.unknown is not None
    assert (replayed.unknown.verb, replayed.unknown.text) == ("outside", "colour")
    assert replayed.unknown.where.startswith("replay/test_execution.py:")


@pytest.mark.parametrize("value", [{1, 2}, (1, 2), {1: 2}, float("nan"), 2**70, object()])
def test_a_value_that_json_would_change_is_refused(value: Any) -> None:
    verdict = present(recorded(shopper([value] * 9))[0].attempt.verdict)
    assert "which is not JSON" in verdict.message


# --- whatever a reconciler does


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_any_sequence_of_reads_and_writes_is_replayed(seed: int) -> None:
    async def wild(ctx: Context, request: Request) -> Result | None:
        chance = ctx.random
        known = list(await ctx.read.list(CONFIGMAPS))
        bear = await ctx.read.get(TOYS, request.name)
        for _ in range(chance.randrange(1, 8)):
            known += await _wild_step(ctx, chance, bear, known)
        if chance.random() < 0.2:
            raise ValueError(f"{len(known)} things, {ctx.now()}")
        return chance.choice([None, Result(5), Result(again=True), Result(waiting_for=f"{ctx.now()}"), Result(0.25)])

    async def scene(world: World) -> None:
        chance = Random(seed)  # same seed, same numbers
        for step in range(4):
            if chance.random() < 0.5:
                code = chance.choice([403, 404, 409, 422, 500])
                world.server.faults.fail(Match(verb="create update patch delete"), code, message=f"No {step}.")
            world.server.change(TOYS, "bear", {"spec": {"size": chance.randrange(9), "step": step}})
            await world.rest(chance.choice([0, 1, 7]))

    for case in recorded(wild, scene):
        replayed = again(case, wild)
        assert replayed.same, (replayed.differing, replayed.unknown, replayed.outcome)


async def _wild_step(ctx: Context, chance: Random, bear: Obj | None, known: list[Obj]) -> list[Obj]:
    name = chance.choice("abc")

    async def counted() -> int:
        return len(known)

    made = config(name, n=chance.randrange(3), at=ctx.now())
    try:
        match chance.randrange(9):
            case 0:
                return [await ctx.write.create(made, resource=CONFIGMAPS)]
            case 1 if bear is not None:
                return [(await ctx.write.ensure(made, owner=bear, resource=CONFIGMAPS)).obj]
            case 2 if known:
                await ctx.write.delete(chance.choice(known), any_version=chance.random() < 0.5)
            case 3 if known:
                return [await ctx.write.patch(chance.choice(known), {"data": {"n": version_of(known[0])}})]
            case 4 if bear is not None:
                await ctx.write.status(bear, {"seen": chance.randrange(3)})
            case 5 if bear is not None:
                await ctx.write.add_finalizer(bear, f"{name}.example.com/x")
            case 6 if chance.random() < 0.3:
                known.append(made | {"size": await ctx.outside("size", counted)})
                return []
            case 6:
                found = await ctx.read.live(CONFIGMAPS, name)
                return [found] if found is not None else []
            case 7:
                return list(await ctx.read.list(CONFIGMAPS, labels={"a": name}))
            case _ if bear is not None:
                ctx.write.event(bear, reason="Step", message=f"{len(known)} at {ctx.now()}")
                return [one for one in [await ctx.read.get(CONFIGMAPS, name)] if one is not None]
    except Conflict as error:
        ctx.log.debug("%s", error)
    return []
