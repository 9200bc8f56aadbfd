"""What the tests of the scripted server share: a caller, and a few objects."""

from __future__ import annotations

import json
from typing import Any

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, Transport
from kubectl_ctrl.testing.server import ScriptedServer

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
FOOS = Resource("example.com", "v1", "foos", "Foo")
MAPS_PATH = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS_PATH = "/apis/apps/v1/namespaces/default/deployments"
FOOS_PATH = "/apis/example.com/v1/namespaces/default/foos"


class Caller:
    """Sends requests and reads the answers' JSON."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server: Transport = server

    async def __call__(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **query: str
    ) -> tuple[int, Any]:
        response = await self.respond(method, path, body, kind=kind, **query)
        return response.status, json.loads(response.body)

    async def respond(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json", **query: str
    ) -> HttpResponse:
        request = HttpRequest(
            method=method,
            path=path,
            query=tuple(query.items()),
            headers={"User-Agent": "caller/1.0", "Content-Type": kind, "Audit-ID": "a-1"},
            body=None if body is None else json.dumps(body).encode(),
            deadline=30.0,
        )
        return await self.server.send(request)


def configmap(name: str, /, **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str, /, **spec: Any) -> Obj:
    containers = [{"name": "web", "image": "nginx:1.27"}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}
    full = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": full}


def foo(name: str, /, **spec: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name}, "spec": spec}


FOO_SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 8},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
                "mode": {"type": "string", "enum": ["fast", "slow"]},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "share": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "multipleOf": 0.25},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "plain": {"type": "array", "items": {"type": "string"}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "properties": {"id": {"type": "string"}, "size": {"type": "integer"}, "x": {"type": "string"}},
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                    },
                },
            },
        },
    },
}


def foo_crd(**version: Any) -> Obj:
    served = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": FOO_SCHEMA},
        "subresources": {"status": {}},
        **version,
    }
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "shortNames": ["fo"]}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [served]}
    metadata = {"name": "foos.example.com"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def owned_by(owner: Obj, *, block: bool = True, controller: bool = True) -> Obj:
    """An ownerReference."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": block,
        "controller": controller,
    }
