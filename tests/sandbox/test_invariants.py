"""Whatever users do, in whatever order the controllers act: some things hold at each step, and others at rest."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_ctrl.model.objects import Obj, is_deleting, labels_of, name_of, namespace_of, uid_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, NAMESPACES, PODS, REPLICASETS, STATEFULSETS, Resource
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.sandbox.cluster import Cluster, ClusterSettings
from kubectl_ctrl.sandbox.controllers.kubelet import KubeletSettings
from kubectl_ctrl.sandbox.controllers.resources import DAEMONSETS, JOBS, NODES
from kubectl_ctrl.sandbox.endpoint import Endpoint
from kubectl_ctrl.sandbox.storage import StoredChange
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import run_virtual
from tests.sandbox.workloads import new_image, template, workload

_DEEDS = 60
_REST = 900.0  # more than any back-off or grace period
_SCALED = (DEPLOYMENTS, STATEFULSETS)
_WORKLOADS = (*_SCALED, DAEMONSETS, JOBS)
_PLACES = ("default", "other")


def _is_alive(pod: Obj) -> bool:
    return not is_deleting(pod) and pod["status"]["phase"] not in ("Succeeded", "Failed")


class Story:
    """A user and a cluster, whose seed decides what they do."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = FakeClock()
        kubelet = KubeletSettings(start=0.3, stop=0.2, job_run=0.5)
        endpoint = Endpoint(self.clock, rng=Random(seed), full=True)
        self.cluster = Cluster(endpoint, ClusterSettings(nodes=3, pace=0.05, kubelet=kubelet))
        self.server = self.cluster.server
        self.server.actors.tolerant = False
        self.server.storage.listeners.append(self._check)

    async def play(self) -> None:
        task = asyncio.create_task(self.cluster.run())
        for _ in range(_DEEDS):
            with suppress(Refusal):
                self._act()
            await self.clock.sleep(self.random.choice((0.0, 0.05, 0.4, 3.0)))
        await self.clock.sleep(_REST)
        version = self.server.version
        await self.clock.sleep(_REST / 10)
        assert not task.done(), task.exception()
        assert self.server.version == version, "the cluster is at rest"
        task.cancel()

    def _act(self) -> None:
        pick, server = self.random.choice, self.server
        resource, name, place = pick(_WORKLOADS), pick("ab"), pick(_PLACES)
        match pick(("create", "create", "scale", "image", "delete", "kill", "namespace")):
            case "create":
                server.create(self._workload(resource, name, place))
            case "scale":
                server.change(pick(_SCALED), name, {"spec": {"replicas": pick(range(5))}}, namespace=place)
            case "image":
                server.change(resource, name, new_image(pick(("nginx:1", "nginx:2"))), namespace=place)
            case "delete":
                how = pick(("Background", "Foreground", "Orphan"))
                server.delete(resource, name, place, propagation=how)
            case "kill" if found := server.objects(PODS, place):
                server.delete(PODS, name_of(pick(found)), place)
            case "namespace" if server.get(NAMESPACES, "other") is None or self.random.random() < 0.7:
                server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
            case "namespace":
                server.delete(NAMESPACES, "other")

    def _workload(self, resource: Resource, name: str, place: str) -> Obj:
        label, pick = f"{resource.kind.lower()}-{name}", self.random.choice
        obj = workload(resource.kind, label, resource.api_version)
        if resource == JOBS:
            pods = template(label)
            pods["spec"]["restartPolicy"] = "Never"
            obj["spec"] = {"completions": pick((1, 3)), "parallelism": pick((1, 2)), "template": pods}
        if resource in _SCALED:
            obj["spec"]["replicas"] = pick(range(5))
        if resource == DEPLOYMENTS:
            rolling = pick(
                ({"maxSurge": 1, "maxUnavailable": 0}, {"maxSurge": 0, "maxUnavailable": 1}, {"maxSurge": "50%"})
            )
            obj["spec"]["strategy"] = {"rollingUpdate": rolling}
        obj["metadata"] = {"name": name, "namespace": place}
        return obj

    # -- at each step

    def _check(self, table: str, step: StoredChange) -> None:
        if step.new is None or (owner := controller_of(step.new)) is None:
            return
        if table == "pods" and step.old is None and owner["kind"] == "ReplicaSet":
            replicas = self.server.get(REPLICASETS, owner["name"], namespace_of(step.new))
            assert replicas is not None
            alive = [one for one in self._controlled(PODS, replicas) if _is_alive(one)]
            assert len(alive) <= replicas["spec"]["replicas"]
        if table == REPLICASETS.full_name and owner["kind"] == "Deployment":
            before = step.old["spec"]["replicas"] if step.old else 0
            deployment = self.server.get(DEPLOYMENTS, owner["name"], namespace_of(step.new))
            if deployment is not None and step.new["spec"]["replicas"] > before:
                wanted, surge = (
                    deployment["spec"]["replicas"],
                    deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"],
                )
                more = surge if isinstance(surge, int) else -(-wanted * int(surge.rstrip("%")) // 100)
                assert (
                    sum(one["spec"]["replicas"] for one in self._controlled(REPLICASETS, deployment)) <= wanted + more
                )

    def _controlled(self, resource: Resource, owner: Obj) -> list[Obj]:
        found = self.server.objects(resource, namespace_of(owner))
        return [one for one in found if (controller_of(one) or {}).get("uid") == uid_of(owner)]

    # -- at rest

    def check_rest(self) -> None:
        objects = [obj for rows in self.server.storage.tables.values() for obj in rows.values()]
        uids = {uid_of(obj) for obj in objects}
        for obj in objects:
            for reference in obj["metadata"].get("ownerReferences") or ():
                assert reference["uid"] in uids, f"the owner of {name_of(obj)} does not exist"
            assert not is_deleting(obj)
            assert namespace_of(obj) in ("", *map(name_of, self.server.objects(NAMESPACES)))
        for deployment in self.server.objects(DEPLOYMENTS):
            wanted, status = deployment["spec"]["replicas"], deployment["status"]
            assert [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")] == [wanted] * 3
        for replicas in self.server.objects(REPLICASETS):
            alive = [one for one in self._controlled(PODS, replicas) if _is_alive(one)]
            assert len(alive) == replicas["spec"]["replicas"]
        for stateful in self.server.objects(STATEFULSETS):
            found = sorted(name_of(one) for one in self._controlled(PODS, stateful))
            assert found == [f"{name_of(stateful)}-{number}" for number in range(stateful["spec"]["replicas"])]
            assert stateful["status"].get("readyReplicas", 0) == stateful["spec"]["replicas"]
        for daemons in self.server.objects(DAEMONSETS):
            found = sorted(one["spec"]["nodeName"] for one in self._controlled(PODS, daemons))
            assert found == sorted(map(name_of, self.server.objects(NODES)))
        for job in self.server.objects(JOBS):
            assert job["status"]["succeeded"] == job["spec"]["completions"]
            assert all(labels_of(pod).get("job-name") == name_of(job) for pod in self._controlled(PODS, job))


def _told(seed: int) -> list[bytes]:
    """Play a story to its end; the log of what happened in it."""

    async def play() -> Story:
        story = Story(seed)
        await story.play()
        return story

    story = run_virtual(play())
    story.check_rest()
    return [change.encoded for log in story.server.storage.logs.values() for change in log]


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_the_controllers_keep_their_promises(seed: int) -> None:
    assert _told(seed)


def test_the_same_seed_tells_the_same_story() -> None:
    assert _told(7) == _told(7) != _told(8)
