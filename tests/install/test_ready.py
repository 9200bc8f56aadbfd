from __future__ import annotations

import asyncio

import pytest

from kubectl_ctrl.errors import CtrlError, TimedOut
from kubectl_ctrl.install.ready import wait_until_served
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS
from tests.install.land import THINGS, Land
from tests.runtime.world import crd


def _conditions(**states: str) -> Obj:
    told = [{"type": name, "status": state, "message": f"it is {state}"} for name, state in states.items()]
    return {"status": {"conditions": told}}


def _set(land: Land, **states: str) -> None:
    land.server.change(CRDS, THINGS.full_name, _conditions(**states), subresource="status")


async def test_it_returns_when_the_crd_can_be_used_and_not_before(land: Land) -> None:
    land.server.create(crd(THINGS))
    _set(land, NamesAccepted="True", Established="False")
    began = land.clock.elapsed()
    waiting = asyncio.create_task(wait_until_served(land.client, [crd(THINGS)], 60))
    await land.clock.sleep(10)
    assert not waiting.done()
    _set(land, NamesAccepted="True", Established="True")
    await waiting
    assert 10 <= land.clock.elapsed() - began < 13


async def test_when_the_time_runs_out_it_says_what_is_missing(land: Land) -> None:
    land.server.create(crd(THINGS))
    _set(land, NamesAccepted="True", Established="False")
    with pytest.raises(TimedOut, match=r"Not ready within 5s: the CRD things\.example\.com is not Established"):
        await wait_until_served(land.client, [crd(THINGS)], 5)
    land.server.delete(CRDS, THINGS.full_name)
    with pytest.raises(TimedOut, match="was deleted"):
        await wait_until_served(land.client, [crd(THINGS)], 5)


async def test_what_discovery_does_not_show_is_waited_for(land: Land) -> None:
    land.server.create(crd(THINGS))
    more = crd(THINGS)
    more["spec"]["versions"].append({**more["spec"]["versions"][0], "name": "v2", "storage": False})
    with pytest.raises(TimedOut, match=r"things\.example\.com \(example\.com/v2\) is missing in discovery"):
        await wait_until_served(land.client, [more], 5)


async def test_a_name_that_another_has_is_an_error_at_once(land: Land) -> None:
    other = crd(THINGS)
    other["metadata"] = {"name": "others.example.com"}
    other["spec"] = {**other["spec"], "names": {"plural": "others", "kind": "Other", "shortNames": ["thing"]}}
    land.server.create(other)
    land.server.create(crd(THINGS))
    _set(land, NamesAccepted="False", Established="False")
    began = land.clock.elapsed()
    with pytest.raises(CtrlError, match=r"it is False; others\.example\.com has it"):
        await wait_until_served(land.client, [crd(THINGS)], 60)
    assert land.clock.elapsed() == began
