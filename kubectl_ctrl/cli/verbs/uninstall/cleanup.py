"""Runs of a controller during uninstall: its cleanup, or the controller itself while its objects are deleted."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.errors import CtrlError
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.model.attempt import BackgroundCall
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.summary import summary_lines
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.runs.runners import Runner, only_runner
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.events import EventRecorder
from kubectl_ctrl.runtime.ids import new_run
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Reason, Summary
from kubectl_ctrl.target import guard
from kubectl_ctrl.text import Text
from kubectl_ctrl.value import Value


class CleanupEnvironment(Value, kw_only=True):
    """The environment of such a run: this machine, the user's own rights, and all namespaces of one cluster."""

    app: App
    client: Client
    resolved: Resolved
    cluster: str

    def runner(self, name: str, run: str) -> Runner:
        return Runner(
            cluster=self.cluster,
            controller=name,
            scope="",
            pid=os.getpid(),
            run=run,
            controllers=(name,),
            context=guard.context_name(self.resolved),
            since=self.client.clock.now(),
            holder=identity(run),
        )


@asynccontextmanager
async def running(here: CleanupEnvironment, spec: ControllerSpec) -> AsyncIterator[None]:
    """Run the controller for the block."""
    stop = Stop()
    manager = _manager(here, spec, once=False)
    with only_runner(here.app.user.state, here.runner(spec.name, manager.run_id)):
        task = asyncio.create_task(manager.run(stop))
        try:
            yield
        finally:
            stop.request()
            await task


async def clean(here: CleanupEnvironment, undoing: ControllerSpec) -> None:
    """Let it revert, once for each object, what it wrote to objects that are not its own."""
    manager = _manager(here, undoing, once=True)
    with only_runner(here.app.user.state, here.runner(undoing.name, manager.run_id)):
        summary = await manager.run(Stop())
    if summary.reason is Reason.NOT_INSTALLED:
        here.app.narrate(f"{undoing.name}: its resource types are not installed, so there is nothing to clean")
        return
    _check(here, undoing.name, summary)
    here.app.narrate(f"{undoing.name}: cleaned")


def _check(here: CleanupEnvironment, name: str, summary: Summary) -> None:
    for line in summary_lines(summary, Style(zone=None, unicode=here.app.unicode)):
        here.app.narrate(Text(line))
    if problem := summary.problem():
        raise problem
    if summary.failed or summary.left:
        raise CtrlError(
            f"The cleanup of {name} failed for {len(summary.failed) + len(summary.left)} objects.",
            next_step="nothing was uninstalled; run it again",
        )


def _manager(here: CleanupEnvironment, spec: ControllerSpec, *, once: bool) -> Manager:
    clock, rng = here.client.clock, random.SystemRandom()

    def recorder(name: str, client: Client, tell: Callable[[BackgroundCall], None]) -> EventRecorder:
        return EventRecorder(client, f"kubectl-ctrl-{name}", clock=clock, rng=rng, tell=tell)

    options = RunOptions(once=once, run_id=new_run(rng))
    services = Services(recorder=recorder)
    return Manager((spec,), client=here.client, clock=clock, rng=rng, options=options, services=services)
