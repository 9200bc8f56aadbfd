"""Writes statuses by server-side apply on /status: only changes, and only fields that the CRD has."""

from __future__ import annotations

import logging

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.schema import Schema, prune, served_schema
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import NotInstalled
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.runtime.caches import Caches
from kubectl_ctrl.runtime.noop import ApplyNeed, with_uid
from kubectl_ctrl.runtime.writes import Writes

_log = logging.getLogger(__name__)

# The schema takes a request each time; a replaced CRD is noticed this much later.
_KEPT_FOR = 60.0


class Schemas:
    """The served schemas of one controller's types; kept over attempts."""

    def __init__(self, client: Client, clock: Clock, controller: str) -> None:
        self._install = str(ctrl("install", controller))
        self._client = client  # not that of an attempt: these requests belong to none
        self._clock = clock
        self._known: dict[Resource, tuple[float, Schema | None]] = {}
        self._told: set[tuple[Resource, tuple[str, ...]]] = set()

    async def check_status(self, resource: Resource) -> None:
        """Raise NotInstalled unless the type is served with a status subresource."""
        discovery = self._client.discovery
        api = await discovery.serves(resource)
        if api is None or "status" not in api.subresources:
            api = (await discovery.refresh()).get(resource)  # the CRD may have been replaced since it was read
        if api is None or "status" not in api.subresources:
            what = "is not served" if api is None else "is served without a status subresource"
            raise NotInstalled(
                f"{resource} ({resource.api_version}) {what}, so its status cannot be written.",
                next_step=self._install,
            )

    async def pruned(self, resource: Resource, status: Obj) -> Obj:
        """The status without fields that the served schema lacks: with them the whole apply would fail."""
        schema = await self._schema(resource)
        if schema is None:
            return status
        kept: Obj
        kept, dropped = prune(schema, status, ("status",))
        if dropped and (resource, tuple(dropped)) not in self._told:
            self._told.add((resource, tuple(dropped)))
            _log.warning(
                "The CRD is older than the controller: it lacks fields of the status, which are omitted. Next: %s",
                self._install,
                extra={"action": "status.pruned", "resource": str(resource), "fields": ", ".join(dropped)},
            )
        return kept

    async def _schema(self, resource: Resource) -> Schema | None:
        at, schema = self._known.get(resource, (None, None))
        if at is None or self._clock.elapsed() - at > _KEPT_FOR:
            schema = await served_schema(self._client, resource)
            self._known[resource] = (self._clock.elapsed(), schema)
        return schema

    def __repr__(self) -> str:
        return f"Schemas(told={len(self._told)})"


class Statuses:
    """`ctx.write.status` of one attempt."""

    def __init__(self, writes: Writes, caches: Caches, need: ApplyNeed, schemas: Schemas) -> None:
        self._writes = writes
        self._caches = caches
        self._need = need
        self._schemas = schemas

    async def write(self, obj: Obj, resource: Resource, status: Obj) -> Obj:
        live = self._caches.newest(obj, resource)
        ref = resource.ref(name_of(obj), namespace_of(obj)).sub("status")
        # At rest nothing would change, which is known without the schema and without a request.
        if not await self._need.of_status(live, _body(live, resource, status), ref):
            return self._left(live, f"apply {ref}: nothing would change")
        await self._schemas.check_status(resource)
        kept = await self._schemas.pruned(resource, status)
        desired = _body(live, resource, kept)
        if kept != status and not await self._need.of_status(live, desired, ref):
            return self._left(live, f"apply {ref}: nothing would change that the CRD has fields for")
        answer = await self._writes.apply(ref, with_uid(desired, live), live=live)
        self._need.settle(answer, desired, ref)
        return answer

    def _left(self, live: Obj, why: str) -> Obj:
        self._writes.notes.skip(why)
        return live


def _body(live: Obj, resource: Resource, status: Obj) -> Obj:
    meta = {"name": name_of(live)}
    if resource.namespaced:
        meta["namespace"] = namespace_of(live)
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "status": status}
