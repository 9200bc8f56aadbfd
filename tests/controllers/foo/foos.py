"""What the tests of foo share: its CRDs, Foos, Deployments of others, and a cluster on which it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.controllers import foo as package
from kubectl_ctrl.controllers.foo.reconciler import CONTROLLER, FOOS
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS
from kubectl_ctrl.runtime.events import EventRecorder
from kubectl_ctrl.runtime.services import Services
from tests.objects import present, workload
from tests.runtime.world import Running, World

CRD: Obj = yaml.safe_load((Path(package.__file__).parent / "crd.yaml").read_text())


def original_crd(*, status: bool) -> Obj:
    """The sample controller's own CRD: availableReplicas alone, with or without the status subresource."""
    made: Obj = yaml.safe_load((Path(package.__file__).parent / "crd.yaml").read_text())
    version = made["spec"]["versions"][0]
    properties = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for name in ("conditions", "observedGeneration", "replicas", "selector"):
        del properties[name]
    del version["additionalPrinterColumns"]
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"]["default"]
    del version["subresources"]["scale"]
    if not status:
        del version["subresources"]
    return made


def foo(name: str = "test", *, deployment: str | None = None, replicas: int | None = 1) -> Obj:
    spec: Obj = {"deploymentName": f"{name}-deployment" if deployment is None else deployment}
    if replicas is not None:
        spec["replicas"] = replicas
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": FOOS.api_version, "kind": "Foo", "metadata": meta, "spec": spec}


def foreign(name: str) -> Obj:
    return workload(name, replicas=2, selector={"foreign": "yes"})


class FooWorld(World):
    """A cluster with the CRD, a Deployment controller, and foo running with events."""

    def __init__(self, crd: Obj | None = None) -> None:
        super().__init__(installed=False)
        self.server.create(crd or CRD)
        self.server.play_deployments()

    def services(self) -> Services:
        def recorder(name: str, client: Client, tell: Callable[[Any], None]) -> EventRecorder:
            return EventRecorder(client, name, clock=self.clock, rng=self.rng, tell=tell)

        return Services(recorder=recorder)

    @asynccontextmanager
    async def foo_running(self, *objects: Obj) -> AsyncIterator[Running]:
        for obj in objects:
            self.server.create(obj)
        async with self.running(CONTROLLER, services=self.services()) as running:
            await self.rest(5)
            yield running

    def status(self, name: str = "test") -> Obj:
        obj = present(self.server.get(FOOS, name))
        return obj.get("status") or {}

    def condition(self, kind: str = "Ready", name: str = "test") -> tuple[str, str]:
        obj = present(self.server.get(FOOS, name))
        found = find(obj, kind) or {}
        return found.get("status", ""), found.get("reason", "")

    def deployment(self, name: str = "test-deployment") -> Obj | None:
        return self.server.get(DEPLOYMENTS, name)

    def events(self) -> list[tuple[str, str, str]]:
        return sorted((event["type"], event["reason"], event["message"]) for event in self.server.objects(EVENTS))

    def written(self) -> list[tuple[str, str, str]]:
        """What foo wrote: (verb, resource with subresource, name), events apart."""
        return [
            (write.verb, "/".join(part for part in (write.resource.plural, write.subresource) if part), write.key.name)
            for write in self.writes()
            if write.resource != EVENTS
        ]
