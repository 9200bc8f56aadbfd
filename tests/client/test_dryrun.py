"""The transport of a plan: whatever could change something never leaves."""

from __future__ import annotations

import asyncio
import json

import pytest

from kubectl_ctrl.client.dryrun import DryRunOnly
from kubectl_ctrl.errors import Refused
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream


class Wire:
    """A transport that notes what reaches it."""

    def __init__(self) -> None:
        self.reached: list[HttpRequest] = []
        self.closed = False

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.reached.append(request)
        return HttpResponse(status=200)

    async def open(self, request: HttpRequest) -> HttpStream:
        self.reached.append(request)
        raise Refused("Nothing to stream.")

    async def close(self) -> None:
        self.closed = True


def asked(method: str, body: object = None, **query: str) -> HttpRequest:
    raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    return HttpRequest(method=method, path="/api/v1/pods/x", query=tuple(query.items()), body=raw)


def shown(request: HttpRequest) -> str:
    return f"{request.method} {request.query} {request.body!r}"


HARMLESS = [
    asked("GET"),
    asked("HEAD"),
    asked("POST", {}, dryRun="All", fieldManager="me"),
    asked("PUT", {}, dryRun="All"),
    asked("PATCH", {}, dryRun="All"),
    asked("DELETE", {"dryRun": ["All"]}),
    asked("DELETE", {"dryRun": ["All"]}, dryRun="All"),
    asked("DELETE", dryRun="All"),
]
HARMFUL = [
    asked("POST", {}),
    asked("POST", {"dryRun": ["All"]}),  # options of a POST are in its query alone
    asked("PATCH", {}, dryRun=""),
    asked("PATCH", {}, dryRun="None"),
    asked("PUT", {}, dryrun="All"),
    asked("DELETE"),
    # Seen on kube-apiserver 1.36.3: with options in the body, those in the query are ignored, and it deletes.
    asked("DELETE", {"propagationPolicy": "Background"}, dryRun="All"),
    asked("DELETE", {"dryRun": []}, dryRun="All"),
    asked("DELETE", b"dryRun", dryRun="All"),
    asked("DELETE", ["All"], dryRun="All"),
    HttpRequest(method="POST", path="/", query=(("dryRun", "All"), ("dryRun", "None"))),
    asked("BREW"),
]


@pytest.mark.parametrize("request_", HARMLESS, ids=shown)
def test_reads_and_dry_runs_pass(request_: HttpRequest) -> None:
    wire = Wire()
    assert asyncio.run(DryRunOnly(wire).send(request_)).status == 200
    assert wire.reached == [request_]


@pytest.mark.parametrize("request_", HARMFUL, ids=shown)
def test_all_else_is_refused_before_it_leaves(request_: HttpRequest) -> None:
    wire = Wire()
    for send in (DryRunOnly(wire).send, DryRunOnly(wire).open):
        with pytest.raises(Refused, match="would have changed the cluster"):
            asyncio.run(send(request_))
    assert wire.reached == []


def test_a_watch_may_be_opened_and_closing_reaches_the_wire() -> None:
    wire = Wire()
    guard = DryRunOnly(wire)
    with pytest.raises(Refused, match="Nothing to stream"):
        asyncio.run(guard.open(asked("GET", watch="true")))
    asyncio.run(guard.close())
    assert wire.closed
