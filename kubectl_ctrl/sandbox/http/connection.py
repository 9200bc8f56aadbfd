"""One connection: its requests are answered one after the other, and its streams until either side ends them."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import cast
from urllib.parse import parse_qsl

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream, Transport, TransportFault
from kubectl_ctrl.sandbox.auth.attributes import is_true
from kubectl_ctrl.sandbox.encoding.bodies import LARGEST
from kubectl_ctrl.sandbox.http import responses
from kubectl_ctrl.sandbox.http.parser import Malformed, ReceivedRequest, RequestParser

_log = logging.getLogger(__name__)

IDLE = 90.0  # seconds without a request, as a kube-apiserver waits
INCOMPLETE = 60.0  # seconds for the rest of a request
_PIECE = 256 * 1024  # bytes of an answer that are written at once, and that may wait for a slow reader
_MOST_WAITING = 256 * 1024  # bytes of later requests that are read while one is answered
_STREAMING = ("watch", "follow")  # query parameters of answers without an end


class Connection(asyncio.Protocol):
    def __init__(self, transport: Transport, clock: Clock, opened: set[Connection]) -> None:
        self._transport = transport
        self._clock = clock
        self._opened = opened
        self._parser = RequestParser(LARGEST)
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._since = clock.elapsed()  # of the last request's end, or of the next one's first byte
        self._begun = False  # the next request is incomplete
        self._busy = False  # a request is being answered
        self._paused = False
        self._half_closed = False
        self._ending = False
        self._stream: HttpStream | None = None

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tcp = cast(asyncio.Transport, transport)
        self._tcp.set_write_buffer_limits(high=_PIECE)
        self._opened.add(self)
        self.task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        self._arrived.set()
        if not self._busy and not self._begun:
            self._begun, self._since = True, self._clock.elapsed()
        if self._busy and self._parser.buffered > _MOST_WAITING and not self._paused:
            self._paused = True
            self._tcp.pause_reading()

    def eof_received(self) -> bool:
        """A client that sends nothing more may still read an answer, but no watch. Over TLS it can do neither."""
        self._half_closed = True
        self._arrived.set()
        if self._stream is not None:
            self.task.cancel()
        return self._tcp.get_extra_info("sslcontext") is None

    def connection_lost(self, error: Exception | None) -> None:
        self._opened.discard(self)
        self.task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # -- called by the server

    def check(self) -> None:
        """Close it if the client has been silent for too long, or does not read the last answer."""
        silent = self._clock.elapsed() - self._since
        if self._busy or silent <= (INCOMPLETE if self._begun else IDLE):
            return
        if self._tcp.is_closing():
            self._tcp.abort()
        else:
            self._tcp.close()

    async def end(self) -> None:
        """The last answer ends the connection; a stream ends now, as a complete answer."""
        self._ending = True
        self._arrived.set()
        if self._stream is not None:
            await self._stream.close()

    def abort(self) -> None:
        self._tcp.abort()

    # -- the task

    async def _serve(self) -> None:
        try:
            while (request := await self._next()) is not None and await self._answer(request):
                pass
        except Malformed as error:
            response = responses.malformed(error)
            self._tcp.write(responses.head(response, self._clock.now(), closes=True) + response.body)
        except TransportFault:
            self._tcp.abort()
        except Exception:  # noqa: BLE001 - one failure breaks one stream
            _log.exception("A stream failed")
            self._tcp.abort()
        finally:
            self._busy, self._since = False, self._clock.elapsed()
            self._tcp.close()

    async def _next(self) -> ReceivedRequest | None:
        """The next request; None if there will be none."""
        self._busy, self._since = False, self._clock.elapsed()
        while not self._ending:
            request = self._parser.take()
            self._begun = self._parser.buffered > 0 or self._begun
            if request is not None:
                self._busy, self._begun = True, False
                return request
            if self._half_closed:
                return None
            if self._parser.awaits_continue:
                self._parser.awaits_continue = False
                self._tcp.write(responses.CONTINUE)
            if self._paused:
                self._paused = False
                self._tcp.resume_reading()
            self._arrived.clear()
            await self._arrived.wait()
        return None

    async def _answer(self, request: ReceivedRequest) -> bool:
        """Whether the connection stays open."""
        answer: HttpResponse | HttpStream | None = responses.refusal(request)
        if answer is None:
            answer = await self._answer_of(_asked(request), streamed=request.method == "GET")
        if isinstance(answer, HttpResponse):
            return await self._reply(request, answer)
        try:
            if answer.status != 200:
                body = await answer.read()
                return await self._reply(request, HttpResponse(status=answer.status, headers=answer.headers, body=body))
            self._stream = answer
            if self._half_closed or self._ending:
                await answer.close()
            return await self._copy(request, answer)
        finally:
            self._stream = None
            await answer.close()

    async def _answer_of(self, asked: HttpRequest, *, streamed: bool) -> HttpResponse | HttpStream:
        """The answer of the API server, even if it fails."""
        try:
            if streamed and _has_no_end(asked):
                return await self._transport.open(asked)
            return await self._transport.send(asked)
        except TransportFault:
            raise
        except Exception:  # noqa: BLE001 - one failure is one answer
            _log.exception("The API server failed at %s %s", asked.method, asked.path)
            return responses.failed()

    async def _reply(self, request: ReceivedRequest, response: HttpResponse) -> bool:
        if responses.is_compressible(request, response):
            response = await asyncio.to_thread(responses.compressed, response)
        keeps = request.keeps and not self._ending and not request.too_large
        head = responses.head(response, self._clock.now(), closes=not keeps)
        body = b"" if request.method == "HEAD" else response.body
        if len(body) <= _PIECE:
            await self._write(head + body)
            return keeps
        await self._write(head)
        view = memoryview(body)
        for start in range(0, len(body), _PIECE):
            await self._write(view[start : start + _PIECE])
        return keeps

    async def _copy(self, request: ReceivedRequest, stream: HttpStream) -> bool:
        chunked = request.minor == 1
        keeps = chunked and request.keeps
        now = self._clock.now()
        await self._write(responses.stream_head(stream.status, stream.headers, now, closes=not keeps, chunked=chunked))
        async with aclosing(stream.batches()) as batches:  # type: ignore[type-var]
            async for lines in batches:
                data = b"\n".join(lines) + b"\n"
                await self._write(responses.chunk(data) if chunked else data)
        if chunked:
            await self._write(responses.LAST_CHUNK)
        return keeps

    async def _write(self, data: bytes | memoryview) -> None:
        """Returns when the client has read enough."""
        self._tcp.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def __repr__(self) -> str:
        state = "streaming" if self._stream else "busy" if self._busy else "idle"
        return f"Connection({state}, buffered={self._parser.buffered})"


def _asked(request: ReceivedRequest) -> HttpRequest:
    path, _, query = request.target.partition("?")
    return HttpRequest(
        method="GET" if request.method == "HEAD" else request.method,
        path=path,
        query=tuple(parse_qsl(query, keep_blank_values=True)) if query else (),
        headers=request.headers,
        body=request.body or None,
    )


def _has_no_end(asked: HttpRequest) -> bool:
    return any(name in _STREAMING and is_true(value) for name, value in asked.query)
