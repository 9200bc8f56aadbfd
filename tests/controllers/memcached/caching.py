"""A stage with the Memcached CRD, Deployments that have pods, and short words for what its tests look at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from kubectl_ctrl.controllers import memcached as package
from kubectl_ctrl.controllers.memcached.reconciler import CONTROLLER, MEMCACHEDS
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Obj, is_deleting, name_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS, PODS
from kubectl_ctrl.testing.stage import Running, Stage
from tests.objects import present, workload

FOLDER = Path(package.__file__).parent
TEST = "test"


def crd(**spec_schema: Any) -> Obj:
    """The controller's own CRD; `spec_schema` replaces keys of the schema of its spec."""
    made: Obj = yaml.safe_load((FOLDER / "crd.yaml").read_text())
    schema_of(made)["properties"]["spec"].update(spec_schema)
    return made


def schema_of(crd: Obj) -> Obj:
    schema: Obj = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def memcached(name: str = TEST, *, size: Any = 3, **spec: Any) -> Obj:
    return {
        "apiVersion": MEMCACHEDS.api_version,
        "kind": MEMCACHEDS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"size": size, **spec},
    }


def deployment(name: str = TEST, *, labels: Obj | None = None, replicas: int = 1, owner: Obj | None = None) -> Obj:
    """One that somebody else made, perhaps with an owner of ours."""
    owners: Obj = {} if owner is None else {"ownerReferences": [owner]}
    return workload(name, replicas=replicas, selector=labels or {"foreign": "yes"}, **owners)


class Caching(Stage):
    """See the module."""

    def __init__(self, crd_: Obj | None = None, *, playing: bool = True) -> None:
        super().__init__()
        self.install(crd_ or crd())
        self.server.play_deployments(playing, pods=True)
        self.server.writes.clear()

    @asynccontextmanager
    async def controlled(self, *objects: Obj, **options: Any) -> AsyncIterator[Running]:
        """The controller running, with the objects and five seconds to come to rest."""
        for obj in objects:
            self.server.create(obj)
        async with self.running(CONTROLLER, **options) as running:
            await self.rest(5)
            yield running

    def change(self, **spec: Any) -> None:
        self.server.change(MEMCACHEDS, TEST, {"spec": spec})

    def status(self, name: str = TEST) -> Obj:
        obj = present(self.server.get(MEMCACHEDS, name))
        return obj.get("status") or {}

    def condition(self, kind: str = "Available", name: str = TEST) -> tuple[str, str]:
        found = self.told_by(kind, name)
        return found.get("status", ""), found.get("reason", "")

    def told_by(self, kind: str, name: str = TEST) -> Obj:
        """The whole condition."""
        return find({"status": self.status(name)}, kind) or {}

    def conditions(self) -> list[tuple[str, str]]:
        return [self.condition(kind) for kind in ("Available", "Progressing", "Degraded")]

    def deployment(self, name: str = TEST) -> Obj:
        return present(self.server.get(DEPLOYMENTS, name))

    def container(self) -> Obj:
        (container,) = self.deployment()["spec"]["template"]["spec"]["containers"]
        assert isinstance(container, dict)
        return container

    def pods(self) -> list[str]:
        """The names of all pods that do not terminate and have not finished, sorted."""
        return [
            name_of(pod)
            for pod in self.server.objects(PODS)
            if not is_deleting(pod) and pod["status"]["phase"] not in ("Succeeded", "Failed")
        ]

    def progress(self, **status: Any) -> None:
        """Say something as the Deployment's own controller, which is not played then."""
        status.setdefault("observedGeneration", self.deployment()["metadata"]["generation"])
        self.server.change(DEPLOYMENTS, TEST, {"status": status}, subresource="status")

    def written(self) -> list[tuple[str, str, str]]:
        """What the controller wrote: (verb, resource with subresource, name), events apart."""
        return [
            (write.verb, "/".join(part for part in (write.resource.plural, write.subresource) if part), write.key.name)
            for write in self.writes()
            if write.resource != EVENTS
        ]

    async def assert_rests(self, seconds: float = 3600) -> None:
        writes = len(list(self.writes()))
        await self.rest(seconds)
        assert len(list(self.writes())) == writes


HEALTHY = [("True", "MinimumReplicasReady"), ("False", "Complete"), ("False", "AsExpected")]
