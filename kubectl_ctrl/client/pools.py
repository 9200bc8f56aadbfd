"""Connections to one server: a bounded pool for calls, and an unbounded one for streams, which hold theirs for minutes.

Idle connections that may be dead, after the machine slept or when a call hung, are left behind all at once: the pools
are replaced, and the old ones close when the last request on them has ended.
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

# Enough for every worker; a waiting call is cut by its own deadline.
_CALLS = 64
_IDLE = 15.0
_BUFFER = 1 << 18
# The kernel's own notice of a dead peer: about a minute, also for streams without a silence limit.
_TCP = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPALIVE", 30),  # the name of the one above on macOS
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 30_000),
)


class Trip:
    """How far one request got."""

    sent = False  # True as soon as a byte of it may have left


class Pool:
    """One session, and how many requests are on it."""

    def __init__(self, limit: int) -> None:
        connector = aiohttp.TCPConnector(limit=limit, keepalive_timeout=_IDLE, socket_factory=_socket)
        tracing = aiohttp.TraceConfig()
        tracing.on_request_headers_sent.append(_note_sent)
        self.session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(),  # none: deadlines are ours, and count the time that the machine slept
            read_bufsize=_BUFFER,
            trace_configs=[tracing],
            skip_auto_headers=["Accept-Encoding", "User-Agent"],
        )
        # It would send a PUT or DELETE again when an idle connection breaks, and the second answer would be a lie.
        self.session._retry_connection = False  # noqa: SLF001
        self.busy = 0


class Pools:
    """The pool for calls and the pool for streams, as of now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used_at = clock.elapsed()
        self._closing: set[asyncio.Task[None]] = set()
        self._retired: set[Pool] = set()  # those with a request that has not ended
        self._calls = Pool(_CALLS)
        self._streams = Pool(0)

    @property
    def busy(self) -> tuple[int, int]:
        return self._calls.busy, self._streams.busy

    def take(self, *, stream: bool) -> Pool:
        """A pool to send one request on; give it back."""
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
        """Use no connection of now any more, once its present request has ended."""
        old, self._calls, self._streams = (self._calls, self._streams), Pool(_CALLS), Pool(0)
        for pool in old:
            if pool.busy:
                self._retired.add(pool)
            else:
                self._close(pool)

    async def close(self) -> None:
        """Close every connection, also those in use."""
        retired, self._retired = self._retired, set()
        for pool in (self._calls, self._streams, *retired):
            self._close(pool)
        await asyncio.gather(*self._closing)

    def _close(self, pool: Pool) -> None:
        task = asyncio.create_task(pool.session.close(), name="closing connections")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def fail_when_lost(response: aiohttp.ClientResponse) -> Callable[[], object]:
    """Make sure that who reads this body hears of the connection's end; call the result when it has been read.

    When the framing of a body is broken the library drops connection and body, and tells the body's reader nothing.
    """

    def fail(ended: asyncio.Future[None] | None) -> None:
        if ended is not None:
            _noticed(ended)  # it reaches the reader in the library's own way
        if not response.content.is_eof() and response.content.exception() is None:
            response.content.set_exception(aiohttp.ClientPayloadError())

    protocol = response.connection.protocol if response.connection is not None else None
    closed = protocol.closed if protocol is not None else None  # an idle protocol is falsy
    if closed is None:
        fail(None)
        return lambda: None
    closed.add_done_callback(fail)

    def forget() -> None:
        closed.remove_done_callback(fail)
        closed.add_done_callback(_noticed)

    return forget


def _noticed(ended: asyncio.Future[None]) -> None:
    """Nobody reads the body any more; how its connection ends is of no interest, and not to be reported either."""
    if not ended.cancelled():
        ended.exception()


async def _note_sent(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: Any) -> None:
    context.trace_request_ctx.sent = True


def _socket(address: Any) -> socket.socket:
    """A socket that notices a dead peer by itself."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _TCP:
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
