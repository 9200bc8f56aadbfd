"""The client of a plan: reads go to the server, writes are sent as dry runs and recorded in the plan's world.

A dry run starts from the live object, so its result is applied to the state planned before; see `world`. If the effect
of a write depends on an earlier planned one, its request is changed so that the dry run has the same effect.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable
from random import Random
from typing import NoReturn, TypeVar

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.dryrun import DryRunOnly
from kubectl_ctrl.client.lists import ListPage
from kubectl_ctrl.client.options import (
    LIST_ALL,
    PLAIN_DELETE,
    PLAIN_WRITE,
    DeleteOptions,
    ListQuery,
    PatchKind,
    WriteOptions,
)
from kubectl_ctrl.client.order import Body
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import AlreadyExists, BadRequest, CallSite, Conflict, CtrlError, Invalid, NotFound, Replaced
from kubectl_ctrl.model.managed_fields import own_entry
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.patches import apply_merge, merge_patch
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.model.transport import Transport
from kubectl_ctrl.plan.predictions import merged
from kubectl_ctrl.plan.world import PLANNED, Layer, PlannedState, World, as_new, stated
from kubectl_ctrl.runtime.handover import first_apply_patch, leftovers_patch
from kubectl_ctrl.value import replace

T = TypeVar("T")

# If another client keeps changing the object, the plan is made for an earlier version of it.
_MOST_TRIES = 5
_NO_DRY_RUN = re.compile(r'admission webhook "(?P<name>[^"]+)" does not support dry run')
_VERSION = "/metadata/resourceVersion"
_NOTES = "/metadata/managedFields"


class PlanClient(Client):
    """A client whose transport rejects every request that is not a read or a dry run."""

    def __init__(self, transport: Transport, *, clock: Clock, rng: Random, user_agent: str, world: World) -> None:
        super().__init__(DryRunOnly(transport), clock=clock, rng=rng, user_agent=user_agent)
        self.world = world

    async def get(self, ref: ObjectRef) -> Obj:
        planned = self.world.find(ref)
        if planned is None or ref.subresource:
            return await super().get(ref)
        if planned.state is None:
            _gone(ref, "get")
        if planned.live is None:
            return planned.state
        return self.world.visible(ref, await super().get(ref))

    async def create(self, where: Resource | ObjectRef, obj: Obj, options: WriteOptions = PLAIN_WRITE) -> Obj:
        dry = replace(options, dry_run=True)
        if isinstance(where, ObjectRef):
            return await self._tried(super().create(where, obj, dry))
        ref = where.ref(name_of(obj), namespace_of(obj))
        planned = self.world.find(ref)
        if planned is None:
            answer = await self._tried(super().create(where, obj, dry))
        elif planned.state is not None:
            site = CallSite("create", str(ref))
            raise AlreadyExists(f"The plan already created {ref}.", site=site, code=409, reason="AlreadyExists")
        else:
            # The plan deleted the object of this name. On the server it exists, so a dry run would only be rejected.
            answer = {"apiVersion": where.api_version, "kind": where.kind, **obj}
        return answer if options.dry_run else self.world.created(ref, answer, "create")

    async def patch(self, ref: ObjectRef, body: Body, kind: PatchKind, options: WriteOptions = PLAIN_WRITE) -> Obj:
        planned = self.world.find(ref.sub(""))
        if planned is not None and planned.state is None:
            _gone(ref, _verb(kind))
        if planned is not None and planned.live is None:
            return await self._rewritten(ref, planned, body, kind, options)
        live = await self._live(ref.sub(""))
        for left in reversed(range(_MOST_TRIES)):
            if live is None:
                # No such object: an apply creates it, and any other patch is rejected.
                answer = await self._sent(ref, body, kind, options)
                return answer if options.dry_run else self.world.created(ref, answer, _verb(kind))
            layer = await self._layer(ref, live, body, kind, options)
            if version_of(layer.answer) == version_of(live) or not left:
                break
            live = await self._live(ref.sub(""))  # it changed between the read and the dry run
        assert live is not None
        if ref.subresource not in ("", "status"):
            return self._beside(ref, live, layer, options)
        if options.dry_run:
            return self.world.tried(ref, live, layer)
        return self.world.wrote(ref, live, layer, _verb(kind))

    async def replace(self, ref: ObjectRef, obj: Obj, options: WriteOptions = PLAIN_WRITE) -> Obj:
        """Send the same changes of the live object; in the plan's world they are a merge patch."""
        whole = ref.sub("")
        state = await self.get(whole)
        if ref.subresource == "status":
            body: Obj = {"status": merge_patch(state.get("status") or {}, obj.get("status") or {})}
        else:
            body = merge_patch(as_new(state), as_new(obj))
        planned = self.world.find(whole)
        if planned is not None and planned.live is None:
            pinned = {**body, "metadata": {**(body.get("metadata") or {}), "resourceVersion": version_of(obj)}}
            return await self._rewritten(ref, planned, pinned, PatchKind.MERGE, options)
        live = await super().get(whole)
        state = self.world.visible(whole, live)
        if state is not live:
            _check(ref, "update", state, uid_of(obj), version_of(obj))
        version = version_of(live) if version_of(obj) == version_of(state) else version_of(obj)
        sent = apply_merge(live, body)
        sent = {**sent, "metadata": {**sent["metadata"], "resourceVersion": version}}
        answer = await self._tried(super().replace(ref, sent, replace(options, dry_run=True)))
        if ref.subresource not in ("", "status"):
            return answer
        layer = Layer(
            kind=PatchKind.MERGE,
            manager=options.manager,
            subresource=ref.subresource,
            body=body,
            live=live,
            answer=answer,
        )
        if options.dry_run:
            return self.world.tried(ref, live, layer)
        return self.world.wrote(ref, live, layer, "update")

    async def list(self, resource: Resource, query: ListQuery = LIST_ALL) -> ListPage:
        listed = await super().list(resource, query)
        return replace(listed, items=self.world.listed(resource, query, listed.items))

    async def delete(self, ref: ObjectRef, options: DeleteOptions = PLAIN_DELETE) -> Obj:
        planned = self.world.find(ref)
        if planned is not None and planned.state is None:
            _gone(ref, "delete")
        if planned is not None and planned.live is None and planned.state is not None:
            _check(ref, "delete", planned.state, options.uid, options.version)
            self.world.removed(ref, None, planned.state)
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        live = await self._live(ref)
        dry = replace(options, dry_run=True)
        if live is None:
            return await self._tried(super().delete(ref, dry))
        before = self.world.visible(ref, live)
        if before is not live:
            _check(ref, "delete", before, options.uid, options.version)
        if options.version.startswith(PLANNED):
            dry = replace(dry, version=version_of(live))
        answer = await self._tried(super().delete(ref, dry))
        if uid_of(answer) != uid_of(live):  # a Status: the object would be gone
            self.world.removed(ref, live, before)
            return answer
        return self.world.wrote(ref, live, Layer(kind=None, body={}, live=live, answer=answer), "delete")

    # --- objects on the server

    async def _live(self, ref: ObjectRef) -> Obj | None:
        try:
            return await super().get(ref)
        except NotFound:
            return None

    async def _layer(self, ref: ObjectRef, live: Obj, body: Body, kind: PatchKind, options: WriteOptions) -> Layer:
        """The write as a dry run on the live object."""
        state = self.world.visible(ref.sub(""), live)
        if state is not live:
            _check(ref, _verb(kind), state, "", _pinned(body))
        handing = isinstance(body, list) and _hands_over(body)
        sent = (first_apply_patch(live, options.manager) or body) if handing else _repinned(body, live)
        if kind is PatchKind.APPLY and isinstance(sent, dict) and not ref.subresource:
            answer = await self._applied(ref, live, sent, options)
        else:
            answer = await self._sent(ref, sent, kind, options)
        # Such a patch addresses managedFields by index, which is meaningless for another state.
        body = [] if handing else body
        return Layer(
            kind=kind, manager=options.manager, subresource=ref.subresource, body=body, live=live, answer=answer
        )

    async def _applied(self, ref: ObjectRef, live: Obj, body: Obj, options: WriteOptions) -> Obj:
        """An apply after planned writes that determine which fields it removes.

        A field that another manager applied in the plan stays, so it is part of the request. Fields that the plan
        handed over from Update to Apply would go, so the patch that removes them is a dry run of its own.
        """
        planned = self.world.find(ref.sub(""))
        layers = () if planned is None else planned.layers
        others = [layer for layer in layers if layer.kind is PatchKind.APPLY and layer.manager != options.manager]
        kept = body
        for layer in others:
            if not layer.subresource and isinstance(layer.body, dict):
                kept = merged({key: layer.body[key] for key in layer.body if key != "metadata"}, kept)
        handed = any(layer.kind is PatchKind.JSON and layer.body == [] for layer in layers)
        posted = own_entry(live, options.manager, "Update") if handed else None
        if posted is None:
            return await self._sent(ref, kept, PatchKind.APPLY, options)
        leftovers = leftovers_patch(live, posted, _with_data(kept))
        try:
            answer = await self._sent(ref, kept, PatchKind.APPLY, options)
            if leftovers is None:
                return answer
            left = await self._sent(ref, leftovers, PatchKind.JSON, options)
        except Invalid:  # the new fields are invalid together with the old ones: both changes need one request
            rest = stated(live, leftovers or [], PatchKind.JSON, "")
            whole: Obj = stated(rest, kept, PatchKind.APPLY, "")
            meta = {**whole["metadata"], "resourceVersion": version_of(live)}
            sent = {**whole, "metadata": meta}
            return await self._tried(super().replace(ref, sent, replace(options, dry_run=True)))
        first = Layer(kind=PatchKind.JSON, body=leftovers, live=live, answer=left)
        return {**first.over(answer), "metadata": answer["metadata"]}

    async def _sent(self, ref: ObjectRef, body: Body, kind: PatchKind, options: WriteOptions) -> Obj:
        known = "" if options.old_version.startswith(PLANNED) else options.old_version
        return await self._tried(super().patch(ref, body, kind, replace(options, dry_run=True, old_version=known)))

    def _beside(self, ref: ObjectRef, live: Obj, layer: Layer, options: WriteOptions) -> Obj:
        """A write to a subresource other than status, whose response is not the object."""
        if options.dry_run:
            return layer.answer
        whole = ref.sub("")
        count = (layer.answer.get("spec") or {}).get("replicas") if layer.answer.get("kind") == "Scale" else None
        if count is None or "replicas" not in (live.get("spec") or {}):
            self.world.touched(ref, self.world.visible(whole, live), _verb(layer.kind))
            return layer.answer
        body: Obj = {"spec": {"replicas": count}}
        scaled = Layer(kind=PatchKind.MERGE, body=body, live=live, answer=stated(live, body, PatchKind.MERGE, ""))
        self.world.wrote(ref, live, scaled, _verb(layer.kind))
        return layer.answer

    # --- objects that exist in the plan alone

    async def _rewritten(
        self, ref: ObjectRef, planned: PlannedState, body: Body, kind: PatchKind, options: WriteOptions
    ) -> Obj:
        state = planned.state
        assert state is not None
        uid = str((body.get("metadata") or {}).get("uid") or "") if isinstance(body, dict) else ""
        _check(ref, _verb(kind), state, uid, _pinned(body))
        wanted = stated(state, body, kind, ref.subresource)
        checked = not ref.subresource and not (isinstance(body, list) and _hands_over(body))
        if checked:
            answer = await self._tried(super().create(ref.resource, as_new(wanted), replace(options, dry_run=True)))
            wanted = {**answer, **{key: state[key] for key in ("status",) if key in state}}
        if options.dry_run:
            meta = {**wanted["metadata"], "uid": uid_of(state), "resourceVersion": version_of(state)}
            return {**wanted, "metadata": meta}
        return self.world.rewrote(ref, wanted, _verb(kind), checked=checked)

    async def _tried(self, call: Awaitable[T]) -> T:
        """If a webhook rejects dry runs, the result of the write is unknown, which ends the plan."""
        try:
            return await call
        except BadRequest as error:
            found = _NO_DRY_RUN.search(error.message)
            if found is None:
                raise
            self.world.blocked = CtrlError(
                f"The admission webhook {found['name']!r} does not support dry run, so the result of "
                f"{error.site.verb} {error.site.target} cannot be planned.",
                next_step="if it has no side effects, set sideEffects: None or NoneOnDryRun in its configuration",
            )
            raise self.world.blocked from error

    def __repr__(self) -> str:
        return f"PlanClient({self.world!r}, {super().__repr__()})"


