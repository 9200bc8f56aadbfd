from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import (
    APPLY,
    CONFIGMAPS,
    DEPLOYMENTS_PATH,
    FOOS,
    FOOS_PATH,
    JSON_PATCH,
    MERGE,
    Caller,
    configmap,
    deployment,
    foo,
    foo_crd,
)


def entries(obj: Obj) -> dict[tuple[str, str], Obj]:
    """By manager and operation, with the subresource in the manager's name."""
    found = {}
    for entry in obj["metadata"].get("managedFields", ()):
        name = "/".join(filter(None, (entry["manager"], entry.get("subresource"))))
        found[name, entry["operation"]] = entry
    return found


async def test_creating_owns_what_was_sent_as_an_update(call: Caller) -> None:
    body = configmap("one", a="1")
    body["metadata"]["labels"] = {"x": "y"}
    _, made = await call("POST", "/api/v1/namespaces/default/configmaps", body)
    (entry,) = made["metadata"]["managedFields"]
    assert entry == {
        "manager": "caller",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:data": {".": {}, "f:a": {}},
            "f:metadata": {"f:labels": {".": {}, "f:x": {}}},
        },
    }


async def test_an_update_takes_the_fields_that_it_changes(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a", replicas=3), manager="first")
    await server.clock.sleep(2)
    obj = server.change(FOOS, "one", {"spec": {"replicas": 4}}, manager="second")
    owners = entries(obj)
    assert owners["first", "Update"]["fieldsV1"] == {"f:spec": {".": {}, "f:name": {}}}
    assert owners["second", "Update"]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert owners["first", "Update"]["time"] == "2026-01-01T00:00:00Z"
    assert owners["second", "Update"]["time"] == "2026-01-01T00:00:02Z"
    obj = server.change(FOOS, "one", {"spec": {"replicas": None}}, manager="third")
    assert ("third", "Update") in entries(obj), "the default came back as another value"
    obj = server.change(FOOS, "one", {"metadata": {"labels": {"a": "b"}}}, manager="fourth")
    obj = server.change(FOOS, "one", {"metadata": {"labels": None}}, manager="fifth")
    assert ("fifth", "Update") not in entries(obj), "removals are recorded nowhere"
    assert ("fourth", "Update") not in entries(obj)


async def test_status_is_owned_apart(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"), manager="me")
    obj = server.change(FOOS, "one", {"status": {"replicas": 4}}, subresource="status", manager="me")
    assert entries(obj)["me/status", "Update"]["fieldsV1"] == {"f:status": {".": {}, "f:replicas": {}}}


async def test_apply_creates_and_owns_the_leaves(call: Caller) -> None:
    code, made = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", deployment("web"), kind=APPLY, fieldManager="me")
    assert code == 201
    assert made["spec"]["replicas"] == 1, "defaults are filled in"
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("me", "Apply")
    container: Obj = {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}}
    template = {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": container}}
    assert entry["fieldsV1"] == {"f:spec": {"f:selector": {}, "f:template": template}}


async def test_applying_the_same_again_writes_nothing(server: ScriptedServer) -> None:
    first = server.apply(deployment("web", replicas=2), manager="me")
    await server.clock.sleep(5)
    assert server.apply(deployment("web", replicas=2), manager="me") == first
    assert not server.writes[-1].changed
    third = server.apply(deployment("web"), manager="me")
    assert third != first
    assert entries(third)["me", "Apply"]["time"] == "2026-01-01T00:00:05Z"


async def test_taking_fields_without_changing_them_is_a_write_without_a_time(server: ScriptedServer) -> None:
    first = server.create(deployment("web", replicas=2), manager="you")
    await server.clock.sleep(5)
    second = server.apply(deployment("web", replicas=2), manager="me")
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    assert "time" not in entries(second)["me", "Apply"]
    third = server.apply(deployment("web"), manager="me")
    assert third["metadata"]["resourceVersion"] != second["metadata"]["resourceVersion"]
    assert "time" not in entries(third)["me", "Apply"]
    assert third["spec"]["replicas"] == 2


async def test_a_normal_form_is_no_change(server: ScriptedServer) -> None:
    body = deployment("web")
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1000m", "memory": "1024Mi"}}
    first = server.apply(body, manager="me")
    limits = first["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "1", "memory": "1Gi"}
    await server.clock.sleep(5)
    assert server.apply(body, manager="me") == first


async def test_a_field_no_longer_applied_goes_unless_another_owns_it(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.apply(foo("one", name="a", mode="fast", labels={"x": "1", "y": "2"}), manager="me")
    server.apply(foo("one", labels={"y": "2"}), manager="you")
    obj = server.apply(foo("one", name="a"), manager="me")
    assert obj["spec"] == {"name": "a", "replicas": 2, "labels": {"y": "2"}}


async def test_dropping_the_sole_owned_replicas_resets_them_to_the_default(server: ScriptedServer) -> None:
    server.apply(deployment("web", replicas=5), manager="me")
    assert server.apply(deployment("web"), manager="me")["spec"]["replicas"] == 1


async def test_a_conflict_names_manager_and_field_and_force_takes_it(server: ScriptedServer, call: Caller) -> None:
    server.apply(deployment("web", replicas=2), manager="me")
    server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 7}}, manager="hpa")
    body = deployment("web", replicas=2)
    path = f"{DEPLOYMENTS_PATH}/web"
    code, status = await call("PATCH", path, body, kind=APPLY, fieldManager="me")
    assert (code, status["reason"]) == (409, "Conflict")
    message = 'Apply failed with 1 conflict: conflict with "hpa" using apps/v1: .spec.replicas'
    assert status["message"] == message
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "hpa" using apps/v1'}
    assert status["details"]["causes"] == [{**cause, "field": ".spec.replicas"}]
    code, obj = await call("PATCH", path, body, kind=APPLY, fieldManager="me", force="true")
    assert (code, obj["spec"]["replicas"]) == (200, 2)
    assert ("hpa", "Update") not in entries(obj)


async def test_the_same_value_is_shared_without_a_conflict(server: ScriptedServer) -> None:
    server.apply(deployment("web", replicas=2), manager="me")
    obj = server.apply(deployment("web", replicas=2), manager="you")
    assert entries(obj)["me", "Apply"]["fieldsV1"] == entries(obj)["you", "Apply"]["fieldsV1"]
    obj = server.apply(deployment("web"), manager="me")
    assert obj["spec"]["replicas"] == 2, "the other one still owns it"


async def test_several_conflicts_are_listed_by_manager(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.apply(foo("one", name="a", mode="fast", replicas=3), manager="me")
    with pytest.raises(Refusal) as caught:
        server.apply(foo("one", name="b", mode="slow"), manager="you")
    message = 'Apply failed with 2 conflicts: conflicts with "me":\n- .spec.mode\n- .spec.name'
    assert str(caught.value) == message


async def test_lists_merge_by_key_and_atomic_ones_are_replaced(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.apply(foo("one", name="a", parts=[{"id": "x", "size": 1}, {"id": "y"}], tags=["a"]), manager="me")
    obj = server.apply(foo("one", parts=[{"id": "z"}, {"id": "y", "size": 3}], tags=["b"]), manager="you")
    assert obj["spec"]["parts"] == [{"id": "x", "size": 1}, {"id": "z"}, {"id": "y", "size": 3}]
    assert obj["spec"]["tags"] == ["a", "b"]
    fields = entries(obj)["you", "Apply"]["fieldsV1"]["f:spec"]
    assert fields["f:tags"] == {'v:"b"': {}}
    assert fields["f:parts"]['k:{"id":"y"}'] == {".": {}, "f:id": {}, "f:size": {}}
    obj = server.apply(foo("one", name="a", parts=[{"id": "x"}], tags=["a"]), manager="me")
    assert obj["spec"]["parts"] == [{"id": "x"}, {"id": "z"}, {"id": "y", "size": 3}]
    obj = server.apply(foo("one"), manager="you")
    assert obj["spec"] == {"name": "a", "replicas": 2, "parts": [{"id": "x"}], "tags": ["a"]}
    server.apply(foo("one", plain=["a", "b"]), manager="you")
    with pytest.raises(Refusal):
        server.apply(foo("one", plain=["b"]), manager="me")
    obj = server.apply(foo("one", name="a", plain=["c"]), manager="me", force=True)
    assert obj["spec"]["plain"] == ["c"]


async def test_emptying_a_map_leaves_null_for_the_schema_to_judge(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    server.apply(foo("one", name="a", labels={"x": "1"}), manager="me")
    body = foo("one", name="a", labels={})
    code, status = await call("PATCH", f"{FOOS_PATH}/one", body, kind=APPLY, fieldManager="me")
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.labels")
    assert 'must be of type object: "null"' in status["message"]
    obj = server.apply(foo("one", name="a"), manager="me")
    assert "labels" not in obj["spec"], "left out altogether, it goes"
    body = deployment("web")
    body["spec"]["template"]["metadata"]["annotations"] = {"a": "b"}
    server.apply(body, manager="me")
    obj = server.apply(deployment("web"), manager="me")
    assert "annotations" not in obj["spec"]["template"]["metadata"]


async def test_a_container_goes_with_what_the_server_put_into_it(server: ScriptedServer) -> None:
    body = deployment("web")
    containers = body["spec"]["template"]["spec"]["containers"]
    containers.append({"name": "side", "image": "busybox", "ports": [{"containerPort": 80}]})
    obj = server.apply(body, manager="me")
    assert obj["spec"]["template"]["spec"]["containers"][1]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    del containers[1]
    obj = server.apply(body, manager="me")
    assert [container["name"] for container in obj["spec"]["template"]["spec"]["containers"]] == ["web"]


async def test_what_was_never_tracked_belongs_to_before_first_apply(server: ScriptedServer) -> None:
    server.create(foo_crd())
    old = foo("one", name="a", replicas=3)
    old["metadata"]["namespace"] = "default"
    server.load(FOOS, [old])
    obj = server.change(FOOS, "one", {"spec": {"replicas": 4}})
    assert "managedFields" not in obj["metadata"]
    with pytest.raises(Refusal, match="before-first-apply"):
        server.apply(foo("one", replicas=5), manager="me")
    obj = server.apply(foo("one", replicas=5), manager="me", force=True)
    assert entries(obj).keys() == {("me", "Apply"), ("before-first-apply", "Update")}


async def test_an_update_entry_can_be_turned_into_an_apply_entry(server: ScriptedServer, call: Caller) -> None:
    body = deployment("web", replicas=3)
    body["metadata"]["labels"] = {"old": "x"}
    made = server.create(body, manager="me")
    patch = [
        {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": made["metadata"]["resourceVersion"]},
    ]
    code, obj = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", patch, kind=JSON_PATCH, fieldManager="me")
    assert code == 200
    assert entries(obj).keys() == {("me", "Apply")}
    assert obj["metadata"]["generation"] == 1
    del body["metadata"]["labels"]
    obj = server.apply(body, manager="me")
    assert "labels" not in obj["metadata"]


async def test_one_empty_entry_forgets_all(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"))
    obj = server.change(FOOS, "one", {"metadata": {"managedFields": []}})
    assert obj["metadata"]["managedFields"], "an empty list is no request"
    obj = server.change(FOOS, "one", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in obj["metadata"]


async def test_status_by_apply_keeps_the_conditions_of_others(server: ScriptedServer) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"))
    status: dict[str, Any] = {"conditions": [{"type": "Mine", "status": "True"}]}
    other = {"conditions": [{"type": "Theirs", "status": "True"}]}
    server.apply({**foo("one"), "spec": {}, "status": other}, manager="them", subresource="status")
    body = {key: value for key, value in foo("one").items() if key != "spec"}
    obj = server.apply({**body, "status": status}, manager="me", subresource="status")
    assert [condition["type"] for condition in obj["status"]["conditions"]] == ["Theirs", "Mine"]
    fields = entries(obj)["me/status", "Apply"]["fieldsV1"]
    item: Obj = {".": {}, "f:type": {}, "f:status": {}}
    assert fields == {"f:status": {"f:conditions": {'k:{"type":"Mine"}': item}}}
    assert obj["metadata"]["generation"] == 1
    assert server.apply({**body, "status": status}, manager="me", subresource="status") == obj


async def test_apply_and_uid(server: ScriptedServer, call: Caller) -> None:
    path = f"{DEPLOYMENTS_PATH}/web"
    body = deployment("web")
    body["metadata"]["uid"] = "other"
    code, status = await call("PATCH", path, body, kind=APPLY, fieldManager="me")
    assert (code, status["reason"]) == (409, "Conflict")
    assert "uid mismatch: the provided object specified uid other" in status["message"]
    server.apply(deployment("web"), manager="me")
    code, status = await call("PATCH", path, body, kind=APPLY, fieldManager="me", force="true")
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["details"]["causes"][0]["field"] == "metadata.uid"
    assert 'metadata.uid: Invalid value: "other": field is immutable' in status["message"]
    body["metadata"].pop("uid")
    body["metadata"]["resourceVersion"] = "1"
    code, status = await call("PATCH", path, body, kind=APPLY, fieldManager="me")
    assert (code, status["reason"]) == (409, "Conflict")


async def test_the_version_is_ignored_when_apply_creates(call: Caller) -> None:
    body = deployment("web")
    body["metadata"]["resourceVersion"] = "1"
    code, _ = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", body, kind=APPLY, fieldManager="me")
    assert code == 201


async def test_what_no_schema_knows_is_owned_key_by_key(server: ScriptedServer) -> None:
    server.create(foo_crd())
    obj = server.apply(foo("one", name="a", free={"any": {"thing": 1}}), manager="me")
    fields = entries(obj)["me", "Apply"]["fieldsV1"]["f:spec"]["f:free"]
    assert fields == {"f:any": {".": {}, "f:thing": {}}}


async def test_apply_checks_the_name_of_what_it_creates(call: Caller) -> None:
    code, status = await call("PATCH", f"{DEPLOYMENTS_PATH}/We_b", deployment("We_b"), kind=APPLY, fieldManager="me")
    assert (code, status["details"]["causes"][0]["field"]) == (422, "metadata.name")


async def test_apply_needs_a_manager_and_takes_no_managed_fields(call: Caller) -> None:
    code, status = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", deployment("web"), kind=APPLY)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "fieldManager")
    body = deployment("web")
    body["metadata"]["managedFields"] = []
    code, status = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", body, kind=APPLY, fieldManager="me")
    assert (code, status["message"]) == (400, "metadata.managedFields must be nil")


async def test_applying_what_the_schema_lacks_is_a_plain_500(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"))
    body = {**foo("one"), "status": {"brand": "new"}}
    code, status = await call("PATCH", f"{FOOS_PATH}/one/status", body, kind=APPLY, fieldManager="me")
    assert code == 500
    assert ".status.brand: field not declared in schema" in status["message"]
    body = {"status": {"brand": "new", "replicas": 1}}
    code, obj = await call("PATCH", f"{FOOS_PATH}/one/status", body, kind=MERGE)
    assert (code, obj["status"]) == (200, {"replicas": 1}), "a merge patch is pruned without a word"


async def test_the_oldest_of_more_than_ten_updaters_become_one(server: ScriptedServer) -> None:
    server.create(configmap("one", a=""))
    for place in range(12):
        server.change(CONFIGMAPS, "one", {"data": {f"k{place}": ""}}, manager=f"m{place:02}")
    entries = present(server.get(CONFIGMAPS, "one"))["metadata"]["managedFields"]
    assert len(entries) == 10
    ancient = next(entry for entry in entries if entry["manager"] == "ancient-changes")
    assert ancient["fieldsV1"] == {"f:data": {f"f:k{place}": {} for place in range(4)}}
