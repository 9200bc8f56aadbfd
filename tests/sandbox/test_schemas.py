from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import (
    DEPLOYMENTS_PATH,
    FOO_SCHEMA,
    FOOS,
    FOOS_PATH,
    MERGE,
    Caller,
    deployment,
    foo,
    foo_crd,
)

HPAS_PATH = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


async def test_custom_resources_are_pruned_and_defaulted(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    body = foo("one", name="a", bogus=1, free={"any": {"thing": 1}}, parts=[{"id": "x", "odd": 1}])
    code, obj = await call("POST", FOOS_PATH, {**body, "more": True})
    assert code == 201
    assert obj["spec"] == {"name": "a", "replicas": 2, "free": {"any": {"thing": 1}}, "parts": [{"id": "x"}]}
    assert "more" not in obj


@pytest.mark.parametrize(
    ("validation", "code", "warns"), [("Strict", 400, False), ("Warn", 201, True), ("Ignore", 201, False)]
)
async def test_field_validation(validation: str, code: int, warns: bool, server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    body = foo("one", name="a", bogus=1)
    response = await call.respond("POST", FOOS_PATH, body, fieldValidation=validation)
    assert response.status == code
    assert response.headers.get("warning") == (r'299 - "unknown field \"spec.bogus\""' if warns else None)
    if code == 400:
        assert b'strict decoding error: unknown field \\"spec.bogus\\"' in response.body


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({}, "spec.name", "Required value"),
        ({"name": 7}, "spec.name", 'Invalid value: "integer": spec.name in body must be of type string: "integer"'),
        ({"name": "A"}, "spec.name", "Invalid value: \"A\": spec.name in body should match '^[a-z]*$'"),
        ({"name": "abcdefghi"}, "spec.name", "Too long: may not be more than 8 bytes"),
        (
            {"name": "a", "replicas": 0},
            "spec.replicas",
            "Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
        ),
        (
            {"name": "a", "replicas": 11},
            "spec.replicas",
            "Invalid value: 11: spec.replicas in body should be less than or equal to 10",
        ),
        (
            {"name": "a", "mode": "odd"},
            "spec.mode",
            'Unsupported value: "odd": supported values: "fast", "slow"',
        ),
        ({"name": "a", "parts": [{"size": 1}]}, "spec.parts[0].id", "Required value"),
        (
            {"name": "a", "share": 0},
            "spec.share",
            "Invalid value: 0: spec.share in body should be greater than 0",
        ),
        (
            {"name": "a", "share": 1.25},
            "spec.share",
            "Invalid value: 1.25: spec.share in body should be less than or equal to 1",
        ),
        (
            {"name": "a", "share": 0.3},
            "spec.share",
            "Invalid value: 0.3: spec.share in body should be a multiple of 0.25",
        ),
        ({"name": "a", "tags": ["x", "x"]}, "spec.tags[1]", 'Duplicate value: "x"'),
    ],
)
async def test_custom_resources_are_validated(
    spec: dict[str, Any], field: str, message: str, server: ScriptedServer, call: Caller
) -> None:
    server.create(foo_crd())
    code, status = await call("POST", FOOS_PATH, foo("one", **spec))
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["message"] == f'Foo.example.com "one" is invalid: {field}: {message}'
    assert status["details"]["causes"][0]["field"] == field
    assert status["details"]["kind"] == "Foo"
    assert server.objects(FOOS) == []


