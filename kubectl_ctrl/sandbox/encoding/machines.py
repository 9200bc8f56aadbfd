"""The cells of nodes and of storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.sandbox.encoding.facts import age, at

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_ROLE = "node-role.kubernetes.io/"
_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULTS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _node(obj: Obj, now: float) -> list[Any]:
    info = at(obj, "status.nodeInfo") or {}
    kernel = info.get("kernelVersion") or "<unknown>"
    kernel += f" ({info['architecture']})" if info.get("architecture") else ""
    return [
        at(obj, "metadata.name"),
        _state(obj),
        ",".join(_roles(obj)) or "<none>",
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _state(obj: Obj) -> str:
    state = "Unknown"
    for condition in at(obj, "status.conditions") or ():
        if condition.get("type") == "Ready":
            state = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if at(obj, "spec.unschedulable") else state


def _roles(obj: Obj) -> list[str]:
    marks = at(obj, "metadata.labels") or {}
    found = {name.removeprefix(_ROLE) for name in marks if name.startswith(_ROLE)}
    return sorted((found | {marks.get("kubernetes.io/role", "")}) - {""})


def _address(obj: Obj, kind: str) -> str:
    found = at(obj, "status.addresses") or ()
    return next((one.get("address", "") for one in found if one.get("type") == kind), "<none>")


def _modes(given: Iterable[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (given or ()))


def _phase(obj: Obj) -> str:
    return "Terminating" if at(obj, "metadata.deletionTimestamp") else str(at(obj, "status.phase") or "")


def _class(obj: Obj) -> str:
    marks = at(obj, "metadata.annotations") or {}
    return str(marks.get(_CLASS, at(obj, "spec.storageClassName") or ""))


def _volume(obj: Obj, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    claim = spec.get("claimRef")
    return [
        at(obj, "metadata.name"),
        (spec.get("capacity") or {}).get("storage", "0"),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(obj),
        "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}",
        _class(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        at(obj, "status.reason") or "",
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _claim(obj: Obj, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    volume = spec.get("volumeName", "")
    return [
        at(obj, "metadata.name"),
        _phase(obj),
        volume,
        (status.get("capacity") or {}).get("storage", "0") if volume else "",
        _modes(status.get("accessModes")) if volume else "",
        _class(obj),
        spec.get("volumeAttributesClassName", "<unset>"),
        age(obj, now),
        spec.get("volumeMode", "<unset>"),
    ]


def _storage_class(obj: Obj, now: float) -> list[Any]:
    marks = at(obj, "metadata.annotations") or {}
    default = " (default)" if any(marks.get(name) == "true" for name in _DEFAULTS) else ""
    return [
        f"{at(obj, 'metadata.name')}{default}",
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        age(obj, now),
    ]


CELLS: dict[str, Callable[[Obj, float], list[Any]]] = {
    "Node": _node,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "StorageClass.storage.k8s.io": _storage_class,
}
