"""The objects of the cluster and its answers, without time: whole requests, handled at once.

Also the methods with which a test reads and writes directly, as another user whose requests never fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from random import Random

from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.model.conditions import is_true
from kubectl_ctrl.model.objects import Key, Obj, key_of
from kubectl_ctrl.model.resources import CRDS, PODS, Resource
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse
from kubectl_ctrl.sandbox import answers, discovery, options, reads, rules, scales, subresources
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.auth import escalation, reviews
from kubectl_ctrl.sandbox.auth.guard import Guard
from kubectl_ctrl.sandbox.auth.reviews import Reviews
from kubectl_ctrl.sandbox.auth.tokens import Authenticator
from kubectl_ctrl.sandbox.auth.users import User
from kubectl_ctrl.sandbox.controllers.actors import Actors
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess
from kubectl_ctrl.sandbox.controllers.collector import Collector
from kubectl_ctrl.sandbox.controllers.indexes import Index
from kubectl_ctrl.sandbox.crds import definitions
from kubectl_ctrl.sandbox.encoding.forms import Form, refused
from kubectl_ctrl.sandbox.fields import patches
from kubectl_ctrl.sandbox.kinds.catalog import BUILT_IN, kinds_of
from kubectl_ctrl.sandbox.requests import ParsedRequest, ServedKinds, understand
from kubectl_ctrl.sandbox.storage import Storage, StoredChange
from kubectl_ctrl.sandbox.writes import StorageWriter, Write, at_once
from kubectl_ctrl.value import replace

_ALWAYS_THERE = ("default", "kube-node-lease", "kube-public", "kube-system")
_ITSELF = "kube-controller-manager"


class ApiServer:
    def __init__(
        self, clock: Clock, auth: Authenticator | None = None, rng: Random | None = None, *, full: bool = False
    ) -> None:
        """`full`: with the admission plugins and allocators of a whole cluster."""
        self.clock = clock
        self.storage = Storage()
        self.served = ServedKinds()
        rng = rng or Random(1)  # noqa: S311  # for names, UIDs and the order of the controllers' steps; reproducible
        self._writer = StorageWriter(self.storage, clock, rng, full=full)
        self.storage.listeners.append(self._stepped)
        self._index = Index(self.storage)
        self.collector = Collector(self.access(_ITSELF), self.storage)
        self.actors = Actors(clock, rng, self.settle)
        self.storage.listeners.append(self.actors.heard)
        self.instant = True  # controllers act to the end after each request; False leaves that to `actors.run`
        self.guard = Guard(auth, self.storage, clock, self._writer.new_uid)
        self._reviews = Reviews(self.guard, self.storage, clock)
        self._writer.checks.append(partial(escalation.check, self.guard.rbac))
        for kind in (*reviews.KINDS, *BUILT_IN):
            self.served.add(kind)
        for name in _ALWAYS_THERE:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._writer.log.clear()

    # -- requests

    def handle_now(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request whose admission waits for nothing."""
        return at_once(self.handle(request))

    async def handle(self, request: HttpRequest) -> HttpResponse:
        """The answer to any request except a watch."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            user = self.guard.admit(request)
        except Refusal as refusal:
            return refused(refusal, dict(request.query), headers)
        response = await self._answer(request, headers, user)
        self.guard.record(request, user, response.status)
        return response

    async def _answer(self, request: HttpRequest, headers: dict[str, str], user: User) -> HttpResponse:
        deprecated = ""
        try:
            options.check_timeout(request)
            found = discovery.handle(self.served, request.path, headers, dict(request.query))
            if request.method == "GET" and found is not None:
                return found
            ask = understand(request, self.served, user)
            deprecated = ask.kind.deprecated
            response = await self._handle_ask(ask)
        except Refusal as refusal:
            response = refused(refusal, dict(request.query), headers)
        return _warned(response, [deprecated]) if deprecated else response

    async def _handle_ask(self, ask: ParsedRequest) -> HttpResponse:
        form = Form(ask, self.clock)
        if (review := self._reviews.find(ask)) is not None:
            return form.response(form.of(review(ask)), 201)
        if (response := await self._act(ask)) is not None:
            return response
        match ask.verb:
            case "get":
                stored = reads.get(self.storage, ask)
                if ask.subresource == "scale":
                    return form.response(form.of(scales.scale_of(ask.kind, stored.obj)))
                return form.response(form.of_stored(stored))
            case "list":
                return form.response(form.listed(*reads.page(self.storage, ask)))
            case "deletecollection":
                return form.response(await self._delete_all(ask, form))
        done = await self._writer.write(ask)
        self.settle()
        return _warned(form.response(form.of(done.body), done.code), done.warnings)

    async def _act(self, ask: ParsedRequest) -> HttpResponse | None:
        """The answer to a subresource that is an action, None for every other request."""
        subresources.check_supported(ask)
        match ask.resource.full_name, ask.subresource, ask.verb:
            case "pods", "log", "get":
                return subresources.log(ask, self.storage)
            case "pods", "eviction", "create":
                await self._writer.write(subresources.eviction(ask))
            case ("pods", "binding", "create") | ("bindings", "", "create"):
                ask, node = subresources.binding(ask, self.storage)
                self.bind(ask.key, node)
            case _, part, "create" if part or ask.kind.virtual:
                raise answers.not_allowed()
            case _:
                return None
        self.settle()
        return subresources.done()

    async def _delete_all(self, ask: ParsedRequest, form: Form) -> Obj:
        if ask.resource.namespaced and not ask.namespace:
            raise answers.not_allowed()
        objects, meta = reads.page(self.storage, replace(ask, query={**ask.query, "limit": ""}))
        try:
            for stored in objects:
                key = key_of(stored.obj)
                await self._writer.write(replace(ask, verb="delete", namespace=key.namespace, name=key.name))
        finally:  # those before a refused one are deleted
            self.settle()
        return form.listed(objects, meta)

    def settle(self) -> None:
        """Let the cluster's own controllers act."""
        version = -1
        while self.instant and version != self.storage.version:
            version = self.storage.version
            self.collector.run()
            self.actors.settle()

    @property
    def collecting(self) -> bool:
        """Garbage collection, deletion of namespaces and CRDs; False leaves them to the test."""
        return self.collector.collecting

    @collecting.setter
    def collecting(self, collecting: bool) -> None:
        self.collector.collecting = collecting

    # -- writes of the cluster's own components

    def access(self, user_agent: str) -> ClusterAccess:
        """What a controller of the cluster reads and writes."""
        return ClusterAccess(user_agent, self.storage, self._index, self, self.clock)

    def create_as(self, user_agent: str, obj: Obj) -> Obj:
        kind = self.served.of_object(obj)
        ask = ParsedRequest(verb="create", kind=kind, namespace=obj["metadata"].get("namespace", ""))
        return at_once(self._writer.write(_by(user_agent, ask, obj))).body

    def merge_as(self, user_agent: str, table: str, key: Key, patch: Obj, subresource: str) -> Obj | None:
        kind = self.served.of_table(table)
        if kind is None or self.storage.get(table, key) is None:
            return None
        ask = ParsedRequest(verb="patch", kind=kind, namespace=key.namespace, name=key.name, subresource=subresource)
        return at_once(self._writer.write(_by(user_agent, ask, patch))).body

    def delete_as(self, user_agent: str, table: str, key: Key, options: Obj) -> None:
        kind = self.served.of_table(table)
        if kind is None or self.storage.get(table, key) is None:
            return
        ask = ParsedRequest(verb="delete", kind=kind, namespace=key.namespace, name=key.name)
        at_once(self._writer.write(_by(user_agent, ask, options)))

    def bind(self, key: Key, node: str) -> None:
        """The binding subresource of a pod: it has no field managers."""
        pod = self.storage.get(PODS.full_name, key)
        if pod is not None:
            self.storage.put(PODS.full_name, rules.bound(pod, node, rfc3339(self.clock.now())))

    def _stepped(self, table: str, step: StoredChange) -> None:
        if table == CRDS.full_name:
            self._serve(step)

    def _serve(self, step: StoredChange) -> None:
        """A CRD adds its resources at once; its deletion removes them with their remaining objects."""
        for crd in filter(None, (step.old, step.obj)):
            self.served.drop(crd["spec"]["group"], crd["spec"]["names"]["plural"])
        if step.new is not None:
            for kind in kinds_of(step.new):
                self.served.add(kind)
            return
        table = f"{step.obj['spec']['names']['plural']}.{step.obj['spec']['group']}"
        for key in sorted(self.storage.rows(table)):
            self.storage.remove(table, key)
        self._accept_names(step.obj["spec"]["group"])

    def _accept_names(self, group: str) -> None:
        """The names of a removed CRD are free for others that want them."""
        crds = self.storage.tables[CRDS.full_name]
        for crd in list(crds.values()):
            if crd["spec"]["group"] == group and not is_true(crd, "NamesAccepted"):
                status = definitions.status(crd, crd, crds.values(), rfc3339(self.clock.now()))
                self.storage.put(CRDS.full_name, {**crd, "metadata": dict(crd["metadata"]), "status": status})

    def _relearn(self) -> None:
        """The current state is not the result of logged steps."""
        self.collector.rebuild()
        self._index.rebuild()
        self.guard.rbac.forget()
        for kind in self.served.all():
            if kind.custom:
                self.served.drop(kind.resource.group, kind.resource.plural)
        for crd in self.storage.rows(CRDS.full_name).values():
            for kind in kinds_of(crd):
                self.served.add(kind)
        self.actors.rebuild(self.storage)

    @property
    def writer(self) -> StorageWriter:
        """The writing verbs; its `admission` may change or refuse each write."""
        return self._writer

    # -- direct reads and writes of a test

    @property
    def writes(self) -> list[Write]:
        """Every accepted write, oldest first, including the test's own, without dry runs."""
        return self._writer.log

    def apply(self, obj: Obj, *, manager: str = "kubectl", force: bool = False, subresource: str = "") -> Obj:
        """Server-side apply an object of a served kind."""
        kind, meta = self.served.of_object(obj), obj["metadata"]
        namespace = meta.get("namespace", "default") if kind.resource.namespaced else ""
        ask = ParsedRequest(verb="patch", kind=kind, namespace=namespace, name=meta["name"], subresource=subresource)
        return self._direct(ask, obj, manager, patches.APPLY, force="true" if force else "false")

    def create(self, obj: Obj, *, manager: str = "test") -> Obj:
        """Create an object of a served kind; `namespace` is `default` unless the object names one."""
        obj = rules.clone(obj)
        kind, meta = self.served.of_object(obj), obj["metadata"]
        if kind.resource.namespaced:
            meta.setdefault("namespace", "default")
        ask = ParsedRequest(verb="create", kind=kind, namespace=meta.get("namespace", ""))
        return self._direct(ask, obj, manager)

    def change(self, resource: Resource, name: str, change: Obj, *, namespace: str = "default", **how: str) -> Obj:
        """Change an object by a merge patch; `how` may name a `subresource` and a `manager`."""
        key = self._key(resource, name, namespace)
        ask = ParsedRequest(verb="patch", kind=self.served.of(resource), namespace=key.namespace, name=key.name)
        return self._direct(replace(ask, subresource=how.get("subresource", "")), change, how.get("manager", "test"))

    def delete(self, resource: Resource, name: str, namespace: str = "default", *, propagation: str = "") -> Obj:
        key = self._key(resource, name, namespace)
        ask = ParsedRequest(verb="delete", kind=self.served.of(resource), namespace=key.namespace, name=key.name)
        return self._direct(ask, {"propagationPolicy": propagation} if propagation else {}, "test")

    def _direct(self, ask: ParsedRequest, body: Obj, manager: str, media: str = patches.MERGE, **query: str) -> Obj:
        headers = {"user-agent": manager, "content-type": media if ask.verb == "patch" else ""}
        query = {"fieldManager": manager, **query}
        response = at_once(self._handle_ask(replace(ask, query=query, headers=headers, raw=answers.encode(body))))
        return dict(json.loads(response.body))

    def _key(self, resource: Resource, name: str, namespace: str) -> Key:
        return Key(namespace if resource.namespaced else "", name)

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Obj | None:
        """A copy of the current object."""
        table = self.served.of(resource).table
        found = self.storage.get(table, self._key(resource, name, namespace))
        return None if found is None else rules.clone(found)

    def objects(self, resource: Resource, namespace: str = "") -> list[Obj]:
        """Copies of all objects of a type, in the order of a list."""
        rows = self.storage.rows(self.served.of(resource).table)
        return [rules.clone(rows[key]) for key in sorted(rows) if not namespace or key.namespace == namespace]

    def load(self, resource: Resource, objects: Iterable[Obj]) -> None:
        """Store objects unchanged and fast: no checks, defaults or managed fields; missing UIDs are generated."""
        table = self.served.of(resource).table
        for obj in objects:
            meta = obj["metadata"]
            meta.setdefault("uid", self._writer.new_uid())
            meta.setdefault("creationTimestamp", rfc3339(self.clock.now()))
            self.storage.put(table, obj)

    @property
    def version(self) -> int:
        return self.storage.version


def _warned(response: HttpResponse, warnings: list[str]) -> HttpResponse:
    if not warnings:
        return response
    said = [f"299 - {json.dumps(warning)}" for warning in warnings]
    before = [response.headers["warning"]] if "warning" in response.headers else []
    return replace(response, headers={**response.headers, "warning": ", ".join([*said, *before])})


def _by(user_agent: str, ask: ParsedRequest, body: Obj) -> ParsedRequest:
    headers = {"user-agent": user_agent, "content-type": patches.MERGE if ask.verb == "patch" else ""}
    return replace(ask, headers=headers, raw=answers.encode(body))
