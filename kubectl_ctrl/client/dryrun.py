"""A transport that sends only reads and dry runs.

It checks the final request, so no bug above it can change the cluster.
"""

from __future__ import annotations

import json

from kubectl_ctrl.errors import Refused
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream, Transport

_READS = frozenset({"GET", "HEAD"})


class DryRunOnly:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: HttpRequest) -> HttpResponse:
        _check(request)
        return await self._transport.send(request)

    async def open(self, request: HttpRequest) -> HttpStream:
        _check(request)
        return await self._transport.open(request)

    async def close(self) -> None:
        await self._transport.close()

    def __repr__(self) -> str:
        return f"DryRunOnly({self._transport!r})"


def _check(request: HttpRequest) -> None:
    if request.method in _READS:
        return
    dry_run: object = [value for key, value in request.query if key == "dryRun"]
    # If a DELETE has options in its body, the server ignores those of the query, and would delete.
    if request.method == "DELETE" and request.body:
        try:
            options = json.loads(request.body)
        except ValueError:
            options = None
        dry_run = options.get("dryRun") if isinstance(options, dict) else None
    if dry_run != ["All"]:
        raise Refused(
            f"{request.method} {request.path} would have changed the cluster during a dry run; it was not sent.",
            next_step="report this as a bug of kubectl-ctrl",
        )
