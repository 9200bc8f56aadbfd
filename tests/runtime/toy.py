"""What the tests of this room share: a toy resource, makers of raw objects, and a cache that is a plain dict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Key, Obj, key_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.contract import Context

TOYS = Resource("toys.example.com", "v1", "toys", "Toy")
BOXES = Resource("toys.example.com", "v1", "boxes", "Box", namespaced=False)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")


def made(resource: Resource, name: str, namespace: str = "default", /, **extra: Any) -> Obj:
    """An object as a server would hold it; `metadata` in `extra` is merged, the rest is set."""
    meta: Obj = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    if resource.namespaced:
        meta["namespace"] = namespace
    meta |= extra.pop("metadata", {})
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **extra}


def owned(resource: Resource, name: str, owner: Obj, **extra: Any) -> Obj:
    obj = made(resource, name, namespace_of(owner) or "default", **extra)
    obj["metadata"]["ownerReferences"] = [owner_reference(owner)]
    return obj


def at(obj: Obj, version: str, **extra: Any) -> Obj:
    """The same object at another version."""
    meta = {**obj["metadata"], "resourceVersion": version, **extra.pop("metadata", {})}
    return {**obj, "metadata": meta, **extra}


def added(resource: Resource, obj: Obj, *, initial: bool = False) -> Change:
    return Change(kind=ChangeKind.ADDED, resource=resource, old=None, new=obj, version=version_of(obj), initial=initial)


def modified(resource: Resource, old: Obj, new: Obj, *, relisted: bool = False) -> Change:
    version = version_of(new)
    return Change(kind=ChangeKind.MODIFIED, resource=resource, old=old, new=new, version=version, relisted=relisted)


def deleted(resource: Resource, obj: Obj, version: str = "9") -> Change:
    return Change(kind=ChangeKind.DELETED, resource=resource, old=obj, new=None, version=version)


def resynced(resource: Resource, obj: Obj) -> Change:
    return Change(kind=ChangeKind.RESYNC, resource=resource, old=obj, new=obj, version=version_of(obj))


class Shelf:
    """A cache as mappings see it."""

    def __init__(self, *objects: tuple[Resource, Obj]) -> None:
        self._objects: dict[tuple[Resource, Key], Obj] = {}
        for resource, obj in objects:
            self.put(resource, obj)

    def put(self, resource: Resource, obj: Obj) -> None:
        self._objects[resource, key_of(obj)] = obj

    def remove(self, resource: Resource, obj: Obj) -> None:
        del self._objects[resource, key_of(obj)]

    def get(self, resource: Resource, name: str, namespace: str = "") -> Obj | None:
        return self._objects.get((resource, Key(namespace, name)))

    def list(self, resource: Resource, namespace: str = "") -> Sequence[Obj]:
        found = [obj for (kind, key), obj in self._objects.items() if kind == resource]
        return sorted((obj for obj in found if not namespace or namespace_of(obj) == namespace), key=key_of)

    def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]:
        return [obj for obj in self.list(resource) if index == "uid" and uid_of(obj) == value]


async def do_nothing(ctx: Context, request: Request) -> None:
    pass
