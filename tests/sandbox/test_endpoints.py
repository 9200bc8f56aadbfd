from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers.endpoints import Endpoints, EndpointSlices
from kubectl_ctrl.sandbox.controllers.resources import ENDPOINTS, NODES, SERVICES, SLICES
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import owned_by
from tests.sandbox.workloads import pod, set_status, start

_READY = [{"type": "Ready", "status": "True"}]
_PORTS = [{"port": 80, "protocol": "TCP"}]


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    start(server, Endpoints, EndpointSlices)
    labels = {"topology.kubernetes.io/zone": "z1"}
    server.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}})


def make(server: ScriptedServer, **spec: Any) -> Obj:
    full = {"clusterIP": "10.0.0.1", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 80}], **spec}
    meta = {"name": "web", "labels": {"tier": "a"}}
    return server.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": full})


def run(server: ScriptedServer, name: str, ip: str, *, ready: bool = True, **spec: Any) -> Obj:
    obj = pod(name, node="n1", app="web")
    made = server.create({**obj, "spec": {**obj["spec"], **spec}})
    set_status(server, name, phase="Running", podIP=ip, podIPs=[{"ip": ip}], conditions=_READY if ready else [])
    return made


def subsets(server: ScriptedServer) -> list[Obj]:
    found: list[Obj] = present(server.get(ENDPOINTS, "web")).get("subsets") or []
    return found


def slice_of(server: ScriptedServer) -> Obj:
    (found,) = server.objects(SLICES)
    return found


def target(made: Obj) -> Obj:
    meta = made["metadata"]
    return {"kind": "Pod", "namespace": "default", "name": meta["name"], "uid": meta["uid"]}


async def test_a_service_without_pods_has_empty_endpoints(server: ScriptedServer) -> None:
    made = make(server)
    assert subsets(server) == []
    labels = present(server.get(ENDPOINTS, "web"))["metadata"]["labels"]
    assert labels == {"tier": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert slice_of(server)["metadata"]["labels"] == {
        "tier": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert slice_of(server)["metadata"]["ownerReferences"] == [owned_by(made)]
    assert (slice_of(server)["addressType"], slice_of(server)["metadata"]["generateName"]) == ("IPv4", "web-")


async def test_ready_pods_get_the_traffic(server: ScriptedServer) -> None:
    make(server)
    one, two = run(server, "one", "10.1.0.1"), run(server, "two", "10.1.0.2", ready=False)
    run(server, "three", "10.1.0.3")
    set_status(server, "three", phase="Succeeded")
    assert subsets(server) == [
        {
            "addresses": [{"ip": "10.1.0.1", "nodeName": "n1", "targetRef": target(one)}],
            "notReadyAddresses": [{"ip": "10.1.0.2", "nodeName": "n1", "targetRef": target(two)}],
            "ports": _PORTS,
        }
    ]
    found = slice_of(server)
    assert found["ports"] == [{"name": "", **_PORTS[0]}]
    assert [(one["addresses"], one["conditions"]) for one in found["endpoints"]] == [
        (["10.1.0.1"], {"ready": True, "serving": True, "terminating": False}),
        (["10.1.0.2"], {"ready": False, "serving": False, "terminating": False}),
    ]


async def test_a_terminating_pod_serves_only_if_it_must(server: ScriptedServer) -> None:
    make(server)
    run(server, "one", "10.1.0.1")
    server.delete(PODS, "one")
    assert subsets(server) == []
    (endpoint,) = slice_of(server)["endpoints"]
    assert endpoint["conditions"] == {"ready": False, "serving": True, "terminating": True}


async def test_pods_that_are_not_ready_can_be_published(server: ScriptedServer) -> None:
    make(server, publishNotReadyAddresses=True)
    run(server, "one", "10.1.0.1", ready=False)
    assert [one["ip"] for one in subsets(server)[0]["addresses"]] == ["10.1.0.1"]
    assert slice_of(server)["endpoints"][0]["conditions"]["ready"] is True


async def test_named_ports_differ_between_pods(server: ScriptedServer) -> None:
    make(server, ports=[{"name": "web", "port": 80, "targetPort": "http"}])
    for name, number in (("one", 8080), ("two", 9090)):
        container = {"name": "web", "image": "i", "ports": [{"name": "http", "containerPort": number}]}
        run(server, name, f"10.1.0.{number - 8079 if number < 9000 else 2}", containers=[container])
    assert [subset["ports"][0]["port"] for subset in subsets(server)] == [8080, 9090]
    assert sorted(one["ports"][0]["port"] for one in server.objects(SLICES)) == [8080, 9090]


async def test_a_headless_service_has_the_names_of_its_pods(server: ScriptedServer) -> None:
    make(server, clusterIP="None", ports=[])
    run(server, "one", "10.1.0.1", hostname="one", subdomain="web")
    assert subsets(server)[0]["addresses"][0]["hostname"] == "one"
    assert slice_of(server)["endpoints"][0]["hostname"] == "one"
    assert slice_of(server)["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


async def test_endpoints_know_their_zone(server: ScriptedServer) -> None:
    make(server)
    run(server, "one", "10.1.0.1")
    assert (slice_of(server)["endpoints"][0]["zone"], slice_of(server)["endpoints"][0]["nodeName"]) == ("z1", "n1")


async def test_a_pod_of_a_node_that_is_gone_has_no_endpoint(server: ScriptedServer) -> None:
    make(server)
    run(server, "one", "10.1.0.1")
    server.delete(NODES, "n1")
    run(server, "two", "10.1.0.2")
    assert not slice_of(server).get("endpoints")


async def test_a_slice_has_at_most_a_hundred_endpoints(server: ScriptedServer) -> None:
    make(server)
    for number in range(101):
        run(server, f"p{number}", f"10.1.1.{number}")
    assert sorted(len(one["endpoints"]) for one in server.objects(SLICES)) == [1, 100]
    server.delete(PODS, "p0")
    server.access("kubelet").delete(PODS, present(server.get(PODS, "p0")), gracePeriodSeconds=0)
    server.settle()
    assert [len(one["endpoints"]) for one in server.objects(SLICES)] == [100]


async def test_labels_follow_the_service_and_all_go_with_it(server: ScriptedServer) -> None:
    make(server)
    server.change(SERVICES, "web", {"metadata": {"labels": {"tier": None, "new": "b"}}})
    assert "tier" not in present(server.get(ENDPOINTS, "web"))["metadata"]["labels"]
    assert slice_of(server)["metadata"]["labels"]["new"] == "b"
    server.delete(SERVICES, "web")
    assert (server.objects(ENDPOINTS), server.objects(SLICES)) == ([], [])


async def test_a_service_without_a_selector_is_left_alone(server: ScriptedServer) -> None:
    make(server, selector=None)
    assert (server.objects(ENDPOINTS), server.objects(SLICES)) == ([], [])
