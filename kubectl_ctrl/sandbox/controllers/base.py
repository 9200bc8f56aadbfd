"""What the controllers of the cluster have in common: how they hear of changes, read, and write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, ClassVar, Protocol

from kubectl_ctrl.clock import Clock, rfc3339, rfc3339_micro
from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, labels_of, name_of, namespace_of, uid_of
from kubectl_ctrl.model.owners import controller_of, owner_reference
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.model.resources import EVENTS, Resource
from kubectl_ctrl.model.selectors import Selector, from_label_selector
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.controllers.indexes import Index
from kubectl_ctrl.sandbox.storage import Storage, StoredChange

_LONGEST_PREFIX = 253 - len(".") - 16  # of the name of an Event; the rest is a number of 64 bits


class ServerWrites(Protocol):
    """Writes to the API server in the name of a component; each raises Refusal as a request would."""

    def create_as(self, user_agent: str, obj: Obj) -> Obj: ...

    def merge_as(self, user_agent: str, table: str, key: Key, patch: Obj, subresource: str) -> Obj | None: ...

    def delete_as(self, user_agent: str, table: str, key: Key, options: Obj) -> None: ...

    def bind(self, key: Key, node: str) -> None: ...


class ClusterAccess:
    """What one component reads and writes. Objects that it reads are the stored ones: never change them in place."""

    def __init__(self, user_agent: str, storage: Storage, index: Index, writes: ServerWrites, clock: Clock) -> None:
        self.user_agent = user_agent
        self.clock = clock
        self.index = index
        self._storage = storage
        self._writes = writes

    @property
    def now(self) -> str:
        return rfc3339(self.clock.now())

    def get(self, resource: Resource, key: Key) -> Obj | None:
        return self._storage.get(resource.full_name, key)

    def all(self, resource: Resource, namespace: str = "") -> Iterator[Obj]:
        """In the order of their keys; of all namespaces by default."""
        rows = self._storage.rows(resource.full_name)
        return (rows[key] for key in sorted(rows) if not namespace or key.namespace == namespace)

    def controlled(self, resource: Resource, owner: Obj) -> list[Obj]:
        """The objects whose controller this object is, also those being deleted; the oldest first."""
        return self.index.controlled(resource.full_name, uid_of(owner))

    def claim(
        self, resource: Resource, owner: Obj, selector: Selector, among: Callable[[Obj], bool] = lambda _: True
    ) -> list[Obj]:
        """The objects that an owner controls, after it adopted those it selects and released those it does not."""
        claimed = []
        for obj in filter(among, self.controlled(resource, owner)):
            if selector.matches(labels_of(obj)):
                claimed.append(obj)
            elif not is_deleting(owner):
                self._release(resource, owner, obj)
        if is_deleting(owner):
            return claimed
        for obj in filter(among, self.index.orphans(resource.full_name, namespace_of(owner))):
            if selector.matches(labels_of(obj)) and not is_deleting(obj):
                references = [*(obj["metadata"].get("ownerReferences") or ()), owner_reference(owner)]
                claimed.append(self.merge(resource, obj, {"metadata": {"ownerReferences": references}}) or obj)
        return claimed

    def _release(self, resource: Resource, owner: Obj, obj: Obj) -> None:
        kept = [one for one in obj["metadata"]["ownerReferences"] if one["uid"] != uid_of(owner)]
        self.merge(resource, obj, {"metadata": {"ownerReferences": kept or None}})

    def create(self, obj: Obj) -> Obj:
        return self._writes.create_as(self.user_agent, obj)

    def merge(self, resource: Resource, obj: Obj, patch: Obj, subresource: str = "") -> Obj | None:
        """Merge a patch into the object with this one's key; None if it does not exist any more."""
        return self._writes.merge_as(self.user_agent, resource.full_name, key_of(obj), patch, subresource)

    def set_status(self, resource: Resource, obj: Obj, status: Obj) -> Obj | None:
        """Replace the whole status; writes nothing if it is the same."""
        before = obj.get("status") or {}
        if same(before, status):
            return obj
        return self.merge(resource, obj, {"status": {**dict.fromkeys(before), **status}}, "status")

    def delete(self, resource: Resource, obj: Obj, **options: Any) -> None:
        """`options` as in the body of a DELETE: propagationPolicy, gracePeriodSeconds."""
        self._writes.delete_as(self.user_agent, resource.full_name, key_of(obj), options)

    def bind(self, pod: Obj, node: str) -> None:
        """Assign a pod to a node, as a request to its `binding` does."""
        self._writes.bind(key_of(pod), node)

    def event(
        self, about: Obj, reason: str, message: str, *, kind: str = "Normal", source: str = "", **more: Any
    ) -> None:
        """Create an Event, as client-go's recorder does: nobody hears of a refused one.

        `source` is a component, or a component and a host.
        With an `action` it has the form of events.k8s.io. `field_path` is the part of the object that it is about.
        """
        component, _, host = (source or self.user_agent).partition("@")
        # The version makes the names of two events of one moment different.
        number = int(self.clock.now() * 1e9) + self._storage.version
        reference = {
            "kind": about["kind"],
            "namespace": namespace_of(about),
            "name": name_of(about),
            "uid": uid_of(about),
            "apiVersion": about["apiVersion"],
            "resourceVersion": about["metadata"]["resourceVersion"],
            "fieldPath": more.pop("field_path", ""),
        }
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                "name": f"{name_of(about)[:_LONGEST_PREFIX]}.{number:x}",
                "namespace": namespace_of(about) or "default",
            },
            "involvedObject": {key: value for key, value in reference.items() if value},
            "reason": reason,
            "message": message,
            "type": kind,
            "reportingComponent": component,
            "reportingInstance": host,
        }
        if more:
            whole = {**event, **more, "eventTime": rfc3339_micro(self.clock.now())}
        else:
            times = {"firstTimestamp": self.now, "lastTimestamp": self.now, "count": 1}
            whole = {**event, "source": {"component": component, **({"host": host} if host else {})}, **times}
        with suppress(Refusal):  # for example in a namespace that is being deleted
            self.create(whole)


