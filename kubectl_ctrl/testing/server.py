"""An API server in memory, behind the client's transport seam, whose faults are written by the test.

It answers as a kube-apiserver does where a controller can tell the difference: versions, UIDs, generations, conflicts,
pages, watches and their ends, deletion with finalizers, refusals as Status objects. Time is the clock's alone.

Gaps, on purpose: no RBAC and no admission (a 403 is scripted), no Table form, no protobuf, no YAML bodies beyond JSON,
no strategic merge for lists, no CEL and no conversion webhooks, no quotas. Built-in objects are hardly validated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kubectl_ctrl.client.transport import HttpRequest, HttpResponse, HttpStream, NoAnswer, TooSlow
from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import CRDS, Resource
from kubectl_ctrl.testing import answers, discovery, reads, rules
from kubectl_ctrl.testing.answers import Refusal
from kubectl_ctrl.testing.asks import Ask, Served, understand
from kubectl_ctrl.testing.faults import ANY, Fault, Faults, Match, Seen
from kubectl_ctrl.testing.kinds import BUILT_IN, kinds_of
from kubectl_ctrl.testing.storage import Step, Storage
from kubectl_ctrl.testing.watches import Watch, WholeStream
from kubectl_ctrl.testing.writes import Write, Writer

_ALWAYS_THERE = ("default", "kube-node-lease", "kube-public", "kube-system")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """One request that reached the server, and what became of it; `status` None: no answer was given."""

    at: float
    verb: str
    path: str
    query: tuple[tuple[str, str], ...]
    user_agent: str
    audit_id: str
    status: int | None


class ScriptedServer:
    """See the module. Everything a test does to it directly happens at once, as another user's doing."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.storage = Storage()
        self.served = Served()
        self.faults = Faults()
        self.requests: list[Handled] = []
        self.request_delay = 0.0  # seconds that a request is on its way
        self.answer_delay = 0.0  # seconds that an answer is
        self.watch_delay = 0.0  # seconds that events are
        self._writer = Writer(self.storage, clock)
        self._watches: list[Watch] = []
        self._up = True
        self._outages = 0
        self.storage.listeners.append(self._stepped)
        for kind in BUILT_IN:
            self.served.add(kind)
        for name in _ALWAYS_THERE:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._writer.log.clear()

    # -- the transport

    async def send(self, request: HttpRequest) -> HttpResponse:
        seen, fault, began = await self._arrive(request)
        response = None if fault is None or fault.after_commit else fault.response
        if response is None:
            response = self._handle(request, seen)
        response = await self._depart(request, fault, began, response)
        self._note(request, seen, response.status)
        return response

    async def open(self, request: HttpRequest) -> HttpStream:
        seen, fault, began = await self._arrive(request)
        response = fault.response if fault is not None else None
        watch: Watch | None = None
        if response is None and seen.ask is not None and seen.ask.verb == "watch":
            try:
                watch = Watch(seen.ask, request, self.storage, self.clock, self.watch_delay)
                self._watches.append(watch)
            except Refusal as refusal:
                response = refusal.response()
        elif response is None:
            response = self._handle(request, seen)
        response = await self._depart(request, fault, began, response or HttpResponse(status=200))
        self._note(request, seen, response.status)
        return watch or WholeStream(response.status, response.headers, response.body)

    async def close(self) -> None:
        for watch in self._watches:
            watch.stop()
        self._watches.clear()

    async def _arrive(self, request: HttpRequest) -> tuple[Seen, Fault | None, float]:
        began = self.clock.elapsed()
        self._check_up(sent=False)
        seen = Seen(request=request, ask=self._understood(request))
        fault = self.faults.take(seen)
        await self._travel(self.request_delay + (fault.delay_before if fault else 0.0), request, began)
        if fault is not None and not fault.after_commit:
            await self._break(request, seen, fault, began)
        return seen, fault, began

    async def _depart(
        self, request: HttpRequest, fault: Fault | None, began: float, response: HttpResponse
    ) -> HttpResponse:
        await self._travel(self.answer_delay + (fault.delay_after if fault else 0.0), request, began)
        if fault is not None and fault.after_commit:
            await self._break(request, Seen(request=request, ask=None), fault, began)
            return fault.response or response
        return response

    async def _break(self, request: HttpRequest, seen: Seen, fault: Fault, began: float) -> None:
        if fault.lost:
            self._note(request, seen, None)
            raise NoAnswer("The connection was reset.", sent=True)
        if fault.hangs:
            self._note(request, seen, None)
            await self._travel(float("inf"), request, began)

    async def _travel(self, seconds: float, request: HttpRequest, began: float) -> None:
        """Be on the way for so long, unless the client's deadline comes first or the server goes down."""
        outages = self._outages
        end = self.clock.elapsed() + seconds
        deadline = began + request.deadline if request.deadline is not None else float("inf")
        await self.clock.sleep(max(0.0, min(end, deadline) - self.clock.elapsed()))
        if outages != self._outages:
            raise NoAnswer("The connection was reset.", sent=True)
        if deadline < end:
            raise TooSlow(f"No answer within {request.deadline:g} s.", sent=True)

    def _check_up(self, *, sent: bool) -> None:
        if not self._up:
            raise NoAnswer("The connection was refused.", sent=sent)

    def _understood(self, request: HttpRequest) -> Ask | None:
        try:
            return understand(request, self.served)
        except Refusal:
            return None

    # -- handling

    def _handle(self, request: HttpRequest, seen: Seen) -> HttpResponse:
        try:
            if seen.ask is None:
                return self._handle_other(request)
            return self._handle_ask(seen.ask)
        except Refusal as refusal:
            return refusal.response()

    def _handle_other(self, request: HttpRequest) -> HttpResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        found = discovery.handle(self.served, request.path, headers.get("accept", ""))
        if request.method == "GET" and found is not None:
            return found
        understand(request, self.served)  # raises why it is not understood
        raise answers.no_such_path()

    def _handle_ask(self, ask: Ask) -> HttpResponse:
        form = reads.form_of(ask)
        match ask.verb:
            case "get":
                return answers.answer(reads.get(self.storage, ask))
            case "list":
                return answers.answer(reads.list_(self.storage, ask))
            case "create":
                return answers.answer(form(self._writer.create(ask)), 201)
            case "update":
                return answers.answer(form(self._writer.update(ask)))
            case "patch":
                return answers.answer(form(self._writer.patch(ask)))
            case "delete":
                return answers.answer(self._writer.delete(ask))
        raise answers.not_allowed(ask.resource)

    def _note(self, request: HttpRequest, seen: Seen, status: int | None) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(
            Handled(
                at=self.clock.now(),
                verb=seen.verb,
                path=request.path,
                query=request.query,
                user_agent=headers.get("user-agent", ""),
                audit_id=headers.get("audit-id", ""),
                status=status,
            )
        )

    def _stepped(self, table: str, step: Step) -> None:
        if table == CRDS.full_name:
            self._serve(step)
        for watch in self._watches:
            if watch.ask.kind.table == table:
                watch.wake()

    def _serve(self, step: Step) -> None:
        """A CRD adds its resources at once; when it goes, they go, and their objects with them."""
        for crd in filter(None, (step.old, step.obj)):
            self.served.drop(crd["spec"]["group"], crd["spec"]["names"]["plural"])
        if step.new is not None:
            for kind in kinds_of(step.new):
                self.served.add(kind)
        else:
            self._drop_objects(f"{step.obj['spec']['names']['plural']}.{step.obj['spec']['group']}")

    def _drop_objects(self, table: str) -> None:
        for key in sorted(self.storage.tables.get(table, ())):
            self.storage.remove(table, key)
        for watch in self.watches:
            if watch.ask.kind.table == table:
                watch.stop()

    # -- what a test does and sees directly

    @property
    def writes(self) -> list[Write]:
        """Every write that was let through, oldest first, those of the test included; dry runs are not in it."""
        return self._writer.log

    def create(self, obj: Obj, *, manager: str = "test") -> Obj:
        """Create an object of a served kind; `namespace` is `default` unless the object says otherwise."""
        obj = rules.clone(obj)
        kind, meta = self.served.of_object(obj), obj["metadata"]
        if kind.resource.namespaced:
            meta.setdefault("namespace", "default")
        ask = Ask(verb="create", kind=kind, namespace=meta.get("namespace", ""))
        return self._direct(ask, obj, manager)

    def change(self, resource: Resource, name: str, change: Obj, *, namespace: str = "default", **how: str) -> Obj:
        """Change an object by a merge patch; `how` may name a `subresource` and a `manager`."""
        key = self._key(resource, name, namespace)
        ask = Ask(verb="patch", kind=self.served.of(resource), namespace=key.namespace, name=key.name)
        return self._direct(replace(ask, subresource=how.get("subresource", "")), change, how.get("manager", "test"))

    def delete(self, resource: Resource, name: str, namespace: str = "default", *, propagation: str = "") -> Obj:
        key = self._key(resource, name, namespace)
        ask = Ask(verb="delete", kind=self.served.of(resource), namespace=key.namespace, name=key.name)
        return self._direct(ask, {"propagationPolicy": propagation} if propagation else {}, "test")

    def _direct(self, ask: Ask, body: Obj, manager: str) -> Obj:
        headers = {"user-agent": manager, "content-type": "application/merge-patch+json"}
        ask = replace(ask, query={"fieldManager": manager}, headers=headers, raw=answers.encode(body))
        return dict(json.loads(self._handle_ask(ask).body))

    def _key(self, resource: Resource, name: str, namespace: str) -> Key:
        return Key(namespace if resource.namespaced else "", name)

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Obj | None:
        """A copy of the object as it is now."""
        table = self.served.of(resource).table
        found = self.storage.get(table, self._key(resource, name, namespace))
        return None if found is None else rules.clone(found)

    def objects(self, resource: Resource, namespace: str = "") -> list[Obj]:
        """Copies of all objects of a type, in the order of a list."""
        rows = self.storage.tables.get(self.served.of(resource).table, {})
        return [rules.clone(rows[key]) for key in sorted(rows) if not namespace or key.namespace == namespace]

    def load(self, resource: Resource, objects: Iterable[Obj]) -> None:
        """Store objects as they are, quickly: no checks, no defaults, no managed fields; missing UIDs are given."""
        table = self.served.of(resource).table
        for obj in objects:
            meta = obj["metadata"]
            meta.setdefault("uid", self._writer._new_uid())
            meta.setdefault("creationTimestamp", rfc3339(self.clock.now()))
            self.storage.put(table, obj)

    @property
    def version(self) -> int:
        return self.storage.version

    # -- faults of the server as a whole

    @property
    def watches(self) -> list[Watch]:
        """The watches that are open."""
        self._watches = [watch for watch in self._watches if not watch.closed]
        return list(self._watches)

    def drop_watches(self, resource: Resource | None = None, *, cleanly: bool = True) -> int:
        """End the open watches, as a restarting server does: cleanly, or by a reset. Says how many."""
        return self._each(resource, lambda watch: watch.stop(None if cleanly else _reset()))

    def hang_watches(self, resource: Resource | None = None) -> int:
        """Make the open watches half open: no byte comes any more, and nobody says so."""

        def hang(watch: Watch) -> None:
            watch.hung = True

        return self._each(resource, hang)

    def truncate_frame(self, resource: Resource | None = None) -> int:
        """Cut the next line of each open watch in the middle, and the connection with it."""

        def tear(watch: Watch) -> None:
            watch.torn = True

        return self._each(resource, tear)

    def garble(self, resource: Resource | None = None, make: Callable[[bytes], bytes] | None = None) -> int:
        """Garble the next event of each open watch; without `make` it is no JSON any more."""

        def spoil(watch: Watch) -> None:
            watch.garble(make or (lambda line: line[: len(line) // 2] + b"\xff"))

        return self._each(resource, spoil)

    def compact(self, version: int | None = None) -> None:
        """Forget the past: from now on, lists and watches from before get a 410, open watches that lag included."""
        for watch in self.watches:
            watch.catch_up()
        self.storage.compact(version)
        for watch in self.watches:
            watch.rebase()
            watch.wake()

    def expire_pages(self) -> None:
        """Make every continue token that was given out too old."""
        self.compact()

    def restore(self, version: int) -> None:
        """Go back to an earlier state, as after an etcd restore: versions are given out a second time."""
        self.storage.restore(version)
        self.drop_watches(cleanly=False)

    def down(self) -> None:
        """Stop answering: watches and requests on their way break, new connections are refused."""
        self._up = False
        self._outages += 1
        self.drop_watches(cleanly=False)

    def up(self) -> None:
        self._up = True

    def unauthorized(self, match: Match = ANY, *, times: int | None = None) -> Fault:
        """Refuse the credentials, until the fault returned is stopped."""
        return self.faults.fail(match, 401, times=times)

    def _each(self, resource: Resource | None, act: Callable[[Watch], None]) -> int:
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
