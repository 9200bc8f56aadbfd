from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kubectl_ctrl.model.change import Change
from kubectl_ctrl.model.transport import HttpResponse
from kubectl_ctrl.testing.faults import Match
from tests.cache.site import MAPS, Site, running

LISTS = Match(verb="list", plural="configmaps")


async def test_garbled_event_costs_that_object_only_and_is_made_good_by_the_next_list(site: Site) -> None:
    site.server.garble()
    site.server.delete(MAPS, "map-1")
    site.server.change(MAPS, "map-0", {"data": {"value": "1"}})
    await site.clock.sleep(1)
    assert site.cached() == {"map-0": "1", "map-1": "0", "map-2": "0"}
    assert site.wire.kinds() == ["stream"], "it does not end the watch"
    assert site.informer.counts.poisoned == 1
    await site.agree(within=601)
    assert site.wire.kinds() == ["stream", "stream"]


async def test_after_a_garbled_event_a_step_may_be_more_than_one_until_the_next_list(site: Site) -> None:
    told: list[Change] = []
    site.informer.subscribe("reader", told.append)
    await site.clock.sleep(1)
    told.clear()
    site.server.change(MAPS, "map-0", {"data": {"value": "1"}})
    await site.clock.sleep(1)
    site.server.garble()
    site.server.change(MAPS, "map-0", {"data": {"value": "2"}})
    site.server.change(MAPS, "map-0", {"data": {"value": "3"}})
    await site.clock.sleep(1)
    assert [(change.obj["data"]["value"], change.relisted) for change in told] == [("1", False), ("3", True)]
    await site.clock.sleep(601)
    site.server.change(MAPS, "map-0", {"data": {"value": "4"}})
    await site.clock.sleep(1)
    assert not told[-1].relisted


def _spoil(field: str, value: object) -> Callable[[bytes], bytes]:
    def make(line: bytes) -> bytes:
        frame = json.loads(line)
        frame["object"]["metadata"][field] = value
        return json.dumps(frame).encode()

    return make


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("labels", ["x"]),
        ("annotations", "x"),
        ("ownerReferences", {}),
        ("managedFields", ["x"]),
        ("uid", 7),
        ("name", 7),
    ],
)
async def test_misshapen_object_costs_that_object_only(field: str, value: object, site: Site) -> None:
    site.server.garble(make=_spoil(field, value))
    site.server.change(MAPS, "map-0", {"data": {"value": "1"}})
    site.server.change(MAPS, "map-1", {"data": {"value": "1"}})
    await site.clock.sleep(1)
    assert site.cached() == {"map-0": "0", "map-1": "1", "map-2": "0"}
    assert site.informer.counts.poisoned == 1
    assert site.wire.kinds() == ["stream"]
    site.server.change(MAPS, "map-0", {"data": {"value": "2"}})
    await site.agree(within=1)


async def test_object_that_a_list_has_broken_keeps_its_last_good_state() -> None:
    async with running(streaming=False) as site:
        site.server.drop_watches()
        site.server.delete(MAPS, "map-2")
        site.server.compact()
        items = site.server.objects(MAPS)
        items[0]["metadata"]["labels"] = ["x"]
        meta = {"resourceVersion": str(site.server.version)}
        listed = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": meta, "items": items}
        site.server.faults.answer(LISTS, HttpResponse(status=200, body=json.dumps(listed).encode()))
        await site.clock.sleep(5)
        assert site.informer.epoch == 2
        assert site.informer.counts.poisoned == 1
        await site.agree(within=0)
