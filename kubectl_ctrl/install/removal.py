"""Deletes the objects that `install` created, and no others: it finds them by label and checks their field manager.

Every delete has the UID and the resourceVersion of the object that was checked; if the object changed meanwhile, it is
checked again. After an interruption at any point the rest is found again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubectl_ctrl.client.catalog import ApiResource
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import DeleteOptions, ListQuery
from kubectl_ctrl.errors import CallError, Conflict, Forbidden, MethodNotAllowed, NotFound, TimedOut
from kubectl_ctrl.install.kinds import (
    CLUSTERROLEBINDINGS,
    CLUSTERROLES,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    ref_of,
    shown,
)
from kubectl_ctrl.install.marks import is_ours, managers_of, selector
from kubectl_ctrl.install.requirements import account
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Obj, is_deleting, name_of, uid_of, version_of
from kubectl_ctrl.model.resources import CRDS, EVENTS, LEASES, NAMESPACES, ObjectRef, Resource
from kubectl_ctrl.value import Unshown, Value

# Bindings are deleted before their roles and accounts.
RIGHTS = (CLUSTERROLEBINDINGS, ROLEBINDINGS, CLUSTERROLES, ROLES, SERVICEACCOUNTS)

_MOST_ROUNDS = 4
_AT_ONCE = 8
_ASK_AGAIN = 0.5

_ROOT_CA = "kube-root-ca.crt"  # Kubernetes creates it in every namespace


class InstalledObjects(Value, kw_only=True):
    """The objects of one controller with our labels, in the order of their deletion."""

    rights: Unshown[tuple[Obj, ...]] = ()
    namespaces: Unshown[tuple[Obj, ...]] = ()
    crds: Unshown[tuple[Obj, ...]] = ()
    left: tuple[str, ...] = ()  # sentences about marked objects that install did not create


async def installed(client: Client, controller: str, namespace: str = "") -> InstalledObjects:
    """All objects of a controller; with a namespace, only the namespaced objects in that one."""

    async def marked(resource: Resource) -> list[Obj]:
        query = ListQuery(labels=selector(controller), namespace=namespace if resource.namespaced else "")
        # Items of a list have no kind.
        typed = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [{**obj, **typed} for obj in (await client.list(resource, query)).items]

    *rights, spaces, crds = await asyncio.gather(*(marked(resource) for resource in (*RIGHTS, NAMESPACES, CRDS)))
    spaces = [one for one in spaces if namespace in ("", name_of(one))]
    everything = [obj for part in (*rights, spaces, crds) for obj in part]

    def ours(objects: Sequence[Obj]) -> tuple[Obj, ...]:
        return tuple(obj for obj in objects if is_ours(obj, controller))

    return InstalledObjects(
        rights=ours([obj for part in rights for obj in part]),
        namespaces=ours(spaces),
        crds=ours(crds),
        left=tuple(
            f"{shown(ref_of(obj))} is kept: it has the labels of install, but was written by {managers_of(obj)}."
            for obj in everything
            if not is_ours(obj, controller)
        ),
    )


class Remover:
    """Deletes the objects of one controller."""

    def __init__(self, client: Client, controller: str, *, dry_run: bool = False) -> None:
        self._client = client
        self._controller = controller
        self._dry_run = dry_run

    async def remove(self, obj: Obj) -> bool:
        """Request the deletion of one of our objects; False if it is gone, or no longer ours."""
        ref, live = ref_of(obj), obj
        for left in reversed(range(_MOST_ROUNDS)):
            if is_deleting(live):
                return True
            options = DeleteOptions(uid=uid_of(live), version=version_of(live), dry_run=self._dry_run)
            try:
                await self._client.delete(ref, options)
            except NotFound:
                return False
            except Conflict:
                if not left:
                    raise
            else:
                return True
            try:
                live = await self._client.get(ref)
            except NotFound:
                return False
            if uid_of(live) != uid_of(obj) or not is_ours(live, self._controller):
                return False
        raise AssertionError("the last round returns or raises")

    async def contents(self, namespace: str) -> tuple[str, ...]:
        """The objects in a namespace, without ours and those of every namespace; and the types that we cannot list."""
        catalog = await self._client.discovery.refresh()
        types: dict[str, ApiResource] = {}
        for api in catalog.resources:
            if api.resource.namespaced and {"list", "delete"} <= set(api.verbs):
                types.setdefault(api.resource.full_name, api)
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def list_one(resource: Resource) -> list[str]:
            async with at_once:
                return await self._objects(resource, namespace)

        found = await asyncio.gather(*(list_one(api.resource) for api in types.values()))
        failed = [f"objects of {version} (it does not answer)" for version in catalog.failed]
        return tuple(name for part in found for name in part) + tuple(failed)

    async def _objects(self, resource: Resource, namespace: str) -> list[str]:
        try:
            listed = await self._client.list(resource, ListQuery(namespace=namespace, metadata_only=True))
        except (NotFound, MethodNotAllowed):
            return []
        except Forbidden:
            return [f"{resource} (no right to list it)"]
        return [str(resource.ref(name_of(obj), namespace)) for obj in listed.items if self._counts(resource, obj)]

    def _counts(self, resource: Resource, obj: Obj) -> bool:
        name = name_of(obj)
        if resource.plural == EVENTS.plural and resource.group in ("", "events.k8s.io"):
            return False
        if resource == LEASES:
            whole = account(self._controller)
            return not (name == whole or name.startswith(f"{whole}-"))
        if resource.group == "" and resource.plural == "configmaps":
            return name != _ROOT_CA
        if resource == SERVICEACCOUNTS and name == "default":
            return False
        # Our own rights are being deleted, or would be without the dry run.
        return not (resource in RIGHTS and is_ours(obj, self._controller))


async def wait_until_gone(client: Client, objects: Sequence[Obj], seconds: float) -> None:
    """Return when all of these are deleted; TimedOut names those that still exist."""
    end = client.clock.elapsed() + seconds
    left = list(objects)
    while left := [obj for obj in left if await _exists(client, ref_of(obj), uid_of(obj))]:
        if client.clock.elapsed() >= end:
            names = ", ".join(shown(ref_of(obj)) for obj in left)
            raise TimedOut(
                f"Not deleted within {format_duration(seconds)}: {names}.",
                next_step="its deletion continues; kubectl get -o yaml shows its finalizers",
            )
        await client.clock.sleep(_ASK_AGAIN)


async def _exists(client: Client, ref: ObjectRef, uid: str) -> bool:
    try:
        return uid_of(await client.get(ref)) == uid
    except NotFound:
        return False
    except CallError:
        return True
