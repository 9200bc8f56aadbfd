from __future__ import annotations

import asyncio

import pytest

from kubectl_ctrl.model.resources import DEPLOYMENTS, NAMESPACES, PODS
from kubectl_ctrl.model.transport import NoAnswer, TooSlow
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import CONFIGMAPS, MAPS_PATH, Caller, configmap


async def test_create_gives_uid_version_and_time(server: ScriptedServer, call: Caller) -> None:
    before = server.version
    code, made = await call("POST", MAPS_PATH, configmap("one", a="1"))
    assert code == 201
    meta = made["metadata"]
    assert meta["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert meta["resourceVersion"] == str(before + 1) == str(server.version)
    assert meta["uid"]
    assert meta["namespace"] == "default"
    assert (await call("GET", f"{MAPS_PATH}/one")) == (200, made)
    assert server.get(CONFIGMAPS, "one") == made


async def test_generated_names_differ(call: Caller) -> None:
    body = configmap("x")
    body["metadata"] = {"generateName": "one-"}
    names = {(await call("POST", MAPS_PATH, body))[1]["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("one-") and len(name) == 9 for name in names)


async def test_a_second_create_is_already_exists(call: Caller) -> None:
    await call("POST", MAPS_PATH, configmap("one"))
    code, status = await call("POST", MAPS_PATH, configmap("one"))
    assert (code, status["reason"], status["message"]) == (
        409,
        "AlreadyExists",
        'configmaps "one" already exists',
    )
    assert status["details"] == {"name": "one", "kind": "configmaps"}


async def test_put_with_a_stale_version_is_a_conflict(call: Caller) -> None:
    _, made = await call("POST", MAPS_PATH, configmap("one", a="1"))
    made["data"]["a"] = "2"
    code, second = await call("PUT", f"{MAPS_PATH}/one", made)
    assert code == 200
    assert int(second["metadata"]["resourceVersion"]) == int(made["metadata"]["resourceVersion"]) + 1
    made["data"]["a"] = "3"
    code, status = await call("PUT", f"{MAPS_PATH}/one", made)
    assert (code, status["reason"]) == (409, "Conflict")
    assert "the object has been modified; please apply your changes" in status["message"]


async def test_a_write_that_changes_nothing_keeps_the_version(server: ScriptedServer, call: Caller) -> None:
    _, made = await call("POST", MAPS_PATH, configmap("one", a="1"))
    code, same = await call("PUT", f"{MAPS_PATH}/one", made)
    assert (code, same) == (200, made)
    assert [write.changed for write in server.writes] == [True, False]


async def test_delete_answers_with_the_uid_and_is_404_then(call: Caller) -> None:
    _, made = await call("POST", MAPS_PATH, configmap("one"))
    code, status = await call("DELETE", f"{MAPS_PATH}/one")
    assert (code, status["status"]) == (200, "Success")
    assert status["details"] == {"name": "one", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    code, status = await call("GET", f"{MAPS_PATH}/one")
    assert (code, status["message"]) == (404, 'configmaps "one" not found')


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v1/nothings", 404),
        ("/apis/none.example.com/v1/namespaces/default/things", 404),
        ("/api/v1/configmaps/one", 404),
        (f"{MAPS_PATH}/one/status", 404),
        ("/apis/apps/v1/namespaces/default/deployments", 200),
        ("/apis/apps/v1/deployments", 200),
        ("/api/v1/namespaces/default", 200),
    ],
)
async def test_paths(path: str, code: int, call: Caller) -> None:
    assert (await call.respond("GET", path)).status == code


async def test_the_namespace_must_be_there(server: ScriptedServer, call: Caller) -> None:
    path = "/api/v1/namespaces/elsewhere/configmaps"
    code, status = await call("POST", path, configmap("one"))
    assert (code, status["message"]) == (404, 'namespaces "elsewhere" not found')
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    assert (await call("POST", path, configmap("one")))[0] == 201
    assert server.get(NAMESPACES, "elsewhere") is not None


async def test_merge_and_json_patches(call: Caller) -> None:
    await call("POST", MAPS_PATH, configmap("one", a="1", b="2"))
    merge = {"data": {"a": None, "c": "3"}}
    _, obj = await call("PATCH", f"{MAPS_PATH}/one", merge, kind="application/merge-patch+json")
    assert obj["data"] == {"b": "2", "c": "3"}
    json_patch = [{"op": "test", "path": "/data/b", "value": "2"}, {"op": "remove", "path": "/data/b"}]
    _, obj = await call("PATCH", f"{MAPS_PATH}/one", json_patch, kind="application/json-patch+json")
    assert obj["data"] == {"c": "3"}
    code, _ = await call("PATCH", f"{MAPS_PATH}/one", json_patch, kind="application/json-patch+json")
    assert code == 422
    code, _ = await call("PATCH", f"{MAPS_PATH}/one", {}, kind="application/json")
    assert code == 415


async def test_lost_answer_after_commit(server: ScriptedServer, call: Caller) -> None:
    server.faults.lose(Match(verb="create"))
    with pytest.raises(NoAnswer) as caught:
        await call("POST", MAPS_PATH, configmap("one"))
    assert caught.value.sent
    assert server.get(CONFIGMAPS, "one") is not None
    server.faults.lose(Match(verb="create"), after_commit=False)
    with pytest.raises(NoAnswer):
        await call("POST", MAPS_PATH, configmap("two"))
    assert server.get(CONFIGMAPS, "two") is None


async def test_scripted_statuses(server: ScriptedServer, call: Caller) -> None:
    server.faults.fail(Match(plural="configmaps"), 503, times=2)
    server.faults.fail(Match(verb="list"), 429, retry_after=7)
    assert (await call("GET", MAPS_PATH))[0] == 503
    assert (await call("GET", f"{MAPS_PATH}/x"))[0] == 503
    assert (await call("GET", f"{MAPS_PATH}/x"))[0] == 404
    response = await call.respond("GET", MAPS_PATH)
    assert (response.status, response.headers["retry-after"]) == (429, "7")
    assert (await call("GET", MAPS_PATH))[0] == 200


async def test_hanging_ends_at_the_deadline(server: ScriptedServer, call: Caller) -> None:
    server.faults.hang(Match(verb="get"))
    before = server.clock.elapsed()
    with pytest.raises(TooSlow):
        await call("GET", f"{MAPS_PATH}/x")
    assert server.clock.elapsed() - before == 30


async def test_down_refuses_and_breaks_what_is_on_its_way(server: ScriptedServer, call: Caller) -> None:
    server.down()
    with pytest.raises(NoAnswer) as caught:
        await call("GET", MAPS_PATH)
    assert not caught.value.sent
    server.up()
    assert (await call("GET", MAPS_PATH))[0] == 200


async def test_down_breaks_a_hanging_request_at_once(server: ScriptedServer, call: Caller) -> None:
    server.faults.hang(Match(verb="get"))
    before = server.clock.elapsed()
    asking = asyncio.create_task(call("GET", f"{MAPS_PATH}/x"))
    await server.clock.sleep(3)
    server.down()
    with pytest.raises(NoAnswer) as caught:
        await asking
    assert (caught.value.sent, server.clock.elapsed() - before) == (True, 3)
    server.up()
    assert (await call("GET", MAPS_PATH))[0] == 200


async def test_status_has_an_endpoint_of_its_own(server: ScriptedServer, call: Caller) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {"metadata": {"name": "web"}, "spec": spec, "status": {"replicas": 5}}
    _, made = await call("POST", path, body)
    assert (made["status"], made["metadata"]["generation"]) == ({}, 1)
    patch = {"spec": {"paused": True}, "status": {"replicas": 2}}
    _, obj = await call("PATCH", f"{path}/web/status", patch, kind="application/merge-patch+json")
    assert "paused" not in obj["spec"]
    assert (obj["status"], obj["metadata"]["generation"]) == ({"replicas": 2}, 1)
    _, obj = await call("PATCH", f"{path}/web", patch, kind="application/merge-patch+json")
    assert (obj["spec"]["paused"], obj["metadata"]["generation"]) == (True, 2)
    assert server.get(DEPLOYMENTS, "web") == obj
    assert server.objects(PODS) == []
