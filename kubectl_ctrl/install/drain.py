"""Deletes all custom resources of CRDs, and waits while their controller finalizes them.

Finalizers are never removed here: an object is deleted when the owners of its finalizers have removed them.

A finalizer belongs to a controller if its field manager set it, according to managedFields, or if it has the domain of
the controller's CRD. The domain counts because after a restore from a backup or a `kubectl edit`, managedFields has
another manager.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import DeleteOptions, ListQuery
from kubectl_ctrl.errors import Forbidden, NotFound
from kubectl_ctrl.install.crds import served
from kubectl_ctrl.model.managed_fields import entries, fields_set
from kubectl_ctrl.model.objects import Obj, is_deleting, name_of, namespace_of, uid_of
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import Value

_AT_ONCE = 8
_ASK_AGAIN, _SOON = 1.0, 0.1


class Finalizer(Value):
    """One finalizer and the field managers that set it, if known."""

    name: str
    managers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} (set by {', '.join(self.managers) or 'an unknown manager'})"


class HeldObject(Value, kw_only=True):
    """An object and its finalizers."""

    ref: ObjectRef
    deleting: bool
    finalizers: tuple[Finalizer, ...]
    own: tuple[Finalizer, ...] = ()  # those of the controller

    def __str__(self) -> str:
        by = ", ".join(map(str, self.finalizers))
        return f"{self.ref}: {by or 'no finalizer'}"


def held(obj: Obj, resource: Resource, controllers: Sequence[str]) -> HeldObject:
    """The finalizers of an object, and those that belong to these controllers."""
    found = tuple(
        Finalizer(name, _managers(obj, name)) for name in dict.fromkeys(obj["metadata"].get("finalizers") or ())
    )
    own = tuple(one for one in found if _is_of(one, resource, controllers))
    ref = resource.ref(name_of(obj), namespace_of(obj))
    return HeldObject(ref=ref, deleting=is_deleting(obj), finalizers=found, own=own)


def _is_of(one: Finalizer, resource: Resource, controllers: Sequence[str]) -> bool:
    domain = one.name.partition("/")[0]
    mine = {f"kubectl-ctrl-{name}" for name in controllers}
    return bool(mine & set(one.managers)) or domain in (resource.group, resource.full_name)


def _managers(obj: Obj, finalizer: str) -> tuple[str, ...]:
    path = ("f:metadata", "f:finalizers", f"v:{json.dumps(finalizer)}")
    names = {
        str(entry.get("manager") or "") for entry in entries(obj) if path in fields_set(entry.get("fieldsV1") or {})
    }
    return tuple(sorted(names - {""}))


Tell = Callable[[Sequence[HeldObject]], None]


async def custom_resources(client: Client, crd: Obj) -> tuple[Resource, list[Obj]] | None:
    """The metadata of every object of a CRD; None if it serves no version, so they cannot be listed."""
    for resource in served(crd):
        try:
            listed = await client.list(resource, ListQuery(metadata_only=True))
        except NotFound:  # not served yet, or no longer
            continue
        return resource, list(listed.items)
    return None


async def marked_by(
    client: Client, resources: Sequence[Resource], controller: str
) -> tuple[list[HeldObject], list[Resource]]:
    """The objects of these types with a finalizer of the controller, and the types that we may not list."""
    found: list[HeldObject] = []
    unseen = []
    for resource in resources:
        try:
            listed = await client.list(resource, ListQuery(metadata_only=True))
        except NotFound:
            continue
        except Forbidden:
            unseen.append(resource)
            continue
        found += [held(obj, resource, (controller,)) for obj in listed.items if obj["metadata"].get("finalizers")]
    return [one for one in found if one.own], unseen


class Drain:
    """The deletion of all objects of some CRDs."""

    def __init__(self, client: Client, crds: Sequence[Obj], controller: str) -> None:
        self._client = client
        self._crds = tuple(crds)
        self._controller = controller

    async def holding(self) -> list[HeldObject]:
        """All objects that still exist, with their finalizers."""
        return [one for _, _, one in await self._look()]

    async def run(self, seconds: float, tell: Tell) -> list[HeldObject]:
        """Delete everything and wait; returns the objects that still exist after the timeout.

        `tell` is called with the remaining objects when they change. Objects created meanwhile are deleted too.
        """
        clock = self._client.clock
        end = clock.elapsed() + seconds
        before: list[HeldObject] | None = None
        while found := await self._look():
            left = [one for _, _, one in found]
            staying = [(resource, obj) for resource, obj, one in found if not one.deleting]
            if not staying and left != before:
                tell(left)
                before = left
            await self._delete_all(staying)
            if clock.elapsed() >= end:
                return await self.holding()
            # Objects without finalizers are deleted at once.
            await clock.sleep(_SOON if staying else min(_ASK_AGAIN, max(end - clock.elapsed(), _SOON)))
        return []

    async def _look(self) -> list[tuple[Resource, Obj, HeldObject]]:
        found = []
        for crd in self._crds:
            answer = await custom_resources(self._client, crd)
            if answer is not None:
                resource, objects = answer
                found += [(resource, obj, held(obj, resource, (self._controller,))) for obj in objects]
        return found

    async def _delete_all(self, objects: Sequence[tuple[Resource, Obj]]) -> None:
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def delete(resource: Resource, obj: Obj) -> None:
            async with at_once:
                if is_deleting(obj):
                    return
                try:
                    # Without a version: the user confirmed the deletion of the object, whatever its state is now.
                    options = DeleteOptions(uid=uid_of(obj), propagation="Background")
                    await self._client.delete(resource.ref(name_of(obj), namespace_of(obj)), options)
                except NotFound:
                    return

        await asyncio.gather(*(delete(resource, obj) for resource, obj in objects))

    def __repr__(self) -> str:
        return f"Drain({self._controller!r}, crds={len(self._crds)})"
