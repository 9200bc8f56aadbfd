"""The two doors in their live form: reads from the caches, writes to the API server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import DeleteOptions
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import ControllerError, NotFound
from kubectl_ctrl.model.attempt import Intent
from kubectl_ctrl.model.objects import Obj, is_deleting, key_of, name_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.patches import apply_merge, same
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.runtime.caches import Caches
from kubectl_ctrl.runtime.contract import Ensured, EventType, Labels
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.ensure import Children
from kubectl_ctrl.runtime.need import Need, Settlements
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.services import Recorder
from kubectl_ctrl.runtime.status import Schemas, Statuses
from kubectl_ctrl.runtime.writes import Overlays, Writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """What all attempts of one controller share behind their doors."""

    manager: str
    caches: Caches
    overlays: Overlays
    echoes: Echoes
    settlements: Settlements
    schemas: Schemas
    recorder: Recorder
    clock: Clock


class LiveReader:
    """See contract.Reader."""

    def __init__(self, caches: Caches, client: Client, notes: Notes) -> None:
        self._caches = caches
        self._client = client
        self._notes = notes

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        ref = self._ref(resource, name, namespace)
        found = self._caches.get(resource, ref.name, ref.namespace)
        self._note("get", resource, str(ref.key), () if found is None else (found,))
        return found

    async def list(
        self, resource: Resource, *, namespace: str | None = None, labels: Labels | None = None
    ) -> Sequence[Obj]:
        place = self._place(resource, namespace)
        found = self._caches.list(resource, place, labels)
        self._note(
            "list", resource, " ".join(filter(None, (place or "all", "" if labels is None else str(labels)))), found
        )
        return found

    async def children(self, owner: Obj, resource: Resource) -> Sequence[Obj]:
        found = self._caches.children(owner, resource)
        self._note("list", resource, f"controlled by {uid_of(owner)}", found)
        return found

    async def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]:
        found = self._caches.indexed(resource, index, value)
        self._note("list", resource, f"{index} {value}", found)
        return found

    async def live(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        ref = self._ref(resource, name, namespace)
        found: Obj | None
        try:
            found = await self._client.get(ref)
        except NotFound:
            found = None
        self._note("live", resource, str(ref.key), () if found is None else (found,))
        return found

    def _ref(self, resource: Resource, name: str, namespace: str | None) -> ObjectRef:
        self._notes.check_open()
        return resource.ref(name, self._place(resource, namespace))

    def _place(self, resource: Resource, namespace: str | None) -> str:
        if not resource.namespaced:
            return ""
        return self._notes.start.request.namespace if namespace is None else namespace

    def _note(self, verb: str, resource: Resource, query: str, found: Sequence[Obj]) -> None:
        self._notes.check_open()
        self._notes.read(verb, resource, query, found)


class LiveWriter:
    """See contract.Writer."""

    def __init__(self, equipment: Equipment, client: Client, notes: Notes) -> None:
        self._caches = equipment.caches
        self._recorder = equipment.recorder
        self._notes = notes
        self._writes = Writes(
            client,
            equipment.overlays,
            equipment.echoes,
            notes,
            manager=equipment.manager,
            clock=equipment.clock,
        )
        need = Need(self._writes, equipment.settlements)
        self._children = Children(self._writes, equipment.caches, need)
        self._statuses = Statuses(self._writes, equipment.caches, need, equipment.schemas)

    async def ensure(self, child: Obj, *, owner: Obj, resource: Resource, leave_out: Iterable[str] = ()) -> Ensured:
        self._notes.check_open()
        self._caches.check_whole(resource, "ensure")
        return await self._children.ensure(child, owner, resource, leave_out)

    async def status(self, obj: Obj, resource: Resource, status: Obj) -> Obj:
        self._notes.check_open()
        self._caches.check_whole(resource, "status")
        return await self._statuses.write(obj, resource, status)

    async def create(self, obj: Obj, resource: Resource) -> Obj:
        self._notes.check_open()
        meta = dict(obj["metadata"])
        if resource.namespaced:
            meta.setdefault("namespace", self._notes.start.request.namespace)
        return await self._writes.create(resource, {**obj, "metadata": meta})

    async def patch(self, obj: Obj, resource: Resource, change: Obj, *, subresource: str = "") -> Obj:
        self._notes.check_open()
        ref = _ref(obj, resource).sub(subresource)
        if same(apply_merge(obj, change), obj):
            self._notes.skip(f"patch {ref}: nothing would change")
            return obj
        pinned = {"uid": uid_of(obj), "resourceVersion": version_of(obj)}
        body = {**change, "metadata": {**(change.get("metadata") or {}), **pinned}}
        return await self._writes.patch(ref, body, known=version_of(obj))

    async def delete(
        self, obj: Obj, resource: Resource, *, propagation: str = "Background", any_version: bool = False
    ) -> None:
        self._notes.check_open()
        ref = _ref(obj, resource)
        if is_deleting(obj):
            self._notes.skip(f"delete {ref}: it is being deleted")
            return
        version = "" if any_version else version_of(obj)
        await self._writes.delete(ref, DeleteOptions(propagation=propagation, uid=uid_of(obj), version=version))

    async def add_finalizer(self, obj: Obj, resource: Resource, name: str) -> Obj:
        self._notes.check_open()
        domain, slash, rest = name.partition("/")
        if "." not in domain or not slash or not rest:
            raise ControllerError(
                f"Finalizer {name!r} has no domain, so nobody could tell whose it is, and built-in types refuse it.",
                next_step="Write it as example.com/name, with a domain of your own.",
            )
        finalizers = obj["metadata"].get("finalizers") or []
        return await self._finalize(obj, resource, [*finalizers, name] if name not in finalizers else finalizers)

    async def remove_finalizer(self, obj: Obj, resource: Resource, name: str) -> Obj:
        finalizers = obj["metadata"].get("finalizers") or []
        return await self._finalize(obj, resource, [one for one in finalizers if one != name])

    def event(self, about: Obj, *, type: EventType = "Normal", reason: str, message: str) -> None:  # noqa: A002
        self._notes.check_open()
        self._notes.intend(Intent(type=type, reason=reason, message=message, about=key_of(about)))
        self._recorder.record(about, type=type, reason=reason, message=message, attempt=self._notes.attempt)

    async def _finalize(self, obj: Obj, resource: Resource, finalizers: list[str]) -> Obj:
        self._notes.check_open()
        ref = _ref(obj, resource)
        if finalizers == (obj["metadata"].get("finalizers") or []):
            self._notes.skip(f"patch {ref}: its finalizers are so")
            return obj
        # The version is compared by the server; the list is set whole, so that its places mean nothing.
        patch: list[Obj] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version_of(obj)},
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
        ]
        return await self._writes.patch(ref, patch, known=version_of(obj))


def _ref(obj: Obj, resource: Resource) -> ObjectRef:
    return resource.ref(name_of(obj), namespace_of(obj))
