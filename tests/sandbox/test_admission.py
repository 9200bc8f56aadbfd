from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.sandbox.admission import Lookups, admitted, kept
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.kinds.builtin import defaulted
from kubectl_ctrl.sandbox.server import ApiServer
from kubectl_ctrl.testing.clock import FakeClock

_ACCOUNT: Obj = {"kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}

_SERVICES = Resource("", "v1", "services", "Service")


def _lookups(**tables: list[Obj]) -> Lookups:
    tables = {"serviceaccounts": [_ACCOUNT], **{key.replace("__", "."): rows for key, rows in tables.items()}}

    def one(table: str, namespace: str, name: str) -> Obj | None:
        return next((row for row in tables.get(table, ()) if row["metadata"]["name"] == name), None)

    numbers = count()
    return Lookups(one, lambda table: tables.get(table, ()), lambda: f"{next(numbers):05}")


def _made(kind: str, spec: Obj, lookups: Lookups | None = None, **meta: Any) -> Obj:
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "one", "namespace": "default", **meta}, "spec": spec}
    return admitted(defaulted(obj), lookups or _lookups(), full=True)


def _pod(lookups: Lookups | None = None, **spec: Any) -> Obj:
    made: Obj = _made("Pod", {"containers": [{"name": "a", "image": "nginx"}], **spec}, lookups)["spec"]
    return made


def _class(name: str, value: int, **more: Any) -> Obj:
    return {"metadata": {"name": name}, "value": value, **more}


def test_a_plain_server_adds_nothing() -> None:
    pod = defaulted({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": []}})
    assert admitted(pod, _lookups()) is pod


def test_a_pod_gets_account_token_priority_and_tolerations() -> None:
    spec = _pod()
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert [one["key"] for one in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert spec["volumes"][0]["name"] == "kube-api-access-00000"
    assert spec["containers"][0]["volumeMounts"] == [
        {
            "name": "kube-api-access-00000",
            "readOnly": True,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        }
    ]
    sources = spec["volumes"][0]["projected"]["sources"]
    assert [next(iter(source)) for source in sources] == ["serviceAccountToken", "configMap", "downwardAPI"]


def test_a_pod_without_a_token() -> None:
    assert "volumes" not in _pod(automountServiceAccountToken=False)
    bare = {**_ACCOUNT, "automountServiceAccountToken": False, "imagePullSecrets": [{"name": "s"}]}
    spec = _pod(_lookups(serviceaccounts=[bare]))
    assert "volumes" not in spec
    assert spec["imagePullSecrets"] == [{"name": "s"}]


def test_a_container_with_a_mount_of_its_own_has_no_token() -> None:
    mount = {"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    spec = _pod(containers=[{"name": "a", "image": "b", "volumeMounts": [mount]}], volumes=[{"name": "v"}])
    assert [one["name"] for one in spec["volumes"]] == ["v"]


def test_a_toleration_of_everything_needs_no_other() -> None:
    assert _pod(tolerations=[{"operator": "Exists"}])["tolerations"] == [{"operator": "Exists"}]


def test_the_priority_comes_from_the_class() -> None:
    classes = [_class("high", 7, preemptionPolicy="Never"), _class("low", 3, globalDefault=True)]
    lookups = _lookups(priorityclasses__scheduling__k8s__io=classes)
    spec = _pod(lookups, priorityClassName="high")
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")
    assert (_pod(lookups)["priority"], _pod(lookups)["priorityClassName"]) == (3, "low")
    assert _pod(lookups, priorityClassName="system-node-critical")["priority"] == 2000001000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"serviceAccountName": "x"},
            'error looking up service account default/x: serviceaccount "x" not found',
        ),
        ({"priorityClassName": "x"}, "no PriorityClass with name x was found"),
        (
            {"priority": 5},
            (
                "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
                "computed 0 from the given PriorityClass name"
            ),
        ),
    ],
)
def test_refused_pods(spec: Obj, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        _pod(**spec)
    assert str(caught.value) == f'pods "one" is forbidden: {words}'


def _service(used: list[Obj] | None = None, **spec: Any) -> Obj:
    made: Obj = _made("Service", {"ports": [{"port": 1}], **spec}, _lookups(services=used or []))["spec"]
    return made


def test_services_have_different_addresses_and_ports() -> None:
    first = _service(type="NodePort")
    assert (first["clusterIP"], first["clusterIPs"]) == ("10.96.0.2", ["10.96.0.2"])
    assert (first["ipFamilies"], first["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert first["ports"][0]["nodePort"] == 30000
    second = _service([{"metadata": {"name": "a"}, "spec": first}], type="NodePort")
    assert (second["clusterIP"], second["ports"][0]["nodePort"]) == ("10.96.0.3", 30001)


def test_a_service_without_an_address() -> None:
    assert "clusterIP" not in _service(type="ExternalName", externalName="a.b")
    spec = _service(clusterIP="None", selector={"a": "b"})
    assert (spec["clusterIPs"], spec["ipFamilyPolicy"]) == (["None"], "SingleStack")
    assert _service(clusterIP="None")["ipFamilies"] == ["IPv4", "IPv6"]


def test_a_load_balancer_has_one_number_for_all_protocols() -> None:
    ports = [{"port": 1, "name": "a"}, {"port": 1, "protocol": "UDP", "name": "b"}]
    spec = _service(type="LoadBalancer", externalTrafficPolicy="Local", ports=ports)
    assert [one["nodePort"] for one in spec["ports"]] == [30000, 30000]
    assert spec["healthCheckNodePort"] == 30001
    assert "nodePort" not in _service(type="LoadBalancer", allocateLoadBalancerNodePorts=False)["ports"][0]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            {"clusterIP": "1.2.3.4"},
            (
                'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided IP (1.2.3.4) '
                "is not in the valid range. The range of valid IPs is 10.96.0.0/12"
            ),
        ),
        (
            {"clusterIP": "10.96.0.9"},
            (
                'spec.clusterIPs: Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: '
                "provided IP is already allocated"
            ),
        ),
        (
            {"type": "NodePort", "ports": [{"port": 1, "nodePort": 20}]},
            (
                "spec.ports[0].nodePort: Invalid value: 20: provided port is not in the valid range. "
                "The range of valid ports is 30000-32767"
            ),
        ),
        (
            {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30005}]},
            "spec.ports[0].nodePort: Invalid value: 30005: provided port is already allocated",
        ),
    ],
)
def test_addresses_and_ports_that_are_not_free(spec: Obj, words: str) -> None:
    other = {"clusterIPs": ["10.96.0.9"], "ports": [{"port": 1, "protocol": "TCP", "nodePort": 30005}]}
    with pytest.raises(Refusal) as caught:
        _service([{"metadata": {"name": "a"}, "spec": other}], **spec)
    assert str(caught.value) == f'Service "one" is invalid: {words}'


