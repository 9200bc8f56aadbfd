"""The nodes of the cluster, and the end of pods whose node is deleted."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.sandbox.controllers import pods
from kubectl_ctrl.sandbox.controllers.base import Controller
from kubectl_ctrl.sandbox.controllers.resources import NODES
from kubectl_ctrl.sandbox.storage import StoredChange

POD_NETWORK = "10.244.0.0/16"
VERSION = "v1.36.3"

_CAPACITY = {
    "cpu": "64",
    "memory": "256Gi",
    "ephemeral-storage": "1Ti",
    "pods": "10000",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
}
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_NOT_READY, _CORDONED = "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable"
_LABELS = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}


def node(number: int, count: int) -> Obj:
    """One of `count` nodes, without a status. The pod network is split between them."""
    name = f"sandbox-{number}"
    networks = ipaddress.ip_network(POD_NETWORK).subnets(prefixlen_diff=(count - 1).bit_length())
    network = str(list(networks)[number])
    labels = {f"beta.{key}": value for key, value in _LABELS.items()} | _LABELS | {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "spec": {"podCIDR": network, "podCIDRs": [network], "providerID": f"kubectl-ctrl://sandbox/{name}"},
    }


def node_status(number: int, uid: str, stamp: str) -> Obj:
    name = f"sandbox-{number}"
    address = str(ipaddress.ip_address("172.18.0.2") + number)
    conditions = [
        {"type": kind, "status": value, "reason": reason, "message": message}
        | {"lastHeartbeatTime": stamp, "lastTransitionTime": stamp}
        for kind, value, reason, message in _CONDITIONS
    ]
    return {
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
        "capacity": dict(_CAPACITY),
        "allocatable": dict(_CAPACITY),
        "conditions": conditions,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": uid.replace("-", ""),
            "systemUUID": uid,
            "bootID": uid,
            "kernelVersion": "6.12.0",
            "osImage": "kubectl ctrl sandbox",
            "containerRuntimeVersion": "containerd://2.2.0",
            "kubeletVersion": VERSION,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
    }


class PodCollector(Controller):
    """Deletes the pods of deleted nodes."""

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        return [change.key] if table == NODES.full_name and change.new is None else ()

    def sync(self, key: Key) -> float | None:
        if self.cluster.get(NODES, key) is not None:
            return None
        for pod in self.cluster.index.on_node(key.name):
            if pods.phase_of(pod) not in ("Succeeded", "Failed"):
                self._fail(pod)
            self.cluster.delete(PODS, pod, gracePeriodSeconds=0)
        return None

    def _fail(self, pod: Obj) -> None:
        before = pod.get("status") or {}
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": self.cluster.now,
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
        }
        others = [one for one in before.get("conditions") or () if one["type"] != "DisruptionTarget"]
        self.cluster.merge(PODS, pod, {"status": {"phase": "Failed", "conditions": [*others, target]}}, "status")


class NodeTaints(Controller):
    """Gives a node the taints of its state: not ready, cordoned."""

    def concerns(self, table: str, change: StoredChange) -> Iterable[Key]:
        return [change.key] if table == NODES.full_name and change.new is not None else ()

    def sync(self, key: Key) -> float | None:
        found = self.cluster.get(NODES, key)
        if found is None:
            return None
        spec = found.get("spec") or {}
        wanted = {_NOT_READY: not pods.is_ready(found), _CORDONED: bool(spec.get("unschedulable"))}
        before = spec.get("taints") or []
        after = [one for one in before if one["effect"] != "NoSchedule" or wanted.get(one["key"], True)]
        present = {one["key"] for one in after if one["effect"] == "NoSchedule"}
        for name in (name for name, is_wanted in wanted.items() if is_wanted and name not in present):
            time = {"timeAdded": self.cluster.now} if name == _CORDONED else {}
            after.append({"key": name, "effect": "NoSchedule", **time})
        if after != before:
            self.cluster.merge(NODES, found, {"spec": {"taints": after or None}})
        return None
