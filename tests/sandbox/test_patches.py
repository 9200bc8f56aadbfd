from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import (
    DEPLOYMENTS_PATH,
    FOOS,
    FOOS_PATH,
    JSON_PATCH,
    MAPS_PATH,
    MERGE,
    STRATEGIC,
    Caller,
    configmap,
    deployment,
    foo,
    foo_crd,
)


async def test_a_patch_with_a_version_conflicts_when_stale(server: ScriptedServer, call: Caller) -> None:
    made = server.create(configmap("one"))
    version = made["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version}, "data": {"a": "1"}}
    assert (await call("PATCH", f"{MAPS_PATH}/one", body, kind=MERGE))[0] == 200
    body["data"]["a"] = "2"
    assert (await call("PATCH", f"{MAPS_PATH}/one", body, kind=MERGE))[0] == 409
    body["metadata"] = {"uid": "other"}
    code, status = await call("PATCH", f"{MAPS_PATH}/one", body, kind=MERGE)
    assert (code, status["details"]["causes"][0]["field"]) == (422, "metadata.uid")
    assert (await call("PATCH", f"{MAPS_PATH}/two", body, kind=MERGE))[0] == 404


async def test_the_servers_own_metadata_cannot_be_patched(server: ScriptedServer, call: Caller) -> None:
    made = server.create(deployment("web"))
    body = {"metadata": {"generation": 9, "creationTimestamp": None, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    code, obj = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", body, kind=MERGE)
    assert (code, obj) == (200, made)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{"name": "web", "image": "new"}], [("web", "new"), ("side", "s")]),
        ([{"name": "third", "image": "t"}], [("web", "nginx:1.27"), ("side", "s"), ("third", "t")]),
        ([{"name": "side", "$patch": "delete"}], [("web", "nginx:1.27")]),
        ([{"$patch": "replace"}, {"name": "only", "image": "o"}], [("only", "o")]),
    ],
)
async def test_strategic_patches_merge_lists_by_key(
    containers: list[dict[str, Any]], expected: list[tuple[str, str]], server: ScriptedServer, call: Caller
) -> None:
    body = deployment("web")
    body["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "s"})
    server.create(body)
    patch = {"spec": {"template": {"spec": {"containers": containers, "$setElementOrder/containers": []}}}}
    code, obj = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", patch, kind=STRATEGIC)
    assert code == 200
    found = [(one["name"], one["image"]) for one in obj["spec"]["template"]["spec"]["containers"]]
    assert found == expected


async def test_strategic_patches_of_maps_and_sets(server: ScriptedServer, call: Caller) -> None:
    body = deployment("web")
    body["metadata"] |= {"labels": {"a": "1", "b": "2"}, "finalizers": ["x.example.com/a"]}
    server.create(body)
    metadata: Any = {"labels": {"$patch": "replace", "c": "3"}, "finalizers": ["x.example.com/b"]}
    _, obj = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", {"metadata": metadata}, kind=STRATEGIC)
    assert obj["metadata"]["labels"] == {"c": "3"}
    assert obj["metadata"]["finalizers"] == ["x.example.com/b", "x.example.com/a"]
    metadata = {"$deleteFromPrimitiveList/finalizers": ["x.example.com/a"], "labels": None}
    _, obj = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", {"metadata": metadata}, kind=STRATEGIC)
    assert obj["metadata"]["finalizers"] == ["x.example.com/b"]
    assert "labels" not in obj["metadata"]


async def test_custom_resources_take_no_strategic_patch(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    server.create(foo("one", name="a"))
    code, status = await call("PATCH", f"{FOOS_PATH}/one", {}, kind=STRATEGIC)
    assert (code, status["reason"]) == (415, "UnsupportedMediaType")
    assert STRATEGIC not in status["message"]
    assert MERGE in status["message"]


async def test_scale_reads_and_writes_replicas_alone(server: ScriptedServer, call: Caller) -> None:
    server.create(deployment("web", replicas=2))
    path = f"{DEPLOYMENTS_PATH}/web/scale"
    code, scale = await call("GET", path)
    assert (code, scale["kind"], scale["apiVersion"]) == (200, "Scale", "autoscaling/v1")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 0, "selector": "app=web"})
    code, scale = await call("PATCH", path, {"spec": {"replicas": 5}}, kind=MERGE)
    assert (code, scale["spec"]["replicas"]) == (200, 5)
    obj = present(server.get(DEPLOYMENTS, "web"))
    assert (obj["spec"]["replicas"], obj["metadata"]["generation"]) == (5, 2)
    assert scale["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]
    entry = next(entry for entry in obj["metadata"]["managedFields"] if entry.get("subresource") == "scale")
    assert entry["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    scale["spec"]["replicas"] = 7
    assert (await call("PUT", path, scale))[0] == 200
    assert (await call("PUT", path, scale))[0] == 409
    code, status = await call("PATCH", path, {"spec": {"replicas": -1}}, kind=MERGE)
    assert (code, status["details"]["kind"]) == (422, "Scale")


async def test_scale_of_a_custom_resource_follows_its_paths(server: ScriptedServer, call: Caller) -> None:
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    server.create(foo_crd(subresources={"status": {}, "scale": paths}))
    server.create(foo("one", name="a"))
    server.change(FOOS, "one", {"status": {"replicas": 1}}, subresource="status")
    _, scale = await call("GET", f"{FOOS_PATH}/one/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1})
    await call("PATCH", f"{FOOS_PATH}/one/scale", {"spec": {"replicas": 3}}, kind=MERGE)
    obj = present(server.get(FOOS, "one"))
    assert (obj["spec"]["replicas"], obj["status"]) == (3, {"replicas": 1})


async def test_a_json_patch_may_test_first(server: ScriptedServer, call: Caller) -> None:
    made = server.create(configmap("one", a="1"))
    version = made["metadata"]["resourceVersion"]
    patch = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/data/b", "value": "2"},
    ]
    assert (await call("PATCH", f"{MAPS_PATH}/one", patch, kind=JSON_PATCH))[0] == 200
    code, status = await call("PATCH", f"{MAPS_PATH}/one", patch, kind=JSON_PATCH)
    assert (code, status["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"$setElementOrder/containers": [{"name": "side"}, {"name": "web"}]}, ["side", "web"]),
        ({"$setElementOrder/containers": [{"name": "side"}], "containers": [{"name": "new"}]}, "doesn't match"),
        ({"$setElementOrder/containers": "web"}, "expected a []interface {}, but received a string"),
        ({"$setElementOrder/containers": [{"image": "x"}]}, "map[image:x] does not contain declared merge key: name"),
        ({"$setElementOrder/containers": ["web"]}, "value for key 0 is not a map"),
        ({"containers": [{"image": "x"}]}, "map: map[image:x] does not contain declared merge key: name"),
        (
            {"containers": [{"name": "web", "$patch": "odd"}]},
            "unknown patch type: odd in map: map[$patch:odd name:web]",
        ),
        ({"containers": [{"$patch": "merge"}]}, "merging lists cannot yet be specified in the patch"),
        ({"containers": ["web"]}, "list element types are not identical: [[map["),
        (
            {"containers": [{"name": "web", "$retainKeys": ["image"], "image": "x"}]},
            "invalid patch format of retainKeys",
        ),
    ],
)
async def test_directives_of_strategic_patches(
    spec: dict[str, Any], expected: list[str] | str, server: ScriptedServer, call: Caller
) -> None:
    body = deployment("web")
    body["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "s"})
    server.create(body)
    patch = {"spec": {"template": {"spec": spec}}}
    code, obj = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", patch, kind=STRATEGIC)
    if isinstance(expected, str):
        assert code in (400, 500)
        assert expected in obj["message"]
    else:
        assert [one["name"] for one in obj["spec"]["template"]["spec"]["containers"]] == expected


async def test_retained_keys_replace_the_others(server: ScriptedServer, call: Caller) -> None:
    server.create(deployment("web", strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}))
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    _, obj = await call("PATCH", f"{DEPLOYMENTS_PATH}/web", patch, kind=STRATEGIC)
    assert obj["spec"]["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "replace", "path": "/data/c", "value": "3"}, {"a": "1", "c": "3"}),
        ({"op": "add", "path": "/odd/c", "value": "3"}, None),
        ({"op": "remove", "path": "/data/c"}, None),
        ({"op": "test", "path": "/data/c", "value": None}, {"a": "1"}),
        ({"op": "test", "path": "/data/a", "value": "2"}, None),
        ({"op": "move", "from": "/data/a", "path": "/data/c"}, {"c": "1"}),
        ({"op": "copy", "from": "/data/a", "path": "/data/c"}, {"a": "1", "c": "1"}),
        ({"op": "add", "path": "data", "value": {}}, None),
        ({"op": "replace", "path": "x/data", "value": {"b": "1"}}, {"b": "1"}),
        ({"op": "odd", "path": "/data"}, None),
        ({"op": "add"}, None),
    ],
)
async def test_json_patches(
    operation: Any, expected: dict[str, str] | None, server: ScriptedServer, call: Caller
) -> None:
    server.create(configmap("one", a="1"))
    code, obj = await call("PATCH", f"{MAPS_PATH}/one", [operation], kind=JSON_PATCH)
    assert code == (422 if expected is None else 200)
    assert expected is None or obj["data"] == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [("-", "abn"), ("0", "nab"), ("2", "abn"), ("3", ""), ("-1", "abn"), ("-3", "nab"), ("x", "")],
)
async def test_a_json_patch_adds_to_a_list(place: str, expected: str, server: ScriptedServer, call: Caller) -> None:
    body = configmap("one")
    body["metadata"]["finalizers"] = ["x.example.com/a", "x.example.com/b"]
    server.create(body)
    patch = [{"op": "add", "path": f"/metadata/finalizers/{place}", "value": "x.example.com/n"}]
    code, obj = await call("PATCH", f"{MAPS_PATH}/one", patch, kind=JSON_PATCH)
    assert code == (200 if expected else 422)
    if expected:
        assert obj["metadata"]["finalizers"] == [f"x.example.com/{letter}" for letter in expected]


async def test_a_json_patch_has_at_most_ten_thousand_operations(server: ScriptedServer, call: Caller) -> None:
    server.create(configmap("one", a="1"))
    patch = [{"op": "test", "path": "/data/a", "value": "1"}] * 10_000
    assert (await call("PATCH", f"{MAPS_PATH}/one", patch, kind=JSON_PATCH))[0] == 200
    code, status = await call("PATCH", f"{MAPS_PATH}/one", [*patch, patch[0]], kind=JSON_PATCH)
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_labels_that_are_no_map_are_refused(server: ScriptedServer, call: Caller) -> None:
    server.create(configmap("one"))
    assert (await call("PATCH", f"{MAPS_PATH}/one", {"metadata": {"labels": "x"}}, kind=MERGE))[0] == 400
