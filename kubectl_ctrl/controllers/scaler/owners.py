"""Whose a workload and its count are, where they are not the scaler's to change. Pure; each problem is a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl import Obj, controller_of, labels_of
from kubectl_ctrl.controllers.scaler.annotations import Names, Settings
from kubectl_ctrl.controllers.scaler.plan import Plan

# The managers under which GitOps tools write what stands in a repository.
_GITOPS = re.compile(
    r"argo-?cd.*|kustomize-controller|helm-controller|flux.*|helm|fleet-?agent|kapp.*|config-?sync.*", re.IGNORECASE
)


def is_runner(workload: Obj) -> bool:
    """Whether it runs controllers of ours: a scaler that scales itself to 0 never starts anything again."""
    labels = labels_of(workload)
    marks = labels.get("app.kubernetes.io/managed-by"), labels.get("app.kubernetes.io/component")
    return marks == ("kubectl-ctrl", "controller")


def owner_problem(workload: Obj, settings: Settings, names: Names) -> str:
    """Which controller owns it; "" when none does, or when that is allowed."""
    owner = controller_of(workload)
    if owner is None or settings.allow_owned:
        return ""
    return (
        f"{owner['kind']} {owner['name']!r} owns it and decides about its replicas; it is left alone."
        f" Set {names.prefix}allow-owned to true to scale it all the same."
    )


def gitops_problem(workload: Obj, hpa: Obj | None, planned: Plan, settings: Settings) -> str:
    """Which GitOps tool applies a field that is to be changed; "" when none does, or when that is allowed."""
    if settings.allow_gitops:
        return ""
    for what, obj, change in (("workload", workload, planned.target), ("autoscaler", hpa or {}, planned.hpa)):
        for field in change.get("spec", {}):
            for manager in _managers_of(obj, field):
                if _GITOPS.fullmatch(manager):
                    return (
                        f"{manager} applies spec.{field} of this {what} and would set it back; it is left alone."
                        " Take the field out of what is applied, or set allow-gitops to true."
                    )
    return ""


def _managers_of(obj: Obj, field: str) -> Iterator[str]:
    for entry in obj["metadata"].get("managedFields") or ():
        spec: Any = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if f"f:{field}" in spec:
            yield str(entry.get("manager") or "")
