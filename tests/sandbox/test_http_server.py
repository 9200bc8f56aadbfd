"""The server on a real socket, without TLS: connections, streams, limits, and faults of the transport behind it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.sandbox.http.server import HttpServer
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import CONFIGMAPS, MAPS_PATH, configmap

pytestmark = pytest.mark.real_loop


class Client:
    """One connection that sends text and reads answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, *lines: str, body: bytes = b"") -> None:
        self.writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode() + body)

    def ask(self, start: str, *headers: str, body: bytes = b"") -> None:
        length = [f"Content-Length: {len(body)}"] if body else []
        self.send(f"{start} HTTP/1.1", "Host: localhost", *headers, *length, body=body)

    async def head(self) -> tuple[int, dict[str, str]]:
        start, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
        assert start.startswith("HTTP/1.1 ")
        return int(start.split()[1]), dict(line.split(": ", 1) for line in lines)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.head()
        return status, headers, await self.reader.readexactly(int(headers.get("content-length", "0")))

    async def chunk(self) -> bytes:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def ended(self) -> bool:
        try:
            return await self.reader.read() == b""
        except ConnectionResetError:
            return True


class Site:
    """A scripted server on a port, and the clients of a test."""

    port = 0

    def __init__(self) -> None:
        self.api = ScriptedServer(SystemClock())
        self.clock = FakeClock()
        self.http = HttpServer(self.api, self.clock, tls=None, most=20)
        self.clients: list[Client] = []

    async def client(self) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        self.clients.append(client)
        return client

    async def until(self, ready: Any) -> None:
        """The server's side of a connection acts some turns of the loop later."""
        async with asyncio.timeout(10):
            while not ready():
                await self.api.clock.sleep(0)


@pytest.fixture
async def site() -> AsyncGenerator[Site, None]:
    site = Site()
    site.port = await site.http.start()
    yield site
    for client in site.clients:
        client.writer.close()
    await site.http.stop()


def get(client: Client, path: str, *headers: str) -> None:
    client.ask(f"GET {path}", *headers)


async def test_requests_are_answered_in_order_on_one_connection(site: Site) -> None:
    client = await site.client()
    body = json.dumps(configmap("a", x="y")).encode()
    client.ask(f"POST {MAPS_PATH}?fieldManager=me", "Content-Type: application/json", body=body)
    get(client, f"{MAPS_PATH}/a")
    get(client, "/nowhere")
    client.ask(f"HEAD {MAPS_PATH}/a")
    get(client, f"{MAPS_PATH}?labelSelector=x%20in%20(y)")
    created, found, missing = [await client.answer() for _ in range(3)]
    assert (created[0], found[0], missing[0]) == (201, 200, 404)
    assert json.loads(found[2]) == json.loads(created[2])
    assert json.loads(found[2])["metadata"]["managedFields"][0]["manager"] == "me"
    assert found[1]["content-type"] == "application/json"
    status, headers = await client.head()
    assert (status, headers["content-length"]) == (200, str(len(found[2])))
    assert json.loads((await client.answer())[2])["items"] == []


async def test_a_client_that_closes_gets_its_answer_first(site: Site) -> None:
    client = await site.client()
    get(client, MAPS_PATH, "Connection: close")
    status, headers, _ = await client.answer()
    assert (status, headers["connection"], await client.ended()) == (200, "close", True)


async def test_a_half_closed_connection_gets_its_answer(site: Site) -> None:
    client = await site.client()
    get(client, MAPS_PATH)
    client.writer.write_eof()
    assert (await client.answer())[0] == 200
    assert await client.ended()


async def test_a_client_may_wait_before_it_sends_the_body(site: Site) -> None:
    client = await site.client()
    body = json.dumps(configmap("a")).encode()
    client.send(f"POST {MAPS_PATH} HTTP/1.1", "Host: [::1]:1", f"Content-Length: {len(body)}", "Expect: 100-continue")
    assert (await client.head())[0] == 100
    client.writer.write(body)
    assert (await client.answer())[0] == 201


async def test_a_watch_sends_chunks_until_the_server_stops(site: Site) -> None:
    client = await site.client()
    get(client, f"{MAPS_PATH}?watch=1&resourceVersion={site.api.version}")
    status, headers = await client.head()
    assert (status, headers["transfer-encoding"]) == (200, "chunked")
    site.api.create(configmap("a"))
    event = json.loads(await client.chunk())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    await site.http.stop()
    assert await client.chunk() == b""
    assert await client.ended()


async def test_a_watch_that_ends_leaves_the_connection_open(site: Site) -> None:
    client = await site.client()
    get(client, f"{MAPS_PATH}?watch=true")
    await client.head()
    await site.until(lambda: site.api.watches)
    site.api.drop_watches()
    assert await client.chunk() == b""
    get(client, MAPS_PATH)
    assert (await client.answer())[0] == 200


async def test_an_old_client_gets_a_watch_without_chunks(site: Site) -> None:
    client = await site.client()
    client.send(f"GET {MAPS_PATH}?watch=1 HTTP/1.0")
    assert "transfer-encoding" not in (await client.head())[1]
    site.api.create(configmap("a"))
    assert json.loads(await client.reader.readline())["type"] == "ADDED"


async def test_a_refused_watch_is_an_answer(site: Site) -> None:
    client = await site.client()
    get(client, f"{MAPS_PATH}?watch=1&resourceVersion=x")
    assert (await client.answer())[0] >= 400


