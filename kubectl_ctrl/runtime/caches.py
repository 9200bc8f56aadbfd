"""The caches of one controller by resource: for mappings and for `ctx.read`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.objects import Key, Obj, namespace_of, uid_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import NAMESPACES, Resource
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.contract import Indexer, Labels


class Lookup(Protocol):
    """The reads of an informer; they include own writes."""

    def get(self, key: Key) -> Obj | None: ...

    def by_index(self, name: str, value: str) -> Sequence[Obj]: ...

    def add_index(self, name: str, values: Indexer) -> None: ...

    def drop_index(self, name: str) -> None: ...

    def list(self, namespace: str = "", selector: Selector | None = None) -> Sequence[Obj]: ...


class Caches:
    """The declared resources of a controller; `edition` counts the versions of its code in a run."""

    def __init__(self, spec: ControllerSpec, lookups: Mapping[Resource, Lookup], edition: int = 1) -> None:
        self.spec = spec
        self._lookups = {resource: lookups[resource] for resource in spec.resources}
        # Informers are shared, so each controller, and each version of its code, has its own index names.
        self._by_owner = f"{spec.name}/{edition}/controller"
        self._indexes = {
            (index.resource, index.name): f"{spec.name}/{edition}/by/{index.name}" for index in spec.indexes
        }
        for lookup in self._lookups.values():
            lookup.add_index(self._by_owner, _controller_uid)
        for index in spec.indexes:
            self._lookups[index.resource].add_index(self._indexes[index.resource, index.name], index.values)

    def close(self) -> None:
        """Remove its indexes from the informers."""
        for lookup in self._lookups.values():
            lookup.drop_index(self._by_owner)
        for (resource, _), name in self._indexes.items():
            self._lookups[resource].drop_index(name)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Obj | None:
        return self._of(resource).get(Key(namespace if resource.namespaced else "", name))

    def list(self, resource: Resource, namespace: str = "", labels: Labels | None = None) -> Sequence[Obj]:
        selector = selector_of(labels) if labels is not None else None
        return self._of(resource).list(namespace if resource.namespaced else "", selector)

    def children(self, owner: Obj, resource: Resource) -> Sequence[Obj]:
        # Anybody can write a UID into objects of their own namespace. As for the garbage collector, an owner in another
        # namespace is none; one without a namespace owns objects in all of them.
        found, namespace = self._of(resource).by_index(self._by_owner, uid_of(owner)), namespace_of(owner)
        return [obj for obj in found if namespace_of(obj) == namespace] if namespace else found

    def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]:
        lookup = self._of(resource)
        if (resource, index) not in self._indexes:
            raise ControllerError(
                f"Controller {self.spec.name!r} has no index {index!r} of {resource}.",
                next_step=f"Declare it with .index({resource.kind}, {index!r}, ...).",
            )
        return lookup.by_index(self._indexes[resource, index], value)

    def check_whole(self, resource: Resource, verb: str) -> None:
        """Refuse a write that compares a desired state with objects whose metadata alone is cached."""
        if self.spec.view(resource).metadata_only:
            raise ControllerError(
                f"Controller {self.spec.name!r} caches only the metadata of {resource}, so {verb}() cannot know what"
                " would change.",
                next_step=f"Leave metadata_only out of .caching({resource.kind}), or use ctx.write.patch().",
            )

    def newest(self, obj: Obj, resource: Resource) -> Obj:
        """The cached object, or the given one if the cache has none of that UID."""
        meta = obj["metadata"]
        cached = self.get(resource, meta["name"], meta.get("namespace") or "") if resource in self._lookups else None
        return cached if cached is not None and uid_of(cached) == uid_of(obj) else obj

    def declared(self, resource: Resource) -> Resource | None:
        """The same resource with its declared kind."""
        return next((one for one in self._lookups if one == resource), None)

    def _of(self, resource: Resource) -> Lookup:
        lookup = self._lookups.get(resource)
        if lookup is None:
            raise ControllerError(
                f"Controller {self.spec.name!r} has no cache of {resource} ({resource.api_version}).",
                next_step="Declare it with .owns(), .watches() or .reads(), or use ctx.read.live().",
            )
        return lookup

    def __repr__(self) -> str:
        return f"Caches({self.spec.name}, resources={len(self._lookups)})"


def selection_of(spec: ControllerSpec, resource: Resource, namespace: str, labels: str) -> Selection:
    """The selection of a resource in that namespace, "" for all; `labels` select the primaries."""
    view = spec.view(resource)
    fields = view.fields
    if resource == NAMESPACES and namespace:
        # The run is for one namespace, and its user may have no right to read the others.
        fields = ",".join(filter(None, (fields, f"metadata.name={namespace}")))
    labels = ",".join(filter(None, (view.labels, labels if resource in spec.primaries else "")))
    place = namespace if resource.namespaced else ""
    return Selection(resource, place, labels=labels, fields=fields, metadata_only=view.metadata_only)


def selector_of(labels: Labels) -> Selector:
    if isinstance(labels, Selector):
        return labels
    return _parsed(labels if isinstance(labels, str) else ",".join(f"{key}={value}" for key, value in labels.items()))


# Reconcilers use the same few selectors again and again.
_parsed = lru_cache(maxsize=1024)(Selector.parse)


def _controller_uid(obj: Obj) -> Iterable[str]:
    ref = controller_of(obj)
    return (str(ref.get("uid") or ""),) if ref is not None else ()
