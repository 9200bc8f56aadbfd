"""Objects and beginnings of attempts that many tests need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kubectl_ctrl.model.attempt import AttemptStarted
from kubectl_ctrl.model.cause import Cause, Request
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import HPAS

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value, which must not be None."""
    assert value is not None
    return value


def workload(
    name: str, *, kind: str = "Deployment", replicas: int = 1, selector: Mapping[str, str] | None = None, **meta: Any
) -> Obj:
    """A workload of one container; `meta` are fields of its metadata."""
    selector = selector or {"app": name}
    pod = {"metadata": {"labels": selector}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": selector}, "template": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"} | meta,
        "spec": spec,
    }


def autoscaler(
    target: str = "web", least: int = 2, most: int = 10, *, name: str = "auto", kind: str = "Deployment"
) -> Obj:
    ref = {"apiVersion": "apps/v1", "kind": kind, "name": target}
    spec = {"scaleTargetRef": ref, "minReplicas": least, "maxReplicas": most}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": HPAS.api_version, "kind": HPAS.kind, "metadata": meta, "spec": spec}


def started(name: str, *causes: Cause, at: float = 0.0, **changed: Any) -> AttemptStarted:
    """The beginning of an attempt of foo for default/web."""
    fields: Obj = {"controller": "foo", "request": Request("default", "web"), "causes_total": len(causes)}
    fields |= {"queued_at": at, "started": at, "waited": 0.001, "try_no": 1}
    return AttemptStarted(id=name, causes=causes, **fields | changed)
