"""Rollouts of a Deployment in a whole cluster: requests in, states and their history out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj, annotations_of, labels_of, name_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS, PODS, REPLICASETS
from kubectl_ctrl.sandbox.controllers.kubelet import KubeletSettings
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import deployment

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
async def server() -> ScriptedServer:
    return played(start=0.0)


def played(**seconds: float) -> ScriptedServer:
    server = ScriptedServer(FakeClock())
    server.play_deployments(pods=True, kubelet=KubeletSettings(**seconds))
    return server


def web(server: ScriptedServer) -> Obj:
    return present(server.get(DEPLOYMENTS, "web"))


def condition(obj: Obj, kind: str) -> tuple[str, str, str]:
    found: Obj = next((one for one in obj["status"].get("conditions", ()) if one["type"] == kind), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def image(text: str, **spec: Any) -> Obj:
    return {"spec": {**spec, "template": {"spec": {"containers": [{"name": "web", "image": text}]}}}}


def sets(server: ScriptedServer) -> dict[str, tuple[str, int]]:
    """The revision and size of each ReplicaSet, by image."""
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: (
            annotations_of(one)[REVISION],
            one["spec"]["replicas"],
        )
        for one in server.objects(REPLICASETS)
    }


def told(server: ScriptedServer, reason: str) -> list[str]:
    events = sorted(server.objects(EVENTS), key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [event["message"] for event in events if event["reason"] == reason]


def history(server: ScriptedServer, table: str) -> Iterator[Obj]:
    """Every state that a watch of a type has shown."""
    return (json.loads(change.encoded) for change in server.storage.logs[table])


async def test_a_rollout_ends_available_with_its_first_revision(server: ScriptedServer) -> None:
    server.create(deployment("web", replicas=3))
    made = web(server)
    assert annotations_of(made) == {REVISION: "1"}
    conditions = made["status"].pop("conditions")
    assert made["status"] == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    (replicas,) = server.objects(REPLICASETS)
    hashed = labels_of(replicas)["pod-template-hash"]
    assert name_of(replicas) == f"web-{hashed}"
    assert 9 <= len(hashed) <= 10
    assert annotations_of(replicas) == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert replicas["status"] == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
    }
    assert [(one["type"], one["status"], one["reason"], one["message"]) for one in conditions] == [
        ("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
        ("Progressing", "True", "NewReplicaSetAvailable", f'ReplicaSet "web-{hashed}" has successfully progressed.'),
    ]
    assert told(server, "ScalingReplicaSet") == [f"Scaled up replica set web-{hashed} from 0 to 3"]
    created = sorted(told(server, "SuccessfulCreate"))
    assert created == sorted(f"Created pod: {name_of(pod)}" for pod in server.objects(PODS))


async def test_a_rolling_update_never_leaves_its_limits() -> None:
    server = played(start=2.0, stop=1.0)
    server.create(deployment("web", replicas=4))
    await server.clock.sleep(10)
    server.change(DEPLOYMENTS, "web", image("nginx:2"))
    await server.clock.sleep(30)
    assert sets(server) == {"nginx:1.27": ("1", 0), "nginx:2": ("2", 4)}
    rolled = [one["status"] for one in history(server, "deployments.apps") if one["metadata"]["generation"] == 2]
    assert min(one.get("availableReplicas", 0) for one in rolled) == 3  # 25% of 4 may be unavailable
    requested: dict[str, int] = {}
    totals = set[int]()
    for one in history(server, "replicasets.apps"):
        requested[one["metadata"]["name"]] = one["spec"]["replicas"]
        totals.add(sum(requested.values()))
    assert max(totals) == 5  # and as many more
    assert max(one.get("terminatingReplicas", 0) for one in rolled) > 0
    assert told(server, "ScalingReplicaSet")[1].endswith("from 0 to 1")


async def test_a_percentage_rounds_surge_up_and_unavailable_down(server: ScriptedServer) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": "10%"}}
    server.create(deployment("web", replicas=3, strategy=strategy))
    (replicas,) = server.objects(REPLICASETS)
    assert annotations_of(replicas)["deployment.kubernetes.io/max-replicas"] == "4"
    server.change(DEPLOYMENTS, "web", image("nginx:2"))
    states = [one["status"].get("availableReplicas", 0) for one in history(server, "deployments.apps")]
    assert min(states[states.index(3) :]) == 3


async def test_recreate_starts_after_the_last_old_pod_has_ended() -> None:
    server = played(stop=3.0)
    server.create(deployment("web", replicas=2, strategy={"type": "Recreate"}))
    server.change(DEPLOYMENTS, "web", image("nginx:2"))
    assert sets(server) == {"nginx:1.27": ("1", 0)}
    assert web(server)["status"]["terminatingReplicas"] == 2
    await server.clock.sleep(4)
    assert sets(server) == {"nginx:1.27": ("1", 0), "nginx:2": ("2", 2)}
    assert web(server)["status"]["availableReplicas"] == 2


async def test_a_template_of_before_gets_its_replicaset_back_with_a_new_revision(server: ScriptedServer) -> None:
    server.create(deployment("web"))
    server.change(DEPLOYMENTS, "web", image("nginx:2"))
    server.change(DEPLOYMENTS, "web", image("nginx:1.27"))
    assert sets(server) == {"nginx:1.27": ("3", 1), "nginx:2": ("2", 0)}
    assert annotations_of(web(server))[REVISION] == "3"
    (first,) = (one for one in server.objects(REPLICASETS) if one["spec"]["replicas"])
    assert annotations_of(first)["deployment.kubernetes.io/revision-history"] == "1"


async def test_a_paused_deployment_scales_and_does_not_roll(server: ScriptedServer) -> None:
    server.create(deployment("web", replicas=1))
    server.change(DEPLOYMENTS, "web", {"spec": {"paused": True}})
    assert condition(web(server), "Progressing") == ("Unknown", "DeploymentPaused", "Deployment is paused")
    server.change(DEPLOYMENTS, "web", image("nginx:2", replicas=2))
    assert sets(server) == {"nginx:1.27": ("1", 2)}
    assert web(server)["status"]["observedGeneration"] == 3
    assert "updatedReplicas" not in web(server)["status"]
    server.change(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    assert sets(server) == {"nginx:1.27": ("1", 0), "nginx:2": ("2", 2)}
    assert condition(web(server), "Progressing")[1] == "NewReplicaSetAvailable"


async def test_pods_are_available_after_their_minimum_time(server: ScriptedServer) -> None:
    server.create(deployment("web", replicas=2, minReadySeconds=10))
    assert web(server)["status"]["readyReplicas"] == 2
    assert web(server)["status"]["unavailableReplicas"] == 2
    assert condition(web(server), "Available")[:2] == ("False", "MinimumReplicasUnavailable")
    await server.clock.sleep(9)
    assert "availableReplicas" not in web(server)["status"]
    await server.clock.sleep(2)
    assert web(server)["status"]["availableReplicas"] == 2
    assert "unavailableReplicas" not in web(server)["status"]


async def test_a_rollout_without_progress_exceeds_its_deadline(server: ScriptedServer) -> None:
    stuck = {"sandbox.kubectl-ctrl.dev/fails": "ready"}
    made = deployment("web", progressDeadlineSeconds=30)
    made["spec"]["template"]["metadata"]["annotations"] = stuck
    server.create(made)
    await server.clock.sleep(29)
    assert condition(web(server), "Progressing")[1] == "ReplicaSetUpdated"
    await server.clock.sleep(3)
    (replicas,) = server.objects(REPLICASETS)
    message = f'ReplicaSet "{name_of(replicas)}" has timed out progressing.'
    assert condition(web(server), "Progressing") == ("False", "ProgressDeadlineExceeded", message)


async def test_a_rollout_in_progress_scales_in_proportion() -> None:
    server = played()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    server.create(deployment("web", replicas=10, strategy=strategy))
    new = image("nginx:2")
    new["spec"]["template"]["metadata"] = {"annotations": {"sandbox.kubectl-ctrl.dev/fails": "image"}}
    server.change(DEPLOYMENTS, "web", new)
    assert sets(server) == {"nginx:1.27": ("1", 8), "nginx:2": ("2", 5)}
    server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
    assert sets(server) == {"nginx:1.27": ("1", 11), "nginx:2": ("2", 7)}


async def test_the_history_keeps_its_limit(server: ScriptedServer) -> None:
    server.create(deployment("web", revisionHistoryLimit=1))
    for number in range(2, 5):
        server.change(DEPLOYMENTS, "web", image(f"nginx:{number}"))
    assert sets(server) == {"nginx:3": ("3", 0), "nginx:4": ("4", 1)}


async def test_a_refused_pod_is_a_failure_of_both(server: ScriptedServer) -> None:
    bad = deployment("web")
    bad["spec"]["template"]["metadata"]["finalizers"] = ["not a name"]
    server.create(bad)
    (replicas,) = server.objects(REPLICASETS)
    status, reason, message = condition(replicas, "ReplicaFailure")
    assert (status, reason) == ("True", "FailedCreate")
    assert "metadata.finalizers" in message
    assert condition(web(server), "ReplicaFailure") == (status, reason, message)
    assert told(server, "FailedCreate")[0] == f"Error creating: {message}"


async def test_replicasets_are_adopted_and_released_by_their_labels(server: ScriptedServer) -> None:
    server.create(deployment("web"))
    (replicas,) = server.objects(REPLICASETS)
    server.delete(DEPLOYMENTS, "web", propagation="Orphan")
    (orphan,) = server.objects(REPLICASETS)
    assert "ownerReferences" not in orphan["metadata"]
    made = server.create(deployment("web"))
    (adopted,) = server.objects(REPLICASETS)
    assert adopted["metadata"]["uid"] == replicas["metadata"]["uid"]
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    server.change(REPLICASETS, name_of(adopted), {"metadata": {"labels": {"app": "other"}}})
    owners = {name_of(one): one["metadata"].get("ownerReferences", []) for one in server.objects(REPLICASETS)}
    assert owners[name_of(adopted)] == []


async def test_a_pod_that_loses_its_labels_is_released_and_replaced(server: ScriptedServer) -> None:
    server.create(deployment("web"))
    (pod,) = server.objects(PODS)
    server.change(PODS, name_of(pod), {"metadata": {"labels": {"app": "other"}}})
    released = present(server.get(PODS, name_of(pod)))
    assert "ownerReferences" not in released["metadata"]
    assert len(server.objects(PODS)) == 2
    server.change(PODS, name_of(pod), {"metadata": {"labels": {"app": "web"}}})
    assert len(server.objects(PODS)) == 1
    assert len(told(server, "SuccessfulDelete")) == 1


async def test_of_too_many_pods_the_one_with_the_least_cost_goes(server: ScriptedServer) -> None:
    server.create(deployment("web", replicas=3))
    names = [name_of(pod) for pod in server.objects(PODS)]
    cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    server.change(PODS, names[1], cost)
    server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 2}})
    assert [name_of(pod) for pod in server.objects(PODS)] == [names[0], names[2]]
