"""Connections to one server: a limited pool for calls, and an unlimited one for streams, which last for minutes.

Idle connections that may be dead, after a suspend or a timeout, are all abandoned: the pools are replaced, and the old
ones are closed when their last request has finished.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp

from kubectl_ctrl.clock import Clock

# Enough for all workers; a call that waits for a connection still has its deadline.
_CALLS = 64
_IDLE = 15.0
_BUFFER = 1 << 18
# The kernel detects a dead peer after about a minute, also for streams without a silence limit.
_TCP = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPALIVE", 30),  # the name of the one above on macOS
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 30_000),
)


class RequestProgress:
    sent = False  # True as soon as a byte of it may have been sent


class Pool:
    """One session, and the number of its active requests."""

    def __init__(self, limit: int) -> None:
        connector = aiohttp.TCPConnector(limit=limit, keepalive_timeout=_IDLE, socket_factory=_socket)
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_note_sent)
        self.session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # none: our deadlines include suspended time
            read_bufsize=_BUFFER,
            trace_configs=[tracing],
            skip_auto_headers=["Accept-Encoding", "User-Agent"],
        )
        # aiohttp would send a PUT or DELETE again when an idle connection breaks. If the first one was carried out, the
        # response to the second one (404, 409) would be misleading.
        self.session._retry_connection = False  # noqa: SLF001
        self.busy = 0


class Pools:
    """The current pool for calls, and the current pool for streams."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used_at = clock.elapsed()
        self._closing: set[asyncio.Task[None]] = set()
        self._retired: set[Pool] = set()  # replaced, but with active requests
        self._calls = Pool(_CALLS)
        self._streams = Pool(0)

    @property
    def busy(self) -> tuple[int, int]:
        return self._calls.busy, self._streams.busy

    def take(self, *, stream: bool) -> Pool:
        """A pool for one request; call `give_back` afterwards."""
        now = self._clock.elapsed()
        if now - self._used_at > _IDLE:
            self.distrust()
        self._used_at = now
        pool = self._streams if stream else self._calls
        pool.busy += 1
        return pool

    def give_back(self, pool: Pool) -> None:
        pool.busy -= 1
        if pool in self._retired and pool.busy == 0:
            self._retired.remove(pool)
            self._close(pool)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[Pool]:
        """A pool for a call."""
        pool = self.take(stream=False)
        try:
            yield pool
        finally:
            self.give_back(pool)

    def distrust(self) -> None:
        """Abandon all current connections; active requests continue."""
        old, self._calls, self._streams = (self._calls, self._streams), Pool(_CALLS), Pool(0)
        for pool in old:
            if pool.busy:
                self._retired.add(pool)
            else:
                self._close(pool)

    async def close(self) -> None:
        """Close all connections, also those in use."""
        retired, self._retired = self._retired, set()
        for pool in (self._calls, self._streams, *retired):
            self._close(pool)
        await asyncio.gather(*self._closing)

    def _close(self, pool: Pool) -> None:
        task = asyncio.create_task(pool.session.close(), name="closing connections")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def fail_when_lost(response: aiohttp.ClientResponse) -> Callable[[], object]:
    """Fail the read of this body if the connection closes; call the result when the body has been read.

    If the framing of a body is invalid, aiohttp drops the connection, but the reader of the body would wait for ever.
    """

    def fail(ended: asyncio.Future[None] | None) -> None:
        if ended is not None:
            _noticed(ended)  # aiohttp itself reports this one to the reader
        if not response.content.is_eof() and response.content.exception() is None:
            response.content.set_exception(aiohttp.ClientPayloadError())

    protocol = response.connection.protocol if response.connection is not None else None
    closed = protocol.closed if protocol is not None else None  # `is not None`, because an idle protocol is falsy
    if closed is None:
        fail(None)
        return lambda: None
    closed.add_done_callback(fail)

    def forget() -> None:
        closed.remove_done_callback(fail)
        closed.add_done_callback(_noticed)

    return forget


def _noticed(ended: asyncio.Future[None]) -> None:
    """Retrieve the error of a closed connection, or asyncio logs it as never retrieved."""
    if not ended.cancelled():
        ended.exception()


async def _note_sent(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: Any) -> None:
    context.trace_request_ctx.sent = True


def _socket(address: Any) -> socket.socket:
    """A socket with keepalive probes."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TCP:
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
