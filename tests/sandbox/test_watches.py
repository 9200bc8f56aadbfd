from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.model.transport import HttpRequest, HttpStream, NoAnswer, TooSlow
from kubectl_ctrl.testing.loop import settle
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import CONFIGMAPS, foo, foo_crd

PATH = "/api/v1/configmaps"


def configmap(name: str, **labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


class Watcher:
    """One watch, read in the background."""

    def __init__(self, stream: HttpStream, server: ScriptedServer) -> None:
        self.stream = stream
        self.lines: list[bytes] = []
        self.error: Exception | None = None
        self.ended: float | None = None
        self._server = server

    async def read(self) -> None:
        try:
            async for batch in self.stream.batches():
                assert batch
                self.lines += batch
        except (NoAnswer, TooSlow) as error:
            self.error = error
        self.ended = self._server.clock.elapsed()

    @property
    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.lines]

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in self.events]


@asynccontextmanager
async def watching(server: ScriptedServer, *, silence: float | None = None, **query: str) -> AsyncIterator[Watcher]:
    query.setdefault("resourceVersion", str(server.version))
    request = HttpRequest(method="GET", path=PATH, query=(("watch", "1"), *query.items()), silence=silence)
    stream = await server.open(request)
    assert stream.status == 200
    watcher = Watcher(stream, server)
    task = asyncio.create_task(watcher.read())
    await settle()
    try:
        yield watcher
    finally:
        await stream.close()
        await task


def change(server: ScriptedServer, name: str, **labels: str | None) -> Obj:
    return server.change(CONFIGMAPS, name, {"metadata": {"labels": labels}})


async def test_changes_are_told_in_order_with_their_versions(server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.create(configmap("one"))
        change(server, "one", a="b")
        server.delete(CONFIGMAPS, "one")
        await settle()
        assert watcher.told == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in watcher.events]
        assert versions == [server.version - 2, server.version - 1, server.version]
        assert watcher.events[2]["object"]["metadata"]["labels"] == {"a": "b"}


async def test_resuming_tells_what_came_after(server: ScriptedServer) -> None:
    server.create(configmap("one"))
    seen = server.version
    server.create(configmap("two"))
    server.create(configmap("three"))
    async with watching(server, resourceVersion=str(seen)) as watcher:
        assert watcher.told == [("ADDED", "two"), ("ADDED", "three")]


async def test_entering_and_leaving_a_selection(server: ScriptedServer) -> None:
    async with watching(server, labelSelector="tier=web") as watcher:
        server.create(configmap("one"))
        change(server, "one", tier="web")
        change(server, "one", other="x")
        change(server, "one", tier="db")
        server.delete(CONFIGMAPS, "one")
        await settle()
        assert watcher.told == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]
        gone = watcher.events[2]["object"]["metadata"]
        assert gone["labels"] == {"tier": "web", "other": "x"}
        assert gone["resourceVersion"] == str(server.version - 1)


async def test_a_name_and_a_namespace_select_too(server: ScriptedServer) -> None:
    async with watching(server, fieldSelector="metadata.name=two") as watcher:
        server.create(configmap("one"))
        server.create(configmap("two"))
        await settle()
        assert watcher.told == [("ADDED", "two")]


