"""A cluster in memory and a run of controllers against it, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeVar

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.model.attempt import Attempt, Observed
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.summary import Summary
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import settle
from kubectl_ctrl.testing.server import ScriptedServer
from kubectl_ctrl.testing.writes import Write
from tests.runtime.toy import TOYS

T = TypeVar("T", bound=Observed)

_STATUS: Obj = {
    "type": "object",
    "properties": {
        "ready": {"type": "boolean"},
        "seen": {"type": "integer"},
        "conditions": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}


def crd(resource: Resource = TOYS, *, status: bool = True, status_schema: Obj = _STATUS) -> Obj:
    """A CustomResourceDefinition with a free spec."""
    version: Obj = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "status": status_schema,
                },
            }
        },
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"plural": resource.plural, "kind": resource.kind},
            "versions": [version],
        },
    }


def toy(name: str, namespace: str = "default", **spec: Any) -> Obj:
    return {
        "apiVersion": TOYS.api_version,
        "kind": TOYS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


class World:
    """Made inside run_virtual."""

    def __init__(self, *, seed: int = 1, installed: bool = True) -> None:
        self.clock = FakeClock()
        self.server = ScriptedServer(self.clock)
        self.rng = Random(seed)
        self.observed: list[Observed] = []
        if installed:
            self.server.create(crd())
        self.server.writes.clear()
        self._last_manager: Manager | None = None

    def client(self, user_agent: str = "test-run") -> Client:
        return Client(self.server, clock=self.clock, rng=self.rng, user_agent=user_agent)

    def manager(
        self,
        *specs: ControllerSpec,
        observers: Sequence[Callable[[Observed], None]] = (),
        services: Services | None = None,
        **options: Any,
    ) -> Manager:
        self._last_manager = Manager(
            specs,
            client=self.client(),
            clock=self.clock,
            rng=self.rng,
            observers=[self.observed.append, *observers],
            options=RunOptions(**options),
            services=services or Services(),
        )
        return self._last_manager

    async def run(self, *specs: ControllerSpec, **options: Any) -> Summary:
        """A run that ends by itself."""
        return await self.manager(*specs, **options).run(Stop())

    @asynccontextmanager
    async def running(self, *specs: ControllerSpec, **options: Any) -> AsyncIterator[Running]:
        """A run beside the block, stopped at its end."""
        running = Running(self.manager(*specs, **options))
        await self.rest()
        try:
            yield running
        finally:
            await running.stopped()

    async def rest(self, seconds: float = 0.0) -> None:
        """Let so much time pass, and then everything happen that can happen at that moment."""
        await self.clock.sleep(seconds)
        await settle()

    def told(self, kind: type[T]) -> list[T]:
        """What observers were told of this kind, in order."""
        return [value for value in self.observed if isinstance(value, kind)]

    @property
    def attempts(self) -> list[Attempt]:
        return self.told(Attempt)

    def writes(self, *, by: str = "kubectl-ctrl") -> Iterator[Write]:
        """The writes of controllers, without those of the test."""
        return (write for write in self.server.writes if write.user_agent.startswith(by))


class Running:
    """A run in the background."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.stop = Stop()
        self.task = asyncio.create_task(manager.run(self.stop), name="run")

    async def stopped(self) -> Summary:
        """Ask it to stop, unless that was done, and wait for its end."""
        if not self.stop.requests:
            self.stop.request()
        return await self.task
