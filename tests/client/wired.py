"""A network transport on a loopback server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubectl_ctrl.client.auth.credentials import Credentials
from kubectl_ctrl.client.network import NetworkTransport
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.model.transport import HttpRequest
from tests.client.loopback import Loopback, Request
from tests.kubeconfig.kubeconfigs import certificate, kubeconfig, resolved

CANARY = "c4nary-in-the-mine"
CA = base64.b64encode(certificate("ca")).decode()
GET = HttpRequest(method="GET", path="/version")


def of(found: Resolved, *, clock: Clock | None = None) -> NetworkTransport:
    clock = clock or SystemClock()
    return NetworkTransport(found, Credentials(found, clock=clock, environ={}, interactive=False), clock=clock)


def dev(box: Loopback, *, ca: str = CA, user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    authority = {"certificate-authority-data": ca} if box.url.startswith("https") else {}
    return kubeconfig(cluster={"server": box.url, **authority, **cluster}, user=user)


@asynccontextmanager
async def connected(
    folder: Path, box: Loopback, *, clock: Clock | None = None, user: dict[str, Any] | None = None, **flags: Any
) -> AsyncIterator[NetworkTransport]:
    transport = of(resolved(folder, dev(box, user=user), **flags), clock=clock)
    try:
        yield transport
    finally:
        await transport.close()


def hang(reached: asyncio.Event | None = None) -> Callable[[Request, asyncio.StreamWriter], Coroutine[Any, Any, None]]:
    async def answer(_request: Request, _writer: asyncio.StreamWriter) -> None:
        if reached is not None:
            reached.set()
        await asyncio.Event().wait()

    return answer
