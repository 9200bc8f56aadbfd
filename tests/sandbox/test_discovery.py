from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import FOO_SCHEMA, Caller, foo_crd

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def aggregated(server: ScriptedServer, path: str) -> tuple[str, Any]:
    response = await server.send(HttpRequest(method="GET", path=path, headers={"Accept": AGGREGATED}))
    return response.headers["content-type"], json.loads(response.body)


async def test_aggregated(server: ScriptedServer) -> None:
    server.create(foo_crd())
    media, core = await aggregated(server, "/api")
    assert media == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert (core["kind"], core["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    pods = next(one for one in core["items"][0]["versions"][0]["resources"] if one["resource"] == "pods")
    assert (pods["scope"], pods["shortNames"], pods["singularResource"]) == ("Namespaced", ["po"], "pod")
    _, groups = await aggregated(server, "/apis")
    (group,) = [one for one in groups["items"] if one["metadata"].get("name") == "example.com"]
    (version,) = group["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    (foos,) = version["resources"]
    assert foos["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Foo"}
    assert foos["subresources"][0]["subresource"] == "status"


async def test_legacy(server: ScriptedServer, call: Caller) -> None:
    assert (await call("GET", "/api"))[1]["versions"] == ["v1"]
    _, groups = await call("GET", "/apis")
    assert "apps" in [group["name"] for group in groups["groups"]]
    assert (await call.respond("GET", "/apis/example.com/v1")).status == 404
    server.create(foo_crd())
    _, listed = await call("GET", "/apis/example.com/v1")
    assert listed["groupVersion"] == "example.com/v1"
    assert [one["name"] for one in listed["resources"]] == ["foos", "foos/status"]
    assert listed["resources"][0]["shortNames"] == ["fo"]
    _, group = await call("GET", "/apis/example.com")
    assert group["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}


async def test_verbs_and_subresources(call: Caller) -> None:
    _, core = await call("GET", "/api/v1")
    verbs = {one["name"]: one["verbs"] for one in core["resources"]}
    assert "deletecollection" not in verbs["namespaces"]
    assert "deletecollection" in verbs["pods"]
    assert verbs["namespaces/finalize"] == ["update"]
    _, apps = await call("GET", "/apis/apps/v1")
    scale = next(one for one in apps["resources"] if one["name"] == "deployments/scale")
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


async def test_the_preferred_version_is_the_most_stable(server: ScriptedServer, call: Caller) -> None:
    crd = foo_crd(name="v1alpha1")
    first = crd["spec"]["versions"][0]
    for name in ("v2beta1", "v1", "v10", "odd"):
        crd["spec"]["versions"].append({**first, "name": name, "storage": False})
    server.create(crd)
    _, group = await call("GET", "/apis/example.com")
    assert [one["version"] for one in group["versions"]] == ["v10", "v1", "v2beta1", "v1alpha1", "odd"]


async def test_openapi_has_the_served_schema(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    _, index = await call("GET", "/openapi/v3")
    url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    path, _, query = url.partition("?")
    _, document = await call("GET", path, hash=query.removeprefix("hash="))
    schema = document["components"]["schemas"]["com.example.v1.Foo"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Foo", "version": "v1"}]
    assert schema["properties"]["spec"] == FOO_SCHEMA["properties"]["spec"]
    operations = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/foos/{name}"]
    assert operations["patch"]["parameters"][0]["name"] == "fieldValidation"
    assert operations["patch"]["x-kubernetes-group-version-kind"]["kind"] == "Foo"
    assert "parameters" not in operations["get"]  # Go's types omit an empty list
    server.create({**foo_crd(), "metadata": {"name": "bars.example.com"}, "spec": bars()})
    _, changed = await call("GET", "/openapi/v3")
    assert changed["paths"]["apis/example.com/v1"]["serverRelativeURL"] != url
    assert changed["paths"]["apis/apps/v1"] == index["paths"]["apis/apps/v1"]


def bars() -> Any:
    spec = foo_crd()["spec"]
    return {**spec, "names": {"plural": "bars", "kind": "Bar"}}


async def test_built_in_schemas_have_descriptions_and_references(call: Caller) -> None:
    _, document = await call("GET", "/openapi/v3/apis/apps/v1")
    schemas = document["components"]["schemas"]
    spec = schemas["io.k8s.api.apps.v1.DeploymentSpec"]
    assert spec["properties"]["replicas"]["description"].startswith("Number of desired pods.")
    assert spec["properties"]["template"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}
    ]
    assert spec["required"] == ["selector", "template"]
    assert "io.k8s.api.core.v1.Container" in schemas
    assert (await call.respond("GET", "/openapi/v3/apis/none/v1")).status == 404


async def test_a_wrong_hash_is_redirected_to_the_current_one(call: Caller) -> None:
    _, index = await call("GET", "/openapi/v3")
    url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
    response = await call.respond("GET", "/openapi/v3/apis/apps/v1", hash="OLD")
    assert (response.status, response.headers["location"]) == (301, url)


@pytest.mark.parametrize("path", ["/api", "/openapi/v3/apis/apps/v1"])
async def test_unchanged_answers_are_not_repeated(path: str, server: ScriptedServer) -> None:
    headers = {"Accept": AGGREGATED}
    first = await server.send(HttpRequest(method="GET", path=path, headers=headers))
    again = HttpRequest(method="GET", path=path, headers={**headers, "If-None-Match": first.headers["etag"]})
    second = await server.send(again)
    assert (first.status, second.status, second.body) == (200, 304, b"")


async def test_every_stable_built_in_type_is_served(call: Caller) -> None:
    _, groups = await call("GET", "/apis")
    assert [group["name"] for group in groups["groups"]][:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert len(groups["groups"]) == 20
    _, scaling = await call("GET", "/apis/autoscaling")
    assert [one["version"] for one in scaling["versions"]] == ["v2", "v1"]
    _, apps = await call("GET", "/apis/apps/v1")
    assert (
        next(one["storageVersionHash"] for one in apps["resources"] if one["name"] == "deployments") == "8aSe+NMegvE="
    )


async def test_openapi_v2_has_no_paths_in_either_form(server: ScriptedServer, call: Caller) -> None:
    assert (await call("GET", "/openapi/v2"))[1]["paths"] == {}
    accept = {"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    answer = await server.send(HttpRequest(method="GET", path="/openapi/v2", headers=accept))
    assert answer.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert answer.body.startswith(b"\n\x032.0")


async def test_version_and_health(call: Caller) -> None:
    assert (await call("GET", "/version"))[1]["major"] == "1"
    assert (await call.respond("GET", "/readyz")).body == b"ok"
