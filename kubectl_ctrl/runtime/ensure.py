"""Makes a child exist as its owner wants it: created by POST, kept by server-side apply, and never taken from others.

| in the cache              | what is done                                                         |
|---------------------------|----------------------------------------------------------------------|
| absent                    | POST; on 409 a live GET tells whether it is ours after all           |
| absent, and was there     | the same, if a live GET of the owner says that it still wants one    |
| controlled by another UID | nothing, ever: `foreign`                                             |
| being deleted             | nothing: it has to go first, and its end wakes the owner             |
| controlled by our UID     | applied with force and metadata.uid, if that would change anything   |
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
from kubectl_ctrl.runtime.noop import Need, with_uid
from kubectl_ctrl.runtime.writes import Writes

# Each further round acts on what a live read just found; past a few of them backing off is better.
_MOST_ROUNDS = 4

# Filled in by the server; an apply may not say them, and a POST would be wrong to.
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
    """`ensure` of one attempt's writing door."""

    def __init__(self, writes: Writes, caches: Caches, need: Need) -> None:
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
            except NotFound as error:  # gone, or replaced by another one of its name
                if live is None or not left or isinstance(error, NotServed):
                    raise
                self._writes.gone(ref, uid_of(live))
                await self._check(owner)
            except Conflict:  # our view was too old: for a POST, or for a patch that insists on a version
                if not left:
                    raise
            else:
                if ensured.ours:
                    self._need.note_child(owner, ref)
                return ensured
            live = await self._look(ref)
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
        """Refuse a child in the place of one that is gone, unless the server still has the owner.

        A cache that has not heard of the owner's end would have it made as often as the garbage collector takes it.
        """
        resource = self._caches.spec.declared(owner)
        if resource is None:
            return
        ref = resource.ref(name_of(owner), namespace_of(owner))
        try:
            now = await self._writes.client.get(ref)
        except Forbidden:  # then the garbage collector has the last word
            return
        except NotFound:
            self._writes.gone(ref, uid_of(owner))
            raise
        site = CallSite("get", str(ref))
        if uid_of(now) != uid_of(owner):
            self._writes.gone(ref, uid_of(owner))
            raise Replaced(f"{ref} was deleted and made again.", site=site, code=409)
        if is_deleting(now):
            raise Conflict(f"{ref} is being deleted, and gets no child any more.", site=site, code=409)

    def _left(self, live: Obj, how: How, why: str) -> Ensured:
        self._writes.notes.skip(why)
        return Ensured(live, how)

    async def _look(self, ref: ObjectRef) -> Obj | None:
        try:
            live = await self._writes.client.get(ref)
        except NotFound:
            return None
        self._writes.saw(ref.resource, live)
        return live

    async def _hand_over(self, live: Obj, ref: ObjectRef, left_out: tuple[str, ...]) -> Obj:
        """Make the apply that follows drop only what is no longer wanted; returns the object as it then is."""
        manager = self._writes.manager
        entry = own_entry(live, manager, "Apply") or own_entry(live, manager, "Update")
        if left_out and (body := co_owned(live, entry, left_out)):
            body |= {"metadata": {"uid": uid_of(live)}}
            live = await self._writes.apply(ref, body, live=live, manager=f"{manager}-left-out", force=False)
        if patch := first_apply_patch(live, manager):
            live = await self._writes.patch(ref, patch, live=live)
        return live


def _complete(child: Obj, owner: Obj, resource: Resource) -> Obj:
    """The child as it is to be sent: with its kind, its place and its owner, and without what only servers say."""
    kind = child.get("kind") or resource.kind
    meta = {key: value for key, value in (child.get("metadata") or {}).items() if key not in _SERVERS_OWN}
    if kind != resource.kind or not meta.get("name"):
        raise ControllerError(
            f"ensure() got {kind} {meta.get('name')!r} as a child among {resource}.",
            next_step=f"Give it a metadata.name, and the resource that {kind} belongs to.",
        )
    if resource.namespaced:
        meta.setdefault("namespace", namespace_of(owner))
    rest = {key: value for key, value in child.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return with_owner({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **rest}, owner)
