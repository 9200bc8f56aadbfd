"""A small HTTP server for /metrics, /healthz and /readyz: one GET per connection.

It answers from the event loop on purpose: a blocked loop does not answer, and a probe has to notice that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)

_LONGEST_HEAD = 16 * 1024
_PATIENCE = 10.0


class Answer(Value):
    """The answer of a page."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Page = Callable[[], Answer]

_WORDS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}
_NO_SUCH_PAGE = Answer(404, b"not found\n")
_NOT_GET = Answer(405, b"only GET and HEAD are answered\n")
_NOT_HTTP = Answer(400, b"bad request\n")


def check(problems: Callable[[], list[str]]) -> Page:
    """The page of a probe: `ok`, or 500 with one line per problem."""

    def page() -> Answer:
        found = problems()
        return Answer(500, "".join(f"{problem}\n" for problem in found).encode()) if found else Answer(200, b"ok")

    return page


def parse_address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:8080`, or `:8080` for every address."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise UsageError(f"{text!r} is not an address to listen on.", next_step="write HOST:PORT, like 127.0.0.1:8080")
    return host.removeprefix("[").removesuffix("]"), int(port)


@asynccontextmanager
async def serving(address: str, pages: Mapping[str, Page], *, clock: Clock) -> AsyncIterator[str]:
    """Serve the pages within the block; yields the actual address."""
    host, port = parse_address(address)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with clock.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(head, pages))
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client is gone, slow or does not speak HTTP
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(answer, host or None, port, limit=_LONGEST_HEAD)
    except OSError as error:
        raise UsageError(
            f"Cannot listen on {address!r}: {error.strerror or error}.",
            next_step="choose another port, or stop the process that uses this one",
        ) from error
    async with server:
        name = server.sockets[0].getsockname()
        yield f"{name[0]}:{name[1]}"


def _response(head: bytes, pages: Mapping[str, Page]) -> bytes:
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/"):
        return _rendered(_NOT_HTTP, with_body=True)
    method, target = words[0], words[1].split("?", 1)[0]
    if method not in ("GET", "HEAD"):
        return _rendered(_NOT_GET, with_body=True)
    page = pages.get(target)
    return _rendered(page() if page else _NO_SUCH_PAGE, with_body=method == "GET")


def _rendered(answer: Answer, *, with_body: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {_WORDS[answer.status]}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (answer.body if with_body else b"")
