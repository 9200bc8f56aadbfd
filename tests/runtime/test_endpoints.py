"""The small HTTP server for probes and metrics, over real loopback connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.runtime.endpoints import Answer, check, parse_address, serving

pytestmark = pytest.mark.real_loop


PAGES = {
    "/healthz": check(list),
    "/readyz": check(lambda: ["the cache of foos is starting", "the lease is not ours"]),
    "/metrics": lambda: Answer(200, b"up 1\n", "text/plain; version=0.0.4"),
}


async def ask(address: str, request: bytes) -> tuple[int, bytes]:
    host, port = parse_address(address)
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    whole = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = whole.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with serving("127.0.0.1:0", PAGES, clock=SystemClock()) as address:
        yield address


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        (b"GET /healthz HTTP/1.1", 200, b"ok"),
        (b"GET /healthz?verbose HTTP/1.1", 200, b"ok"),
        (b"HEAD /healthz HTTP/1.1", 200, b""),
        (b"GET /readyz HTTP/1.1", 500, b"the cache of foos is starting\nthe lease is not ours\n"),
        (b"GET /metrics HTTP/1.0", 200, b"up 1\n"),
        (b"GET / HTTP/1.1", 404, b"not found\n"),
        (b"POST /healthz HTTP/1.1", 405, b"only GET and HEAD are answered\n"),
        (b"hello", 400, b"bad request\n"),
    ],
)
async def test_plain_answers(line: bytes, code: int, text: bytes, address: str) -> None:
    assert await ask(address, line + b"\r\nHost: x\r\n\r\n") == (code, text)


async def test_a_head_without_end_is_cut_off_and_the_server_lives(address: str) -> None:
    assert await ask(address, b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n") == (0, b"")
    assert (await ask(address, b"GET /healthz HTTP/1.1\r\n\r\n"))[0] == 200


async def test_a_port_in_use_is_one_clear_error(address: str) -> None:
    with pytest.raises(UsageError, match="Cannot listen on"):
        async with serving(address, PAGES, clock=SystemClock()):
            pass


@pytest.mark.parametrize("text", ["8080", "host:", "host:port", "host:70000", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not an address"):
        parse_address(text)


@pytest.mark.parametrize(
    ("text", "address"), [(":8080", ("", 8080)), ("[::1]:1", ("::1", 1)), ("127.0.0.1:65535", ("127.0.0.1", 65535))]
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address
