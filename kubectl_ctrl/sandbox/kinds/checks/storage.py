"""PersistentVolumeClaims, PersistentVolumes and StorageClasses.

| kind | checked |
|---|---|
| PersistentVolumeClaim | modes, selector, size, class; the spec never changes |
| PersistentVolume | capacity, modes, policy, one source |
| StorageClass | provisioner, policies, which never change |
"""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same
from kubectl_ctrl.sandbox.kinds import quantities
from kubectl_ctrl.sandbox.kinds.checks.words import (
    Found,
    forbidden,
    invalid,
    one_of,
    qualified,
    required,
    selector,
    subdomain,
    texts,
    unlike,
    unsupported,
)

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)
_NOT_SOURCES = frozenset(
    {
        *("capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName"),
        *("mountOptions", "volumeMode", "nodeAffinity", "volumeAttributesClassName"),
    }
)


def claim(obj: Obj, old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from selector("spec.selector", spec.get("selector"))
    yield from _modes(spec.get("accessModes") or [])
    field = "spec.resources[storage]"
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required(field)
    elif quantities.amount(size) <= 0:
        yield invalid(field, size, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from texts("spec.storageClassName", spec["storageClassName"], subdomain)
    yield from one_of("spec.volumeMode", spec.get("volumeMode"), "Block", "Filesystem")
    if old is not None:
        yield from _change(obj, old)


def _modes(modes: list[Any]) -> Found:
    for mode in modes:
        if mode not in _MODES:
            yield unsupported("spec.accessModes", mode, *_MODES)
    if "ReadWriteOncePod" in modes and any(mode in _MODES[:3] for mode in modes):
        yield forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _change(obj: Obj, old: Obj) -> Found:
    new, before, bound = obj.get("spec") or {}, old.get("spec") or {}, (obj.get("status") or {}).get("phase") == "Bound"
    left, right = _lasting(new, bound=bound), _lasting(before, bound=bound)
    if not before.get("volumeName"):
        left.pop("volumeName", None)
    if before.get("storageClassName") is None:  # the default class is set later
        left.pop("storageClassName", None)
    if not same(left, right):
        yield forbidden("spec", _IMMUTABLE)
    capacity = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
    sizes = [
        quantities.amount(((one.get("resources") or {}).get("requests") or {}).get("storage")) for one in (new, before)
    ]
    if sizes[0] < sizes[1] and sizes[0] <= quantities.amount(capacity):
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    yield from unlike("volumeMode", new.get("volumeMode"), before.get("volumeMode"))


def _lasting(spec: Obj, *, bound: bool) -> Obj:
    """The spec without the fields that may change once the claim is bound."""
    if not bound:
        return dict(spec)
    resources = dict(spec.get("resources") or {})
    resources["requests"] = {key: value for key, value in (resources.get("requests") or {}).items() if key != "storage"}
    return {**{key: value for key, value in spec.items() if key != "volumeAttributesClassName"}, "resources": resources}


def volume(obj: Obj, _old: Obj | None) -> Found:
    spec = obj.get("spec") or {}
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    yield from _modes(spec.get("accessModes") or [])
    if not spec.get("capacity"):
        yield required("spec.capacity")
    elif list(spec["capacity"]) != ["storage"]:
        yield unsupported("spec.capacity", spec["capacity"], "storage")
    elif quantities.amount(spec["capacity"]["storage"]) <= 0:
        yield invalid("spec.capacity[storage]", spec["capacity"]["storage"], "must be greater than zero")
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from one_of("spec.persistentVolumeReclaimPolicy", policy, "Delete", "Recycle", "Retain")
    sources = sorted(spec.keys() - _NOT_SOURCES)
    for name in sources[1:]:
        yield forbidden(f"spec.{name}", "may not specify more than 1 volume type")
    if not sources:
        yield required("spec", "must specify a volume type")
    if spec.get("storageClassName"):
        yield from texts("spec.storageClassName", spec["storageClassName"], subdomain)
    yield from one_of("spec.volumeMode", spec.get("volumeMode"), "Block", "Filesystem")


def storage_class(obj: Obj, old: Obj | None) -> Found:
    if old is not None:
        for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            yield from unlike(name, obj.get(name), old.get(name))
        return
    provisioner = obj.get("provisioner") or ""
    if not provisioner:
        yield required("provisioner")
    else:
        for words in qualified(provisioner.lower()):
            yield invalid("provisioner", provisioner.lower(), words)
    yield from one_of("reclaimPolicy", obj.get("reclaimPolicy"), "Delete", "Retain")
    mode = obj.get("volumeBindingMode")
    yield from one_of("volumeBindingMode", mode, "Immediate", "WaitForFirstConsumer")
