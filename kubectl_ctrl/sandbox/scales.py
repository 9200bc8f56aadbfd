"""The scale subresource: an autoscaling/v1 Scale as a view of another object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Problem
from kubectl_ctrl.sandbox.kinds.catalog import ServedKind
from kubectl_ctrl.sandbox.kinds.checks.words import invalid

_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: ServedKind, obj: Obj) -> Obj:
    paths = kind.scale or {}
    meta = {name: obj["metadata"][name] for name in _COPIED if name in obj["metadata"]}
    replicas = int(_at(obj, paths.get("specReplicasPath", ".spec.replicas")) or 0)
    spec = {"replicas": replicas} if replicas else {}
    status: Obj = {"replicas": int(_at(obj, paths.get("statusReplicasPath", ".status.replicas")) or 0)}
    if kind.custom:
        selector = _at(obj, paths["labelSelectorPath"]) if "labelSelectorPath" in paths else None
    else:
        labels = ((obj.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    if selector:
        status["selector"] = selector
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def scaled(kind: ServedKind, obj: Obj, scale: Obj) -> Obj:
    """The object with the replicas and the version of a Scale."""
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if replicas < 0 and not kind.custom:  # custom resources have their own check
        scale_kind = Resource("autoscaling", "v1", "scales", "Scale")
        problem = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise answers.invalid(scale_kind, str(obj["metadata"]["name"]), [problem])
    path = (kind.scale or {}).get("specReplicasPath", ".spec.replicas")
    new = _with(obj, path.strip(".").split("."), replicas)
    meta = dict(new["metadata"])
    for name in ("uid", "resourceVersion"):
        if name in (scale.get("metadata") or {}):
            meta[name] = scale["metadata"][name]
    return {**new, "metadata": meta}


def problems(kind: ServedKind, obj: Obj) -> Iterator[Problem]:
    """The problems of the fields of a custom resource that its scale shows."""
    path = (kind.scale or {}).get("specReplicasPath", "")
    replicas = _at(obj, path) if path else None
    if isinstance(replicas, int) and replicas < 0:
        yield invalid(path, replicas, "should be a non-negative integer")


def _at(obj: Obj, path: str) -> Any:
    value: Any = obj
    for part in path.strip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _with(obj: Obj, path: list[str], value: Any) -> Obj:
    head, *rest = path
    return {**obj, head: _with(obj.get(head) or {}, rest, value) if rest else value}