def _verb(kind: PatchKind | None) -> str:
    return "apply" if kind is PatchKind.APPLY else "patch"


def _gone(ref: ObjectRef, verb: str) -> NoReturn:
    site = CallSite(verb, str(ref))
    raise NotFound(f"The plan already deleted {ref}.", site=site, code=404, reason="NotFound")


def _check(ref: ObjectRef, verb: str, state: Obj, uid: str, version: str) -> None:
    """Raise what the server would answer about the UID and version if it had the planned state."""
    site = CallSite(verb, str(ref))
    if uid and uid != uid_of(state):
        raise Replaced(f"{ref} has a different UID in the plan.", site=site, code=409)
    if version and version != version_of(state):
        raise Conflict(
            f"The plan already wrote {ref}, so the server would reject {verb} with the version read earlier.",
            site=site,
            code=409,
            reason="Conflict",
            next_step="Read the object again, or continue with the object that the earlier write returned.",
        )


def _hands_over(body: list[Obj]) -> bool:
    """A JSON patch that only changes the ownership of fields."""
    paths = [str(operation.get("path")) for operation in body]
    return any(path.startswith(_NOTES) for path in paths) and all(
        path == _VERSION or path.startswith(_NOTES) for path in paths
    )


def _pinned(body: Body) -> str:
    """The resourceVersion that a patch requires."""
    if isinstance(body, dict):
        return str((body.get("metadata") or {}).get("resourceVersion") or "")
    return next((str(operation.get("value") or "") for operation in body if operation.get("path") == _VERSION), "")


def _repinned(body: Body, live: Obj) -> Body:
    """The patch with the live resourceVersion in place of a planned one."""
    if not _pinned(body).startswith(PLANNED):
        return body
    if isinstance(body, dict):
        return {**body, "metadata": {**body["metadata"], "resourceVersion": version_of(live)}}
    return [
        {**operation, "value": version_of(live)} if operation.get("path") == _VERSION else operation
        for operation in body
    ]


def _with_data(body: Obj) -> Obj:
    """A Secret with its stringData as data: the server converts it, and managedFields name the field data."""
    strings = body.get("stringData") if body.get("kind") == "Secret" else None
    if not isinstance(strings, dict):
        return body
    data = {name: base64.b64encode(str(word).encode()).decode() for name, word in strings.items()}
    return {**body, "data": {**(body.get("data") or {}), **data}}
