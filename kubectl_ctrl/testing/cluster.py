"""The objects of the cluster and its answers, without time: whole requests, handled at once.

Also the methods with which a test reads and writes directly, as another user whose requests never fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

from kubectl_ctrl.client.transport import HttpRequest, HttpResponse
from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import CRDS, Resource
from kubectl_ctrl.testing import answers, discovery, options, patching, reads, rules, scales
from kubectl_ctrl.testing.answers import Refusal
from kubectl_ctrl.testing.asks import ParsedRequest, ServedKinds, understand
from kubectl_ctrl.testing.collector import Collector
from kubectl_ctrl.testing.deployments import DeploymentPlayer, PlayerWrites
from kubectl_ctrl.testing.kinds import BUILT_IN, kinds_of
from kubectl_ctrl.testing.storage import Storage, StoredChange
from kubectl_ctrl.testing.writes import StorageWriter, Write, WriteAnswer
from kubectl_ctrl.value import replace

_ALWAYS_THERE = ("default", "kube-node-lease", "kube-public", "kube-system")
_ITSELF = "kube-controller-manager"


class ScriptedCluster:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.storage = Storage()
        self.served = ServedKinds()
        self.collecting = True  # garbage collection, deletion of namespaces and CRDs; False leaves them to the test
        self._writer = StorageWriter(self.storage, clock)
        self.storage.listeners.append(self._stepped)
        self._collector = Collector(self.storage, self._delete_itself, self._merge_itself)
        hands = PlayerWrites(create=self._create_itself, merge=self._merge_itself, delete=self._delete_itself)
        self._player = DeploymentPlayer(self.storage, clock, hands)
        for kind in BUILT_IN:
            self.served.add(kind)
        for name in _ALWAYS_THERE:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._writer.log.clear()

    # -- requests

    def handle(self, request: HttpRequest) -> HttpResponse:
        """The answer to any request except a watch."""
        try:
            headers = {name.lower(): value for name, value in request.headers.items()}
            found = discovery.handle(self.served, request.path, headers.get("accept", ""))
            if request.method == "GET" and found is not None:
                return found
            return self._handle_ask(understand(request, self.served))
        except Refusal as refusal:
            return refusal.response()

    def _handle_ask(self, ask: ParsedRequest) -> HttpResponse:
        match ask.verb:
            case "get":
                return answers.answer(self._get(ask))
            case "list":
                return answers.answer(reads.list_(self.storage, ask))
            case "deletecollection":
                return answers.answer(self._delete_all(ask))
        done = self._write(ask)
        self.settle()
        shown = done.body if done.body.get("kind") in ("Status", "Scale") else reads.form_of(ask)(done.body)
        response = answers.answer(shown, done.code)
        if not done.warnings:
            return response
        said = ", ".join(f"299 - {json.dumps(warning)}" for warning in done.warnings)
        return replace(response, headers={**response.headers, "warning": said})

    def _get(self, ask: ParsedRequest) -> Obj:
        obj = reads.get(self.storage, ask)
        return scales.scale_of(ask.kind, obj) if ask.subresource == "scale" else obj

    def _write(self, ask: ParsedRequest) -> WriteAnswer:
        options.check_write(ask)
        match ask.verb:
            case "create":
                return self._writer.create(ask)
            case "update":
                return self._writer.update(ask)
            case "patch":
                return self._writer.patch(ask)
            case "delete" if not ask.subresource:
                return self._writer.delete(ask)
        raise answers.not_allowed()

    def _delete_all(self, ask: ParsedRequest) -> Obj:
        listed = reads.list_(self.storage, replace(ask, headers={}, query={**ask.query, "limit": ""}))
        for obj in listed["items"]:
            meta = obj["metadata"]
            self._writer.delete(replace(ask, verb="delete", namespace=meta.get("namespace", ""), name=meta["name"]))
        self.settle()
        return listed

    def settle(self) -> None:
        """Let the cluster's own controllers act."""
        if self.collecting:
            self._collector.run()
        self._player.run()

    # -- the cluster's own controllers

    def _delete_itself(self, table: str, key: Key, policy: str) -> None:
        kind = self.served.of_table(table)
        if kind is None:
            return
        body = answers.encode({"propagationPolicy": policy})
        ask = ParsedRequest(verb="delete", kind=kind, namespace=key.namespace, name=key.name, raw=body)
        self._writer.delete(replace(ask, headers={"user-agent": _ITSELF}))

    def _create_itself(self, obj: Obj) -> None:
        """A refused object, such as one in a terminating namespace, is not created."""
        headers = {"user-agent": _ITSELF}
        ask = ParsedRequest(verb="create", kind=self.served.of_object(obj), namespace=obj["metadata"]["namespace"])
        with suppress(Refusal):
            self._writer.create(replace(ask, headers=headers, raw=answers.encode(obj)))

    def _merge_itself(self, table: str, key: Key, patch: Obj, subresource: str) -> None:
        kind = self.served.of_table(table)
        if kind is None:
            return
        headers = {"user-agent": _ITSELF, "content-type": patching.MERGE}
        ask = ParsedRequest(verb="patch", kind=kind, namespace=key.namespace, name=key.name, subresource=subresource)
        self._writer.patch(replace(ask, headers=headers, raw=answers.encode(patch)))

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
        for key in sorted(self.storage.tables.get(table, ())):
            self.storage.remove(table, key)

    def _relearn(self) -> None:
        """The current state is not the result of logged steps."""
        self._collector.rebuild()
        for kind in self.served.all():
            if kind.custom:
                self.served.drop(kind.resource.group, kind.resource.plural)
        for crd in self.storage.tables.get(CRDS.full_name, {}).values():
            for kind in kinds_of(crd):
                self.served.add(kind)

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
        return self._direct(ask, obj, manager, patching.APPLY, force="true" if force else "false")

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

    def _direct(self, ask: ParsedRequest, body: Obj, manager: str, media: str = patching.MERGE, **query: str) -> Obj:
        headers = {"user-agent": manager, "content-type": media}
        query = {"fieldManager": manager, **query}
        response = self._handle_ask(replace(ask, query=query, headers=headers, raw=answers.encode(body)))
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
        rows = self.storage.tables.get(self.served.of(resource).table, {})
        return [rules.clone(rows[key]) for key in sorted(rows) if not namespace or key.namespace == namespace]

    def load(self, resource: Resource, objects: Iterable[Obj]) -> None:
        """Store objects unchanged and fast: no checks, defaults or managed fields; missing UIDs are generated."""
        table = self.served.of(resource).table
        for obj in objects:
            meta = obj["metadata"]
            meta.setdefault("uid", self._writer._new_uid())
            meta.setdefault("creationTimestamp", rfc3339(self.clock.now()))
            self.storage.put(table, obj)

    @property
    def version(self) -> int:
        return self.storage.version

    def play_deployments(self, play: bool = True, *, pods: bool = False) -> None:
        """Start or stop setting each Deployment's status from its spec; `pods` also creates ReplicaSets and pods."""
        self._player.playing, self._player.with_pods = play, pods
        self.settle()
