"""The listening socket, its connections and their limits."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.transport import Transport
from kubectl_ctrl.sandbox.http.connection import Connection

HOST = "127.0.0.1"
MOST_CONNECTIONS = 1000
_PACE = 5.0  # seconds between two checks for silent clients
_HANDSHAKE = 10.0  # seconds for TLS
_END = 5.0  # seconds until the end of requests that are being answered


class HttpServer:
    """Serves a transport on a port of the loopback interface."""

    def __init__(
        self, transport: Transport, clock: Clock, *, tls: ssl.SSLContext | None, most: int = MOST_CONNECTIONS
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._tls = tls
        self._most = most
        self.port = 0
        self.connections: set[Connection] = set()

    async def start(self, port: int = 0) -> int:
        """Listen, and return the port; OSError if it is taken."""
        patience = _HANDSHAKE if self._tls else None
        self._server = await asyncio.get_running_loop().create_server(
            self._connection, HOST, port, ssl=self._tls, ssl_handshake_timeout=patience, backlog=512
        )
        self._checks = asyncio.create_task(self._check())
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Listen no more, answer what was received, and end all streams cleanly."""
        self._server.close()
        self._checks.cancel()
        tasks = [connection.task for connection in self.connections]
        for connection in list(self.connections):
            await connection.end()
        with suppress(TimeoutError):
            async with self._clock.timeout(_END):
                await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self.connections):
            connection.abort()

    def _connection(self) -> asyncio.Protocol:
        if len(self.connections) >= self._most:
            return _Refused()
        return Connection(self._transport, self._clock, self.connections)

    async def _check(self) -> None:
        while True:
            await self._clock.sleep(_PACE)
            for connection in list(self.connections):
                connection.check()

    def __repr__(self) -> str:
        return f"HttpServer(connections={len(self.connections)})"


class _Refused(asyncio.Protocol):
    """One connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
