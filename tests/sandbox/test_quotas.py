from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers.quotas import ResourceQuotas, total
from kubectl_ctrl.sandbox.controllers.resources import QUOTAS
from kubectl_ctrl.testing.server import ScriptedServer
from tests.sandbox.callers import configmap, deployment
from tests.sandbox.workloads import end, pod, start, status_of


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    start(server, ResourceQuotas)


def make(server: ScriptedServer, *hard: str, **spec: Any) -> None:
    full = {"hard": dict.fromkeys(hard, "100"), **spec}
    server.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": full})


def used(server: ScriptedServer) -> dict[str, str]:
    found: dict[str, str] = status_of(server, QUOTAS, "q")["used"]
    return found


def run(server: ScriptedServer, name: str, **requests: str) -> None:
    obj = pod(name)
    resources: Obj = {"resources": {"requests": requests, "limits": {"cpu": "2"}}} if requests else {}
    obj["spec"]["containers"][0] |= resources
    server.create(obj)


async def test_objects_are_counted(server: ScriptedServer) -> None:
    make(server, "count/configmaps", "count/deployments.apps", "services.nodeports", "secrets")
    assert set(used(server).values()) == {"0"}
    server.create(configmap("one"))
    server.create(deployment("web"))
    service = {"type": "NodePort", "ports": [{"port": 80}]}
    server.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": service})
    assert used(server) == {
        "count/configmaps": "1",
        "count/deployments.apps": "1",
        "services.nodeports": "1",
        "secrets": "0",
    }
    assert status_of(server, QUOTAS, "q")["hard"] == dict.fromkeys(used(server), "100")


async def test_the_requests_of_pods_are_added(server: ScriptedServer) -> None:
    make(server, "pods", "cpu", "requests.memory", "limits.cpu")
    run(server, "one", cpu="250m", memory="64Mi")
    run(server, "two", cpu="750m", memory="64Mi")
    run(server, "three")
    assert used(server) == {"pods": "3", "cpu": "1", "requests.memory": "128Mi", "limits.cpu": "4"}
    end(server, "one")
    server.delete(PODS, "three")
    assert used(server) == {"pods": "1", "cpu": "750m", "requests.memory": "64Mi", "limits.cpu": "2"}


async def test_a_scope_selects_pods(server: ScriptedServer) -> None:
    make(server, "pods", scopes=["BestEffort"])
    run(server, "one", cpu="1")
    run(server, "two")
    assert used(server) == {"pods": "1"}


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ([], "0"),
        (["1Gi", "512Mi"], "1536Mi"),
        (["1", "500m"], "1500m"),
        (["1k", "1"], "1001"),
        (["1Mi", "1"], "1048577"),
        (["1e3", "1"], "1001"),
    ],
)
async def test_sums(amounts: list[str], expected: str) -> None:
    assert total(amounts) == expected
