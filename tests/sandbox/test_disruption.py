from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, PODS, REPLICASETS
from kubectl_ctrl.sandbox.controllers.disruption import DisruptionBudgets
from kubectl_ctrl.sandbox.controllers.resources import BUDGETS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import owned_by
from tests.sandbox.workloads import counts, make_ready, messages, pod, reasons, start, status_of, workload


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    start(server, DisruptionBudgets)


def make(server: ScriptedServer, **spec: Any) -> None:
    full = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    server.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": full})


def run(server: ScriptedServer, *names: str, owner: Obj | None = None) -> None:
    for name in names:
        obj = pod(name, app="web")
        if owner is not None:
            obj["metadata"]["ownerReferences"] = [owned_by(owner)]
        server.create(obj)
        make_ready(server, name)


def status(server: ScriptedServer) -> Obj:
    return status_of(server, BUDGETS, "b")


def numbers(server: ScriptedServer) -> tuple[int, ...]:
    """Expected, healthy, desired and allowed."""
    found = counts(status(server))
    return tuple(found[name] for name in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"))


def replicas(server: ScriptedServer, count: int) -> Obj:
    top = server.create(workload("Deployment", "web", replicas=count))
    below = workload("ReplicaSet", "web-1", replicas=count)
    below["metadata"]["ownerReferences"] = [owned_by(top)]
    below["spec"] |= {"selector": top["spec"]["selector"], "template": top["spec"]["template"]}
    return server.create(below)


async def test_without_pods_nothing_is_allowed(server: ScriptedServer) -> None:
    make(server, minAvailable=1)
    assert numbers(server) == (0, 0, 1, 0)
    (condition,) = status(server)["conditions"]
    assert condition == {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "InsufficientPods",
        "message": "",
    }
    assert reasons(server) == ["NoPods"]


async def test_a_number_of_pods_has_to_be_available(server: ScriptedServer) -> None:
    make(server, minAvailable=1)
    run(server, "one", "two")
    assert numbers(server) == (2, 2, 1, 1)
    assert status(server)["conditions"][0]["reason"] == "SufficientPods"
    make_ready(server, "one", ready=False)
    assert numbers(server) == (2, 1, 1, 0)
    server.delete(PODS, "two")
    assert numbers(server) == (1, 0, 1, 0)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"maxUnavailable": 1}, (4, 3, 3, 0)),
        ({"maxUnavailable": "50%"}, (4, 3, 2, 1)),
        ({"minAvailable": "60%"}, (4, 3, 3, 0)),
    ],
)
async def test_a_share_is_one_of_the_wanted_replicas(
    spec: Obj, expected: tuple[int, ...], server: ScriptedServer
) -> None:
    make(server, **spec)
    run(server, "one", "two", "three", owner=replicas(server, 4))
    assert numbers(server) == expected


async def test_the_deployment_counts_and_not_its_replicaset(server: ScriptedServer) -> None:
    make(server, maxUnavailable=0)
    run(server, "one", owner=replicas(server, 4))
    server.change(REPLICASETS, "web-1", {"spec": {"replicas": 1}})
    assert numbers(server)[0] == 4
    server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 7}})
    assert numbers(server)[0] == 7


async def test_pods_of_an_unknown_controller_are_a_failure(server: ScriptedServer) -> None:
    make(server, maxUnavailable=1)
    server.collecting = False
    gone = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x", "uid": "u"}}
    run(server, "one", owner=gone)
    (condition,) = status(server)["conditions"]
    assert (condition["reason"], condition["message"]) == ("SyncFailed", 'found no controllers for pod "one"')
    assert status(server)["disruptionsAllowed"] == 0
    words = 'Failed to calculate the number of expected pods: found no controllers for pod "one"'
    assert messages(server)[-1] == words


async def test_an_evicted_pod_counts_as_gone_for_two_minutes(server: ScriptedServer) -> None:
    make(server, minAvailable=1)
    run(server, "one", "two")
    evicted = {"status": {"disruptedPods": {"one": "2026-01-01T00:00:00Z"}}}
    server.change(BUDGETS, "b", evicted, subresource="status")
    assert numbers(server) == (2, 1, 1, 0)
    await server.clock.sleep(121)
    server.settle()
    assert numbers(server) == (2, 2, 1, 1)
    assert "disruptedPods" not in status(server)
