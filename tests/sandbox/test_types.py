from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.resources import EVENTS, HPAS, PODS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import APPLY, DEPLOYMENTS_PATH, MAPS_PATH, MERGE, STRATEGIC, Caller, configmap, deployment

PODS_PATH = "/api/v1/namespaces/default/pods"
CORE = "/api/v1/namespaces/default"
OLD_HPAS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def pod(**spec: Any) -> Any:
    containers = [{"name": "web", "image": "nginx"}]
    return {"metadata": {"name": "one"}, "spec": {"schedulerName": "nobody", "containers": containers, **spec}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"spec": "x"}, "string into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        ({"spec": {"replicas": "3"}}, "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ({"spec": {"replicas": 1.5}}, "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ({"spec": {"paused": "no"}}, "string into Go struct field DeploymentSpec.spec.paused of type bool"),
        (
            {"spec": {"template": {"spec": {"restartPolicy": 3}}}},
            "number into Go struct field PodSpec.spec.template.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            {"spec": {"template": {"spec": {"containers": [{"args": "x"}]}}}},
            "string into Go struct field Container.spec.template.spec.containers.args of type []string",
        ),
    ],
)
async def test_a_value_of_a_wrong_type_is_refused(change: dict[str, Any], words: str, call: Caller) -> None:
    code, status = await call("POST", DEPLOYMENTS_PATH, {**deployment("web"), **change})
    start = 'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal '
    assert (code, status["message"]) == (400, start + words)


async def test_broken_texts_are_refused(call: Caller) -> None:
    limits = pod(containers=[{"name": "web", "image": "nginx", "resources": {"limits": {"cpu": "many"}}}])
    assert "quantities must match" in (await call("POST", PODS_PATH, limits))[1]["message"]
    secret = {"metadata": {"name": "one"}, "data": {"a": "?"}}
    _, status = await call("POST", f"{CORE}/secrets", secret)
    assert status["message"].endswith("illegal base64 data at input byte 0")
    for text in ("2026-13-01T00:00:00Z", "20260101T000000Z", "2026-01-01T00:00:00", ""):
        lease = {"metadata": {"name": "one"}, "spec": {"renewTime": text}}
        code, status = await call("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", lease)
        assert (code, f'parsing time "{text}"' in status["message"]) == (400, True)


@pytest.mark.parametrize(("validation", "code"), [("Strict", 400), ("Warn", 201), ("Ignore", 201)])
async def test_unknown_fields_of_built_in_types(validation: str, code: int, call: Caller) -> None:
    body = deployment("web", odd=1)
    body["spec"]["template"]["spec"]["containers"][0]["odd"] = 2
    response = await call.respond("POST", DEPLOYMENTS_PATH, body, fieldValidation=validation)
    assert response.status == code
    warned = "spec.odd" in response.headers.get("warning", "")
    assert warned == (validation == "Warn")
    if code == 400:
        assert b"containers[0].odd" in response.body
    else:
        assert b'"odd"' not in response.body


