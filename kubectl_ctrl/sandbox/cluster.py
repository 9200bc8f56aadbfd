"""A whole cluster: the API server, the objects that a fresh cluster has, and the controllers."""

from __future__ import annotations

import asyncio

from kubectl_ctrl.model.objects import Obj, uid_of
from kubectl_ctrl.sandbox.auth.bootstrap import bootstrap
from kubectl_ctrl.sandbox.controllers.base import Controller
from kubectl_ctrl.sandbox.controllers.cronjobs import CronJobs
from kubectl_ctrl.sandbox.controllers.daemonsets import DaemonSets
from kubectl_ctrl.sandbox.controllers.deployments import DeploymentController
from kubectl_ctrl.sandbox.controllers.disruption import DisruptionBudgets
from kubectl_ctrl.sandbox.controllers.endpoints import Endpoints, EndpointSlices
from kubectl_ctrl.sandbox.controllers.expiry import EventExpiry, JobExpiry
from kubectl_ctrl.sandbox.controllers.jobs import Jobs
from kubectl_ctrl.sandbox.controllers.kubelet import Kubelet, KubeletSettings
from kubectl_ctrl.sandbox.controllers.nodes import NodeTaints, PodCollector, node, node_status
from kubectl_ctrl.sandbox.controllers.quotas import ResourceQuotas
from kubectl_ctrl.sandbox.controllers.replicasets import ReplicaSetController, ReplicationControllerController
from kubectl_ctrl.sandbox.controllers.resources import NODES
from kubectl_ctrl.sandbox.controllers.scheduler import Scheduler
from kubectl_ctrl.sandbox.controllers.serviceaccounts import RootCertificates, ServiceAccounts
from kubectl_ctrl.sandbox.controllers.statefulsets import StatefulSets
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.sandbox.server import ApiServer
from kubectl_ctrl.value import Value, field

_ADDRESS = "172.18.0.2"  # of the API server, as its own Service has it


class ClusterSettings(Value, kw_only=True):
    nodes: int = 1
    kubelet: KubeletSettings = field(default_factory=KubeletSettings)
    pace: float | None = None  # seconds between two steps of controllers; None: all at once, after each request


# One access each, under the component's own user agent.
CONTROLLERS: tuple[type[Controller], ...] = (
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
    PodCollector,
    NodeTaints,
    Scheduler,
)

MORE_CONTROLLERS: tuple[type[Controller], ...] = (
    StatefulSets,
    DaemonSets,
    Jobs,
    CronJobs,
    ServiceAccounts,
    Endpoints,
    EndpointSlices,
    EventExpiry,
    JobExpiry,
    DisruptionBudgets,
    ResourceQuotas,
)


def controllers(server: ApiServer, kubelet: KubeletSettings) -> list[Controller]:
    """The controllers of a cluster, which `server.actors` starts."""
    made = [kind(server.access(kind.component)) for kind in CONTROLLERS]
    return [*made, Kubelet(server.access(Kubelet.component), kubelet)]


def add_nodes(server: ApiServer, count: int) -> None:
    access = server.access(Kubelet.component)
    for number in range(count):
        created = access.create(node(number, count))
        access.set_status(NODES, created, node_status(number, uid_of(created), access.now))


class Cluster:
    """The cluster of a server, which is at rest then.

    Without a pace, its controllers act at once; with one, `run` has to run as a task.
    """

    def __init__(self, server: Endpoint, settings: ClusterSettings | None = None) -> None:
        self.settings = settings or ClusterSettings()
        self.server = server
        server.actors.tolerant = self.settings.pace is not None
        if not server.resumed:
            self._begin()
        bootstrap(server)
        more = [kind(self.server.access(kind.component)) for kind in MORE_CONTROLLERS]
        account = self.server.access(RootCertificates.component)
        roots = RootCertificates(account, server.guard.accepted.ca.decode())
        started = [*controllers(self.server, self.settings.kubelet), *more, roots, self.server.collector]
        self.server.actors.start(started, self.server.storage)
        self.server.settle()
        self.server.writes.clear()
        self.server.instant = self.settings.pace is None

    def _begin(self) -> None:
        """The objects of a new cluster."""
        add_nodes(self.server, self.settings.nodes)
        for obj in _first_objects():
            self.server.access("kube-apiserver").create(obj)

    async def run(self) -> None:
        """Let the controllers act until this is cancelled."""
        if self.settings.pace is None:
            await asyncio.Event().wait()
        await self.server.actors.run(self.settings.pace or 0.0)

    def __repr__(self) -> str:
        return f"Cluster({self.server.storage!r}, {self.server.actors!r})"


def _first_objects() -> list[Obj]:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    port = {"name": "https", "port": 443, "protocol": "TCP"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": labels},
        "spec": {
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{**port, "targetPort": 6443}],
        },
    }
    named = {"kubernetes.io/service-name": "kubernetes"}
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": named},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [_ADDRESS], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    }
    return [service, endpoints]
