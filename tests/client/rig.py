"""A client on a scripted server, or on answers written out one by one, and everything that its calls told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from random import Random
from typing import Any

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.client.requests import get
from kubectl_ctrl.client.watch import WatchEvent, WatchItem, WatchStream
from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream, Transport
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from kubectl_ctrl.value import asdict

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
UID = "11111111-0000-0000-0000-000000000001"


def configmap(name: str = "one", *, owner: str = "", **data: str) -> Obj:
    metadata: Obj = {"name": name, "namespace": "default"}
    if owner:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def an_order(**changes: Any) -> Order:
    """An order that is nothing special."""
    return Order(**{**asdict(get(CONFIGMAPS.ref("one", "default"))), **changes})


class Rig:
    """A client with the scope of one attempt, and what happened."""

    def __init__(self, transport: Transport, clock: FakeClock, gate: Callable[[], float | None] | None = None) -> None:
        self.clock = clock
        self.notes: list[tuple[Call, bool]] = []
        self.base = Client(transport, clock=clock, rng=Random(7), user_agent="kubectl-ctrl/0.1 (test)")
        scope = Scope(prefix="r7f3-12", note=lambda call, answered: self.notes.append((call, answered)), gate=gate)
        self.client = self.base.scoped(scope)

    @property
    def calls(self) -> list[Call]:
        """Those that have ended, in that order."""
        return [call for call, answered in self.notes if answered]

    @property
    def told(self) -> list[str]:
        """Each ended call as `verb code sends`."""
        return [f"{call.verb} {call.code} {call.sends}" for call in self.calls]


def on_server(**how: Any) -> tuple[Rig, ScriptedServer]:
    """A client of a scripted server; `how` may hold a `gate`."""
    clock = FakeClock()
    server = ScriptedServer(clock)
    return Rig(server, clock, **how), server


def on_answers(*answers: HttpResponse | Exception, **how: Any) -> tuple[Rig, Canned]:
    """A client that gets these answers one after the other."""
    canned = Canned(answers)
    return Rig(canned, FakeClock(), **how), canned


class Canned:
    """A transport that has its answers written down; an exception among them is raised."""

    def __init__(self, answers: Sequence[HttpResponse | Exception]) -> None:
        self.answers = list(answers)
        self.requests: list[HttpRequest] = []
        self.streams: list[Lines] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def open(self, request: HttpRequest) -> HttpStream:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.streams.append(Lines(answer))
        return self.streams[-1]

    async def close(self) -> None: ...


class Lines:
    """A canned answer as a stream of its lines, all in one batch."""

    def __init__(self, response: HttpResponse) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.closed = 0
        self._body = response.body

    async def batches(self) -> AsyncIterator[list[bytes]]:
        if lines := self._body.splitlines():
            yield lines

    async def read(self) -> bytes:
        return self._body

    async def close(self) -> None:
        self.closed += 1


def answer(body: Any, status: int = 200, **headers: str) -> HttpResponse:
    """A response; anything but bytes becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return HttpResponse(
        status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}, body=data
    )


def status(code: int, reason: str = "", message: str = "", **details: Any) -> Obj:
    """A Failure Status."""
    said = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    return {**said, "reason": reason, "message": message, "details": details}


def told(items: list[WatchItem]) -> list[str]:
    """`ADDED one`, `poisoned`."""
    return [
        f"{item.kind} {name_of(item.obj)}".rstrip() if isinstance(item, WatchEvent) else "poisoned" for item in items
    ]


async def to_the_end(watch: WatchStream) -> list[str]:
    return [text async for batch in watch for text in told(batch)]