def test_a_changed_service_keeps_its_address_and_ports() -> None:
    old = {"spec": _service(type="NodePort")}
    new = defaulted(
        {"apiVersion": "v1", "kind": "Service", "metadata": {}, "spec": {"type": "NodePort", "ports": [{"port": 1}]}}
    )
    assert kept(new, old)["spec"] == old["spec"]


def test_claims_volumes_and_nodes() -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [{"metadata": {"name": "std", "annotations": default, "creationTimestamp": "2026-01-01T00:00:00Z"}}]
    claim = _made("PersistentVolumeClaim", {}, _lookups(storageclasses__storage__k8s__io=classes))
    assert claim["spec"]["storageClassName"] == "std"
    assert claim["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert _made("PersistentVolume", {})["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert _made("Node", {})["spec"]["taints"] == [taint]


async def test_a_full_server_admits_pods_and_services() -> None:
    server = ApiServer(FakeClock(), full=True)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "default"}}
    pod["spec"] = {"containers": [{"name": "a", "image": "nginx"}]}
    with pytest.raises(Refusal, match="error looking up service account default/default"):
        server.create(pod)
    server.create({**_ACCOUNT, "apiVersion": "v1"})
    assert server.create(pod)["spec"]["volumes"][0]["name"].startswith("kube-api-access-")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one", "namespace": "default"}}
    assert server.create({**service, "spec": {"ports": [{"port": 80}]}})["spec"]["clusterIP"] == "10.96.0.2"
    changed = server.change(_SERVICES, "one", {"spec": {"ports": [{"port": 81}], "clusterIP": None}})
    assert changed["spec"]["clusterIP"] == "10.96.0.2"
