from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers.daemonsets import DaemonSets
from kubectl_ctrl.sandbox.controllers.resources import CONTROLLER_REVISIONS, DAEMONSETS, NODES
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.workloads import (
    all_ready,
    counts,
    end,
    make_ready,
    new_image,
    reasons,
    start,
    status_of,
    template,
    workload,
)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    start(server, DaemonSets)
    for name in ("a", "b", "c"):
        add_node(server, name)


def add_node(server: ScriptedServer, name: str, **spec: Any) -> None:
    server.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"at": name}}, "spec": spec}
    )


def make(server: ScriptedServer, **spec: Any) -> None:
    server.create(workload("DaemonSet", "log", **spec))


def rolling(**limits: Any) -> Obj:
    return {"type": "RollingUpdate", "rollingUpdate": limits}


def node_of(pod: Obj) -> str:
    (term,) = pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    return str(term["matchFields"][0]["values"][0])


def nodes(server: ScriptedServer) -> list[str]:
    return sorted(map(node_of, server.objects(PODS)))


def images(server: ScriptedServer) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in server.objects(PODS))


def status(server: ScriptedServer) -> dict[str, int]:
    return counts(status_of(server, DAEMONSETS, "log"))


async def test_each_node_has_one_pod(server: ScriptedServer) -> None:
    make(server)
    assert nodes(server) == ["a", "b", "c"]
    expected = {"currentNumberScheduled": 3, "desiredNumberScheduled": 3, "numberMisscheduled": 0}
    assert status(server) == {**expected, "numberReady": 0, "numberUnavailable": 3, "updatedNumberScheduled": 3}
    all_ready(server)
    assert status(server) == {**expected, "numberReady": 3, "numberAvailable": 3, "updatedNumberScheduled": 3}
    add_node(server, "d")
    server.delete(NODES, "a")
    assert nodes(server) == ["b", "c", "d"]


async def test_a_daemon_tolerates_the_trouble_of_its_node(server: ScriptedServer) -> None:
    make(server)
    (revision,) = server.objects(CONTROLLER_REVISIONS)
    pod = server.objects(PODS)[0]
    tolerated = [(one["key"].removeprefix("node.kubernetes.io/"), one["effect"]) for one in pod["spec"]["tolerations"]]
    assert tolerated == [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ]
    digest = revision["metadata"]["labels"]["controller-revision-hash"]
    labels = {"app": "log", "controller-revision-hash": digest, "pod-template-generation": "1"}
    assert pod["metadata"]["labels"] == labels
    assert revision["metadata"]["name"] == f"log-{digest}"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"at": "b"}},
        {"nodeName": "b"},
        {
            "affinity": {
                "nodeAffinity": {
                    _REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "at", "operator": "NotIn", "values": ["a", "c"]}]}
                        ]
                    }
                }
            }
        },
    ],
    ids=["selector", "name", "affinity"],
)
async def test_only_some_nodes_are_eligible(spec: Obj, server: ScriptedServer) -> None:
    full = template("log")
    make(server, template={**full, "spec": {**full["spec"], **spec}})
    assert nodes(server) == ["b"]
    assert status(server)["desiredNumberScheduled"] == 1


async def test_a_taint_keeps_new_pods_away_and_some_evict_old_ones(server: ScriptedServer) -> None:
    make(server)
    server.change(NODES, "a", {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}})
    server.change(NODES, "b", {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}})
    assert nodes(server) == ["a", "c"]
    assert (status(server)["desiredNumberScheduled"], status(server)["numberMisscheduled"]) == (1, 1)
    add_node(server, "d", taints=[{"key": "x", "effect": "NoSchedule"}])
    assert nodes(server) == ["a", "c"]


async def test_one_pod_after_the_other_is_updated(server: ScriptedServer) -> None:
    make(server, updateStrategy=rolling(maxUnavailable=1))
    all_ready(server)
    server.change(DAEMONSETS, "log", new_image("nginx:2"))
    assert images(server) == ["nginx:1", "nginx:1", "nginx:2"]
    assert status(server)["updatedNumberScheduled"] == 1
    all_ready(server)
    assert images(server) == ["nginx:2"] * 3
    assert status(server)["updatedNumberScheduled"] == 3


async def test_pods_that_are_not_ready_are_updated_at_once(server: ScriptedServer) -> None:
    make(server, updateStrategy=rolling(maxUnavailable="34%"))
    server.change(DAEMONSETS, "log", new_image("nginx:2"))
    assert images(server) == ["nginx:2"] * 3


async def test_a_surge_has_new_pods_before_it_deletes_the_old(server: ScriptedServer) -> None:
    make(server, updateStrategy=rolling(maxSurge=1, maxUnavailable=0))
    all_ready(server)
    server.change(DAEMONSETS, "log", new_image("nginx:2"))
    assert images(server) == ["nginx:1"] * 3 + ["nginx:2"]
    all_ready(server)
    assert images(server) == ["nginx:2"] * 3
    assert nodes(server) == ["a", "b", "c"]


async def test_on_delete_updates_only_new_pods(server: ScriptedServer) -> None:
    make(server, updateStrategy={"type": "OnDelete", "rollingUpdate": {"maxSurge": "odd"}})
    all_ready(server)
    server.change(DAEMONSETS, "log", new_image("nginx:2"))
    assert images(server) == ["nginx:1"] * 3
    server.delete(PODS, server.objects(PODS)[0]["metadata"]["name"])
    assert images(server) == ["nginx:1", "nginx:1", "nginx:2"]


async def test_a_failed_daemon_is_replaced_with_a_growing_delay(server: ScriptedServer) -> None:
    make(server, template={**template("log"), "spec": {**template("log")["spec"], "nodeSelector": {"at": "a"}}})
    first = server.objects(PODS)[0]["metadata"]["name"]
    end(server, first, how="Failed")
    (second,) = server.objects(PODS)
    assert second["metadata"]["name"] != first
    assert "FailedDaemonPod" in reasons(server)
    end(server, second["metadata"]["name"], how="Failed")
    assert server.objects(PODS)[0]["metadata"]["name"] == second["metadata"]["name"]
    await server.clock.sleep(1.1)
    server.settle()
    assert server.objects(PODS)[0]["metadata"]["name"] != second["metadata"]["name"]


async def test_the_oldest_of_two_pods_on_a_node_stays(server: ScriptedServer) -> None:
    make(server)
    extra = server.objects(PODS)[0]
    await server.clock.sleep(5)
    body = {**extra, "metadata": {"name": "extra", "labels": extra["metadata"]["labels"]}}
    server.create(body)
    assert nodes(server) == ["a", "b", "c"]
    assert "extra" not in [pod["metadata"]["name"] for pod in server.objects(PODS)]


async def test_revisions_without_pods_have_a_limit(server: ScriptedServer) -> None:
    make(server, revisionHistoryLimit=1)
    for number in range(2, 6):
        server.change(DAEMONSETS, "log", new_image(f"nginx:{number}"))
        all_ready(server)
    assert sorted(one["revision"] for one in server.objects(CONTROLLER_REVISIONS)) == [4, 5]


async def test_availability_takes_time(server: ScriptedServer) -> None:
    make(server, minReadySeconds=10)
    make_ready(server, *(pod["metadata"]["name"] for pod in server.objects(PODS)))
    assert "numberAvailable" not in status(server)
    await server.clock.sleep(11)
    server.settle()
    assert status(server)["numberAvailable"] == 3
