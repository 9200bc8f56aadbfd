"""The garbage collector, and the deletion of namespaces and CustomResourceDefinitions with their content.

It hears of every change itself, so that nothing is lost while a test holds it back (`collecting`). At once, `run` acts
to the end after each request; paced, it is one controller among others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of
from kubectl_ctrl.model.resources import CRDS, NAMESPACES, PODS, Resource
from kubectl_ctrl.sandbox.controllers.base import ClusterAccess, Controller
from kubectl_ctrl.sandbox.controllers.namespaces import with_conditions
from kubectl_ctrl.sandbox.rules import CRD_FINALIZER
from kubectl_ctrl.sandbox.storage import Storage, StoredChange

Place = tuple[str, Key]  # table and key

_ITSELF = Key("", "")  # the only key: the collector has an order of its own
_FOREGROUND = "foregroundDeletion"
_ORPHAN = "orphan"


class Collector(Controller):
    def __init__(self, cluster: ClusterAccess, storage: Storage) -> None:
        super().__init__(cluster)
        self.collecting = True
        self._storage = storage
        self._waiting: deque[Place] = deque()
        self._gone: deque[str] = deque()  # UIDs
        self._places: dict[str, Place] = {}  # UID to table and key
        self._dependents: dict[str, dict[Place, None]] = {}  # owner's UID to its dependents
        storage.listeners.append(self._heard)

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        return (_ITSELF,) if self._waiting or self._gone else ()

    def sync(self, key: Key) -> float | None:
        if not self.collecting or not (self._waiting or self._gone):
            return None
        self._step()
        return 0.0

    def run(self) -> None:
        """Act until nothing is left to do."""
        while self.collecting and (self._waiting or self._gone):
            self._step()

    def _heard(self, table: str, step: StoredChange) -> None:
        place = (table, key_of(step.obj))
        before, after = _owner_uids(step.old), _owner_uids(step.new)
        for owner in before:
            left = self._dependents.get(owner, {})
            left.pop(place, None)
            if not left:
                self._dependents.pop(owner, None)
        for owner in after:
            self._dependents.setdefault(owner, {})[place] = None
        if step.old is not None and (step.new is None or uid_of(step.old) != uid_of(step.new)):
            self._places.pop(uid_of(step.old), None)
            self._gone.append(uid_of(step.old))
        if step.new is not None:
            self._places[uid_of(step.new)] = place
        # Owners in the foreground wait for those that no longer block them.
        if before and (step.new is None or _blocked(step.old) != _blocked(step.new)):
            self._waiting.extend(self._places[owner] for owner in before if owner in self._places)
        if step.new is None:
            self._waiting.extend(
                [(NAMESPACES.full_name, Key("", place[1].namespace)), (CRDS.full_name, Key("", table))]
            )
        elif is_deleting(step.new) or after:
            self._waiting.append(place)

    def rebuild(self) -> None:
        """Read the current state again: it is not the result of logged steps."""
        self._places.clear()
        self._dependents.clear()
        for table, rows in self._storage.tables.items():
            for key, obj in rows.items():
                self._places[uid_of(obj)] = (table, key)
                for owner in _owner_uids(obj):
                    self._dependents.setdefault(owner, {})[table, key] = None

    def _step(self) -> None:
        if self._gone:
            for place in self._dependents_of(self._gone.popleft()):
                self._check_owners(place)
            return
        table, key = self._waiting.popleft()
        obj = self._storage.get(table, key)
        if obj is not None and is_deleting(obj):
            self._deleting(table, obj)
        elif obj is not None:
            self._check_owners((table, key))

    def _dependents_of(self, uid: str) -> list[Place]:
        return list(self._dependents.get(uid, ()))

    # -- dependents

    def _check_owners(self, place: Place) -> None:
        """Delete an object without owners that stay; if some stay, remove the references to the others."""
        obj = self._storage.get(*place)
        references = obj["metadata"].get("ownerReferences") if obj is not None else None
        if obj is None or not references or is_deleting(obj):
            return
        there = [reference for reference in references if self._is_there(reference, obj)]
        solid = [reference for reference in there if not self._waits(reference)]
        if solid and len(solid) < len(references):
            self._merge(*place, {"metadata": {"ownerReferences": solid}})
        elif not solid:
            self._collect(place, obj, foreground=bool(there) and bool(self._dependents.get(uid_of(obj))))

    def _collect(self, place: Place, obj: Obj, *, foreground: bool) -> None:
        """In the foreground below an owner that waits; a cycle of such owners blocks nobody."""
        finalizers = obj["metadata"].get("finalizers") or ()
        if foreground:
            below = (self._storage.get(*one) for one in self._dependents_of(uid_of(obj)))
            if any(one is not None and _is_in_foreground(one) for one in below):
                freed = [{**one, "blockOwnerDeletion": False} for one in obj["metadata"]["ownerReferences"]]
                self._merge(*place, {"metadata": {"ownerReferences": freed}})
            self._delete(place, "Foreground")
        elif _ORPHAN in finalizers:
            self._delete(place, "Orphan")
        else:
            self._delete(place, "Foreground" if _FOREGROUND in finalizers else "Background")

    def _is_there(self, reference: Obj, dependent: Obj) -> bool:
        """An owner with another name counts as absent.

        So does one in another namespace, except for cluster-scoped objects: those are never collected.
        """
        place, namespace = self._places.get(reference["uid"]), key_of(dependent).namespace
        if place is not None and place[1].namespace not in ("", namespace):
            self._warn(reference, dependent)
        return (
            place is not None
            and place[1].name == reference["name"]
            and (not namespace or place[1].namespace in ("", namespace))
        )

    def _warn(self, reference: Obj, dependent: Obj) -> None:
        namespace = key_of(dependent).namespace
        title = f"{reference['apiVersion']}/{reference['kind']}, namespace: {namespace}, name: {reference['name']}"
        words = f'ownerRef [{title}, uid: {reference["uid"]}] does not exist in namespace "{namespace}"'
        self.cluster.event(
            dependent, "OwnerRefInvalidNamespace", words, kind="Warning", source="garbage-collector-controller"
        )

    def _waits(self, reference: Obj) -> bool:
        """Whether the owner is being deleted in the foreground."""
        owner = self._storage.get(*self._places[reference["uid"]])
        return owner is not None and _is_in_foreground(owner)

    # -- objects that are being deleted

    def _deleting(self, table: str, obj: Obj) -> None:
        finalizers = obj["metadata"].get("finalizers") or []
        if table == NAMESPACES.full_name:
            self._empty_namespace(obj)
        elif table == CRDS.full_name and CRD_FINALIZER in finalizers:
            self._empty_resource(obj)
        elif _ORPHAN in finalizers:
            self._orphan(table, obj)
        elif _FOREGROUND in finalizers:
            self._foreground(table, obj)

    def _foreground(self, table: str, obj: Obj) -> None:
        for place in self._dependents_of(uid_of(obj)):
            self._check_owners(place)
        left = (self._storage.get(*place) for place in self._dependents_of(uid_of(obj)))
        if not any(uid_of(obj) in _blocked(dependent) for dependent in left):
            self._unfinalize(table, obj, _FOREGROUND)

    def _orphan(self, table: str, obj: Obj) -> None:
        for place in self._dependents_of(uid_of(obj)):
            dependent = self._storage.get(*place)
            if dependent is not None:
                references = dependent["metadata"].get("ownerReferences") or []
                left = [reference for reference in references if reference["uid"] != uid_of(obj)]
                self._merge(*place, {"metadata": {"ownerReferences": left}})
        self._unfinalize(table, obj, _ORPHAN)

    def _unfinalize(self, table: str, obj: Obj, finalizer: str) -> None:
        left = [name for name in obj["metadata"].get("finalizers") or () if name != finalizer]
        self._merge(table, key_of(obj), {"metadata": {"finalizers": left}})

    # -- namespaces and CRDs

    def _empty_namespace(self, namespace: Obj) -> None:
        """Delete the pods, and when they are gone everything else; then the namespace itself may go."""
        if "kubernetes" not in (namespace["spec"].get("finalizers") or ()):
            return
        name = namespace["metadata"]["name"]
        pods_left = self._empty(place for place in self._inside(name) if place[0] == PODS.full_name)
        left = [] if pods_left else self._empty(self._inside(name))
        status = with_conditions(namespace["status"], left, self.cluster.now)
        self.cluster.set_status(NAMESPACES, namespace, status)
        if not pods_left and not left:
            finalizers = [one for one in namespace["spec"]["finalizers"] if one != "kubernetes"]
            self._merge(NAMESPACES.full_name, key_of(namespace), {"spec": {"finalizers": finalizers}}, "finalize")

    def _empty(self, places: Iterable[Place]) -> list[tuple[str, Obj]]:
        """Delete these objects; returns those that are left."""
        left = []
        for table, key in list(places):
            obj = self._storage.get(table, key)
            if obj is not None and not is_deleting(obj):
                self._delete((table, key), "Background")
                obj = self._storage.get(table, key)
            if obj is not None:
                left.append((table, obj))
        return left

    def _inside(self, namespace: str) -> Iterator[Place]:
        for table, rows in list(self._storage.tables.items()):
            yield from ((table, key) for key in sorted(rows) if key.namespace == namespace)

    def _empty_resource(self, crd: Obj) -> None:
        table = f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"
        if not self._empty((table, key) for key in sorted(self._storage.rows(table))):
            self._unfinalize(CRDS.full_name, crd, CRD_FINALIZER)

    # -- writes

    def _merge(self, table: str, key: Key, patch: Obj, subresource: str = "") -> None:
        if (obj := self._storage.get(table, key)) is not None:
            self.cluster.merge(_resource(table), obj, patch, subresource)

    def _delete(self, place: Place, policy: str) -> None:
        if (obj := self._storage.get(*place)) is not None:
            preconditions: dict[str, Any] = {"uid": uid_of(obj)}
            self.cluster.delete(_resource(place[0]), obj, propagationPolicy=policy, preconditions=preconditions)

    def __repr__(self) -> str:
        return f"Collector(objects={len(self._places)}, owners={len(self._dependents)}, waiting={len(self._waiting)})"


def _resource(table: str) -> Resource:
    """Enough of a resource type to find its table."""
    plural, _, group = table.partition(".")
    return Resource(group, "", plural, "")


def _owner_uids(obj: Obj | None) -> list[str]:
    if obj is None:
        return []
    return [reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()]


def _blocked(obj: Obj | None) -> set[str]:
    """The UIDs of the owners whose deletion in the foreground waits for this object."""
    references = obj["metadata"].get("ownerReferences") or () if obj is not None else ()
    return {reference["uid"] for reference in references if reference.get("blockOwnerDeletion")}


def _is_in_foreground(obj: Obj) -> bool:
    return is_deleting(obj) and _FOREGROUND in (obj["metadata"].get("finalizers") or ())
