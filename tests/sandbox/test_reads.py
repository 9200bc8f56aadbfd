from __future__ import annotations

import json
from typing import Any

import pytest

from kubectl_ctrl.model.resources import EVENTS, LEASES, PODS, SECRETS
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import CONFIGMAPS, FOOS_PATH, MAPS_PATH, MERGE, Caller, configmap, foo, foo_crd


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def fill(server: ScriptedServer, count: int) -> None:
    for number in range(count):
        server.create(configmap(f"m{number:02}"))


async def test_a_list_is_in_order_and_has_the_stores_version(server: ScriptedServer, call: Caller) -> None:
    for name in ("b", "c", "a"):
        server.create(configmap(name))
    code, listed = await call("GET", MAPS_PATH)
    assert (code, names(listed)) == (200, ["a", "b", "c"])
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert listed["metadata"] == {"resourceVersion": str(server.version)}


async def test_pages_are_of_one_moment(server: ScriptedServer, call: Caller) -> None:
    fill(server, 5)
    version = str(server.version)
    _, first = await call("GET", MAPS_PATH, limit="2")
    assert first["metadata"]["remainingItemCount"] == 3
    server.delete(CONFIGMAPS, "m03")
    server.create(configmap("m02a"))
    server.change(CONFIGMAPS, "m04", {"data": {"late": "yes"}})
    _, second = await call("GET", MAPS_PATH, limit="2", **{"continue": first["metadata"]["continue"]})
    _, third = await call("GET", MAPS_PATH, limit="2", **{"continue": second["metadata"]["continue"]})
    assert [*names(first), *names(second), *names(third)] == [f"m{number:02}" for number in range(5)]
    assert [page["metadata"]["resourceVersion"] for page in (first, second, third)] == [version] * 3
    assert "continue" not in third["metadata"]
    assert third["items"][0].get("data") in (None, {})


async def test_a_page_token_expires_with_a_way_to_go_on(server: ScriptedServer, call: Caller) -> None:
    fill(server, 4)
    _, first = await call("GET", MAPS_PATH, limit="2")
    server.create(configmap("m99"))
    server.expire_pages()
    code, status = await call("GET", MAPS_PATH, limit="2", **{"continue": first["metadata"]["continue"]})
    assert (code, status["reason"]) == (410, "Expired")
    _, rest = await call("GET", MAPS_PATH, **{"continue": status["metadata"]["continue"]})
    assert names(rest) == ["m02", "m03", "m99"]
    assert rest["metadata"]["resourceVersion"] == str(server.version)


async def test_tokens_expire_even_when_nothing_was_written_since(server: ScriptedServer, call: Caller) -> None:
    fill(server, 4)
    _, first = await call("GET", MAPS_PATH, limit="2")
    server.expire_pages()
    code, _ = await call("GET", MAPS_PATH, limit="2", **{"continue": first["metadata"]["continue"]})
    assert code == 410


async def test_versions_of_reads(server: ScriptedServer, call: Caller) -> None:
    fill(server, 2)
    old = str(server.version)
    fill_more = configmap("m02")
    server.create(fill_more)
    _, listed = await call("GET", MAPS_PATH, resourceVersion=old, resourceVersionMatch="Exact")
    assert names(listed) == ["m00", "m01"]
    _, listed = await call("GET", MAPS_PATH, resourceVersion=old, limit="1")
    assert listed["metadata"]["resourceVersion"] == old
    _, listed = await call("GET", MAPS_PATH, resourceVersion=old, resourceVersionMatch="NotOlderThan")
    assert names(listed) == ["m00", "m01", "m02"]
    server.compact()
    code, _ = await call("GET", MAPS_PATH, resourceVersion=old, resourceVersionMatch="Exact")
    assert code == 410
    response = await call.respond("GET", MAPS_PATH, resourceVersion=str(server.version + 5))
    assert (response.status, response.headers["retry-after"]) == (504, "1")
    assert b"Too large resource version" in response.body
    assert (await call("GET", MAPS_PATH, resourceVersion="x"))[0] == 400
    assert (await call("GET", MAPS_PATH, resourceVersionMatch="Exact"))[0] == 422


