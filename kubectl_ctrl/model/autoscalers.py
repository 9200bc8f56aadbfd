"""The target of a HorizontalPodAutoscaler."""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ctrl.model.objects import Obj, namespace_of
from kubectl_ctrl.model.resources import Resource


def scale_target(hpa: Obj, resource: Resource) -> str | None:
    """The name of an autoscaler's target in its namespace, if the target is of this resource; else None.

    The version of the target's apiVersion does not matter. Without an apiVersion only the kind is compared.
    """
    target = hpa["spec"]["scaleTargetRef"]
    group, slash, _ = str(target.get("apiVersion") or resource.api_version).partition("/")
    same = target.get("kind") == resource.kind and (group if slash else "") == resource.group
    return str(target["name"]) if same else None


def by_scale_target(resource: Resource) -> Callable[[Obj], tuple[str, ...]]:
    """For `.index(HPAS, name, by_scale_target(resource))`: autoscalers by `namespace/name` of their targets."""

    def values(hpa: Obj) -> tuple[str, ...]:
        name = scale_target(hpa, resource)
        return (f"{namespace_of(hpa)}/{name}",) if name else ()

    return values
