"""The calls of one scope: each gets an Audit-ID, two records, and a result."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from kubectl_ctrl.client import requests
from kubectl_ctrl.client.call_record import failed, leaving, succeeded
from kubectl_ctrl.client.flight import Flight
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.wire import Wire
from kubectl_ctrl.errors import CallSite, NotFound
from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpResponse, HttpStream

T = TypeVar("T")

log = logging.getLogger(__name__)

_LONGEST_ID = 64  # the API server truncates an Audit-ID to this length
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9._-]")


class Caller:
    def __init__(self, wire: Wire, scope: Scope) -> None:
        self.wire = wire
        self.scope = scope
        self._prefix = _NOT_IN_AN_ID.sub("-", scope.prefix) or wire.prefix
        self._numbers = count(1) if scope.prefix else wire.numbers

    async def call(self, order: Order) -> Obj:
        """The object of the response."""
        flight = self._flight(order)
        await self._recorded(flight, lambda: flight.send(self._read_back))
        assert flight.obj is not None
        return flight.obj

    async def response(self, order: Order) -> HttpResponse:
        """The response without decoding; an error unless its status is 2xx."""
        flight = self._flight(order)
        await self._recorded(flight, lambda: flight.send(self._read_back, raw=True))
        assert flight.response is not None
        return flight.response

    async def open(self, order: Order, silence: float | None) -> tuple[HttpStream, CallSite]:
        """A stream whose response header was accepted, and the site for its errors."""
        flight = self._flight(order)
        return await self._recorded(flight, lambda: flight.open(silence)), flight.site

    def next_id(self) -> str:
        number = f".{next(self._numbers)}"
        return self._prefix[: _LONGEST_ID - len(number)] + number

    def _flight(self, order: Order) -> Flight:
        return Flight(self.wire, self.scope.gate, order, self.next_id(), self.scope.timeout or order.timeout)

    async def _read_back(self, order: Order, seconds: float) -> Obj | None:
        read = requests.read_back(order)
        flight = Flight(self.wire, self.scope.gate, read, self.next_id(), seconds)
        try:
            await self._recorded(flight, lambda: flight.send(self._read_back))
        except NotFound:
            return None
        return flight.obj

    async def _recorded(self, flight: Flight, act: Callable[[], Awaitable[T]]) -> T:
        flight.time_for_a_send()  # raises without a record if the gate is closed, because nothing is sent
        clock = self.wire.clock
        began = clock.elapsed()
        call = leaving(flight.order, flight.site.audit_id, clock.now())
        self._note(call, False)
        try:
            result = await act()
        except BaseException as exc:
            took = clock.elapsed() - began
            self._note(failed(call, took=took, sends=flight.sends, code=flight.code, error=exc), True)
            raise
        took = clock.elapsed() - began
        self._note(succeeded(call, took=took, sends=flight.sends, code=flight.code, answer=flight.obj), True)
        return result

    def _note(self, call: Call, answered: bool) -> None:
        """Call the listener. Its error must not fail the call: a successful write would look like a failed one."""
        if self.scope.note is None:
            return
        try:
            self.scope.note(call, answered)
        except Exception:
            log.exception("call listener failed", extra={"action": "note_call", "call": call.id})

    def __repr__(self) -> str:
        return f"Caller({self._prefix!r}, {self.wire})"