async def test_initial_events_end_with_their_bookmark(server: ScriptedServer) -> None:
    server.create(configmap("one"))
    server.create(configmap("two"))
    query: Any = {
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    async with watching(server, resourceVersion="", **query) as watcher:
        server.create(configmap("three"))
        await settle()
        assert watcher.told == [("ADDED", "one"), ("ADDED", "two"), ("BOOKMARK", ""), ("ADDED", "three")]
        meta = watcher.events[2]["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert meta["resourceVersion"] == str(server.version - 1)
        assert "annotations" not in watcher.events[0]["object"]["metadata"]


async def test_initial_events_must_be_asked_for_rightly(server: ScriptedServer) -> None:
    async def code(**query: str) -> int:
        request = HttpRequest(method="GET", path=PATH, query=(("watch", "1"), *query.items()))
        stream = await server.open(request)
        await stream.close()
        return stream.status

    assert await code(sendInitialEvents="true") == 422
    assert await code(sendInitialEvents="true", resourceVersionMatch="NotOlderThan") == 200
    server.streaming_lists = False
    assert await code(sendInitialEvents="true", resourceVersionMatch="NotOlderThan") == 422
    listed = HttpRequest(method="GET", path=PATH, query=(("sendInitialEvents", "true"),))
    assert (await server.send(listed)).status == 422


async def test_an_open_watch_that_lags_is_expired_by_a_compaction(server: ScriptedServer) -> None:
    server.watch_delay = 5
    async with watching(server) as watcher:
        server.create(configmap("one"))
        await server.clock.sleep(1)
        server.create(configmap("two"))
        server.compact()
        await server.clock.sleep(20)
        assert watcher.told == [("ADDED", "one"), ("ERROR", "")]
        assert watcher.events[1]["object"]["reason"] == "Expired"


async def test_a_crd_that_goes_ends_its_watches(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"))
    path = "/apis/example.com/v1/foos"
    query = (("watch", "1"), ("resourceVersion", str(server.version)))
    stream = await server.open(HttpRequest(method="GET", path=path, query=query))
    watcher = Watcher(stream, server)
    task = asyncio.create_task(watcher.read())
    server.delete(CRDS, "foos.example.com")
    await task
    assert watcher.told == [("DELETED", "one")]
    assert watcher.error is None
    assert (await server.open(HttpRequest(method="GET", path=path, query=query))).status == 404


async def test_bookmarks_come_each_minute_and_before_the_end(server: ScriptedServer) -> None:
    start = server.clock.elapsed()
    async with watching(server, allowWatchBookmarks="true", timeoutSeconds="150") as watcher:
        server.create(configmap("one"))
        await server.clock.sleep(61)
        server.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "elsewhere"}})
        await server.clock.sleep(100)
        assert watcher.told == [("ADDED", "one"), *[("BOOKMARK", "")] * 3]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in watcher.events]
        assert versions == [server.version - 1, server.version - 1, server.version, server.version]
        assert watcher.error is None
        assert watcher.ended == start + 150


async def test_no_bookmarks_unless_asked_for(server: ScriptedServer) -> None:
    async with watching(server, timeoutSeconds="150") as watcher:
        await server.clock.sleep(200)
        assert watcher.lines == []


async def test_a_watch_from_before_the_compaction_is_expired(server: ScriptedServer) -> None:
    server.create(configmap("one"))
    seen = server.version
    server.create(configmap("two"))
    server.compact()
    async with watching(server, resourceVersion=str(seen)) as watcher:
        (event,) = watcher.events
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert event["object"]["message"] == f"too old resource version: {seen} ({server.version})"
        assert watcher.ended is not None
    async with watching(server) as watcher:
        server.create(configmap("three"))
        await settle()
        assert watcher.told == [("ADDED", "three")]


async def test_an_open_watch_that_is_up_to_date_outlives_a_compaction(server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "elsewhere"}})
        server.compact()
        server.create(configmap("one"))
        await settle()
        assert watcher.told == [("ADDED", "one")]


