"""Nodes, the scheduler and the kubelet: the states of a pod from its creation to its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import EVENTS, PODS
from kubectl_ctrl.sandbox.cluster import Cluster
from kubectl_ctrl.sandbox.controllers.kubelet import KubeletSettings
from kubectl_ctrl.sandbox.controllers.resources import NODES
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present

NODE = "sandbox-0"


@pytest.fixture
async def server() -> ScriptedServer:
    return played()


def played(**seconds: float) -> ScriptedServer:
    server = ScriptedServer(FakeClock())
    server.play_deployments(pods=True, kubelet=KubeletSettings(**seconds))
    return server


def pod(name: str = "one", /, life: dict[str, str] | None = None, **spec: Any) -> Obj:
    annotations = {f"sandbox.kubectl-ctrl.dev/{key}": value for key, value in (life or {}).items()}
    full = {"containers": [{"name": "main", "image": "nginx:1.27"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": full}


def status(server: ScriptedServer, name: str = "one") -> Obj:
    found: Obj = present(server.get(PODS, name))["status"]
    return found


def condition(server: ScriptedServer, kind: str, name: str = "one") -> tuple[str, str, str]:
    found: Obj = next((one for one in status(server, name).get("conditions", ()) if one["type"] == kind), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def phases(server: ScriptedServer) -> list[tuple[str, str]]:
    """Every state that a watch has shown: the phase, and the state of the first container with its reason."""
    states = [json.loads(change.encoded)["status"] for change in server.storage.logs["pods"]]
    return list(dict.fromkeys((one["phase"], _state(one)) for one in states))


def _state(status: Obj) -> str:
    for container in status.get("containerStatuses") or ():
        ((name, detail),) = container["state"].items()
        return f"{name} {detail.get('reason', '')}".strip()
    return ""


def told(server: ScriptedServer) -> list[str]:
    return sorted(f"{event['reason']}: {event['message']}" for event in server.objects(EVENTS))


def taken(server: ScriptedServer) -> Iterator[str]:
    return (one["status"]["podIP"] for one in server.objects(PODS))


async def test_a_pod_gets_a_node_and_runs(server: ScriptedServer) -> None:
    server.create(pod())
    found = present(server.get(PODS, "one"))
    assert found["spec"]["nodeName"] == NODE
    shown = found["status"]
    assert (shown["phase"], shown["podIP"], shown["hostIP"]) == ("Running", "10.244.0.2", "172.18.0.2")
    ready = [(one["type"], one["status"]) for one in shown["conditions"]]
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    assert ready == [(kind, "True") for kind in kinds]
    (container,) = shown["containerStatuses"]
    assert container["image"] == "docker.io/library/nginx:1.27"
    assert container["imageID"].startswith("docker.io/library/nginx@sha256:")
    assert container["containerID"].startswith("containerd://")
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
    assert container["state"] == {"running": {"startedAt": shown["startTime"]}}
    assert told(server) == [
        "Created: Container created",
        'Pulled: Container image "nginx:1.27" already present on machine and can be accessed by the pod',
        "Scheduled: Successfully assigned default/one to sandbox-0",
        "Started: Container started",
    ]


async def test_a_slow_start_shows_the_states_of_before_to_an_open_watch() -> None:
    server = played(start=5.0)
    server.create(pod())
    assert _state(status(server)) == "waiting ContainerCreating"
    assert condition(server, "Ready") == (
        "False",
        "ContainersNotReady",
        "containers with unready status: [main]",
    )
    await server.clock.sleep(5.5)
    assert phases(server) == [("Pending", ""), ("Pending", "waiting ContainerCreating"), ("Running", "running")]


async def test_init_containers_are_done_and_sidecars_run(server: ScriptedServer) -> None:
    inits = [
        {"name": "first", "image": "busybox:1"},
        {"name": "proxy", "image": "envoy:1", "restartPolicy": "Always"},
    ]
    server.create(pod(initContainers=inits))
    first, proxy = status(server)["initContainerStatuses"]
    assert (first["ready"], first["state"]["terminated"]["reason"]) == (True, "Completed")
    assert (proxy["ready"], list(proxy["state"])) == (True, ["running"])


async def test_addresses_are_used_once_at_a_time(server: ScriptedServer) -> None:
    for name in ("one", "two", "three"):
        server.create(pod(name))
    server.delete(PODS, "two")
    server.create(pod("four"))
    assert len(set(taken(server))) == 3


async def test_addresses_are_used_once_after_a_restart() -> None:
    first = Cluster(Endpoint(FakeClock(), full=True)).server
    first.create(pod("one"))
    second = Endpoint(FakeClock(), full=True)
    second.resume(first.storage.tables, first.version)
    server = Cluster(second).server
    server.create(pod("two"))
    assert len({one["status"]["podIP"] for one in server.objects(PODS)}) == 2


@pytest.mark.parametrize("network", ["10.0.0.0/30", "odd"])
async def test_a_pod_waits_for_an_address(network: str, server: ScriptedServer) -> None:
    server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "small"}, "spec": {"podCIDR": network}})
    for name in ("one", "two"):
        server.create(pod(name, nodeName="small"))
    assert status(server, "two")["phase"] == "Pending"
    words = "FailedCreatePodSandBox: Failed to create pod sandbox: no IP addresses available in range set"
    assert words in told(server)
    server.delete(PODS, "one")
    await server.clock.sleep(11)
    assert status(server, "two").get("podIP") == ("10.0.0.2" if network != "odd" else None)


async def test_containers_exit_as_their_restart_policy_says(server: ScriptedServer) -> None:
    server.create(pod("done", {"exit-code": "0"}, restartPolicy="Never"))
    server.create(pod("failed", {"exit-code": "3", "run-seconds": "2"}, restartPolicy="Never"))
    assert status(server, "done")["phase"] == "Succeeded"
    assert condition(server, "Ready", "done")[:2] == ("False", "PodCompleted")
    await server.clock.sleep(3)
    assert status(server, "failed")["phase"] == "Failed"
    assert status(server, "failed")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert condition(server, "Ready", "failed")[:2] == ("False", "PodFailed")


async def test_a_crash_loop_waits_longer_each_time(server: ScriptedServer) -> None:
    server.create(pod(life={"exit-code": "1"}))
    assert phases(server) == [
        ("Pending", ""),
        ("Running", "running"),
        ("Running", "terminated Error"),
        ("Running", "waiting CrashLoopBackOff"),
    ]
    counts = []
    for _ in range(4):
        counts.append(status(server)["containerStatuses"][0]["restartCount"])
        await server.clock.sleep(16)
    assert counts == [1, 2, 3, 3]
    (container,) = status(server)["containerStatuses"]
    assert container["lastState"]["terminated"]["exitCode"] == 1
    assert "back-off 40s restarting failed container=main" in container["state"]["waiting"]["message"]
    assert condition(server, "Ready")[:2] == ("False", "ContainersNotReady")


async def test_an_image_that_cannot_be_pulled(server: ScriptedServer) -> None:
    server.create(pod(life={"fails": "image"}))
    assert _state(status(server)) == "waiting ErrImagePull"
    await server.clock.sleep(11)
    assert _state(status(server)) == "waiting ImagePullBackOff"
    assert status(server)["phase"] == "Pending"
    server.change(PODS, "one", {"metadata": {"annotations": {"sandbox.kubectl-ctrl.dev/fails": None}}})
    assert status(server)["phase"] == "Running"


async def test_pods_that_run_and_are_not_ready(server: ScriptedServer) -> None:
    server.create(pod("never", {"fails": "ready"}))
    server.create(pod("gated", readinessGates=[{"conditionType": "example.com/a"}]))
    assert (status(server, "never")["phase"], condition(server, "Ready", "never")[0]) == ("Running", "False")
    message = 'corresponding condition of pod readiness gate "example.com/a" does not exist.'
    assert condition(server, "Ready", "gated") == ("False", "ReadinessGatesNotReady", message)
    gate = {"type": "example.com/a", "status": "True"}
    conditions = [*status(server, "gated")["conditions"], gate]
    server.change(PODS, "gated", {"status": {"conditions": conditions}}, subresource="status")
    assert condition(server, "Ready", "gated")[0] == "True"


async def test_an_evicted_pod_has_failed(server: ScriptedServer) -> None:
    server.create(pod(life={"fails": "evicted"}))
    assert (status(server)["phase"], status(server)["reason"]) == ("Failed", "Evicted")
    assert condition(server, "DisruptionTarget")[:2] == ("True", "TerminationByKubelet")


async def test_a_deleted_pod_stops_within_its_grace_period() -> None:
    server = played(stop=3.0)
    server.create(pod())
    server.create(pod("hasty", terminationGracePeriodSeconds=1))
    server.delete(PODS, "one")
    server.delete(PODS, "hasty")
    assert [name_of(one) for one in server.objects(PODS)] == ["hasty", "one"]
    await server.clock.sleep(2)
    assert [name_of(one) for one in server.objects(PODS)] == ["one"]
    assert status(server)["phase"] == "Running"
    await server.clock.sleep(2)
    assert server.objects(PODS) == []
    assert "Killing: Stopping container main" in told(server)


async def test_a_finalizer_keeps_a_stopped_pod(server: ScriptedServer) -> None:
    held = pod()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    server.create(held)
    server.delete(PODS, "one")
    assert status(server)["phase"] == "Succeeded"
    server.change(PODS, "one", {"metadata": {"finalizers": None}})
    assert server.objects(PODS) == []


@pytest.mark.parametrize(
    ("node", "spec", "why"),
    [
        ({"unschedulable": True}, {}, "1 node(s) were unschedulable"),
        ({"taints": [{"key": "a", "effect": "NoSchedule"}]}, {}, "1 node(s) had untolerated taint(s)"),
        ({}, {"nodeSelector": {"disk": "fast"}}, "1 node(s) didn't match Pod's node affinity/selector"),
        (
            {},
            {"containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": "65", "memory": "1Gi"}}}]},
            "1 Insufficient cpu",
        ),
    ],
)
async def test_a_pod_without_a_fitting_node_waits(server: ScriptedServer, node: Obj, spec: Obj, why: str) -> None:
    server.change(NODES, NODE, {"spec": node}, namespace="")
    server.create(pod(**spec))
    head = "0/1 nodes are available"
    message = (
        f"{head}: {why}. no new claims to deallocate, preemption: {head}: 1 Preemption is not helpful for scheduling."
    )
    assert condition(server, "PodScheduled") == ("False", "Unschedulable", message)
    assert told(server) == [f"FailedScheduling: {message}"]


async def test_a_waiting_pod_is_scheduled_when_a_node_fits(server: ScriptedServer) -> None:
    server.change(NODES, NODE, {"spec": {"unschedulable": True}}, namespace="")
    server.create(pod())
    server.change(NODES, NODE, {"spec": {"unschedulable": None}}, namespace="")
    assert status(server)["phase"] == "Running"
    assert condition(server, "PodScheduled")[0] == "True"


async def test_a_gated_pod_waits_for_its_gates(server: ScriptedServer) -> None:
    server.create(pod(schedulingGates=[{"name": "example.com/a"}]))
    why = "Scheduling is blocked due to non-empty scheduling gates"
    assert condition(server, "PodScheduled") == ("False", "SchedulingGated", why)
    server.change(PODS, "one", {"spec": {"schedulingGates": None}})
    assert status(server)["phase"] == "Running"


async def test_the_pods_of_a_deleted_node_are_deleted(server: ScriptedServer) -> None:
    server.create(pod())
    server.delete(NODES, NODE, "")
    assert server.objects(PODS) == []
    last = [json.loads(change.encoded) for change in server.storage.logs["pods"]][-1]
    assert last["status"]["phase"] == "Failed"


async def test_a_node_is_ready_and_has_the_version_of_the_server(server: ScriptedServer) -> None:
    (node,) = server.objects(NODES)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert {one["type"]: one["status"] for one in node["status"]["conditions"]}["Ready"] == "True"
