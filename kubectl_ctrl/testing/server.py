"""An API server in memory, as a transport of the client, with faults scripted by the test.

It answers as a kube-apiserver does wherever a controller can tell the difference: versions, UIDs, generations,
conflicts, pages, watches and their ends, deletion with finalizers, errors as Status objects. Time is the clock's.

docs/sandbox.md lists what the sandbox leaves out and where its answers differ. Besides, this server alone:
- has no admission, and no RBAC unless it has an `auth`: a 403 is scripted;
- has controllers that act at once and completely: collection, namespaces, CRDs. The status of a Deployment changes only
  with `play_deployments()`, and it has ReplicaSets and pods only with `play_deployments(pods=True)`: those of the
  sandbox's own controllers, on one node where containers start and stop at once.

It is one API server: reads are never stale; only watches can lag (`watch_delay`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from random import Random

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream, NoAnswer, TooSlow
from kubectl_ctrl.sandbox import cluster as clusters
from kubectl_ctrl.sandbox.auth.tokens import Authenticator
from kubectl_ctrl.sandbox.controllers.kubelet import KubeletSettings
from kubectl_ctrl.sandbox.controllers.resources import NODES
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.sandbox.watches import OpenWatch, WholeStream
from kubectl_ctrl.testing.faults import ANY, Fault, Faults, IncomingRequest, Match
from kubectl_ctrl.testing.players import StatusPlayer
from kubectl_ctrl.value import Value


class Handled(Value, kw_only=True):
    """One request that reached the server, and its result; `status` None: no answer."""

    at: float
    verb: str
    path: str
    query: tuple[tuple[str, str], ...]
    user_agent: str
    audit_id: str
    status: int | None


class _Trip(Value, kw_only=True):
    """One request on its way to the server and back."""

    seen: IncomingRequest
    fault: Fault | None
    began: float

    @property
    def instead(self) -> HttpResponse | None:
        """The scripted answer to a request that is not executed."""
        return None if self.fault is None or self.fault.after_commit else self.fault.response


class ScriptedServer(Endpoint):
    """The server. A test's direct calls take effect at once, as those of another user."""

    def __init__(
        self, clock: Clock, auth: Authenticator | None = None, rng: Random | None = None, *, full: bool = False
    ) -> None:
        super().__init__(clock, auth, rng, full=full)
        self.faults = Faults()
        self.requests: list[Handled] = []
        self.request_delay = 0.0  # seconds from client to server
        self.answer_delay = 0.0  # seconds from server to client
        self._up = True
        self._outages = 0
        self._outage = asyncio.Event()  # of the next one

    # -- the transport

    async def send(self, request: HttpRequest) -> HttpResponse:
        trip = await self._arrive(request)
        response = await self._depart(trip, trip.instead or await self.handle(request))
        self._note(trip, response.status)
        return response

    async def open(self, request: HttpRequest) -> HttpStream:
        trip = await self._arrive(request)
        fault = trip.fault
        if fault is not None and fault.response is not None:
            stream: OpenWatch | WholeStream = WholeStream(fault.response)
        else:
            stream = await self.stream(request)
        try:
            await self._depart(trip, HttpResponse(status=stream.status))
        except BaseException:
            await stream.close()
            raise
        self._note(trip, stream.status)
        return stream

    async def _arrive(self, request: HttpRequest) -> _Trip:
        self._check_up()
        seen = IncomingRequest(request=request, ask=self.understood(request))
        trip = _Trip(seen=seen, fault=self.faults.take(seen), began=self.clock.elapsed())
        fault = trip.fault
        await self._travel(trip, self.request_delay + (fault.delay_before if fault else 0.0))
        if fault is not None and not fault.after_commit:
            await self._break(trip, fault)
        return trip

    async def _depart(self, trip: _Trip, response: HttpResponse) -> HttpResponse:
        fault = trip.fault
        await self._travel(trip, self.answer_delay + (fault.delay_after if fault else 0.0))
        if fault is not None and fault.after_commit:
            await self._break(trip, fault)
            return fault.response or response
        return response

    async def _break(self, trip: _Trip, fault: Fault) -> None:
        if fault.lost:
            self._note(trip, None)
            raise _reset()
        if fault.hangs:
            self._note(trip, None)
            await self._hang(trip)

    async def _travel(self, trip: _Trip, seconds: float) -> None:
        """Wait this long, unless the client's deadline comes first or the server goes down."""
        outages, limit = self._outages, trip.seen.request.deadline
        end = self.clock.elapsed() + seconds
        deadline = math.inf if limit is None else trip.began + limit
        await self.clock.sleep(max(0.0, min(end, deadline) - self.clock.elapsed()))
        if outages != self._outages:
            raise _reset()
        if deadline < end:
            raise TooSlow(f"No answer within {limit:g} s.", sent=True)

    async def _hang(self, trip: _Trip) -> None:
        """Wait until the client's deadline, or until the server goes down."""
        limit = trip.seen.request.deadline
        left = None if limit is None else max(0.0, trip.began + limit - self.clock.elapsed())
        try:
            async with self.clock.timeout(left):
                await self._outage.wait()
        except TimeoutError:
            raise TooSlow(f"No answer within {limit:g} s.", sent=True) from None
        raise _reset()

    def _check_up(self) -> None:
        if not self._up:
            raise NoAnswer("The connection was refused.", sent=False)

    def _note(self, trip: _Trip, status: int | None) -> None:
        request = trip.seen.request
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(
            Handled(
                at=self.clock.now(),
                verb=trip.seen.verb,
                path=request.path,
                query=request.query,
                user_agent=headers.get("user-agent", ""),
                audit_id=headers.get("audit-id", ""),
                status=status,
            )
        )

    # -- faults of the server as a whole

    def drop_watches(self, resource: Resource | None = None, *, cleanly: bool = True) -> int:
        """End the open watches, as a restarting server does: cleanly, or by a reset; return their number."""
        return self._each(resource, lambda watch: watch.stop(None if cleanly else _reset()))

    def hang_watches(self, resource: Resource | None = None) -> int:
        """Make the open watches half open: no byte arrives any more, without an error."""

        def hang(watch: OpenWatch) -> None:
            watch.hung = True

        return self._each(resource, hang)

    def truncate_frame(self, resource: Resource | None = None) -> int:
        """Truncate the next line of each open watch, and break the connection."""

        def tear(watch: OpenWatch) -> None:
            watch.torn = True

        return self._each(resource, tear)

    def garble(self, resource: Resource | None = None, make: Callable[[bytes], bytes] | None = None) -> int:
        """Corrupt the next event of each open watch; without `make` it is invalid JSON."""

        def spoil(watch: OpenWatch) -> None:
            watch.garble(make or (lambda line: line[: len(line) // 2] + b"\xff"))

        return self._each(resource, spoil)

    def expire_pages(self) -> None:
        """Expire every continue token."""
        self.storage.skip()
        self.compact()

    def restore(self, version: int) -> None:
        """Restore an earlier state, as an etcd restore does: versions are used a second time."""
        self.storage.restore(version)
        self._relearn()
        self.drop_watches(cleanly=False)

    def down(self) -> None:
        """Stop answering: open watches and requests break, new connections are refused."""
        self._up = False
        self._outages += 1
        self._outage.set()
        self._outage = asyncio.Event()
        self.drop_watches(cleanly=False)

    def up(self) -> None:
        self._up = True

    def play_deployments(
        self, play: bool = True, *, pods: bool = False, kubelet: KubeletSettings | None = None
    ) -> None:
        """Start or stop setting each Deployment's status from its spec; `pods` starts the controllers of a cluster."""
        self.actors.stop()
        if play and pods:
            if not self.objects(NODES):
                clusters.add_nodes(self, 1)
            self.actors.start(clusters.controllers(self, kubelet or KubeletSettings()), self.storage)
        elif play:
            self.actors.start([StatusPlayer(self.access(StatusPlayer.component))], self.storage)
        self.settle()

    def unauthorized(self, match: Match = ANY, *, times: int | None = None) -> Fault:
        """Refuse the credentials, until the returned fault is stopped."""
        return self.faults.fail(match, 401, times=times)

    def _each(self, resource: Resource | None, act: Callable[[OpenWatch], None]) -> int:
        chosen = [watch for watch in self.watches if resource is None or watch.ask.resource == resource]
        for watch in chosen:
            act(watch)
            watch.wake()
        return len(chosen)

    def __repr__(self) -> str:
        state = "up" if self._up else "down"
        return f"ScriptedServer({state}, {self.storage!r}, watches={len(self.watches)}, requests={len(self.requests)})"


def _reset() -> NoAnswer:
    return NoAnswer("The connection was reset.", sent=True)