@pytest.mark.parametrize("cleanly", [True, False])
async def test_dropping(cleanly: bool, server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.create(configmap("one"))
        await settle()
        assert server.drop_watches(cleanly=cleanly) == 1
        await settle()
        assert watcher.told == [("ADDED", "one")]
        assert watcher.ended is not None
        assert (watcher.error is None) is cleanly
        assert server.watches == []


async def test_half_open_is_silent_until_the_client_gives_up(server: ScriptedServer) -> None:
    start = server.clock.elapsed()
    query: Any = {"allowWatchBookmarks": "true", "timeoutSeconds": "290"}
    async with watching(server, **query, silence=100) as watcher:
        await server.clock.sleep(70)
        server.hang_watches()
        server.create(configmap("one"))
        await server.clock.sleep(1000)
        assert watcher.told == [("BOOKMARK", "")]
        assert isinstance(watcher.error, TooSlow)
        assert watcher.ended == start + 60 + 100
    async with watching(server) as watcher:
        server.create(configmap("two"))
        await settle()
        assert watcher.told == [("ADDED", "two")]


async def test_other_namespaces_news_do_not_break_the_silence(server: ScriptedServer) -> None:
    start = server.clock.elapsed()
    async with watching(server, silence=10, labelSelector="a=b") as watcher:
        for number in range(4):
            await server.clock.sleep(4)
            server.create(configmap(f"m{number}"))
        assert watcher.ended == start + 10


async def test_a_truncated_frame_breaks_the_stream(server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.create(configmap("one"))
        await settle()
        server.truncate_frame()
        server.create(configmap("two"))
        server.create(configmap("three"))
        await settle()
        assert watcher.told == [("ADDED", "one"), ("ADDED", "two")]
        assert isinstance(watcher.error, NoAnswer)


async def test_a_garbled_event_is_one_line_and_the_stream_goes_on(server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.garble()
        server.garble(make=lambda _line: b'{"type":"ADDED","object":7}')
        for name in ("one", "two", "three"):
            server.create(configmap(name))
            await settle()
        with pytest.raises(ValueError, match=r"utf-8|decode"):
            json.loads(watcher.lines[0])
        assert json.loads(watcher.lines[1])["object"] == 7
        assert json.loads(watcher.lines[2])["object"]["metadata"]["name"] == "three"


async def test_a_version_from_the_future_is_silent_after_a_restore(server: ScriptedServer) -> None:
    kept = server.version
    server.create(configmap("one"))
    server.create(configmap("two"))
    seen = server.version
    server.restore(kept)
    assert server.objects(CONFIGMAPS) == []
    server.create(configmap("three"))
    assert server.version == kept + 1
    start = server.clock.elapsed()
    query: Any = {"allowWatchBookmarks": "true", "timeoutSeconds": "290"}
    async with watching(server, resourceVersion=str(seen), **query) as watcher:
        await server.clock.sleep(300)
        assert (watcher.lines, watcher.error, watcher.ended) == ([], None, start + 290)
    async with watching(server, resourceVersion=str(seen)) as watcher:
        server.create(configmap("four"))
        server.create(configmap("five"))
        await settle()
        assert watcher.told == [("ADDED", "five")]


async def test_a_restore_breaks_open_watches(server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.restore(server.version)
        await settle()
        assert isinstance(watcher.error, NoAnswer)


async def test_down_breaks_watches_and_refuses_new_ones(server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.down()
        await settle()
        assert isinstance(watcher.error, NoAnswer)
        with pytest.raises(NoAnswer) as caught:
            await server.open(HttpRequest(method="GET", path=PATH, query=(("watch", "1"),)))
        assert not caught.value.sent
    server.up()
    async with watching(server) as watcher:
        assert watcher.ended is None


async def test_events_may_be_late(server: ScriptedServer) -> None:
    server.watch_delay = 3.0
    async with watching(server) as watcher:
        server.create(configmap("one"))
        await server.clock.sleep(2)
        assert watcher.lines == []
        await server.clock.sleep(2)
        assert watcher.told == [("ADDED", "one")]


async def test_metadata_alone_on_request(server: ScriptedServer) -> None:
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    query = (("watch", "1"), ("resourceVersion", str(server.version)))
    request = HttpRequest(method="GET", path=PATH, query=query, headers={"Accept": accept})
    stream = await server.open(request)
    server.create({**configmap("one"), "data": {"a": "b"}})
    (line,) = await anext(stream.batches())
    assert json.loads(line)["object"].keys() == {"kind", "apiVersion", "metadata"}
    assert json.loads(line)["object"]["kind"] == "PartialObjectMetadata"


async def test_a_compaction_up_to_the_next_change_expires_no_watch(server: ScriptedServer) -> None:
    async with watching(server) as watcher:
        server.create(foo_crd())  # a change of another type
        server.create(configmap("b"))
        server.compact(server.version - 1)
        await settle()
        assert watcher.told == [("ADDED", "b")]
