"""The API server as a transport: whole answers, and watches that hear of every change."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.auth.tokens import Authenticator
from kubectl_ctrl.sandbox.requests import ParsedRequest, understand
from kubectl_ctrl.sandbox.server import ApiServer
from kubectl_ctrl.sandbox.storage import StoredChange, Table
from kubectl_ctrl.sandbox.watches import OpenWatch, WholeStream


class Endpoint(ApiServer):
    def __init__(
        self, clock: Clock, auth: Authenticator | None = None, rng: Random | None = None, *, full: bool = False
    ) -> None:
        super().__init__(clock, auth, rng, full=full)
        self.watch_delay = 0.0  # seconds until events arrive
        self.streaming_lists = True  # False: a server without sendInitialEvents, as 1.33 by default
        self.resumed = False  # the objects are those of an earlier process
        self._watches: list[OpenWatch] = []
        self.storage.listeners.append(self._wake)

    async def send(self, request: HttpRequest) -> HttpResponse:
        return await self.handle(request)

    async def open(self, request: HttpRequest) -> HttpStream:
        return await self.stream(request)

    async def close(self) -> None:
        for watch in self._watches:
            watch.stop()
        self._watches.clear()

    async def stream(self, request: HttpRequest) -> OpenWatch | WholeStream:
        """The answer to any request."""
        ask = self.understood(request)
        if ask is None or ask.verb != "watch":
            return WholeStream(await self.handle(request))
        if "sendInitialEvents" in ask.query and not self.streaming_lists:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            return WholeStream(answers.bad_options("sendInitialEvents", message).response())
        try:
            user = self.guard.admit(request)
        except Refusal as refusal:
            return WholeStream(refusal.response())
        try:
            watch = OpenWatch(ask, request, self.storage, self.clock, self.watch_delay)
        except Refusal as refusal:
            self.guard.record(request, user, refusal.code)
            return WholeStream(refusal.response())
        self.guard.record(request, user, watch.status)
        self._watches = [*self.watches, watch]
        return watch

    def understood(self, request: HttpRequest) -> ParsedRequest | None:
        """None if the request is to no known resource."""
        try:
            return understand(request, self.served)
        except Refusal:
            return None

    @property
    def watches(self) -> list[OpenWatch]:
        """The open watches."""
        self._watches = [watch for watch in self._watches if not watch.closed]
        return list(self._watches)

    def compact(self, version: int | None = None) -> None:
        """Compact the log: lists and watches from before get a 410, including open watches that lag."""
        for watch in self.watches:
            watch.catch_up()
        self.storage.compact(version)
        for watch in self.watches:
            watch.rebase()
            watch.wake()

    def resume(self, tables: Mapping[str, Table], version: int) -> None:
        """Continue from a saved state instead of a new cluster's."""
        self.resumed = True
        self.storage.load(tables, version)
        for table in tables:
            if self.served.of_table(table) is None:
                del self.storage.tables[table]  # the deletion of its CRD was interrupted

    def _wake(self, table: str, step: StoredChange) -> None:
        gone = table == CRDS.full_name and step.new is None
        for watch in self._watches:
            if watch.ask.kind.table == table:
                watch.wake()
            elif gone and watch.ask.kind.table == step.obj["metadata"]["name"]:
                watch.stop()
