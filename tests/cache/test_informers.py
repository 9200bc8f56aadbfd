from __future__ import annotations

import pytest

from kubectl_ctrl.cache.recovery import InformerState
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.model.objects import name_of, namespace_of
from kubectl_ctrl.testing.loop import settle
from tests.cache.site import MAPS, Site, config, running
from tests.objects import present


async def test_equal_selections_share_one_watch(site: Site) -> None:
    assert site.informers.informer(Selection(MAPS)) is site.informer
    other = site.informers.informer(Selection(MAPS, labels="app=web"))
    await site.synced()
    assert other is not site.informer
    assert len(site.wire.sent) == 2
    assert site.informers.all() == (site.informer, other)


async def test_informers_are_started_and_stopped_at_run_time() -> None:
    async with running(Selection(MAPS, "a"), objects=0) as site:
        site.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}})
        late = site.informers.informer(Selection(MAPS, "b"))
        heard: list[str] = []
        late.subscribe("late", lambda change: heard.append(change.key.name))
        site.server.create(config("x", namespace="b"))
        await late.wait_synced()
        assert [name_of(obj) for obj in late.list()] == heard == ["x"]
        await site.informers.stop(late.selection)
        site.server.create(config("y", namespace="b"))
        await settle()
        assert heard == ["x"]
        assert len(site.server.watches) == 1
        assert site.informers.all() == (site.informer,)
        again = site.informers.informer(Selection(MAPS, "b"))
        await again.wait_synced()
        assert [name_of(obj) for obj in again.list()] == ["x", "y"]
        assert all(namespace_of(obj) == "b" for obj in again.list())


async def test_late_subscriber_is_synced_apart_from_the_store() -> None:
    async with running(objects=1000) as site:
        told: list[str] = []
        late = site.informer.subscribe("late", lambda change: told.append(change.key.name))
        assert [site.informer.synced, late.synced] == [True, False]
        site.server.create(config("new"))
        await site.informer.wait_synced()
        await settle()
        assert late.synced
        assert len(told) == len(frozenset(told)) == 1001


async def test_index_added_after_the_start_knows_what_is_there(site: Site) -> None:
    site.informer.add_index("value", lambda obj: [obj["data"]["value"]])
    assert len(site.informer.by_index("value", "0")) == 3
    answer = site.server.change(MAPS, "map-0", {"data": {"value": "1"}})
    site.informers.wrote(MAPS, answer)
    assert [name_of(obj) for obj in site.informer.by_index("value", "1")] == ["map-0"]
    assert len(site.informer.by_index("value", "0")) == 2


async def test_index_function_that_raises_costs_that_object_in_that_index(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as site:
        site.informer.add_index("odd", lambda obj: [obj["data"]["odd"]])
        site.server.change(MAPS, "map-0", {"data": {"odd": "x"}})
        await site.agree()
        assert [name_of(obj) for obj in site.informer.by_index("odd", "x")] == ["map-0"]
        assert site.subscription.errors == 0
    assert any("index function" in message for message in caplog.messages)


async def test_answers_of_another_kind_say_nothing_about_the_object(site: Site) -> None:
    answer = present(site.server.get(MAPS, "map-0"))
    answer["metadata"]["resourceVersion"] = "999999"
    site.informers.wrote(MAPS, {**answer, "kind": "Scale", "data": {"value": "9"}})
    assert site.informer.pending == 0


async def test_health_says_since_when_and_why(site: Site) -> None:
    synced = site.informer.health
    assert (synced.state, synced.message) == (InformerState.SYNCED, "")
    site.server.down()
    await site.clock.sleep(100)
    health = site.informer.health
    assert health.state is InformerState.RETRYING
    assert health.message
    assert 99 <= site.clock.now() - health.since <= 100


@pytest.mark.parametrize("cleanly", [True, False])
async def test_quiet_type_is_healthy_as_soon_as_its_watch_is_open_again(cleanly: bool, site: Site) -> None:
    await site.clock.sleep(30)
    seen: list[InformerState] = []
    site.informer.on_health(lambda informer: seen.append(informer.health.state))
    site.server.drop_watches(cleanly=cleanly)
    await site.clock.sleep(3)
    assert site.informer.health.state is InformerState.SYNCED
    assert seen == ([] if cleanly else [InformerState.RETRYING, InformerState.SYNCED])
    assert site.informer.counts.events == 3, "nothing has arrived since"


async def test_watches_that_open_and_end_at_once_are_no_recovery(site: Site) -> None:
    seen: list[InformerState] = []
    site.informer.on_health(lambda informer: seen.append(informer.health.state))
    start = site.clock.elapsed()
    while site.clock.elapsed() < start + 60:
        site.server.drop_watches()
        await site.clock.sleep(0.1)
    assert seen == [InformerState.RETRYING]
