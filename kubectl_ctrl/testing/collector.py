"""The controllers of a real cluster that others depend on: garbage collection, deletion of namespaces and CRDs.

They run to the end right after each request, as `kube-controller-manager`. With `collecting = False` on the server a
test decides when they run: nothing is lost, `run` catches up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from kubectl_ctrl.model.objects import Key, Obj, is_deleting, key_of, uid_of
from kubectl_ctrl.model.resources import CRDS
from kubectl_ctrl.testing.rules import CRD_FINALIZER
from kubectl_ctrl.testing.storage import Storage, StoredChange

Place = tuple[str, Key]  # table and key

Delete = Callable[[str, Key, str], None]  # table, key, propagation policy
Merge = Callable[[str, Key, Obj, str], None]  # table, key, merge patch, subresource


class Collector:
    """Receives every step of the storage, and acts on `run`."""

    def __init__(self, storage: Storage, delete: Delete, merge: Merge) -> None:
        self._storage = storage
        self._delete = delete
        self._merge = merge
        self._waiting: deque[Place] = deque()
        self._gone: deque[str] = deque()  # UIDs
        self._places: dict[str, Place] = {}  # UID to table and key
        self._dependents: dict[str, dict[Place, None]] = {}  # owner's UID to its dependents
        storage.listeners.append(self._heard)

    def _heard(self, table: str, step: StoredChange) -> None:
        place = (table, key_of(step.obj))
        for owner in _owner_uids(step.old):
            self._dependents.get(owner, {}).pop(place, None)
        for owner in _owner_uids(step.new):
            self._dependents.setdefault(owner, {})[place] = None
        if step.old is not None and (step.new is None or uid_of(step.old) != uid_of(step.new)):
            self._places.pop(uid_of(step.old), None)
            self._gone.append(uid_of(step.old))
        if step.new is not None:
            self._places[uid_of(step.new)] = place
        if step.new is None:
            # Those that wait for this deletion check again: owners in the foreground, the namespace, the CRD.
            owners = [self._places[owner] for owner in _owner_uids(step.old) if owner in self._places]
            self._waiting.extend(
                [*owners, ("namespaces", Key("", place[1].namespace)), (CRDS.full_name, Key("", table))]
            )
        elif is_deleting(step.new) or step.new["metadata"].get("ownerReferences"):
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

    def run(self) -> None:
        """Act until nothing is left to do."""
        while self._waiting or self._gone:
            if self._gone:
                for place in list(self._dependents.get(self._gone.popleft(), {})):
                    self._check_owners(place)
                continue
            table, key = self._waiting.popleft()
            obj = self._storage.get(table, key)
            if obj is not None and is_deleting(obj):
                self._deleting(table, obj)
            elif obj is not None:
                self._check_owners((table, key))

    def _check_owners(self, place: Place) -> None:
        """Delete an object whose owners are all deleted; if some remain, remove the references to the others."""
        obj = self._storage.get(*place)
        references = obj["metadata"].get("ownerReferences") if obj is not None else None
        if obj is None or not references or is_deleting(obj):
            return
        solid = [reference for reference in references if self._is_there(reference, obj)]
        if not solid:
            self._delete(*place, "Background")
        elif len(solid) < len(references):
            self._merge(*place, {"metadata": {"ownerReferences": solid}}, "")

    def _is_there(self, reference: Obj, dependent: Obj) -> bool:
        """An owner with another name counts as absent.

        So does one in another namespace, except for cluster-scoped objects: those are never collected.
        """
        place = self._places.get(reference["uid"])
        namespace = key_of(dependent).namespace
        return (
            place is not None
            and place[1].name == reference["name"]
            and (not namespace or place[1].namespace in ("", namespace))
        )

    def _deleting(self, table: str, obj: Obj) -> None:
        finalizers = obj["metadata"].get("finalizers") or []
        if table == "namespaces":
            self._empty_namespace(obj)
        elif table == CRDS.full_name and CRD_FINALIZER in finalizers:
            self._empty_resource(obj)
        elif "orphan" in finalizers:
            self._orphan(table, obj)
        elif "foregroundDeletion" in finalizers:
            self._foreground(table, obj)

    def _foreground(self, table: str, obj: Obj) -> None:
        blocking = False
        for place in list(self._dependents.get(uid_of(obj), {})):
            dependent = self._storage.get(*place)
            if dependent is not None and not is_deleting(dependent):
                self._delete(*place, "Foreground" if self._dependents.get(uid_of(dependent)) else "Background")
                dependent = self._storage.get(*place)
            blocking = blocking or (dependent is not None and _blocks(dependent, uid_of(obj)))
        if not blocking:
            self._unfinalize(table, obj, "foregroundDeletion")

    def _orphan(self, table: str, obj: Obj) -> None:
        for place in list(self._dependents.get(uid_of(obj), {})):
            dependent = self._storage.get(*place)
            if dependent is not None:
                references = dependent["metadata"].get("ownerReferences") or []
                left = [reference for reference in references if reference["uid"] != uid_of(obj)]
                self._merge(*place, {"metadata": {"ownerReferences": left}}, "")
        self._unfinalize(table, obj, "orphan")

    def _unfinalize(self, table: str, obj: Obj, finalizer: str) -> None:
        left = [name for name in obj["metadata"].get("finalizers") or () if name != finalizer]
        self._merge(table, key_of(obj), {"metadata": {"finalizers": left}}, "")

    def _empty_namespace(self, namespace: Obj) -> None:
        name = namespace["metadata"]["name"]
        inside = list(self._inside(name))
        for table, key in inside:
            obj = self._storage.get(table, key)
            if obj is not None and not is_deleting(obj):
                self._delete(table, key, "Background")
        if not any(True for _ in self._inside(name)):
            self._merge("namespaces", key_of(namespace), {"spec": {"finalizers": []}}, "finalize")

    def _inside(self, namespace: str) -> Iterator[Place]:
        for table, rows in self._storage.tables.items():
            for key in sorted(rows):
                if key.namespace == namespace:
                    yield table, key

    def _empty_resource(self, crd: Obj) -> None:
        table = f"{crd['spec']['names']['plural']}.{crd['spec']['group']}"
        for key in sorted(self._storage.tables.get(table, ())):
            obj = self._storage.get(table, key)
            if obj is not None and not is_deleting(obj):
                self._delete(table, key, "Background")
        if not self._storage.tables.get(table):
            self._unfinalize(CRDS.full_name, crd, CRD_FINALIZER)

    def __repr__(self) -> str:
        return f"Collector(objects={len(self._places)}, owners={len(self._dependents)}, waiting={len(self._waiting)})"


def _owner_uids(obj: Obj | None) -> list[str]:
    if obj is None:
        return []
    return [reference["uid"] for reference in obj["metadata"].get("ownerReferences") or ()]


def _blocks(dependent: Obj, owner: str) -> bool:
    return any(
        reference["uid"] == owner and reference.get("blockOwnerDeletion")
        for reference in dependent["metadata"].get("ownerReferences") or ()
    )