class Controller:
    """One controller. Both methods are plain functions: a step of a controller is never interleaved with a request."""

    component = "kube-controller-manager"  # the user agent of its writes

    def __init__(self, cluster: ClusterAccess) -> None:
        self.cluster = cluster

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        """The keys to sync because of this change. Called after the change is stored; must not write."""
        raise NotImplementedError

    def sync(self, key: Key) -> float | None:
        """Bring the object a step further. Returns the seconds after which to sync it again without a change."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class OwnerController(Controller):
    """A controller of objects that select other objects and own them: a ReplicaSet its pods, a Job its pods."""

    owner: ClassVar[Resource]
    owned: ClassVar[Resource]

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        if table == self.owner.full_name:
            return [change.key]
        return self._owners(change) if table == self.owned.full_name else ()

    def selector(self, owner: Obj) -> Selector:
        return from_label_selector(owner["spec"].get("selector"))

    def _owners(self, change: StoredChange) -> list[Key]:
        """The owner before and after the change; for an object without one, all that may adopt it."""
        found: dict[Key, None] = {}
        for obj in filter(None, (change.old, change.new)):
            reference = controller_of(obj)
            if reference is not None and reference["kind"] == self.owner.kind:
                found[Key(namespace_of(obj), reference["name"])] = None
        if change.new is not None and controller_of(change.new) is None:
            for owner in self.cluster.all(self.owner, namespace_of(change.new)):
                if self.selector(owner).matches(labels_of(change.new)):
                    found[key_of(owner)] = None
        return list(found)


def is_alive(obj: Obj | None) -> bool:
    return obj is not None and not is_deleting(obj)
