from __future__ import annotations

import asyncio
import socket

import pytest

from kubectl_ctrl.client.pools import Pools, _socket
from tests.client.hands import HandClock


def test_sockets_notice_a_dead_peer_within_75_seconds() -> None:
    with _socket((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle = getattr(socket, "TCP_KEEPIDLE", None) or getattr(socket, "TCP_KEEPALIVE", None)
        assert idle is not None
        options = (idle, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        first, step, count = (made.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        assert first + step * count <= 75


def test_the_library_is_told_not_to_send_again() -> None:
    async def test() -> None:
        pools = Pools(HandClock())
        for stream in (False, True):
            pool = pools.take(stream=stream)
            assert pool.session._retry_connection is False
            pools.give_back(pool)
        await pools.close()

    asyncio.run(test())


def test_a_distrusted_pool_closes_with_its_last_request() -> None:
    async def test() -> None:
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

    asyncio.run(test())


@pytest.mark.parametrize(("pause", "same"), [(15, True), (15.1, False)])
def test_a_pause_longer_than_connections_are_kept_ends_them(pause: float, same: bool) -> None:
    async def test() -> None:
        clock = HandClock()
        pools = Pools(clock)
        first = pools.take(stream=False)
        pools.give_back(first)
        clock.advance(pause)
        assert (pools.take(stream=False) is first) == same
        await pools.close()

    asyncio.run(test())