async def test_selectors(server: ScriptedServer, call: Caller) -> None:
    for name, tier in (("one", "web"), ("two", "db")):
        server.create({**configmap(name), "metadata": {"name": name, "labels": {"tier": tier}}})
    server.create(configmap("three"))
    assert names((await call("GET", MAPS_PATH, labelSelector="tier in (web)"))[1]) == ["one"]
    assert names((await call("GET", MAPS_PATH, labelSelector="!tier"))[1]) == ["three"]
    assert names((await call("GET", MAPS_PATH, fieldSelector="metadata.name!=one"))[1]) == ["three", "two"]
    code, status = await call("GET", MAPS_PATH, fieldSelector="data.a=b")
    assert code == 400
    assert '"data.a" is not a known field selector: only "metadata.name"' in status["message"]
    assert (await call("GET", MAPS_PATH, labelSelector="a=("))[0] == 400


async def test_field_selectors_of_events_and_pods(server: ScriptedServer, call: Caller) -> None:
    about = {"kind": "Foo", "name": "one", "uid": "u1", "namespace": "default"}
    event = {"apiVersion": "v1", "kind": "Event", "involvedObject": about, "reason": "Synced", "type": "Normal"}
    server.create({**event, "metadata": {"name": "one.1"}})
    server.create({**event, "metadata": {"name": "two.1"}, "involvedObject": {**about, "uid": "u2"}})
    path = "/api/v1/namespaces/default/events"
    query = "involvedObject.uid=u1,reason=Synced"
    assert names((await call("GET", path, fieldSelector=query))[1]) == ["one.1"]
    spec = {"nodeName": "n1", "containers": [{"name": "a", "image": "nginx"}]}
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    pods = "/api/v1/pods"
    assert names((await call("GET", pods, fieldSelector="spec.nodeName=n1"))[1]) == ["p"]
    assert names((await call("GET", pods, fieldSelector="status.phase=Running"))[1]) == []
    assert len(server.objects(EVENTS)) == 2
    assert len(server.objects(PODS)) == 1


async def test_field_selectors_of_numbers_and_flags(server: ScriptedServer, call: Caller) -> None:
    for name, cordoned in (("n1", {}), ("n2", {"unschedulable": True})):
        await call("POST", "/api/v1/nodes", {"kind": "Node", "metadata": {"name": name}, "spec": cordoned})
    assert names((await call("GET", "/api/v1/nodes", fieldSelector="spec.unschedulable=false"))[1]) == ["n1"]
    assert names((await call("GET", "/api/v1/nodes", fieldSelector="spec.unschedulable=true"))[1]) == ["n2"]

    template = {"spec": {"containers": [{"name": "a", "image": "nginx"}], "restartPolicy": "Never"}}
    path = "/apis/batch/v1/namespaces/default/jobs"
    await call("POST", path, {"kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}})
    assert names((await call("GET", path, fieldSelector="status.successful=0"))[1]) == ["j"]
    await call("PATCH", f"{path}/j/status", {"status": {"succeeded": 1}}, kind=MERGE)
    assert names((await call("GET", path, fieldSelector="status.successful=1"))[1]) == ["j"]


async def test_metadata_alone(server: ScriptedServer) -> None:
    server.create(configmap("one", a="b"))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    response = await server.send(HttpRequest(method="GET", path=MAPS_PATH, headers={"Accept": accept}))
    listed = json.loads(response.body)
    assert (listed["kind"], listed["apiVersion"]) == ("PartialObjectMetadataList", "meta.k8s.io/v1")
    (item,) = listed["items"]
    assert item.keys() == {"kind", "apiVersion", "metadata"}
    assert item["kind"] == "PartialObjectMetadata"
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    response = await server.send(HttpRequest(method="GET", path=f"{MAPS_PATH}/one", headers={"accept": accept}))
    assert json.loads(response.body) == item


async def test_dry_runs_are_checked_and_forgotten(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    before = server.version, len(server.writes)
    code, obj = await call("POST", FOOS_PATH, foo("one", name="a"), dryRun="All")
    assert (code, obj["spec"]["replicas"]) == (201, 2)
    assert "resourceVersion" not in obj["metadata"]
    assert (await call("POST", FOOS_PATH, foo("one"), dryRun="All"))[0] == 422
    assert (await call("POST", FOOS_PATH, foo("one", name="a"), dryRun="Some"))[0] == 422
    assert (await call("POST", FOOS_PATH, foo("one", name="a"), dryRun="All"))[0] == 201
    assert (server.version, len(server.writes)) == before
    server.create(configmap("one"))
    before = server.version, len(server.writes)
    assert (await call("DELETE", f"{MAPS_PATH}/one", {"dryRun": ["All"]}))[0] == 200
    assert (await call("DELETE", f"{MAPS_PATH}/one", dryRun="All"))[0] == 200
    body = configmap("one", a="b")
    code, obj = await call("PUT", f"{MAPS_PATH}/one", body, dryRun="All")
    assert (code, obj["data"]) == (200, {"a": "b"})
    assert (server.version, len(server.writes)) == before
    assert server.get(CONFIGMAPS, "one") is not None


async def test_leases_are_made_by_put_and_want_their_version(server: ScriptedServer, call: Caller) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/foo"
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    body: dict[str, Any] = {"metadata": {"name": "foo"}, "spec": spec}
    code, lease = await call("PUT", path, body)
    assert code == 201
    assert "generation" not in lease["metadata"]
    assert (await call("PUT", path, body))[0] == 422
    spec["leaseDurationSeconds"] = 0
    code, status = await call("POST", path.rpartition("/")[0], {"metadata": {"name": "bar"}, "spec": spec})
    assert (code, status["details"]["causes"][0]["field"]) == (422, "spec.leaseDurationSeconds")
    lease["spec"]["holderIdentity"] = "b"
    assert (await call("PUT", path, lease))[0] == 200
    lease["spec"]["holderIdentity"] = "c"
    assert (await call("PUT", path, lease))[0] == 409
    assert present(server.get(LEASES, "foo"))["spec"]["holderIdentity"] == "b"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"metadata": {"name": "other"}}, "does not match the name on the URL (one)"),
        ({"metadata": {"namespace": "far"}}, "does not match the namespace sent on the request"),
        ({"apiVersion": "v2", "metadata": {}}, 'no kind "ConfigMap" is registered for version "v2"'),
        ([], "unrecognized"),
    ],
)
async def test_a_body_must_fit_its_path(body: Any, words: str, server: ScriptedServer, call: Caller) -> None:
    server.create(configmap("one"))
    code, status = await call("PUT", f"{MAPS_PATH}/one", body)
    assert (code, status["reason"]) == (400, "BadRequest")
    assert words in status["message"]


