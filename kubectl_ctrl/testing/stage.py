"""A stage for controllers: a cluster in memory, runs of controllers against it, and time that jumps.

A test creates objects, runs a controller, lets time pass, and checks the result:

    def test_a_greeting_gets_its_config_map() -> None:
        async def play() -> None:
            stage = Stage()
            stage.install(FOLDER / "crd.yaml")
            stage.server.create(greeting("hello"))
            async with stage.running(CONTROLLER):
                await stage.rest(5)
                assert stage.server.get(CONFIGMAPS, "hello")["data"] == {"text": "Hello!"}

        run_virtual(play)

`run_virtual` (in `kubectl_ctrl.testing.loop`) gives the test an event loop whose time jumps to the next timer, so a day
passes at once and a test that would hang fails with the reason. The server answers as a real one does wherever a
controller can tell the difference; `stage.server.faults` scripts faults. It needs no cluster, network or pytest plugin.

`kubectl_ctrl.testing.sandbox` is the same for tests that are plain functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import yaml

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.model.attempt import Attempt, BackgroundCall, Observed
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import EVENTS
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.events import EventRecorder
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Summary
from kubectl_ctrl.sandbox.cluster import Cluster
from kubectl_ctrl.sandbox.writes import Write
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import settle
from kubectl_ctrl.testing.server import ScriptedServer

T = TypeVar("T", bound=Observed)


class Stage:
    """See the module; created inside `run_virtual`. `seed` determines all jitter: the same seed gives the same run.

    A `whole` cluster also has the first objects, controllers and admission of a real one: its pods run, for instance.
    """

    def __init__(self, *, seed: int = 1, whole: bool = False, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.server = ScriptedServer(self.clock, full=whole)
        if whole:
            Cluster(self.server)
        self.rng = Random(seed)  # noqa: S311  # for jitter, and reproducible
        self.observed: list[Observed] = []
        self._last_manager: Manager | None = None

    def install(self, *what: Path | Obj) -> None:
        """Create objects, or the objects in manifest files, as an administrator would."""
        for one in what:
            objects = yaml.safe_load_all(one.read_text(encoding="utf-8")) if isinstance(one, Path) else (one,)
            for obj in filter(None, objects):
                self.server.create(obj)

    @asynccontextmanager
    async def running(self, *specs: ControllerSpec, **options: Any) -> AsyncIterator[Running]:
        """A run beside the block, as of `kubectl ctrl run`, stopped at the end of the block.

        `options` are the fields of `runtime.options.RunOptions`: `namespace`, `labels`, `workers` and the like.
        """
        running = Running(self.manager(*specs, **options))
        await self.rest()
        try:
            yield running
        finally:
            await running.stopped()

    async def run(self, *specs: ControllerSpec, **options: Any) -> Summary:
        """A run that ends by itself, with `once=True` or `until_idle=True`; returns its summary."""
        return await self.manager(*specs, **options).run(Stop())

    async def rest(self, seconds: float = 0.0) -> None:
        """Let this time pass, and then run everything that can run at that moment."""
        await self.clock.sleep(seconds)
        await settle()

    def manager(
        self,
        *specs: ControllerSpec,
        observers: Sequence[Callable[[Observed], None]] = (),
        services: Services | None = None,
        **options: Any,
    ) -> Manager:
        """A run that has not started yet."""
        self._last_manager = Manager(
            specs,
            client=self.client(),
            clock=self.clock,
            rng=self.rng,
            observers=[self.observed.append, *observers],
            options=RunOptions(**options),
            services=self.services() if services is None else services,
        )
        return self._last_manager

    def client(self, user_agent: str = "test-run") -> Client:
        return Client(self.server, clock=self.clock, rng=self.rng, user_agent=user_agent)

    def services(self) -> Services:
        """The default services of a run: it sends events and takes part in no election."""

        def recorder(name: str, client: Client, tell: Callable[[BackgroundCall], None]) -> EventRecorder:
            return EventRecorder(client, f"kubectl-ctrl-{name}", clock=self.clock, rng=self.rng, tell=tell)

        return Services(recorder=recorder)

    @property
    def attempts(self) -> list[Attempt]:
        """Every finished reconcile, oldest first, with its causes, calls and outcome."""
        return self.told(Attempt)

    def told(self, kind: type[T]) -> list[T]:
        """The values of this type that observers received, in order."""
        return [value for value in self.observed if isinstance(value, kind)]

    def writes(self, *, by: str = "kubectl-ctrl") -> Iterator[Write]:
        """The writes of controllers, without those of the test; `list(stage.writes())` is empty for a run at rest."""
        return (write for write in self.server.writes if write.user_agent.startswith(by))

    def events(self) -> list[tuple[str, str, str]]:
        """(type, reason, message) of every event of controllers, without those of the cluster's own, sorted."""
        found = (
            event for event in self.server.objects(EVENTS) if event["reportingComponent"].startswith("kubectl-ctrl")
        )
        return sorted((event["type"], event["reason"], event["message"]) for event in found)

    def __repr__(self) -> str:
        return f"Stage(attempts={len(self.attempts)}, {self.server!r})"


class Running:
    """A run in the background."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.stop = Stop()
        self.task = asyncio.create_task(manager.run(self.stop), name="run")

    async def stopped(self) -> Summary:
        """Request the stop, if nobody has, and wait for the end of the run."""
        if not self.stop.requests:
            self.stop.request()
        return await self.task

    def __repr__(self) -> str:
        return f"Running({self.manager!r}, stops={self.stop.requests})"
