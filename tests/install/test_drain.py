from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubectl_ctrl.install.drain import Drain, HeldObject, marked_by
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.testing.faults import Match
from tests.install.land import THINGS, Land, thing
from tests.objects import present
from tests.runtime.world import crd

_HOLD = "guard.example.org/hold"


def _drain(land: Land) -> Drain:
    land.server.create(crd(THINGS))
    return Drain(land.client, [land.crd()], "mine")


async def test_everything_goes_and_what_is_held_is_waited_for(land: Land) -> None:
    drain = _drain(land)
    for number in range(20):
        land.server.create(thing(f"free-{number}"))
    land.server.create(thing("held", _HOLD), manager="kubectl-ctrl-mine")
    told: list[list[str]] = []

    def tell(left: Sequence[HeldObject]) -> None:
        told.append([str(one) for one in left])

    running = asyncio.create_task(drain.run(60, tell))
    await land.clock.sleep(10)
    assert told == [[f"things.example.com default/held: {_HOLD} (set by kubectl-ctrl-mine)"]], "Said once."
    land.server.create(thing("late"))
    await land.clock.sleep(2)
    assert land.server.get(THINGS, "late") is None
    land.server.change(THINGS, "held", {"metadata": {"finalizers": None}})
    assert await running == []


async def test_when_the_time_runs_out_it_gives_what_is_left_and_strips_nothing(land: Land) -> None:
    drain = _drain(land)
    land.server.create(thing("held", _HOLD))
    began = land.clock.elapsed()
    left = await drain.run(5, lambda _left: None)
    assert [one.ref.name for one in left] == ["held"]
    assert 5 <= land.clock.elapsed() - began < 7
    assert present(land.server.get(THINGS, "held"))["metadata"]["finalizers"] == [_HOLD]


async def test_whose_a_finalizer_is(land: Land) -> None:
    drain = _drain(land)
    land.server.create(thing("by-manager", _HOLD), manager="kubectl-ctrl-mine")
    land.server.create(thing("by-domain", "example.com/guard"))
    land.server.create(thing("by-type", "things.example.com/guard"))
    land.server.create(thing("of-others", "backup.example.com/guard"))
    land.server.create(thing("of-another", _HOLD), manager="kubectl-ctrl-mine-too")
    own = {one.ref.name: [str(each) for each in one.own] for one in await drain.holding()}
    assert own == {
        "by-manager": [f"{_HOLD} (set by kubectl-ctrl-mine)"],
        "by-domain": ["example.com/guard (set by test)"],
        "by-type": ["things.example.com/guard (set by test)"],
        "of-others": [],
        "of-another": [],
    }
    marked, unseen = await marked_by(land.client, [THINGS, PODS], "mine")
    assert sorted(one.ref.name for one in marked) == ["by-domain", "by-manager", "by-type"]
    assert unseen == []
    land.server.faults.fail(Match(verb="list", plural="pods"), 403, reason="Forbidden")
    marked, unseen = await marked_by(land.client, [PODS, THINGS], "mine")
    assert (len(marked), unseen) == (3, [PODS])


async def test_types_that_are_not_served_hold_nothing(land: Land) -> None:
    assert await Drain(land.client, [crd(THINGS)], "mine").run(5, lambda _left: None) == []
    assert await marked_by(land.client, [THINGS], "mine") == ([], [])