async def test_a_body_may_be_too_large_and_may_lack_metadata(call: Caller) -> None:
    code, status = await call("POST", MAPS_PATH, configmap("one", a="x" * 3_200_000))
    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")
    code, status = await call("POST", MAPS_PATH, {"data": {}})
    assert (code, status["details"]["causes"][0]["field"]) == (422, "metadata.name")


async def test_loading_is_quick_and_unchecked(server: ScriptedServer, call: Caller) -> None:
    objects = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"s{number}", "namespace": "elsewhere"}}
        for number in range(1000)
    ]
    server.load(SECRETS, objects)
    _, listed = await call("GET", "/api/v1/secrets", limit="10")
    assert listed["metadata"]["remainingItemCount"] == 990
    assert all(item["metadata"]["uid"] for item in listed["items"])


@pytest.mark.parametrize("query", [{"limit": "x"}, {"timeoutSeconds": "x", "watch": "1"}, {"limit": "9" * 5000}])
async def test_an_option_that_is_no_number_is_refused(call: Caller, query: dict[str, str]) -> None:
    stream = await call.server.open(HttpRequest(method="GET", path=MAPS_PATH, query=tuple(query.items())))
    assert stream.status == 400
    assert b"invalid syntax" in await stream.read()


@pytest.mark.parametrize("watch", ["0", "1"])
async def test_a_version_with_too_many_digits_is_refused(call: Caller, watch: str) -> None:
    query = (("watch", watch), ("resourceVersion", "9" * 5000))
    stream = await call.server.open(HttpRequest(method="GET", path=MAPS_PATH, query=query))
    assert stream.status == (500 if watch == "1" else 400)
    assert b"invalid syntax" in await stream.read()


async def test_a_negative_limit_is_none(server: ScriptedServer, call: Caller) -> None:
    fill(server, 3)
    _, listed = await call("GET", MAPS_PATH, limit="-1")
    assert (names(listed), "continue" in listed["metadata"]) == (["m00", "m01", "m02"], False)
