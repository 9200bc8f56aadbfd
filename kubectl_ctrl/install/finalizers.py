"""The finalizers of an object: who set them, and which of them a controller has to remove.

A finalizer belongs to a controller if its field manager set it, according to managedFields, or if it has the domain of
the controller's CRD. The domain counts because after a restore from a backup or a `kubectl edit`, managedFields has
another manager.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from kubectl_ctrl.model.managed_fields import entries, fields_set
from kubectl_ctrl.model.objects import Obj, is_deleting, name_of, namespace_of
from kubectl_ctrl.model.resources import ObjectRef, Resource
from kubectl_ctrl.value import Value


class Finalizer(Value):
    """One finalizer and the field managers that set it, if known."""

    name: str
    managers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} (set by {', '.join(self.managers) or 'an unknown manager'})"


class Held(Value, kw_only=True):
    """An object and its finalizers."""

    ref: ObjectRef
    deleting: bool
    finalizers: tuple[Finalizer, ...]
    own: tuple[Finalizer, ...] = ()  # those of the controller

    def __str__(self) -> str:
        by = ", ".join(map(str, self.finalizers))
        return f"{self.ref}: {by or 'no finalizer'}"


def held(obj: Obj, resource: Resource, controllers: Sequence[str]) -> Held:
    """The finalizers of an object, and those that belong to these controllers."""
    found = tuple(
        Finalizer(name, _managers(obj, name)) for name in dict.fromkeys(obj["metadata"].get("finalizers") or ())
    )
    own = tuple(one for one in found if _is_of(one, resource, controllers))
    ref = resource.ref(name_of(obj), namespace_of(obj))
    return Held(ref=ref, deleting=is_deleting(obj), finalizers=found, own=own)


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
