"""The scripted API server over HTTP on loopback: in this loop, or in a thread for tests that start processes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import parse_qsl, unquote

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client import loopback

T = TypeVar("T")
PATIENCE = 60.0


def http(server: ScriptedServer) -> loopback.Answer:
    """The server as HTTP responses."""

    async def answer(request: loopback.Request, writer: asyncio.StreamWriter) -> None:
        path, _, query = request.target.partition("?")
        asked = HttpRequest(
            method=request.method,
            path=unquote(path),
            query=tuple(parse_qsl(query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in request.headers},
            body=request.body or None,
        )
        if dict(asked.query).get("watch") not in ("true", "1"):
            writer.write(_whole(await server.send(asked)))
            return
        stream = await server.open(asked)
        if stream.status != 200:
            writer.write(_whole(HttpResponse(status=stream.status, headers=stream.headers, body=await stream.read())))
            return
        writer.write(loopback.STREAM)
        async for lines in stream.batches():
            writer.write(loopback.chunk(b"".join(line + b"\n" for line in lines)))
            await writer.drain()
        writer.write(loopback.chunk(b""))

    return answer


def _whole(response: HttpResponse) -> bytes:
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return loopback.plain(response.body, f"{response.status} Status", **headers)


class Served:
    """A scripted server in the loop of another thread; each use of it runs there."""

    def __init__(self, url: str, server: ScriptedServer, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self._server = server
        self._loop = loop

    def do(self, use: Callable[[ScriptedServer], T]) -> T:
        async def used() -> T:
            return use(self._server)

        return asyncio.run_coroutine_threadsafe(used(), self._loop).result(PATIENCE)

    def until(self, condition: Callable[[ScriptedServer], T]) -> T:
        """The first true value of the condition, which is evaluated at every change of an object."""

        async def met() -> T:
            changed = asyncio.Event()
            self._server.storage.listeners.append(lambda *_: changed.set())
            async with asyncio.timeout(PATIENCE):
                while not (value := condition(self._server)):
                    changed.clear()
                    await changed.wait()
            return value

        return asyncio.run_coroutine_threadsafe(met(), self._loop).result(PATIENCE + 5)


@contextmanager
def served() -> Iterator[Served]:
    started: list[Served] = []
    ready, ended = threading.Event(), asyncio.Event()

    async def main() -> None:
        server = ScriptedServer(SystemClock())
        async with loopback.serving(http(server)) as box:
            started.append(Served(box.url, server, asyncio.get_running_loop()))
            ready.set()
            await ended.wait()
            await server.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),), name="scripted-server")
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield started[0]
    finally:
        started[0].do(lambda _: ended.set())
        thread.join(PATIENCE)
