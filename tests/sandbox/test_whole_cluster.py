"""A whole cluster: its first objects, and that pods run on it with every plugin of admission."""

from __future__ import annotations

import pytest

from kubectl_ctrl.model.resources import DEPLOYMENTS, NAMESPACES, PODS, Resource
from kubectl_ctrl.sandbox.cluster import Cluster
from kubectl_ctrl.sandbox.controllers.resources import NODES
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.testing.clock import FakeClock
from tests.sandbox.callers import deployment


async def test_pods_run_on_a_new_cluster() -> None:
    server = Cluster(Endpoint(FakeClock(), full=True)).server
    (node,) = server.objects(NODES)
    assert "taints" not in node["spec"]
    server.create(deployment("web", replicas=2))
    pods = server.objects(PODS)
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
    assert {pod["spec"]["serviceAccountName"] for pod in pods} == {"default"}
    assert server.objects(DEPLOYMENTS)[0]["status"]["availableReplicas"] == 2


async def test_a_cordoned_node_has_a_taint_and_gets_no_pods() -> None:
    server = Cluster(Endpoint(FakeClock(), full=True)).server
    server.change(NODES, "sandbox-0", {"spec": {"unschedulable": True}})
    (taint,) = server.objects(NODES)[0]["spec"]["taints"]
    assert (taint["key"], taint["effect"]) == ("node.kubernetes.io/unschedulable", "NoSchedule")
    server.create(deployment("web"))
    assert server.objects(PODS)[0]["status"]["phase"] == "Pending"
    server.change(NODES, "sandbox-0", {"spec": {"unschedulable": None}})
    assert "taints" not in server.objects(NODES)[0]["spec"]
    assert server.objects(PODS)[0]["status"]["phase"] == "Running"


async def test_the_namespaces_of_the_system_stay() -> None:
    server = Cluster(Endpoint(FakeClock(), full=True)).server
    with pytest.raises(Exception, match="this namespace may not be deleted"):
        server.delete(NAMESPACES, "kube-system", "")


async def test_a_job_has_the_labels_of_its_pods() -> None:
    server = Cluster(Endpoint(FakeClock(), full=True)).server
    containers = [{"name": "one", "image": "one"}]
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    meta = {"name": "once", "namespace": "default"}
    server.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})
    (job,) = server.objects(Resource("batch", "v1", "jobs", "Job"))
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]


async def test_a_new_cluster_has_what_clients_expect() -> None:
    server = Cluster(Endpoint(FakeClock(), full=True)).server
    maps = server.objects(Resource("", "v1", "configmaps", "ConfigMap"))
    assert {one["metadata"]["name"] for one in maps} == {"kube-root-ca.crt"}
    services = server.objects(Resource("", "v1", "services", "Service"))
    assert [(one["metadata"]["name"], one["spec"]["clusterIP"]) for one in services] == [("kubernetes", "10.96.0.1")]
