from __future__ import annotations

import asyncio
import json

import pytest

from kubectl_ctrl.client.options import ListQuery, Scope, WatchQuery
from kubectl_ctrl.client.watch import EndKind, WatchEvent, WatchItem
from kubectl_ctrl.errors import (
    CallSite,
    DeadlinePassed,
    Expired,
    Forbidden,
    NotLeading,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from kubectl_ctrl.model.objects import name_of, version_of
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import settle
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.rig import CONFIGMAPS, Rig, configmap, to_the_end, told

WATCH = Match(verb="watch", plural="configmaps")
QUIET = WatchQuery(bookmarks=False)


# --- from a server


async def test_events_come_in_order_and_the_server_ends_the_watch(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap("one"))
    listed = await rig.client.list(CONFIGMAPS)
    watch = rig.client.watch(CONFIGMAPS, WatchQuery(version=listed.version, timeout=300, bookmarks=False))
    assert repr(watch) == "WatchStream(configmaps in all namespaces, new, events=0, poisoned=0)"
    reading = asyncio.create_task(to_the_end(watch))
    await settle()
    assert watch.opened
    assert rig.base.counters.watches_open == 1
    server.create(configmap("two"))
    server.change(CONFIGMAPS, "one", {"data": {"a": "1"}})
    server.delete(CONFIGMAPS, "two")
    await settle()
    assert repr(watch) == "WatchStream(configmaps in all namespaces, open, events=3, poisoned=0)"
    events = await reading
    assert events == ["ADDED two", "MODIFIED one", "DELETED two"]
    assert watch.end is not None
    assert (watch.end.kind, watch.end.error, watch.end.lasted) == (EndKind.CLOSED, None, 300.0)
    assert watch.end.events == len(events)
    assert rig.base.counters.watches_open == 0
    heard = sum(len(json.dumps(obj)) for obj in server.objects(CONFIGMAPS))
    assert heard < rig.base.counters.bytes_in < 20 * heard
    assert [batch async for batch in watch] == []


async def test_a_streaming_list_ends_with_its_bookmark(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap("one"))
    server.create(configmap("two"))
    items: list[WatchItem] = []
    async with rig.client.watch(CONFIGMAPS, WatchQuery(initial_events=True)) as watch:
        async for batch in watch:
            items += batch
            if told(items)[-1] == "BOOKMARK":
                break
    assert told(items) == ["ADDED one", "ADDED two", "BOOKMARK"]
    last = items[-1]
    assert isinstance(last, WatchEvent)
    assert last.obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert version_of(last.obj) == str(server.version)
    assert watch.ended
    assert server.watches == []


async def test_a_watch_of_metadata(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap("one", a="1"))
    async with rig.client.watch(CONFIGMAPS, WatchQuery(metadata_only=True, bookmarks=False)) as watch:
        (event,) = await anext(watch)
    assert isinstance(event, WatchEvent)
    assert list(event.obj) == ["kind", "apiVersion", "metadata"]
    assert event.obj["kind"] == "PartialObjectMetadata"


async def test_a_selector_reaches_the_server(rig: Rig, server: ScriptedServer) -> None:
    marked = configmap("two")
    marked["metadata"]["labels"] = {"a": "b"}
    server.create(configmap("one"))
    server.create(marked)
    async with rig.client.watch(CONFIGMAPS, WatchQuery(labels="a=b", namespace="default", bookmarks=False)) as watch:
        assert told(await anext(watch)) == ["ADDED two"]
    assert [name_of(obj) for obj in (await rig.client.list(CONFIGMAPS, ListQuery(labels="a=b"))).items] == ["two"]


@pytest.mark.parametrize("cleanly", [True, False])
async def test_a_dropped_watch(cleanly: bool, rig: Rig, server: ScriptedServer) -> None:
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    reading = asyncio.create_task(to_the_end(watch))
    await settle()
    server.create(configmap("one"))
    await settle()
    server.drop_watches(cleanly=cleanly)
    assert await reading == ["ADDED one"]
    assert watch.end is not None
    assert watch.end.kind is (EndKind.CLOSED if cleanly else EndKind.BROKEN)
    assert isinstance(watch.end.error, Unreachable) is not cleanly


async def test_a_truncated_frame_breaks_the_watch_and_is_no_event(rig: Rig, server: ScriptedServer) -> None:
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    reading = asyncio.create_task(to_the_end(watch))
    await settle()
    server.truncate_frame()
    server.create(configmap("one"))
    assert await reading == []
    assert watch.end is not None
    assert watch.end.kind is EndKind.BROKEN


async def test_a_garbled_frame_costs_that_frame_only(rig: Rig, server: ScriptedServer) -> None:
    watch = rig.client.watch(CONFIGMAPS, WatchQuery(timeout=60, bookmarks=False))
    reading = asyncio.create_task(to_the_end(watch))
    await settle()
    server.garble()
    server.create(configmap("one"))
    server.create(configmap("two"))
    await settle()
    assert (watch.events, watch.poisoned) == (1, 1)
    assert (await reading)[:2] == ["poisoned", "ADDED two"]
    assert watch.end is not None
    assert watch.end.kind is EndKind.CLOSED


async def test_a_silent_watch_is_noticed(rig: Rig, server: ScriptedServer) -> None:
    watch = rig.client.watch(CONFIGMAPS, WatchQuery(silence=70.0, bookmarks=False))
    reading = asyncio.create_task(to_the_end(watch))
    await settle()
    server.hang_watches()
    await reading
    assert watch.end is not None
    assert watch.end.kind is EndKind.SILENT
    assert isinstance(watch.end.error, DeadlinePassed)
    assert 70.0 <= watch.end.lasted <= 75.0


async def test_a_version_that_was_compacted_away_is_expired(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap("one"))
    listed = await rig.client.list(CONFIGMAPS)
    server.create(configmap("two"))
    server.compact()
    watch = rig.client.watch(CONFIGMAPS, WatchQuery(version=listed.version))
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert watch.end.kind is EndKind.EXPIRED
    assert isinstance(watch.end.error, Expired)


@pytest.mark.parametrize(
    ("code", "kind", "error"),
    [
        (410, EndKind.EXPIRED, Expired),
        (429, EndKind.REFUSED, TooManyRequests),
        (403, EndKind.REFUSED, Forbidden),
        (500, EndKind.REFUSED, ServerError),
        (503, EndKind.REFUSED, ServerError),
    ],
)
async def test_a_refused_watch_is_asked_for_once(
    code: int, kind: EndKind, error: type[Exception], rig: Rig, server: ScriptedServer
) -> None:
    server.faults.fail(WATCH, code, retry_after=7, times=None)
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert watch.end.kind is kind
    assert isinstance(watch.end.error, error)
    assert watch.end.retry_after == 7.0
    assert not watch.opened
    assert len(server.requests) == 1
    assert rig.told == [f"watch {code} 1"]
    assert rig.base.counters.requests == {("watch", "GET", str(code)): 1}


async def test_an_unreachable_server(rig: Rig, server: ScriptedServer) -> None:
    server.down()
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert watch.end.kind is EndKind.UNREACHABLE
    server.up()
    server.faults.hang(WATCH)
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert (watch.end.kind, watch.end.lasted) == (EndKind.UNREACHABLE, 30.0)


async def test_cancelling_a_reader_closes_the_stream(rig: Rig, server: ScriptedServer) -> None:
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    reading = asyncio.create_task(to_the_end(watch))
    await settle()
    assert len(server.watches) == 1
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert server.watches == []
    assert rig.base.counters.watches_open == 0
    await watch.aclose()
    await watch.aclose()
    assert watch.end is not None
    assert watch.end.kind is EndKind.CLOSED


async def test_cancelling_while_opening_leaves_nothing_open(rig: Rig, server: ScriptedServer) -> None:
    server.answer_delay = 5.0
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    reading = asyncio.create_task(to_the_end(watch))
    await rig.clock.sleep(1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert rig.base.counters.watches_open == 0
    assert rig.told == ["watch None 1"]


async def test_closing_from_outside_ends_the_reader(rig: Rig, server: ScriptedServer) -> None:
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    reading = asyncio.create_task(to_the_end(watch))
    await settle()
    await watch.aclose()
    assert await reading == []
    assert server.watches == []


async def test_closing_while_it_opens_ends_the_reader_too(rig: Rig, server: ScriptedServer) -> None:
    server.answer_delay = 5.0
    watch = rig.client.watch(CONFIGMAPS, QUIET)
    reading = asyncio.create_task(to_the_end(watch))
    await rig.clock.sleep(1)
    await watch.aclose()
    began = rig.clock.elapsed()
    assert await reading == []
    assert rig.clock.elapsed() - began == 4.0
    assert server.watches == []
    assert rig.base.counters.watches_open == 0


async def test_leaving_the_loop_early_closes_the_stream(rig: Rig, server: ScriptedServer) -> None:
    server.create(configmap("one"))

    async def consume() -> None:
        async with rig.client.watch(CONFIGMAPS, QUIET) as watch:
            async for _ in watch:
                raise RuntimeError("of the consumer")

    with pytest.raises(RuntimeError, match="of the consumer"):
        await consume()
    assert server.watches == []


async def test_a_closed_gate_refuses_the_watch(rig: Rig, server: ScriptedServer) -> None:
    def gate() -> float | None:
        raise NotLeading("The lease has passed.", site=CallSite("", ""))

    watch = rig.base.scoped(Scope(gate=gate)).watch(CONFIGMAPS)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert watch.end.kind is EndKind.REFUSED
    assert isinstance(watch.end.error, NotLeading)
    assert server.requests == []
