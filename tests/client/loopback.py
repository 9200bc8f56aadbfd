"""A server on loopback that does exactly what a test says, byte by byte, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.kubeconfig.kubeconfigs import CERTIFICATES
from tests.objects import present


@dataclass
class Request:
    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int  # which connection it came on, from 1
    server_name: str | None = None  # the name in the TLS handshake
    peer: str = ""  # the common name of the client's certificate

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def one(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def plain(body: bytes = b"{}", status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines])
    return head.encode() + b"\r\n\r\n" + body


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


async def say_ok(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(plain())


@dataclass
class Loopback:
    """Its `answer` may be changed at any time; an answer that closes the writer closes the connection."""

    url: str
    answer: Answer = say_ok
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    server_name: str | None = None

    @property
    def last(self) -> Request:
        return self.requests[-1]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        try:
            while (request := await self._read(reader, writer, number)) is not None:
                self.requests.append(request)
                await self.answer(request, writer)
                if writer.is_closing():
                    return
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> Request | None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")[:-2]
        method, target, _ = first.split(" ")
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in rest)]
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        body = await reader.readexactly(length)
        found: Any = writer.get_extra_info("peercert") or {}
        names = [value for pairs in found.get("subject", ()) for key, value in pairs if key == "commonName"]
        return Request(method, target, headers, body, number, self.server_name, next(iter(names), ""))


def server_tls(name: str = "server", *, ask: bool = True) -> ssl.SSLContext:
    """A server's context with one of the certificates; it asks clients for theirs, and takes what the CA signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem", CERTIFICATES / f"{name}.key.pem")
    if ask:
        context.load_verify_locations(CERTIFICATES / "ca.pem")
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


@asynccontextmanager
async def serving(answer: Answer = say_ok, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Loopback]:
    box = Loopback("", answer)
    if tls is not None:

        def note_name(_socket: Any, name: str | None, _context: Any) -> None:
            box.server_name = name

        tls.sni_callback = note_name
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(box.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    box.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield box
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def proxying(*, to: int | None = None) -> AsyncIterator[Loopback]:
    """An HTTP proxy that remembers its requests and tunnels to where it is told, or always to one port of loopback."""
    box = Loopback("")
    pumps: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)
        writer.close()

    def start(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(pump(reader, writer))
        pumps.add(task)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = present(await box._read(reader, writer, len(box.requests) + 1))
        box.requests.append(request)
        host, _, port = (request.target if request.method == "CONNECT" else urlsplit(request.target).netloc).rpartition(
            ":"
        )
        where = (host, int(port)) if to is None else ("127.0.0.1", to)
        to_reader, to_writer = await asyncio.open_connection(*where)
        if request.method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            lines = [f"{request.method} {urlsplit(request.target).path} HTTP/1.1"]
            lines += [f"{name}: {value}" for name, value in request.headers]
            to_writer.write("\r\n".join([*lines, "", ""]).encode())
        start(reader, to_writer)
        start(to_reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    box.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield box
    finally:
        server.close()
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