async def test_empty_values_have_the_form_of_gos_types(call: Caller) -> None:
    body = configmap("one") | {"data": {"a": None}, "metadata": {"name": "one", "labels": {}, "finalizers": []}}
    _, obj = await call("POST", MAPS_PATH, body)
    assert obj["data"] == {"a": ""}
    assert obj["metadata"].keys().isdisjoint({"labels", "finalizers"})
    _, obj = await call("POST", DEPLOYMENTS_PATH, deployment("web", paused=False, minReadySeconds=0, replicas=0))
    assert (obj["spec"].keys() & {"paused", "minReadySeconds"}, obj["spec"]["replicas"]) == (set(), 0)
    _, role = await call("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "one"}})
    assert role["rules"] is None


async def test_owners_follow_the_schema_of_the_type(call: Caller) -> None:
    ports = [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]
    body = pod(containers=[{"name": "web", "image": "nginx", "ports": ports}], tolerations=[{"operator": "Exists"}])
    _, obj = await call("POST", PODS_PATH, body)
    (entry,) = obj["metadata"]["managedFields"]
    spec = entry["fieldsV1"]["f:spec"]
    assert spec["f:tolerations"] == {}
    owned = spec["f:containers"]['k:{"name":"web"}']["f:ports"]
    assert set(owned) == {".", 'k:{"containerPort":80,"protocol":"TCP"}', 'k:{"containerPort":80,"protocol":"UDP"}'}


async def test_apply_refuses_undeclared_fields(call: Caller) -> None:
    body = {**configmap("one", a="1"), "odd": 1}
    code, status = await call("PATCH", f"{MAPS_PATH}/one", body, kind=APPLY, fieldManager="me")
    why = "failed to create typed patch object (/one; /v1, Kind=ConfigMap): .odd: field not declared in schema"
    assert (code, status["message"]) == (500, why)


async def test_autoscaling_v1_shows_the_objects_of_v2(server: ScriptedServer, call: Caller) -> None:
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 70}
    code, obj = await call("POST", OLD_HPAS, {"metadata": {"name": "web"}, "spec": spec})
    assert (code, obj["apiVersion"], obj["spec"]) == (201, "autoscaling/v1", {**spec, "minReplicas": 1})
    assert [entry["apiVersion"] for entry in obj["metadata"]["managedFields"]] == ["autoscaling/v1"]
    stored = present(server.get(HPAS, "web"))
    assert stored["apiVersion"] == "autoscaling/v2"
    assert stored["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 70}
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 5}}
    server.change(HPAS, "web", {"spec": {"behavior": behavior}})
    _, obj = await call("PATCH", f"{OLD_HPAS}/web", {"spec": {"targetCPUUtilizationPercentage": 50}}, kind=STRATEGIC)
    assert obj["spec"]["targetCPUUtilizationPercentage"] == 50
    stored = present(server.get(HPAS, "web"))
    assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
    assert stored["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 5
    _, listed = await call("GET", OLD_HPAS)
    assert listed["items"][0]["spec"]["targetCPUUtilizationPercentage"] == 50
    version = stored["metadata"]["resourceVersion"]
    _, obj = await call("PATCH", f"{OLD_HPAS}/web", {"spec": {"maxReplicas": 3}}, kind=MERGE)
    assert obj["metadata"]["resourceVersion"] == version


async def test_both_groups_of_events_show_the_same_objects(server: ScriptedServer, call: Caller) -> None:
    event = {
        "metadata": {"name": "one"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "ConfigMap", "name": "one", "namespace": "default"},
        "reportingController": "example.com/me",
        "reportingInstance": "me-1",
        "action": "Test",
        "reason": "R",
        "note": "words",
        "type": "Normal",
    }
    code, obj = await call("POST", NEW_EVENTS, event)
    assert (code, obj["note"], obj["kind"]) == (201, "words", "Event")
    stored = present(server.get(EVENTS, "one"))
    assert (stored["message"], stored["involvedObject"]["name"]) == ("words", "one")
    assert (await call("GET", f"{NEW_EVENTS}/one"))[1]["regarding"]["name"] == "one"
    assert (await call("DELETE", f"{NEW_EVENTS}/one"))[0] == 200
    assert server.get(EVENTS, "one") is None


async def test_a_pod_is_bound_once(server: ScriptedServer, call: Caller) -> None:
    await call("POST", PODS_PATH, pod())
    body = {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "n"}}
    assert (await call("POST", f"{PODS_PATH}/one/binding", body))[0] == 201
    assert present(server.get(PODS, "one"))["spec"]["nodeName"] == "n"
    code, status = await call("POST", f"{CORE}/bindings", body)
    assert (code, status["reason"]) == (409, "Conflict")
    assert status["message"].endswith('pod one is already assigned to node "n"')


