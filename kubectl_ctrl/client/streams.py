"""A streamed response: its lines as they arrive, and a timeout for silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

import aiohttp

from kubectl_ctrl.client.lines import Lines, LineTooLong
from kubectl_ctrl.client.pools import fail_when_lost
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.transport import NoAnswer, TooSlow, TransportFault

_MAX_ERROR_BODY = 1 << 20
_ERROR_BODY_TIMEOUT = 10.0


class NetworkStream:
    """HttpStream over one response, which it owns."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        headers: Mapping[str, str],
        *,
        clock: Clock,
        silence: float | None,
        explain: Callable[[Exception], str],
        on_close: Callable[[], None],
    ) -> None:
        self.status = response.status
        self.headers = headers
        self._response = response
        self._clock = clock
        self._silence = silence
        self._explain = explain
        self._on_close = on_close
        self._received_at = clock.elapsed()  # the last byte
        self._bytes = 0
        self._closed = False
        self._forget = fail_when_lost(response)
        self._watchdog = (
            asyncio.create_task(self._watch_silence(silence), name="silence") if silence is not None else None
        )

    async def batches(self) -> AsyncIterator[list[bytes]]:
        lines = Lines()
        try:
            while chunk := await self._chunk():
                if batch := lines.feed(chunk):
                    yield batch
        except LineTooLong:
            await self.close()
            raise NoAnswer("The stream contains a line longer than 64 MiB.", sent=True) from None
        await self.close()
        if lines.unfinished:
            raise NoAnswer("The stream ended in the middle of a line.", sent=True)

    async def read(self) -> bytes:
        try:
            async with self._clock.timeout(_ERROR_BODY_TIMEOUT):
                body = b""
                while len(body) < _MAX_ERROR_BODY and (chunk := await self._chunk()):
                    body += chunk
        except TimeoutError:
            raise TooSlow("The server did not finish its answer.", sent=True) from None
        finally:
            await self.close()
        return body[:_MAX_ERROR_BODY]

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._watchdog is not None:
            self._watchdog.cancel()
        self._forget()
        # A stream that reached its end has returned its connection. Any other one is dropped without TLS's goodbye: it
        # would stay open until the server answers that, up to 30 s, and the event loop may end before.
        if (connection := self._response.connection) is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()
        self._on_close()

    async def _chunk(self) -> bytes:
        """All available bytes, at least one; b"" at the end."""
        try:
            chunk = await self._response.content.readany()
        except TransportFault:
            await self.close()
            raise
        except (aiohttp.ClientError, OSError) as error:
            await self.close()
            raise NoAnswer(self._explain(error), sent=True) from None
        self._received_at = self._clock.elapsed()
        self._bytes += len(chunk)
        return chunk

    async def _watch_silence(self, silence: float) -> None:
        # One sleeping task for each stream is cheaper than a timer that is set and cancelled for each chunk.
        while (left := self._received_at + silence - self._clock.elapsed()) > 0:
            await self._clock.sleep(left)
        self._response.content.set_exception(TooSlow(f"No data arrived for {silence:g} s.", sent=True))

    def __repr__(self) -> str:
        return f"NetworkStream(status={self.status}, bytes={self._bytes}, closed={self._closed})"
