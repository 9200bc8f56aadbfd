from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp import ClientPayloadError

from kubectl_ctrl.client.pools import Pools, RequestProgress, _socket, fail_when_lost
from tests.client.hands import HandClock, until
from tests.client.loopback import STREAM, Request, serving
from tests.objects import present

pytestmark = pytest.mark.real_loop


def test_sockets_notice_a_dead_peer_within_75_seconds() -> None:
    with _socket((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle = present(getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None))
        options = (idle, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        first, step, count = (made.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        assert first + step * count <= 75


async def test_the_library_is_told_not_to_send_again() -> None:
    pools = Pools(HandClock())
    for stream in (False, True):
        pool = pools.take(stream=stream)
        assert pool.session._retry_connection is False
        pools.give_back(pool)
    await pools.close()


@pytest.mark.parametrize("late", [False, True])
async def test_a_body_with_broken_framing_ends_in_an_error(late: bool) -> None:
    broken = asyncio.Event()

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM)
        await broken.wait()
        writer.write(b"zz\r\n")

    pools = Pools(HandClock())
    pool = pools.take(stream=True)
    async with serving(answer) as box:
        response = await pool.session.get(box.url, trace_request_ctx=RequestProgress())
        if not late:
            fail_when_lost(response)
        broken.set()
        await until(lambda: box.open == 0)
        await asyncio.sleep(0)
        # The library itself has said nothing, which is why this is needed.
        assert (response.content.exception() is None) == late
        fail_when_lost(response)
        with pytest.raises(ClientPayloadError):
            await response.content.readany()
        response.close()
    pools.give_back(pool)
    await pools.close()


async def test_a_distrusted_pool_closes_with_its_last_request() -> None:
    pools = Pools(HandClock())
    busy, streaming = pools.take(stream=False), pools.take(stream=True)
    pools.distrust()
    assert pools.take(stream=False) is not busy
    assert busy.session.closed is False
    pools.give_back(busy)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (busy.session.closed, streaming.session.closed) == (True, False)
    pools.give_back(streaming)
    await pools.close()
    assert streaming.session.closed


@pytest.mark.parametrize(("pause", "same"), [(15, True), (15.1, False)])
async def test_a_pause_longer_than_connections_are_kept_ends_them(pause: float, same: bool) -> None:
    clock = HandClock()
    pools = Pools(clock)
    first = pools.take(stream=False)
    pools.give_back(first)
    clock.advance(pause)
    assert (pools.take(stream=False) is first) == same
    await pools.close()