async def test_a_pod_is_evicted(server: ScriptedServer, call: Caller) -> None:
    await call("POST", PODS_PATH, pod())
    assert (await call("POST", f"{PODS_PATH}/one/eviction", {"metadata": {"name": "two"}}))[0] == 400
    options = {"dryRun": ["All"]}
    await call("POST", f"{PODS_PATH}/one/eviction", {"metadata": {"name": "one"}, "deleteOptions": options})
    assert server.get(PODS, "one") is not None
    code, status = await call("POST", f"{PODS_PATH}/one/eviction", {"metadata": {"name": "one"}})
    assert (code, status["status"]) == (201, "Success")
    assert server.get(PODS, "one") is None


async def test_a_log_is_a_text_and_streams_are_not_supported(call: Caller) -> None:
    await call("POST", PODS_PATH, pod())
    response = await call.respond("GET", f"{PODS_PATH}/one/log")
    assert (response.status, response.headers["content-type"]) == (200, "text/plain")
    assert (await call.respond("GET", f"{PODS_PATH}/none/log")).status == 404
    assert (await call.respond("POST", f"{PODS_PATH}/one/exec")).status == 501


async def test_ephemeral_containers_change_nothing_else(call: Caller) -> None:
    _, obj = await call("POST", PODS_PATH, pod())
    added = [{"name": "debug", "image": "busybox"}]
    change = {"spec": {"ephemeralContainers": added, "hostNetwork": True}}
    code, changed = await call("PATCH", f"{PODS_PATH}/one/ephemeralcontainers", change, kind=MERGE)
    assert (code, changed["spec"]["ephemeralContainers"][0]["name"]) == (200, "debug")
    assert "hostNetwork" not in changed["spec"]
    assert changed["metadata"]["generation"] == obj["metadata"]["generation"] + 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/api/v1/componentstatuses"),
        ("DELETE", "/api/v1/namespaces"),
        ("PUT", f"{PODS_PATH}/one/eviction"),
    ],
)
async def test_methods_that_a_resource_does_not_have(method: str, path: str, call: Caller) -> None:
    assert (await call.respond(method, path, {})).status == 405


@pytest.mark.parametrize("path", ["endpoints", "endpoints/missing"])
async def test_deprecated_types_warn(path: str, call: Caller) -> None:
    response = await call.respond("GET", f"{CORE}/{path}")
    assert "v1 Endpoints is deprecated in v1.33+" in response.headers["warning"]


@pytest.mark.parametrize(
    ("path", "body", "changed"),
    [
        (DEPLOYMENTS_PATH, deployment("one"), {"annotations"}),
        (PODS_PATH, pod(), {"annotations", "labels"}),
        ("/api/v1/namespaces", {"metadata": {"name": "one"}}, {"annotations", "labels"}),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            {"metadata": {"name": "one"}, "spec": {"priorityLevelConfiguration": {"name": "exempt"}}},
            set(),
        ),
    ],
)
async def test_the_metadata_that_a_write_of_the_status_changes(
    path: str, body: dict[str, Any], changed: set[str], call: Caller
) -> None:
    code, old = await call("POST", path, body)
    assert code == 201
    patch = {"metadata": {"annotations": {"a": "1"}, "labels": {"b": "2"}}, "spec": None}
    _, new = await call("PATCH", f"{path}/one/status", patch, kind=MERGE, fieldManager="me")
    assert new["spec"] == old["spec"]
    assert new["metadata"].get("generation") == old["metadata"].get("generation")
    added = {"annotations": "a", "labels": "b"}
    assert {name for name, key in added.items() if key in (new["metadata"].get(name) or {})} == changed
    mine = [one["fieldsV1"] for one in new["metadata"]["managedFields"] if one["manager"] == "me"]
    owned: dict[str, Any] = {"f:metadata": {f"f:{name}": {".": {}, f"f:{added[name]}": {}} for name in changed}}
    if "labels" in changed and path == "/api/v1/namespaces":
        del owned["f:metadata"]["f:labels"]["."]
    assert mine == ([owned] if changed else [])
