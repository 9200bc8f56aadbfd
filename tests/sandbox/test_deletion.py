from __future__ import annotations

import pytest

from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, NAMESPACES, PODS, REPLICASETS, SECRETS
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import (
    CONFIGMAPS,
    FOOS,
    FOOS_PATH,
    MAPS_PATH,
    MERGE,
    Caller,
    configmap,
    deployment,
    foo,
    foo_crd,
    owned_by,
)


def owned(obj: Obj, *owners: Obj) -> Obj:
    obj["metadata"]["ownerReferences"] = list(owners)
    return obj


def finalized(obj: Obj, *finalizers: str) -> Obj:
    obj["metadata"]["finalizers"] = list(finalizers)
    return obj


async def test_finalizers_hold_an_object_until_the_last_is_gone(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    server.create(finalized(foo("one", name="a"), "x.example.com/a", "x.example.com/b"))
    await server.clock.sleep(3)
    code, obj = await call("DELETE", f"{FOOS_PATH}/one")
    assert code == 200
    assert obj["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:03Z"
    assert obj["metadata"]["deletionGracePeriodSeconds"] == 0
    assert obj["metadata"]["generation"] == 2
    assert await call("DELETE", f"{FOOS_PATH}/one") == (200, obj), "asking again changes nothing"
    patch = {"metadata": {"finalizers": ["x.example.com/b"]}}
    _, obj = await call("PATCH", f"{FOOS_PATH}/one", patch, kind=MERGE)
    assert server.get(FOOS, "one") == obj
    await call("PATCH", f"{FOOS_PATH}/one", {"metadata": {"finalizers": None}}, kind=MERGE)
    assert server.get(FOOS, "one") is None


async def test_no_finalizer_is_added_to_what_is_going(server: ScriptedServer, call: Caller) -> None:
    server.create(finalized(configmap("one"), "x.example.com/a"))
    server.delete(CONFIGMAPS, "one")
    patch = {"metadata": {"finalizers": ["x.example.com/a", "x.example.com/b"]}}
    code, status = await call("PATCH", f"{MAPS_PATH}/one", patch, kind=MERGE)
    assert (code, status["details"]["causes"][0]["reason"]) == (422, "FieldValueForbidden")
    assert "no new finalizers can be added if the object is being deleted" in status["message"]


@pytest.mark.parametrize("wrong", [{"uid": "other"}, {"resourceVersion": "1"}])
async def test_preconditions_of_a_delete(wrong: dict[str, str], server: ScriptedServer, call: Caller) -> None:
    made = server.create(configmap("one"))
    code, status = await call("DELETE", f"{MAPS_PATH}/one", {"preconditions": wrong})
    assert (code, status["reason"]) == (409, "Conflict")
    assert "recondition" in status["message"]
    right = {name: made["metadata"][name] for name in wrong}
    assert (await call("DELETE", f"{MAPS_PATH}/one", {"preconditions": right}))[0] == 200
    assert server.get(CONFIGMAPS, "one") is None


async def test_the_deletion_has_a_version_of_its_own(server: ScriptedServer) -> None:
    server.create(configmap("one"))
    before = server.version
    server.delete(CONFIGMAPS, "one")
    assert server.version == before + 1


async def test_dependents_go_with_their_last_owner(server: ScriptedServer) -> None:
    first, second = server.create(configmap("first")), server.create(configmap("second"))
    server.create(owned(configmap("both"), owned_by(first, controller=False), owned_by(second, controller=False)))
    server.create(owned(configmap("child"), owned_by(first)))
    grandchild = configmap("grandchild")
    child = present(server.get(CONFIGMAPS, "child"))
    server.create(owned(grandchild, owned_by(child)))
    server.delete(CONFIGMAPS, "first")
    assert [obj["metadata"]["name"] for obj in server.objects(CONFIGMAPS)] == ["both", "second"]
    both = present(server.get(CONFIGMAPS, "both"))
    assert [owner["name"] for owner in both["metadata"]["ownerReferences"]] == ["second"]
    deletes = [write for write in server.writes if write.verb == "delete"]
    assert {write.user_agent for write in deletes} == {"test", "kube-controller-manager"}


async def test_an_owner_that_is_not_there_costs_the_child_its_life(server: ScriptedServer) -> None:
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})
    owner = server.create({**configmap("owner"), "metadata": {"name": "owner", "namespace": "far"}})
    server.create(owned(configmap("abroad"), owned_by(owner)))
    server.create(owned(configmap("orphan"), {**owned_by(owner), "uid": "never-was"}))
    assert server.objects(CONFIGMAPS, "default") == []


