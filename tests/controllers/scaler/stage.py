"""A cluster on virtual time in which the scaler runs, and what its tests ask of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from kubectl_ctrl.controllers.scaler import configured
from kubectl_ctrl.controllers.scaler.annotations import DEFAULT_PREFIX
from kubectl_ctrl.model.objects import Obj, annotations_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS, HPAS, NAMESPACES, Resource
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.testing.stage import Running
from kubectl_ctrl.testing.stage import Stage as AnyStage
from tests import objects
from tests.objects import present

HOUR = 3600.0
# Two short days on each working day: a test of a day and a night need not go through a whole one.
WEEKDAYS: dict[str, Any] = {"start": "0 11,13 * * 1-5", "stop": "30 12,14 * * 1-5"}
NIGHT: dict[str, Any] = {"stop": "30 12,14 * * *"}


def at(text: str) -> float:
    """`2026-01-05T07:00Z` in seconds."""
    return datetime.fromisoformat(text).timestamp()


def annotated(**said: str) -> dict[str, str]:
    """Annotations by short names, with _ for -."""
    return {DEFAULT_PREFIX + name.replace("_", "-"): value for name, value in said.items()}


def workload(name: str = "web", *, kind: str = "Deployment", replicas: int = 3, **said: Any) -> Obj:
    made = objects.workload(name, kind=kind, replicas=replicas, annotations=annotated(**said))
    if kind == "StatefulSet":
        made["spec"]["serviceName"] = name
    return made


class Stage(AnyStage):
    """The wall clock is at Monday, 2026-01-05 12:00 UTC unless `goto` says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.server.play_deployments()
        self.goto("2026-01-05T12:00Z")

    def goto(self, text: str) -> None:
        """Set the clock, before anything runs."""
        self.clock.step(at(text) - self.clock.now())

    async def until(self, text: str) -> None:
        """Let time pass up to a moment of wall time, and a second more."""
        await self.rest(at(text) - self.clock.now() + 1)

    @asynccontextmanager
    async def scaling(
        self, *objects: Obj, spec: ControllerSpec | None = None, **options: Any
    ) -> AsyncIterator[Running]:
        for obj in objects:
            self.server.create(obj)
        async with self.running(spec or configured(), **options) as running:
            await self.rest(1)
            yield running

    def obj(self, name: str = "web", resource: Resource = DEPLOYMENTS) -> Obj:
        return present(self.server.get(resource, name))

    def replicas(self, name: str = "web", resource: Resource = DEPLOYMENTS) -> int:
        return int(self.obj(name, resource)["spec"]["replicas"])

    def bounds(self) -> tuple[int, int]:
        spec = self.obj("auto", HPAS)["spec"]
        return spec["minReplicas"], spec["maxReplicas"]

    def state(self, name: str = "web", resource: Resource = DEPLOYMENTS) -> dict[str, str]:
        """What the scaler remembers on the object, by short names."""
        return {
            key.removeprefix(DEFAULT_PREFIX): value
            for key, value in annotations_of(self.obj(name, resource)).items()
            if key.startswith(DEFAULT_PREFIX + "original") or key == DEFAULT_PREFIX + "last-event"
        }

    def say(self, name: str = "web", resource: Resource = DEPLOYMENTS, **said: str | None) -> None:
        """Change annotations, as a user does; None removes one."""
        changed = {DEFAULT_PREFIX + key.replace("_", "-"): value for key, value in said.items()}
        self.server.change(resource, name, {"metadata": {"annotations": changed}})

    def say_namespace(self, **said: str | None) -> None:
        self.say("default", NAMESPACES, **said)

    def scale(self, replicas: int, name: str = "web", resource: Resource = DEPLOYMENTS) -> None:
        self.server.change(resource, name, {"spec": {"replicas": replicas}}, manager="kubectl-scale")

    def messages(self, reason: str = "") -> list[str]:
        found = [event for event in self.server.objects(EVENTS) if reason in ("", event["reason"])]
        assert all(event["count"] == 1 for event in found), "something was told twice"
        return [event["message"] for event in found]

    def reasons(self) -> list[str]:
        return sorted(event["reason"] for event in self.server.objects(EVENTS))

    def written(self) -> list[tuple[str, str, str]]:
        """What the scaler wrote: (verb, resource, name), events apart."""
        return [
            (write.verb, write.resource.plural, write.key.name) for write in self.writes() if write.resource != EVENTS
        ]
