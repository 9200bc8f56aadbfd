"""Finds objects by their controller, and pods by their node, without a scan of the storage."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Key, Obj, namespace_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.storage import Storage, StoredChange

# A table, "controller" or "orphan" or "node", and the UID, namespace or name.
Group = tuple[str, str, str]


class Index:
    """Objects of a group are in the order in which they joined it. Update it before the controllers hear a change."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._groups: dict[Group, dict[Key, None]] = {}
        storage.listeners.append(self._heard)
        self.rebuild()

    def controlled(self, table: str, uid: str) -> list[Obj]:
        return self._objects((table, "controller", uid))

    def orphans(self, table: str, namespace: str) -> list[Obj]:
        """The objects of a namespace without a controller."""
        return self._objects((table, "orphan", namespace))

    def on_node(self, node: str) -> list[Obj]:
        """The pods of a node; those of "" are not scheduled."""
        return self._objects((PODS.full_name, "node", node))

    def count_on_node(self, node: str) -> int:
        return len(self._groups.get((PODS.full_name, "node", node), ()))

    def _objects(self, group: Group) -> list[Obj]:
        rows = self._storage.rows(group[0])
        return [rows[key] for key in self._groups.get(group, ()) if key in rows]

    def _heard(self, table: str, change: StoredChange) -> None:
        before, after = _groups_of(table, change.old), _groups_of(table, change.new)
        if before == after:
            return
        key = change.key
        for group in before:
            if group not in after and group in self._groups:
                self._groups[group].pop(key, None)
                if not self._groups[group]:
                    del self._groups[group]
        for group in after:
            self._groups.setdefault(group, {})[key] = None

    def rebuild(self) -> None:
        """Read the current state again: it is not the result of logged changes."""
        self._groups.clear()
        for table, rows in self._storage.tables.items():
            for key, obj in rows.items():
                for group in _groups_of(table, obj):
                    self._groups.setdefault(group, {})[key] = None

    def __repr__(self) -> str:
        return f"Index(groups={len(self._groups)})"


def _groups_of(table: str, obj: Obj | None) -> list[Group]:
    if obj is None:
        return []
    owner = controller_of(obj)
    groups = [(table, "orphan", namespace_of(obj)) if owner is None else (table, "controller", str(owner["uid"]))]
    if table == PODS.full_name:
        groups.append((table, "node", str((obj.get("spec") or {}).get("nodeName") or "")))
    return groups
