from __future__ import annotations

from collections import Counter

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.owners import controlled_by
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import deployment


def status(server: ScriptedServer) -> Obj:
    obj = present(server.get(DEPLOYMENTS, "web"))
    return obj.get("status") or {}


async def test_the_status_follows_the_spec(server: ScriptedServer) -> None:
    server.play_deployments()
    server.create(deployment("web", replicas=2))
    assert status(server)["availableReplicas"] == 2
    assert [condition["type"] for condition in status(server)["conditions"]] == ["Available", "Progressing"]
    server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
    assert "availableReplicas" not in status(server)
    assert status(server)["observedGeneration"] == 2
    server.delete(DEPLOYMENTS, "web")
    assert server.objects(DEPLOYMENTS) == []


async def test_it_rests_once_it_has_followed(server: ScriptedServer) -> None:
    server.play_deployments()
    server.create(deployment("web"))
    version = server.version
    await server.clock.sleep(60)
    server.change(DEPLOYMENTS, "web", {"metadata": {"labels": {"a": "b"}}})
    assert server.version == version + 1


async def test_nothing_is_played_unless_asked_for(server: ScriptedServer) -> None:
    server.create(deployment("web"))
    assert status(server) == {}
    server.play_deployments()
    assert status(server)["readyReplicas"] == 1
    server.play_deployments(False)
    server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
    assert status(server)["readyReplicas"] == 1


def pods(server: ScriptedServer) -> dict[str, int]:
    """How many pods of each image there are, what goes and what has finished left out."""
    images = [
        pod["spec"]["containers"][0]["image"]
        for pod in server.objects(PODS)
        if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]
    return dict(Counter(images))


async def test_pods_stand_below_a_replicaset_of_the_present_template(server: ScriptedServer) -> None:
    server.play_deployments(pods=True)
    made = server.create(deployment("web", replicas=2))
    (replicas,) = server.objects(REPLICASETS)
    assert controlled_by(replicas, made["metadata"]["uid"])
    assert all(controlled_by(pod, replicas["metadata"]["uid"]) for pod in server.objects(PODS))
    assert pods(server) == {"nginx:1.27": 2}
    containers = [{"name": "web", "image": "nginx:2"}]
    change = {"spec": {"replicas": 3, "template": {"spec": {"containers": containers}}}}
    server.change(DEPLOYMENTS, "web", change)
    assert pods(server) == {"nginx:2": 3}
    assert sorted(one["spec"]["replicas"] for one in server.objects(REPLICASETS)) == [0, 3]
    server.delete(DEPLOYMENTS, "web")
    assert server.objects(REPLICASETS) + server.objects(PODS) == []


async def test_a_pod_that_goes_or_fails_is_replaced_and_then_it_rests(server: ScriptedServer) -> None:
    server.play_deployments(pods=True)
    server.create(deployment("web", replicas=2))
    first, second = (pod["metadata"]["name"] for pod in server.objects(PODS))
    server.delete(PODS, first)
    server.change(PODS, second, {"status": {"phase": "Failed"}}, subresource="status")
    assert pods(server) == {"nginx:1.27": 2}
    assert first not in [pod["metadata"]["name"] for pod in server.objects(PODS)]
    version = server.version
    server.settle()
    assert server.version == version
