"""A whole cluster: what a fresh one has, and how its controllers run."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from random import Random

import pytest

from kubectl_ctrl.model.objects import name_of
from kubectl_ctrl.model.resources import NAMESPACES, PODS, Resource
from kubectl_ctrl.model.transport import HttpRequest
from kubectl_ctrl.sandbox.cluster import Cluster, ClusterSettings
from kubectl_ctrl.sandbox.controllers.kubelet import KubeletSettings
from kubectl_ctrl.sandbox.controllers.resources import NODES, REPLICATION_CONTROLLERS
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import deployment
from tests.sandbox.workloads import pod

SERVICES = Resource("", "v1", "services", "Service")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")


def running(cluster: Cluster) -> int:
    """The number of pods that run."""
    return sum(pod["status"]["phase"] == "Running" for pod in cluster.server.objects(PODS))


async def test_a_fresh_cluster_has_nodes_and_the_service_of_its_server() -> None:
    server = Cluster(Endpoint(FakeClock()), ClusterSettings(nodes=3)).server
    namespaces = ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert [name_of(one) for one in server.objects(NAMESPACES)] == namespaces
    nodes = server.objects(NODES)
    assert [name_of(node) for node in nodes] == ["sandbox-0", "sandbox-1", "sandbox-2"]
    assert [node["spec"]["podCIDR"] for node in nodes] == ["10.244.0.0/18", "10.244.64.0/18", "10.244.128.0/18"]
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 3
    assert present(server.get(SERVICES, "kubernetes"))["spec"]["clusterIP"] == "10.96.0.1"
    assert present(server.get(SLICES, "kubernetes"))["ports"][0]["port"] == 6443


async def test_pods_are_spread_over_the_nodes() -> None:
    server = Cluster(Endpoint(FakeClock()), ClusterSettings(nodes=2)).server
    server.create(deployment("web", replicas=4))
    assert sorted(pod["spec"]["nodeName"] for pod in server.objects(PODS)) == ["sandbox-0"] * 2 + ["sandbox-1"] * 2


async def test_a_replication_controller_keeps_its_pods() -> None:
    server = Cluster(Endpoint(FakeClock())).server
    spec = {key: value for key, value in deployment("web", replicas=2)["spec"].items() if key != "selector"}
    server.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "web"}, "spec": spec})
    status = present(server.get(REPLICATION_CONTROLLERS, "web"))["status"]
    counts = {"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    assert status == {**counts, "observedGeneration": 1}
    server.delete(REPLICATION_CONTROLLERS, "web", propagation="Background")
    assert server.objects(PODS) == []


async def test_with_a_pace_every_state_can_be_seen() -> None:
    clock = FakeClock()
    cluster = Cluster(Endpoint(clock), ClusterSettings(pace=0.1, kubelet=KubeletSettings(start=1.0)))
    task = asyncio.create_task(cluster.run())
    cluster.server.create(deployment("web", replicas=2))
    seen = [running(cluster)]
    for _ in range(40):
        await clock.sleep(0.1)
        seen.append(running(cluster))
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert list(dict.fromkeys(seen)) == [0, 1, 2]


async def test_the_seed_decides_the_order_of_steps() -> None:
    def history(seed: int) -> list[bytes]:
        server = Cluster(Endpoint(FakeClock(), rng=Random(seed))).server
        server.create(deployment("web", replicas=4))
        return [change.encoded for change in server.storage.logs["pods"]]

    assert history(1) == history(1)
    assert len({tuple(history(seed)) for seed in range(4)}) > 1


async def test_a_watch_sees_a_later_step_without_another_request() -> None:
    server = ScriptedServer(FakeClock())
    server.play_deployments(pods=True, kubelet=KubeletSettings(start=7.0))
    server.create(deployment("web"))
    query = (("watch", "true"), ("resourceVersion", str(server.version)))
    path = "/apis/apps/v1/namespaces/default/deployments"
    stream = await server.open(HttpRequest(method="GET", path=path, query=query))
    start = server.clock.elapsed()
    async for batch in stream.batches():
        status = json.loads(batch[-1])["object"]["status"]
        if status.get("availableReplicas") == 1:
            break
    assert 7.0 <= server.clock.elapsed() - start < 7.1
    await stream.close()


@pytest.mark.parametrize("told", ["nan", "inf", "-inf", "much", ""])
async def test_an_annotation_that_is_no_number_counts_as_absent(told: str) -> None:
    server = Cluster(Endpoint(FakeClock(), full=True)).server
    lives = {f"sandbox.kubectl-ctrl.dev/{name}": told for name in ("exit-code", "start-seconds", "run-seconds")}
    server.create({**pod("odd"), "metadata": {"name": "odd", "annotations": lives}})
    assert present(server.get(PODS, "odd"))["spec"]["nodeName"]


async def test_an_object_that_a_controller_cannot_handle_does_not_end_a_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster(Endpoint(FakeClock(), full=True), ClusterSettings(pace=0.0))

    def fail(*_: object) -> float:
        raise LookupError("unexpected")

    scheduler = next(one for one in cluster.server.actors.controllers if one.component == "kube-scheduler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "sync", fail)
        task = asyncio.create_task(cluster.run())
        cluster.server.create(pod("late"))
        await cluster.server.clock.sleep(1)
        patch.setattr(cluster.server.collector, "concerns", fail)
        cluster.server.create(pod("later"))
        await cluster.server.clock.sleep(1)
        assert not task.done()
        assert "failed at default/late" in caplog.text
        assert "cannot read a change of pods" in caplog.text
    await cluster.server.clock.sleep(60)
    assert running(cluster) == 2
    task.cancel()


async def test_the_events_of_a_pod_may_be_refused() -> None:
    """A pod with a long name runs, and one in a namespace that is being deleted ends."""
    server = Cluster(Endpoint(FakeClock(), full=True)).server
    long = "a" * 253
    server.create(pod(long))
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "short"}})
    server.create({**pod("one"), "metadata": {"name": "one", "namespace": "short"}})
    assert present(server.get(PODS, long))["status"]["phase"] == "Running"
    server.delete(NAMESPACES, "short")
    assert server.get(NAMESPACES, "short") is None


@pytest.mark.parametrize(("query", "answer", "left"), [("x", 400, None), ("-5", 200, 1), ("7", 200, 7)])
async def test_the_grace_period_of_a_query_is_a_number(query: str, answer: int, left: int | None) -> None:
    settings = ClusterSettings(kubelet=KubeletSettings(stop=60.0))
    server = Cluster(Endpoint(FakeClock(), full=True), settings).server
    server.create(pod("one"))
    path = "/api/v1/namespaces/default/pods/one"
    response = await server.send(HttpRequest(method="DELETE", path=path, query=(("gracePeriodSeconds", query),)))
    assert response.status == answer
    assert present(server.get(PODS, "one"))["metadata"].get("deletionGracePeriodSeconds") == left
