"""Owners of a workload or its replicas that the scaler must respect. Pure; each problem is a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl import Obj, controller_of, labels_of
from kubectl_ctrl.controllers.scaler.annotations import Names, Settings
from kubectl_ctrl.controllers.scaler.plan import ScalingPlan

# The field managers of GitOps tools.
_GITOPS = re.compile(
    r"argo-?cd.*|kustomize-controller|helm-controller|flux.*|helm|fleet-?agent|kapp.*|config-?sync.*", re.IGNORECASE
)


def is_runner(workload: Obj) -> bool:
    """Whether it runs controllers of kubectl-ctrl: a scaler that stops itself never starts anything again."""
    labels = labels_of(workload)
    marks = labels.get("app.kubernetes.io/managed-by"), labels.get("app.kubernetes.io/component")
    return marks == ("kubectl-ctrl", "controller")


def owner_problem(workload: Obj, settings: Settings, names: Names) -> str:
    """The controller that owns it; "" when there is none, or when that is allowed."""
    owner = controller_of(workload)
    if owner is None or settings.allow_owned:
        return ""
    return (
        f"It is not scaled, because {owner['kind']} {owner['name']!r} owns it and sets its replicas."
        f" Set {names.prefix}allow-owned to true to scale it anyway."
    )


def gitops_problem(workload: Obj, hpa: Obj | None, planned: ScalingPlan, settings: Settings) -> str:
    """The GitOps tool that applies a field to be changed; "" when there is none, or when that is allowed."""
    if settings.allow_gitops:
        return ""
    for what, obj, change in (("workload", workload, planned.target), ("autoscaler", hpa or {}, planned.hpa)):
        for field in change.get("spec", {}):
            for manager in _managers_of(obj, field):
                if _GITOPS.fullmatch(manager):
                    return (
                        f"It is not scaled, because {manager} applies spec.{field} of this {what} and would revert it."
                        " Remove the field from the applied manifest, or set allow-gitops to true."
                    )
    return ""


def _managers_of(obj: Obj, field: str) -> Iterator[str]:
    for entry in obj["metadata"].get("managedFields") or ():
        spec: Any = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if f"f:{field}" in spec:
            yield str(entry.get("manager") or "")