async def test_collecting_can_wait_for_the_test(server: ScriptedServer) -> None:
    server.collecting = False
    owner = server.create(configmap("owner"))
    server.create(owned(configmap("child"), owned_by(owner)))
    server.delete(CONFIGMAPS, "owner")
    assert server.get(CONFIGMAPS, "child") is not None
    server.collecting = True
    server.settle()
    assert server.get(CONFIGMAPS, "child") is None


async def test_foreground_waits_for_the_blocking_dependents(server: ScriptedServer) -> None:
    owner = server.create(configmap("owner"))
    server.create(owned(finalized(configmap("slow"), "x.example.com/a"), owned_by(owner)))
    server.create(owned(finalized(configmap("lazy"), "x.example.com/a"), owned_by(owner, block=False)))
    obj = server.delete(CONFIGMAPS, "owner", propagation="Foreground")
    assert obj["metadata"]["finalizers"] == ["foregroundDeletion"]
    slow = present(server.get(CONFIGMAPS, "slow"))
    assert slow["metadata"]["deletionTimestamp"]
    server.change(CONFIGMAPS, "slow", {"metadata": {"finalizers": None}})
    assert [obj["metadata"]["name"] for obj in server.objects(CONFIGMAPS)] == ["lazy"]


async def test_orphans_lose_their_reference_and_stay(server: ScriptedServer) -> None:
    owner = server.create(configmap("owner"))
    server.create(owned(configmap("child"), owned_by(owner)))
    server.delete(CONFIGMAPS, "owner", propagation="Orphan")
    (child,) = server.objects(CONFIGMAPS)
    assert child["metadata"]["name"] == "child"
    assert not child["metadata"].get("ownerReferences")


@pytest.mark.parametrize(("policy", "left"), [(None, 1), ("Background", 0), ("Orphan", 1)])
async def test_controllers_of_old_keep_their_dependents_by_default(policy: str | None, left: int, call: Caller) -> None:
    path = "/api/v1/namespaces/default/replicationcontrollers"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    body = {"metadata": {"name": "old"}, "spec": {"replicas": 0, "template": template}}
    _, owner = await call("POST", path, body)
    reference = owned_by({"apiVersion": "v1", "kind": "ReplicationController", **owner})
    _, child = await call("POST", MAPS_PATH, owned(configmap("child"), reference))
    assert child["metadata"]["ownerReferences"]
    await call("DELETE", f"{path}/old", {"propagationPolicy": policy} if policy else None)
    _, children = await call("GET", MAPS_PATH)
    assert len(children["items"]) == left
    assert not any("ownerReferences" in one["metadata"] for one in children["items"])


async def test_a_second_deletion_can_change_the_policy(server: ScriptedServer, call: Caller) -> None:
    owner = server.create(configmap("owner"))
    server.create(
        finalized(owned(configmap("slow"), {**owned_by(owner), "blockOwnerDeletion": True}), "hold.example.com/x")
    )
    _, waiting = await call("DELETE", f"{MAPS_PATH}/owner", {"propagationPolicy": "Foreground"})
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    _, same = await call("DELETE", f"{MAPS_PATH}/owner")
    assert same["metadata"]["resourceVersion"] == waiting["metadata"]["resourceVersion"]
    assert (await call("DELETE", f"{MAPS_PATH}/owner", {"propagationPolicy": "Background"}))[0] == 200
    assert (await call("GET", f"{MAPS_PATH}/owner"))[0] == 404
    assert (await call("GET", f"{MAPS_PATH}/slow"))[1]["metadata"]["deletionTimestamp"]


