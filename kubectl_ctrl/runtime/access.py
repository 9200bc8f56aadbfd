"""`ctx.read` and `ctx.write` of a live run: reads from the caches, writes to the API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import DeleteOptions
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import ControllerError, NotFound
from kubectl_ctrl.model.attempt import Intent
from kubectl_ctrl.model.conditions import Condition, status_with
from kubectl_ctrl.model.objects import Obj, is_deleting, key_of, name_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.patches import apply_merge, same
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.runtime import questions
from kubectl_ctrl.runtime.caches import Caches
from kubectl_ctrl.runtime.contract import Ensured, EventType, Labels
from kubectl_ctrl.runtime.echoes import Echoes
from kubectl_ctrl.runtime.ensure import Children
from kubectl_ctrl.runtime.noop import ApplyNeed, Settlements
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.services import EventSender
from kubectl_ctrl.runtime.status import Schemas, Statuses
from kubectl_ctrl.runtime.writes import Overlays, Writes
from kubectl_ctrl.value import Value


class AccessParts(Value, kw_only=True):
    """The parts of `ctx.read` and `ctx.write` that all attempts of one controller share."""

    manager: str
    caches: Caches
    overlays: Overlays
    echoes: Echoes
    settlements: Settlements
    schemas: Schemas
    recorder: EventSender
    clock: Clock


class LiveReader:
    """See contract.Reader."""

    def __init__(self, caches: Caches, client: Client, notes: Notes) -> None:
        self._caches = caches
        self._client = client
        self._notes = notes

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        ref = self._ref(resource, name, namespace)

        def look() -> Sequence[Obj]:
            obj = self._caches.get(resource, ref.name, ref.namespace)
            return () if obj is None else (obj,)

        return next(iter(self._look("get", resource, str(ref.key), look)), None)

    async def list(
        self, resource: Resource, *, namespace: str | None = None, labels: Labels | None = None
    ) -> Sequence[Obj]:
        place = self._place(resource, namespace)
        query = questions.listing(place, labels)
        return self._look("list", resource, query, lambda: self._caches.list(resource, place, labels))

    async def children(self, owner: Obj, resource: Resource) -> Sequence[Obj]:
        query = questions.controlled(owner)
        return self._look("list", resource, query, lambda: self._caches.children(owner, resource))

    async def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]:
        query = questions.by_index(index, value)
        return self._look("list", resource, query, lambda: self._caches.indexed(resource, index, value))

    async def live(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        ref = self._ref(resource, name, namespace)
        self._notes.check_open()
        found: Obj | None
        try:
            found = await self._client.get(ref)
        except NotFound:
            found = None
        except Exception as error:
            self._notes.refused("live", resource, str(ref.key), error)
            raise
        self._notes.check_open()
        self._notes.read("live", resource, str(ref.key), () if found is None else (found,))
        return found

    def _look(self, verb: str, resource: Resource, query: str, look: Callable[[], Sequence[Obj]]) -> Sequence[Obj]:
        self._notes.check_open()
        try:
            found = look()
        except Exception as error:
            self._notes.refused(verb, resource, query, error)
            raise
        self._notes.read(verb, resource, query, found)
        return found

    def _ref(self, resource: Resource, name: str, namespace: str | None) -> ObjectRef:
        return resource.ref(name, self._place(resource, namespace))

    def _place(self, resource: Resource, namespace: str | None) -> str:
        return questions.place(resource, namespace, self._notes.start.request.namespace)


class LiveWriter:
    """See contract.Writer."""

    def __init__(self, equipment: AccessParts, client: Client, notes: Notes) -> None:
        self._spec = equipment.caches.spec
        self._caches = equipment.caches
        self._recorder = equipment.recorder
        self._clock = equipment.clock
        self._notes = notes
        self._writes = Writes(
            client,
            equipment.overlays,
            equipment.echoes,
            notes,
            manager=equipment.manager,
            clock=equipment.clock,
        )
        need = ApplyNeed(self._writes, equipment.settlements)
        self._children = Children(self._writes, equipment.caches, need)
        self._statuses = Statuses(self._writes, equipment.caches, need, equipment.schemas)

    async def ensure(
        self, child: Obj, *, owner: Obj, resource: Resource | None = None, leave_out: Iterable[str] = ()
    ) -> Ensured:
        resource, paths = resource or self._spec.resource_of(child), tuple(leave_out)
        with self._notes.asked(questions.ensure(child, owner, resource, paths)) as asked:
            self._caches.check_whole(resource, "ensure")
            ensured = await self._children.ensure(child, owner, resource, paths)
            asked.answered(ensured.obj, how=str(ensured.how))
        return ensured

    async def status(self, obj: Obj, status: Obj, *, resource: Resource | None = None) -> Obj:
        resource = resource or self._spec.resource_of(obj)
        with self._notes.asked(questions.status(obj, resource, status)) as asked:
            self._caches.check_whole(resource, "status")
            answer = await self._statuses.write(obj, resource, status)
            asked.answered(answer, given=obj)
        return answer

    async def conditions(
        self, obj: Obj, /, *conditions: Condition, resource: Resource | None = None, **status: Any
    ) -> Obj:
        now = self._notes.time(self._clock.now())
        return await self.status(obj, status_with(obj, conditions, status, now), resource=resource)

    async def create(self, obj: Obj, *, resource: Resource | None = None) -> Obj:
        resource = resource or self._spec.resource_of(obj)
        own = self._notes.start.request.namespace
        with self._notes.asked(questions.create(obj, resource, own)) as asked:
            meta = dict(obj["metadata"])
            if resource.namespaced:
                meta.setdefault("namespace", own)
            answer = await self._writes.create(resource, {**obj, "metadata": meta})
            asked.answered(answer)
        return answer

    async def patch(
        self,
        obj: Obj,
        change: Obj,
        *,
        resource: Resource | None = None,
        subresource: str = "",
        any_version: bool = False,
    ) -> Obj:
        resource = resource or self._spec.resource_of(obj)
        with self._notes.asked(questions.patch(obj, resource, change, subresource, any_version)) as asked:
            answer = await self._patch(obj, _ref(obj, resource).sub(subresource), change, any_version)
            asked.answered(answer, given=obj)
        return answer

    async def delete(
        self,
        obj: Obj,
        *,
        resource: Resource | None = None,
        propagation: str = "Background",
        any_version: bool = False,
    ) -> None:
        resource = resource or self._spec.resource_of(obj)
        with self._notes.asked(questions.delete(obj, resource, propagation, any_version)) as asked:
            ref = _ref(obj, resource)
            if is_deleting(obj):
                self._notes.skip(f"delete {ref}: it is being deleted")
            else:
                version = "" if any_version else version_of(obj)
                options = DeleteOptions(propagation=propagation, uid=uid_of(obj), version=version, before=obj)
                await self._writes.delete(ref, options)
            asked.done()

    async def add_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        resource = resource or self._spec.resource_of(obj)
        with self._notes.asked(questions.finalizer("add_finalizer", obj, resource, name)) as asked:
            check_finalizer(name)
            held = obj["metadata"].get("finalizers") or []
            answer = await self._finalize(obj, resource, held if name in held else [*held, name])
            asked.answered(answer, given=obj)
        return answer

    async def remove_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        resource = resource or self._spec.resource_of(obj)
        with self._notes.asked(questions.finalizer("remove_finalizer", obj, resource, name)) as asked:
            held = obj["metadata"].get("finalizers") or []
            answer = await self._finalize(obj, resource, [one for one in held if one != name])
            asked.answered(answer, given=obj)
        return answer

    def event(self, about: Obj, *, type: EventType = "Normal", reason: str, message: str) -> None:  # noqa: A002
        self._notes.check_open()
        self._notes.intend(Intent(type=type, reason=reason, message=message, about=key_of(about)))
        self._recorder.record(about, type=type, reason=reason, message=message, attempt=self._notes.attempt)

    async def _patch(self, obj: Obj, ref: ObjectRef, change: Obj, any_version: bool) -> Obj:
        if same(apply_merge(obj, change), obj):
            self._notes.skip(f"patch {ref}: nothing would change")
            return obj
        pinned = {"uid": uid_of(obj)}
        if not any_version:
            pinned["resourceVersion"] = version_of(obj)
        body = {**change, "metadata": {**(change.get("metadata") or {}), **pinned}}
        return await self._writes.patch(ref, body, live=obj, tied=not any_version)

    async def _finalize(self, obj: Obj, resource: Resource, finalizers: list[str]) -> Obj:
        ref = _ref(obj, resource)
        if finalizers == (obj["metadata"].get("finalizers") or []):
            self._notes.skip(f"patch {ref}: nothing would change")
            return obj
        # The server compares the version. The list is replaced as a whole: a path with an index could hit another item.
        patch: list[Obj] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version_of(obj)},
            {"op": "add", "path": "/metadata/finalizers", "value": finalizers},
        ]
        return await self._writes.patch(ref, patch, live=obj)


def check_finalizer(name: str) -> None:
    """Refuse a name that built-in types would refuse."""
    domain, slash, rest = name.partition("/")
    if "." not in domain or not slash or not rest:
        raise ControllerError(
            f"Finalizer {name!r} has no domain that shows whose it is, and built-in types refuse it.",
            next_step="Write it as example.com/name, with your own domain.",
        )


def _ref(obj: Obj, resource: Resource) -> ObjectRef:
    return resource.ref(name_of(obj), namespace_of(obj))
