"""What a HorizontalPodAutoscaler is about."""

from __future__ import annotations

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource


def scale_target(hpa: Obj, resource: Resource) -> str | None:
    """The name of the object of this resource that an autoscaler scales, in its own namespace; None for any other.

    Any version of the group is meant, and where no group is given, the kind alone tells.
    """
    target = hpa["spec"]["scaleTargetRef"]
    group, slash, _ = str(target.get("apiVersion") or resource.api_version).partition("/")
    same = target.get("kind") == resource.kind and (group if slash else "") == resource.group
    return str(target["name"]) if same else None
