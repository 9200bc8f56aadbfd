"""The stage of this room's tests: toys are installed on it, and runs send no events unless they are told to."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.testing.stage import Running, Stage
from tests.runtime.toy import TOYS

__all__ = ["Running", "World", "crd", "toy"]

_STATUS: Obj = {
    "type": "object",
    "properties": {
        "ready": {"type": "boolean"},
        "seen": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}


def crd(resource: Resource = TOYS, *, status: bool = True, status_schema: Obj = _STATUS) -> Obj:
    """A CustomResourceDefinition with a free spec."""
    version: Obj = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "status": status_schema,
                },
            }
        },
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [version],
        },
    }


def toy(name: str, namespace: str = "default", **spec: Any) -> Obj:
    return {
        "apiVersion": TOYS.api_version,
        "kind": TOYS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


class World(Stage):
    """With the CRD of toys, if installed, and with the objects."""

    def __init__(self, *objects: Obj, seed: int = 1, installed: bool = True) -> None:
        super().__init__(seed=seed)
        if installed:
            self.install(crd())
        self.server.writes.clear()
        for obj in objects:
            self.server.create(obj)

    def services(self) -> Services:
        return Services()
