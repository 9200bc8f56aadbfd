"""Makes a child exist as declared: created by POST, then kept by server-side apply; never adopted from others.

| in the cache              | action                                                               |
|---------------------------|----------------------------------------------------------------------|
| absent                    | POST; on 409 a live GET, because it may be controlled by our UID     |
| absent, and was there     | the same, if a live GET shows that the owner still exists            |
| controlled by another UID | none, ever: `foreign`                                                |
| being deleted             | none: it has to go first, and its deletion triggers the owner        |
| controlled by our UID     | apply with force and metadata.uid, if that would change anything     |
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_ctrl.errors import CallSite, Conflict, ControllerError, Forbidden, NotFound, NotServed, Replaced
from kubectl_ctrl.model.managed_fields import own_entry
from kubectl_ctrl.model.objects import Obj, is_deleting, name_of, namespace_of, uid_of
from kubectl_ctrl.model.owners import controlled_by, with_owner
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.runtime.caches import Caches
from kubectl_ctrl.runtime.contract import Ensured, How
from kubectl_ctrl.runtime.handover import co_owned, first_apply_patch, without
from kubectl_ctrl.runtime.noop import ApplyNeed, with_uid
from kubectl_ctrl.runtime.writes import Writes

# Each further round acts on a live read; after a few of them a retry with backoff is better.
_MOST_ROUNDS = 4

# Set by the server: an apply must not have them, and a POST should not.
_SERVERS_OWN = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)


class Children:
    """`ctx.write.ensure` of one attempt."""

    def __init__(self, writes: Writes, caches: Caches, need: ApplyNeed) -> None:
        self._writes = writes
        self._caches = caches
        self._need = need

    async def ensure(self, child: Obj, owner: Obj, resource: Resource, leave_out: Iterable[str]) -> Ensured:
        paths = tuple(leave_out)
        desired = without(_complete(child, owner, resource), paths)
        ref = resource.ref(name_of(desired), namespace_of(desired))
        live = self._caches.get(resource, ref.name, ref.namespace)
        if live is None and self._need.had_child(owner, ref):
            await self._check(owner)
        for left in reversed(range(_MOST_ROUNDS)):
            try:
                ensured = await self._ensure(live, desired, owner, ref, paths)
            except NotFound as error:  # deleted, or replaced by another object of its name
                if live is None or not left or isinstance(error, NotServed):
                    raise
                self._writes.gone(ref, uid_of(live))
                await self._check(owner)
            except Conflict:  # the cache was stale: for a POST, or for a patch with a version
                if not left:
                    raise
            else:
                if ensured.ours:
                    self._need.note_child(owner, ref)
                return ensured
            live = await self._read(ref)
        raise AssertionError("the last round returns or raises")

    async def _ensure(
        self, live: Obj | None, desired: Obj, owner: Obj, ref: ObjectRef, left_out: tuple[str, ...]
    ) -> Ensured:
        if live is None:
            answer = await self._writes.create(ref.resource, desired)
            self._need.settle(answer, desired, ref)
            return Ensured(answer, How.CREATED)
        if not controlled_by(live, uid_of(owner)):
            return self._left(live, How.FOREIGN, f"{ref} is not controlled by {owner.get('kind')} {name_of(owner)!r}")
        if is_deleting(live):
            return self._left(live, How.UNCHANGED, f"{ref} is being deleted")
        if not await self._need.of_child(live, desired, ref):
            return self._left(live, How.UNCHANGED, f"apply {ref}: nothing would change")
        live = await self._hand_over(live, ref, left_out)
        answer = await self._writes.apply(ref, with_uid(desired, live), live=live)
        self._need.settle(answer, desired, ref)
        return Ensured(answer, How.APPLIED)

    async def _check(self, owner: Obj) -> None:
        """Refuse to recreate a child unless the server still has the owner.

        The garbage collector deletes children of a deleted owner. While the cache still has that owner, `ensure` would
        recreate them as often as they are deleted.
        """
        resource = self._caches.spec.declared(owner)
        if resource is None:
            return
        ref = resource.ref(name_of(owner), namespace_of(owner))
        try:
            now = await self._writes.client.get(ref)
        except Forbidden:  # without the right to read the owner, the garbage collector deletes the child again
            return
        except NotFound:
            self._writes.gone(ref, uid_of(owner))
            raise
        site = CallSite("get", str(ref))
        if uid_of(now) != uid_of(owner):
            self._writes.gone(ref, uid_of(owner))
            raise Replaced(f"{ref} was deleted and recreated.", site=site, code=409)
        if is_deleting(now):
            raise Conflict(f"{ref} is being deleted, so its children are not recreated.", site=site, code=409)

    def _left(self, live: Obj, how: How, why: str) -> Ensured:
        self._writes.notes.skip(why)
        return Ensured(live, how)

    async def _read(self, ref: ObjectRef) -> Obj | None:
        try:
            live = await self._writes.client.get(ref)
        except NotFound:
            return None
        self._writes.saw(ref.resource, live)
        return live

    async def _hand_over(self, live: Obj, ref: ObjectRef, left_out: tuple[str, ...]) -> Obj:
        """Move field ownership, so that the next apply removes exactly the fields that are no longer desired."""
        manager = self._writes.manager
        entry = own_entry(live, manager, "Apply") or own_entry(live, manager, "Update")
        if left_out and (body := co_owned(live, entry, left_out)):
            body |= {"metadata": {"uid": uid_of(live)}}
            live = await self._writes.apply(ref, body, live=live, manager=f"{manager}-left-out", force=False)
        if patch := first_apply_patch(live, manager):
            live = await self._writes.patch(ref, patch, live=live)
        return live


def _complete(child: Obj, owner: Obj, resource: Resource) -> Obj:
    """The child to send: with kind, namespace and owner, and without the fields that servers set."""
    kind = child.get("kind") or resource.kind
    meta = {key: value for key, value in (child.get("metadata") or {}).items() if key not in _SERVERS_OWN}
    if kind != resource.kind or not meta.get("name"):
        raise ControllerError(
            f"ensure() got {kind} {meta.get('name')!r} as a child for {resource}.",
            next_step=f"Give it a metadata.name, and pass the resource of {kind}.",
        )
    if resource.namespaced:
        meta.setdefault("namespace", namespace_of(owner))
    rest = {key: value for key, value in child.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return with_owner({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **rest}, owner)
