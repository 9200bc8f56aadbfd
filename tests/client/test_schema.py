from __future__ import annotations

import copy
from typing import Any

import pytest

from kubectl_ctrl.client.schema import Schema, prune, schema_in, served_schema
from kubectl_ctrl.errors import BadAnswer, ServerError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, PODS, Resource
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.rig import Rig, answer, on_answers, status
from tests.objects import present

FOOS = Resource("samplecontroller.k8s.io", "v1alpha1", "foos", "Foo")

STRING = {"type": "string"}
SPEC = {
    "type": "object",
    "properties": {
        "name": STRING,
        "bare": {"type": "object"},
        "free": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object"}},
        },
        "map": {"type": "object", "additionalProperties": STRING},
        "deep": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": STRING}}},
        "open": {"type": "object", "additionalProperties": True},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": STRING}}},
        "port": {"x-kubernetes-int-or-string": True},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object"}},
        },
    },
}
ROOT = {
    "type": "object",
    "properties": {
        "apiVersion": STRING,
        "kind": STRING,
        "metadata": {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}], "default": {}},
        "spec": SPEC,
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    },
    "x-kubernetes-group-version-kind": [
        {"group": "samplecontroller.k8s.io", "version": "v1alpha1", "kind": "Foo"},
    ],
}
DOCUMENT: Obj = {
    "components": {
        "schemas": {
            "Foo": ROOT,
            "ObjectMeta": {
                "type": "object",
                "properties": {"name": STRING, "times": {"$ref": "#/components/schemas/Time"}},
            },
            "Time": {"type": "string"},
            "Unused": {"type": "object", "properties": {"x": {"$ref": "#/components/schemas/Time"}}},
        }
    }
}


def schema() -> Schema:
    return present(schema_in(DOCUMENT, FOOS))


def test_a_type_is_found_with_what_it_refers_to_and_no_more() -> None:
    assert schema().root == ROOT
    assert list(schema().parts) == ["ObjectMeta", "Time"]
    assert schema_in(DOCUMENT, PODS) is None
    assert schema_in({}, FOOS) is None


@pytest.mark.parametrize(
    ("spec", "kept", "dropped"),
    [
        ({"name": "x"}, {"name": "x"}, []),
        ({"name": "x", "new": 1}, {"name": "x"}, ["spec.new"]),
        ({"bare": {"a": 1}}, {"bare": {}}, ["spec.bare.a"]),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": {"b": 1}}}, []),
        ({"free": {"known": {"x": 1}, "y": 2}}, {"free": {"known": {}, "y": 2}}, ["spec.free.known.x"]),
        ({"map": {"any": "x"}}, {"map": {"any": "x"}}, []),
        ({"deep": {"k": {"a": "x", "b": 1}}}, {"deep": {"k": {"a": "x"}}}, ["spec.deep.k.b"]),
        ({"open": {"a": {"b": 1}}}, {"open": {"a": {"b": 1}}}, []),
        (
            {"list": [{"a": "x", "b": 1}, {"b": 2, "c": 3}]},
            {"list": [{"a": "x"}, {}]},
            ["spec.list[].b", "spec.list[].c"],
        ),
        ({"port": 80}, {"port": 80}, []),
        ({"any": {"a": [1]}}, {"any": {"a": [1]}}, []),
        (
            {"template": {"kind": "Pod", "apiVersion": "v1", "metadata": {"x": 1}, "spec": {}, "odd": 1}},
            {"template": {"kind": "Pod", "apiVersion": "v1", "metadata": {"x": 1}, "spec": {}}},
            ["spec.template.odd"],
        ),
        ({"name": None}, {"name": None}, []),
        ("no object", "no object", []),
    ],
)
def test_prune(spec: Any, kept: Any, dropped: list[str]) -> None:
    obj = {"apiVersion": "x/v1", "kind": "Foo", "metadata": {"name": "n", "labels": {"a": "b"}}, "spec": spec}
    before = copy.deepcopy(obj)
    pruned, lost = prune(schema(), obj)
    assert pruned == {**obj, "spec": kept}
    assert lost == dropped
    assert obj == before


def test_prune_below_a_path() -> None:
    status_ = {"ready": 1, "observedGeneration": 2, "conditions": []}
    assert prune(schema(), status_, ("status",)) == ({"ready": 1}, ["status.observedGeneration", "status.conditions"])
    assert prune(schema(), {"a": "x", "b": 1}, ("spec", "deep", "key")) == ({"a": "x"}, ["spec.deep.key.b"])
    assert prune(schema(), {"kind": "x", "metadata": {}}, ("status",)) == ({}, ["status.kind", "status.metadata"])


