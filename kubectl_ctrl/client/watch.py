"""A watch: one request, batches of items, and one typed end, after which the reflector decides.

An invalid line becomes an InvalidItem, and the stream continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from enum import StrEnum
from types import AsyncGeneratorType, TracebackType

import orjson

from kubectl_ctrl.client import requests
from kubectl_ctrl.client.calls import Caller
from kubectl_ctrl.client.options import WatchQuery
from kubectl_ctrl.client.responses import refused_in_stream
from kubectl_ctrl.client.shapes import ExpectedType, InvalidItem, expected_of, flaw_of, projected
from kubectl_ctrl.client.words import plain, sentence
from kubectl_ctrl.errors import ApiError, CallError, CtrlError, DeadlinePassed, Expired, Unreachable
from kubectl_ctrl.model.objects import PARTIAL_KIND, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpStream, TooSlow, TransportFault
from kubectl_ctrl.value import Value

# After so many lines other tasks run: about 5 ms with objects of 9 KB.
_TURN = 64


class EventKind(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(Value):
    """One change. The object is new, and the consumer may change it."""

    kind: EventKind
    obj: Obj


WatchItem = WatchEvent | InvalidItem


class EndKind(StrEnum):
    CLOSED = "closed"  # by the server, as every few minutes, or by the consumer
    EXPIRED = "expired"  # 410: the version is too old, and a list is needed
    SILENT = "silent"  # no data for too long: the connection is dead
    BROKEN = "broken"  # truncated or invalid
    REFUSED = "refused"  # by the server or the gate
    UNREACHABLE = "unreachable"  # no response to the request


class WatchEnd(Value, kw_only=True):
    """Why and when a watch ended."""

    kind: EndKind
    error: CtrlError | None = None
    retry_after: float | None = None
    lasted: float = 0.0  # seconds since the request
    events: int = 0  # bookmarks included, poisoned lines not


class WatchStream:
    """Iterate over it once; it raises nothing but CancelledError. Afterwards `end` has the reason.

    Use it as a context manager, which closes the stream even if the consumer leaves the loop early.
    """

    def __init__(self, caller: Caller, resource: Resource, query: WatchQuery) -> None:
        self.end: WatchEnd | None = None
        self._opened = asyncio.Event()
        self.events = 0
        self.poisoned = 0
        self._caller = caller
        self._order = requests.watch(resource, query)
        self._silence = query.silence
        self._expected = expected_of(self._order, query)
        self._began = caller.wire.clock.elapsed()
        self._stream: HttpStream | None = None
        self._lines: AsyncIterator[list[bytes]] | None = None
        self._waiting: list[bytes] = []  # lines that arrived together
        self._next_line = 0  # index of the first line that is not decoded
        self._site = self._order.site("")

    def __aiter__(self) -> WatchStream:
        return self

    async def __anext__(self) -> list[WatchItem]:
        while not self.ended:
            if items := await self._step():
                return items
        raise StopAsyncIteration

    @property
    def ended(self) -> bool:
        return self.end is not None

    @property
    def opened(self) -> bool:
        """Whether the server accepted the request."""
        return self._opened.is_set()

    async def accepted(self) -> None:
        """Return when the server has accepted the request; never if it does not."""
        await self._opened.wait()

    async def aclose(self) -> None:
        """Close the stream; may be called twice."""
        self._ended(EndKind.CLOSED)
        await self._close()

    async def __aenter__(self) -> WatchStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _step(self) -> list[WatchItem]:
        try:
            items = await self._next()
        except BaseException:
            await self._close()
            raise
        if self.ended:
            await self._close()
        return items

    async def _next(self) -> list[WatchItem]:
        """The next items, perhaps none; sets `end` after the last one."""
        if self._next_line >= len(self._waiting):
            if not await self._receive():
                return []
        elif self._next_line % _TURN == 0:
            await self._caller.wire.clock.sleep(0)
        # One at a time: a decoded Pod is 60 KB of small objects, which the consumer then still finds in the processor's
        # cache. With eight lines decoded ahead, the way from bytes to the store took 1.5 times as long.
        line = self._waiting[self._next_line]
        self._next_line += 1
        return self._decoded(line)

    async def _receive(self) -> bool:
        """Wait for lines; False at the end of the stream."""
        try:
            if self._lines is None:
                self._began = self._caller.wire.clock.elapsed()
                self._stream, self._site = await self._caller.open(self._order, self._silence)
                self._caller.wire.counters.watches_open += 1
                self._opened.set()
                self._lines = self._stream.batches()
            if not self.ended:  # aclose() may have been called while it was being opened
                self._waiting, self._next_line = await anext(self._lines), 0
                self._caller.wire.counters.bytes_in += sum(map(len, self._waiting))
        except StopAsyncIteration:
            self._ended(EndKind.CLOSED)
        except TransportFault as exc:
            self._broken(exc)
        except CtrlError as exc:
            self._refused(exc)
        return not self.ended

    async def _close(self) -> None:
        stream, lines = self._stream, self._lines
        self._stream = self._lines = None
        self._waiting = []
        if stream is None:
            return
        self._caller.wire.counters.watches_open -= 1
        await stream.close()
        if isinstance(lines, AsyncGeneratorType) and not lines.ag_running:
            await lines.aclose()  # otherwise the event loop closes it later, in a task that nobody awaits

    # --- lines

    def _decoded(self, line: bytes) -> list[WatchItem]:
        """The item of one line; none for an ERROR event, which ends the stream."""
        item = event_of(line, self._expected)
        if isinstance(item, dict):
            self._refused(refused_in_stream(item, self._order, self._site, self._caller.wire.clock.now()))
            return []
        if isinstance(item, InvalidItem):
            self.poisoned += 1
        else:
            self.events += 1
        return [item]

    # --- ends

    def _refused(self, error: CtrlError) -> None:
        match error:
            case Expired():
                kind = EndKind.EXPIRED
            case Unreachable() | DeadlinePassed():
                kind = EndKind.UNREACHABLE
            case CallError() if not isinstance(error, ApiError) and self.opened:
                kind = EndKind.BROKEN
            case _:
                kind = EndKind.REFUSED
        self._ended(kind, error, error.retry_after if isinstance(error, CallError) else None)

    def _broken(self, fault: TransportFault) -> None:
        what = f"watch {self._order.target}"
        reason = sentence(plain(str(fault)))
        if isinstance(fault, TooSlow):
            error: CallError = DeadlinePassed(f"The server sent no data for {what}. {reason}", site=self._site)
            self._ended(EndKind.SILENT, error)
        else:
            self._ended(EndKind.BROKEN, Unreachable(f"The stream of {what} broke. {reason}", site=self._site))

    def _ended(self, kind: EndKind, error: CtrlError | None = None, retry_after: float | None = None) -> None:
        if self.end is None:
            lasted = self._caller.wire.clock.elapsed() - self._began
            self.end = WatchEnd(kind=kind, error=error, retry_after=retry_after, lasted=lasted, events=self.events)

    def __repr__(self) -> str:
        state = self.end.kind.value if self.end is not None else "open" if self.opened else "new"
        return f"WatchStream({self._order.target}, {state}, events={self.events}, poisoned={self.poisoned})"


_KINDS = {kind.value: kind for kind in EventKind}


def event_of(line: bytes, expected: ExpectedType) -> WatchEvent | InvalidItem | Obj:
    """The event of one line, an invalid item, or the object of an ERROR event."""
    try:
        frame = orjson.loads(line)
    except ValueError as exc:
        return expected.poisoned(line, f"It is not JSON: {exc}.")
    if not isinstance(frame, dict):
        return expected.poisoned(line, "It is not a frame.")
    kind, obj = _KINDS.get(str(frame.get("type"))), frame.get("object")
    if kind is None:
        if frame.get("type") == "ERROR" and isinstance(obj, dict):
            return obj
        return expected.poisoned(line, f"Its type is {frame.get('type')!r}.")
    if why := flaw_of(obj, expected, bookmark=kind is EventKind.BOOKMARK):
        return expected.poisoned(line, f"Its object: {why}.")
    assert isinstance(obj, dict)
    if expected.metadata_only and obj.get("kind") != PARTIAL_KIND:
        obj = projected(obj)
    return WatchEvent(kind, obj)
