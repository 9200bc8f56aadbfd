from __future__ import annotations

import json
from typing import Any

from kubectl_ctrl.client.transport import HttpRequest
from kubectl_ctrl.testing.server import ScriptedServer
from tests.testing.callers import FOO_SCHEMA, Caller, foo_crd

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
    (schema,) = document["components"]["schemas"].values()
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Foo", "version": "v1"}]
    assert schema["properties"]["spec"] == FOO_SCHEMA["properties"]["spec"]
    (operations,) = document["paths"].values()
    assert operations["patch"]["parameters"][0]["name"] == "fieldValidation"
    server.create({**foo_crd(), "metadata": {"name": "bars.example.com"}, "spec": bars()})
    _, changed = await call("GET", "/openapi/v3")
    assert changed["paths"]["apis/example.com/v1"]["serverRelativeURL"] != url
    assert changed["paths"]["apis/apps/v1"] == index["paths"]["apis/apps/v1"]


def bars() -> Any:
    spec = foo_crd()["spec"]
    return {**spec, "names": {"plural": "bars", "kind": "Bar"}}


async def test_what_is_open_in_built_in_schemas_keeps_unknown_fields(call: Caller) -> None:
    response = await call.respond("GET", "/openapi/v3/apis/apps/v1")
    assert b"x-open" not in response.body
    schemas = json.loads(response.body)["components"]["schemas"]
    spec = schemas["apps.v1.Deployment"]["properties"]["spec"]
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert (await call.respond("GET", "/openapi/v3/apis/none/v1")).status == 404


async def test_version_and_health(call: Caller) -> None:
    assert (await call("GET", "/version"))[1]["major"] == "1"
    assert (await call.respond("GET", "/readyz")).body == b"ok"