def test_a_type_without_a_status_takes_none() -> None:
    root = {"type": "object", "properties": {"spec": SPEC}}
    pruned, lost = prune(Schema(root, {}), {"metadata": {}, "status": {"ready": 1}})
    assert (pruned, lost) == ({"metadata": {}}, ["status"])


def test_free_json_of_a_built_in_type_is_kept() -> None:
    parts: dict[str, Obj] = {"Raw": {"type": "object", "description": "anything"}}
    root = {"type": "object", "properties": {"raw": {"$ref": "#/components/schemas/Raw"}}}
    assert prune(Schema(root, parts), {"raw": {"a": {"b": 1}}}) == ({"raw": {"a": {"b": 1}}}, [])


def test_a_schema_that_refers_to_itself() -> None:
    props = {"type": "object", "properties": {"a": STRING, "child": {"$ref": "#/components/schemas/Node"}}}
    document = {"components": {"schemas": {"Foo": {**ROOT, "properties": {"spec": props}}, "Node": props}}}
    found = present(schema_in(document, FOOS))
    obj = {"spec": {"child": {"child": {"a": "x", "b": 1}}}}
    assert prune(found, obj) == ({"spec": {"child": {"child": {"a": "x"}}}}, ["spec.child.child.b"])


# --- from a server


def crd(**properties: Any) -> Obj:
    names = {"plural": "foos", "singular": "foo", "kind": "Foo"}
    status_ = {"type": "object", "properties": properties}
    spec = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    body = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status_}}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": body, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.samplecontroller.k8s.io"},
        "spec": {"group": "samplecontroller.k8s.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def test_a_served_schema_is_read_once_for_each_of_its_states(rig: Rig, server: ScriptedServer) -> None:
    assert await served_schema(rig.client, FOOS) is None
    server.create(crd(availableReplicas={"type": "integer"}))
    found = present(await served_schema(rig.client, FOOS))
    wanted = {"availableReplicas": 1, "observedGeneration": 3}
    assert prune(found, wanted, ("status",)) == ({"availableReplicas": 1}, ["status.observedGeneration"])
    documents = [handled.path for handled in server.requests if handled.path.count("/") > 2]
    assert await served_schema(rig.base, FOOS) is found
    assert [handled.path for handled in server.requests if handled.path.count("/") > 2] == documents
    newer = crd(availableReplicas={"type": "integer"}, observedGeneration={"type": "integer"})
    server.change(CRDS, crd()["metadata"]["name"], {"spec": newer["spec"]})
    found = present(await served_schema(rig.client, FOOS))
    assert prune(found, wanted, ("status",)) == (wanted, [])
    assert repr(rig.base.schemas) == "SchemaCache(types=1)"
    assert repr(found) == "Schema()"


@pytest.mark.parametrize("code", [403, 404])
async def test_a_server_that_does_not_tell(code: int, rig: Rig, server: ScriptedServer) -> None:
    server.faults.fail(Match(path="/openapi/*"), code, reason="Forbidden" if code == 403 else "NotFound")
    assert await served_schema(rig.client, DEPLOYMENTS) is None


async def test_a_server_that_fails_is_an_error(rig: Rig, server: ScriptedServer) -> None:
    server.faults.fail(Match(path="/openapi/*"), 500)
    with pytest.raises(ServerError):
        await served_schema(rig.client, DEPLOYMENTS)


INDEX = {"paths": {"apis/apps/v1": {"serverRelativeURL": "https://evil.example/openapi/v3/apis/apps/v1?hash=A%2FB"}}}


async def test_an_index_cannot_lead_elsewhere() -> None:
    away = {"paths": {"apis/apps/v1": {"serverRelativeURL": "/api/v1/secrets"}}}
    rig, canned = on_answers(answer(INDEX), answer(DOCUMENT), answer(away))
    assert await served_schema(rig.client, DEPLOYMENTS) is None
    request = canned.requests[1]
    assert (request.path, request.query) == ("/openapi/v3/apis/apps/v1", (("hash", "A/B"),))
    with pytest.raises(BadAnswer, match="points to another server"):
        await served_schema(rig.client, DEPLOYMENTS)
    assert len(canned.requests) == 3


@pytest.mark.parametrize("body", [b"<html>", b"[]", b""])
async def test_a_document_that_is_none(body: bytes) -> None:
    rig, _canned = on_answers(answer(body))
    with pytest.raises(BadAnswer):
        await served_schema(rig.client, DEPLOYMENTS)


async def test_odd_indexes_know_nothing() -> None:
    rig, _canned = on_answers(answer({}), answer({"paths": {"apis/apps/v1": {}}}), answer(status(404, "NotFound"), 404))
    for _ in range(3):
        assert await served_schema(rig.client, DEPLOYMENTS) is None