async def test_a_chain_goes_in_the_foreground_from_below(server: ScriptedServer) -> None:
    top = server.create(deployment("web"))
    body = {**deployment("web-1"), "kind": "ReplicaSet"}
    middle = server.create(owned(body, owned_by(top)))
    spec = {"containers": [{"name": "a", "image": "nginx"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1-x"}, "spec": spec}
    server.create(owned(finalized(pod, "x.example.com/a"), owned_by(middle)))
    server.delete(DEPLOYMENTS, "web", propagation="Foreground")
    for resource, name in ((DEPLOYMENTS, "web"), (REPLICASETS, "web-1"), (PODS, "web-1-x")):
        obj = present(server.get(resource, name))
        assert obj["metadata"]["deletionTimestamp"]
    server.change(PODS, "web-1-x", {"metadata": {"finalizers": None}})
    assert [server.objects(resource) for resource in (DEPLOYMENTS, REPLICASETS, PODS)] == [[], [], []]


async def test_a_namespace_takes_its_objects_along(server: ScriptedServer, call: Caller) -> None:
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})
    inside: Obj = {"name": "one", "namespace": "far"}
    server.create({**configmap("one"), "metadata": inside})
    held: Obj = {"name": "two", "namespace": "far", "finalizers": ["x.example.com/a"]}
    server.create({**configmap("two"), "metadata": held})
    server.delete(NAMESPACES, "far")
    assert present(server.get(NAMESPACES, "far"))["status"]["phase"] == "Terminating"
    assert [obj["metadata"]["name"] for obj in server.objects(CONFIGMAPS, "far")] == ["two"]
    path = "/api/v1/namespaces/far/configmaps"
    code, status = await call("POST", path, configmap("three"))
    assert (code, status["reason"]) == (403, "Forbidden")
    assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert "because it is being terminated" in status["message"]
    server.change(CONFIGMAPS, "two", {"metadata": {"finalizers": None}}, namespace="far")
    assert server.get(NAMESPACES, "far") is None
    assert (await call("POST", path, configmap("three")))[0] == 404


async def test_a_crd_takes_its_objects_along_and_is_served_no_more(server: ScriptedServer, call: Caller) -> None:
    server.create(foo_crd())
    server.create(finalized(foo("one", name="a"), "x.example.com/a"))
    server.create(foo("two", name="a"))
    server.delete(CRDS, "foos.example.com")
    assert server.get(CRDS, "foos.example.com") is not None
    assert [obj["metadata"]["name"] for obj in server.objects(FOOS)] == ["one"]
    server.change(FOOS, "one", {"metadata": {"finalizers": None}})
    assert server.get(CRDS, "foos.example.com") is None
    response = await call.respond("GET", FOOS_PATH)
    assert (response.status, response.body) == (404, b"404 page not found\n")
    server.create(foo_crd())
    assert (await call("GET", FOOS_PATH))[1]["items"] == []


async def test_pods_that_run_somewhere_get_time_to_stop(server: ScriptedServer, call: Caller) -> None:
    path = "/api/v1/namespaces/default/pods"
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    server.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec})
    _, pod = await call("DELETE", f"{path}/one")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:30Z"
    assert server.get(PODS, "one") == pod
    await call("DELETE", f"{path}/one", {"gracePeriodSeconds": 0})
    assert server.get(PODS, "one") is None


async def test_a_collection_is_deleted_by_selector(server: ScriptedServer, call: Caller) -> None:
    for name, tier in (("one", "a"), ("two", "b"), ("three", "a")):
        server.create({**configmap(name), "metadata": {"name": name, "labels": {"tier": tier}}})
    code, _ = await call("DELETE", MAPS_PATH, labelSelector="tier=a")
    assert code == 200
    assert [obj["metadata"]["name"] for obj in server.objects(CONFIGMAPS)] == ["two"]


async def test_after_a_refusal_the_dependents_of_the_deleted_ones_go(server: ScriptedServer, call: Caller) -> None:
    first = server.create(configmap("a"))
    server.create(configmap("b"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "ownerReferences": [owned_by(first)]}}
    server.create(secret)
    code, _ = await call("DELETE", MAPS_PATH, {"preconditions": {"uid": first["metadata"]["uid"]}})
    assert (code, [name_of(one) for one in server.objects(CONFIGMAPS)]) == (409, ["b"])
    assert server.objects(SECRETS) == []


async def test_a_restored_past_has_its_owners_back(server: ScriptedServer) -> None:
    owner = server.create(configmap("owner"))
    server.create(owned(configmap("child"), owned_by(owner)))
    kept = server.version
    server.delete(CONFIGMAPS, "owner")
    assert server.objects(CONFIGMAPS) == []
    server.restore(kept)
    assert [obj["metadata"]["name"] for obj in server.objects(CONFIGMAPS)] == ["child", "owner"]
    server.create(configmap("other"))
    assert len(server.objects(CONFIGMAPS)) == 3
    server.delete(CONFIGMAPS, "owner")
    assert [obj["metadata"]["name"] for obj in server.objects(CONFIGMAPS)] == ["other"]


async def test_deleting_what_is_not_there_is_404(server: ScriptedServer) -> None:
    with pytest.raises(Refusal, match='configmaps "one" not found'):
        server.delete(CONFIGMAPS, "one")