async def test_generations_of_custom_resources(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"))

    def generation(change: dict[str, Any], subresource: str = "") -> int:
        obj = server.change(FOOS, "one", change, subresource=subresource)
        return int(obj["metadata"]["generation"])

    assert generation({"spec": {"name": "b"}}) == 2
    assert generation({"metadata": {"labels": {"a": "b"}}}) == 2
    assert generation({"status": {"replicas": 1}}, "status") == 2
    assert generation({"spec": {"name": "b"}}) == 2


async def test_without_the_subresource_a_status_is_like_any_field(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd(subresources={}))
    body = {**foo("one", name="a"), "status": {"replicas": 1}}
    _, obj = await call("POST", FOOS_PATH, body)
    assert obj["status"] == {"replicas": 1}
    _, obj = await call("PATCH", f"{FOOS_PATH}/one", {"status": {"replicas": 2}}, kind=MERGE)
    assert obj["metadata"]["generation"] == 2
    assert (await call.respond("PATCH", f"{FOOS_PATH}/one/status", {}, kind=MERGE)).status == 404


async def test_a_put_needs_the_version_of_a_custom_resource(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"))
    code, status = await call("PUT", f"{FOOS_PATH}/one", foo("one", name="b"))
    assert code == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in status["message"]
    server.create(deployment("web"))
    assert (await call("PUT", f"{DEPLOYMENTS_PATH}/web", deployment("web", replicas=3)))[0] == 200
    assert (await call("PUT", f"{FOOS_PATH}/two", foo("two", name="b")))[0] == 404
    body = foo("two", name="b")
    body["metadata"]["uid"] = "gone"
    assert (await call("PUT", f"{FOOS_PATH}/two", body))[0] == 404


async def test_a_second_version_shows_the_same_objects(server: ScriptedServer, call: Caller) -> None:
    crd = foo_crd()
    beta = {"name": "v1beta1", "served": True, "storage": False, "schema": {"openAPIV3Schema": FOO_SCHEMA}}
    crd["spec"]["versions"].append({**beta, "subresources": {"status": {}}})
    server.create(crd)
    server.create(foo("one", name="a"))
    path = FOOS_PATH.replace("/v1/", "/v1beta1/")
    code, obj = await call("GET", f"{path}/one")
    assert (code, obj["apiVersion"]) == (200, "example.com/v1beta1")
    code, obj = await call("PATCH", f"{path}/one", {"spec": {"name": "b"}}, kind=MERGE)
    assert (code, obj["apiVersion"]) == (200, "example.com/v1beta1")
    stored = present(server.get(FOOS, "one"))
    assert (stored["apiVersion"], stored["spec"]["name"]) == ("example.com/v1", "b")
    assert (await call("DELETE", f"{path}/one"))[1]["apiVersion"] == "v1"


async def test_a_changed_crd_counts_from_the_next_request_on(server: ScriptedServer) -> None:
    crd = foo_crd()
    server.create(crd)
    assert crd["spec"]["versions"][0]["name"] == "v1"
    from kubectl_ctrl.model.resources import CRDS

    stored = present(server.get(CRDS, "foos.example.com"))
    conditions = {condition["type"]: condition["status"] for condition in stored["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    server.change(
        CRDS,
        "foos.example.com",
        {
            "spec": {
                "versions": [
                    {
                        **crd["spec"]["versions"][0],
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ]
            }
        },
    )
    assert server.create(foo("one", anything=True))["spec"] == {"anything": True}


async def test_deployments_get_defaults(server: ScriptedServer) -> None:
    obj = server.create(deployment("web"))
    spec = obj["spec"]
    assert (spec["replicas"], spec["progressDeadlineSeconds"], spec["revisionHistoryLimit"]) == (1, 600, 10)
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert spec["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["template"]["spec"]["restartPolicy"] == "Always"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "spec.template.metadata.labels"),
        ({"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}}, "spec.template.spec.containers"),
        ({"selector": {}}, "spec.selector"),
    ],
)
async def test_deployments_are_checked_a_little(change: dict[str, Any], field: str, call: Caller) -> None:
    code, status = await call("POST", DEPLOYMENTS_PATH, deployment("web", **change))
    assert (code, status["details"]["causes"][0]["field"]) == (422, field)


async def test_a_selector_cannot_change(server: ScriptedServer, call: Caller) -> None:
    server.create(deployment("web"))
    change = {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}}}
    code, status = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", change, kind=MERGE)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.selector")
    assert status["message"].endswith("field is immutable")


_OUTSIDE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1"}},
}


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"minReplicas": 1, "maxReplicas": 3}, 201),
        ({"minReplicas": 0, "maxReplicas": 3}, 422),
        ({"minReplicas": 4, "maxReplicas": 3}, 422),
        ({"maxReplicas": 1}, 201),
        ({}, 422),
        ({"minReplicas": 0, "maxReplicas": 3, "metrics": [_OUTSIDE]}, 201),
    ],
)
async def test_autoscalers_are_checked_a_little(spec: dict[str, Any], code: int, call: Caller) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, **spec}}
    assert (await call("POST", HPAS_PATH, body))[0] == code


async def test_two_controllers_are_one_too_many(call: Caller) -> None:
    body = deployment("web")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1", "controller": True}
    body["metadata"]["ownerReferences"] = [owner, {**owner, "uid": "2", "name": "b"}]
    code, status = await call("POST", DEPLOYMENTS_PATH, body)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "metadata.ownerReferences")
