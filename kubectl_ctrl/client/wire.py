"""The state that all scopes of one client share: transport, clock, random numbers and counters."""

from __future__ import annotations

import json
from copy import copy
from itertools import count
from random import Random

from kubectl_ctrl.client.counters import Counters
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.transport import HttpRequest, Transport

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Wire:
    def __init__(self, transport: Transport, *, clock: Clock, rng: Random, user_agent: str) -> None:
        self.transport = transport
        self.clock = clock
        self.rng = rng
        self.user_agent = user_agent
        self.counters = Counters()
        self.prefix = random_text(rng, 8)  # of Audit-IDs, for scopes without a prefix
        self.numbers = count(1)  # for the same scopes

    def as_agent(self, user_agent: str) -> Wire:
        wire = copy(self)
        wire.user_agent = user_agent
        return wire

    def request(
        self, order: Order, body: bytes | None, audit_id: str, seconds: float, silence: float | None
    ) -> HttpRequest:
        """The HTTP request of an order; `silence` is for streams."""
        headers = {"accept": order.accept, "user-agent": self.user_agent, "audit-id": audit_id}
        if body is not None:
            headers["content-type"] = order.content_type
        return HttpRequest(
            method=order.method,
            path=order.path,
            query=order.query,
            headers=headers,
            body=body,
            deadline=seconds,
            silence=silence,
        )

    def __repr__(self) -> str:
        return f"Wire({self.user_agent!r}, {self.counters})"


def random_text(rng: Random, length: int) -> str:
    """Random text without vowels, as the API server generates names, so that it contains no words."""
    return "".join(rng.choice(_ALPHABET) for _ in range(length))


def encoded(order: Order) -> bytes | None:
    """The body as JSON; UsageError if it is not possible."""
    if order.body is None:
        return None
    try:
        return json.dumps(order.body, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise UsageError(f"The body for {order.verb} {order.target} cannot be written as JSON: {exc}.") from exc