async def test_a_client_that_leaves_ends_its_watch(site: Site) -> None:
    for leave in ("close", "write_eof"):
        client = await site.client()
        get(client, f"{MAPS_PATH}?watch=1")
        await client.head()
        await site.until(lambda: site.api.watches)
        getattr(client.writer, leave)()
        await site.until(lambda: not site.api.watches)


async def test_a_lost_answer_closes_the_connection(site: Site) -> None:
    site.api.faults.lose(Match(verb="create"))
    client = await site.client()
    client.ask(f"POST {MAPS_PATH}", body=json.dumps(configmap("a")).encode())
    assert await client.ended()
    assert site.api.get(CONFIGMAPS, "a") is not None


async def test_a_broken_watch_has_no_last_chunk(site: Site) -> None:
    client = await site.client()
    get(client, f"{MAPS_PATH}?watch=1")
    await client.head()
    await site.until(lambda: site.api.watches)
    site.api.drop_watches(cleanly=False)
    assert await client.ended()


async def test_a_slow_reader_holds_back_the_server(site: Site) -> None:
    site.api.create(configmap("a", x="y" * 1_000_000))
    slow, other = await site.client(), await site.client()
    for _ in range(60):
        get(slow, f"{MAPS_PATH}/a")
    await site.until(lambda: len(site.api.requests) >= 2)
    for _ in range(20):
        get(other, MAPS_PATH + "/none")
        assert (await other.answer())[0] == 404
    assert sum(handled.path.endswith("/a") for handled in site.api.requests) < 30
    assert [(await slow.answer())[0] for _ in range(60)] == [200] * 60


async def test_large_answers_are_compressed_on_request(site: Site) -> None:
    site.api.create(configmap("a", x="y" * 200_000))
    site.api.create(configmap("b", x="y"))
    client = await site.client()
    for name in ("a", "b"):
        get(client, f"{MAPS_PATH}/{name}", "Accept-Encoding: br, gzip")
        get(client, f"{MAPS_PATH}/{name}")
    packed, plain, small, _ = [await client.answer() for _ in range(4)]
    assert packed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain[2]
    assert "content-encoding" not in {**plain[1], **small[1]}


@pytest.mark.parametrize("host", ["example.com", "127.0.0.1.example.com", "localhost:x", ""])
async def test_a_foreign_host_is_refused(site: Site, host: str) -> None:
    client = await site.client()
    client.send("GET /version HTTP/1.1", f"Host: {host}")
    status, _, body = await client.answer()
    assert (status, json.loads(body)["reason"]) == (403, "Forbidden")
    assert site.api.requests == []


async def test_an_upgrade_is_refused_with_the_reason(site: Site) -> None:
    client = await site.client()
    get(client, "/api/v1/namespaces/default/pods/a/exec", "Connection: Upgrade", "Upgrade: websocket")
    status, _, body = await client.answer()
    assert (status, json.loads(body)["message"]) == (
        501,
        "nothing runs in the pods of a sandbox: exec, attach and port-forward are not possible",
    )


async def test_a_body_that_is_too_large_is_refused(site: Site) -> None:
    client = await site.client()
    client.ask(f"POST {MAPS_PATH}", body=b" " * (3 * 1024 * 1024 + 1))
    status, headers, body = await client.answer()
    assert (status, json.loads(body)["message"]) == (413, "Request entity too large: limit is 3145728")
    assert headers["connection"] == "close"


async def test_a_malformed_request_ends_the_connection_after_the_answers_before(site: Site) -> None:
    client = await site.client()
    get(client, "/nowhere")
    client.writer.write(b"GET /\n")
    assert (await client.answer())[0] == 404
    status, headers, body = await client.answer()
    assert (status, headers["connection"], await client.ended()) == (400, "close", True)
    assert body == b"400 Bad Request: a line of the header ends without CR"


async def test_silent_connections_are_closed_and_watches_are_not(site: Site) -> None:
    idle, partial, late, watch = [await site.client() for _ in range(4)]
    partial.writer.write(b"GET ")
    get(watch, f"{MAPS_PATH}?watch=1")
    await watch.head()
    get(idle, MAPS_PATH)
    await idle.answer()
    for seconds, left in ((59.0, 4), (2.0, 3), (30.0, 2), (30.0, 1)):
        site.clock.suspend(seconds)
        for connection in list(site.http.connections):
            connection.check()
        await site.until(lambda left=left: len(site.http.connections) == left)
        if left == 4:
            late.writer.write(b"GET /late")
            await site.until(lambda: "buffered=9" in repr(site.http.connections))
    assert await late.ended()
    assert await idle.ended()
    assert await partial.ended()


async def test_connections_beyond_the_limit_are_closed(site: Site) -> None:
    for _ in range(20):
        await site.client()
    await site.until(lambda: len(site.http.connections) == 20)
    assert await (await site.client()).ended()


async def test_a_stream_that_fails_breaks(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    client = await site.client()
    get(client, f"{MAPS_PATH}?watch=1")
    await client.head()
    await site.until(lambda: site.api.watches)
    site.api.watches[0].stop(KeyError("x"))
    assert await client.ended()
    assert "KeyError" in caplog.text


async def test_a_failure_of_the_server_is_a_status(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: HttpRequest) -> HttpResponse:
        raise KeyError(request.path)

    for name in ("send", "open"):
        setattr(site.api, name, fail)
    client = await site.client()
    get(client, "/x")
    get(client, "/y?watch=true")
    for path in ("/x", "/y"):
        status, _, body = await client.answer()
        assert (status, json.loads(body)["reason"], path in caplog.text) == (500, "InternalError", True)
