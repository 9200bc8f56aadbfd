"""Delay of requests in one process with 9,000 objects and 300 changes a second, the load of the sharding thesis."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from figure import Figure

from kubectl_ctrl import Context, Request, Result, controller
from kubectl_ctrl.cli.foreground.memory import relax
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.model.attempt import Attempt, Observed
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.testing.server import ScriptedServer

_OBJECTS = 9_000
_CHANGES = 300  # a second
_SECONDS = 20


def _pod(number: int) -> Obj:
    meta = {"name": f"pod-{number}", "namespace": f"team-{number % 20}", "uid": f"uid-{number}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def _reconcile(ctx: Context, request: Request) -> Result | None:
    await ctx.read.get(PODS, request.name)
    return None


async def _delays() -> tuple[list[float], list[float]]:
    """Seconds from a change to the start of its attempt, and from ready to start; without the initial list."""
    clock = SystemClock()
    server = ScriptedServer(clock)
    server.load(PODS, [_pod(number) for number in range(_OBJECTS)])
    reacted: list[float] = []
    waited: list[float] = []
    initial = 0

    def hear(value: Observed) -> None:
        nonlocal initial
        if not isinstance(value, Attempt):
            return
        if value.start.causes[0].kind.value == "initial list":
            initial += 1
            return
        reacted.append(value.start.started - value.start.queued_at)
        waited.append(value.start.waited)

    client = Client(server, clock=clock, rng=random.Random(1), user_agent="bench")
    spec = controller("bench", _reconcile).for_(PODS)
    options = RunOptions(workers=8, read_only_objects=False)
    manager = Manager([spec], client=client, clock=clock, rng=random.Random(2), observers=[hear], options=options)
    stop = Stop()
    running = asyncio.create_task(manager.run(stop))
    while initial < _OBJECTS:
        await clock.sleep(0.05)
    dice = random.Random(3)
    began = clock.elapsed()
    for number in range(_CHANGES * _SECONDS):
        index = dice.randrange(_OBJECTS)
        change = {"metadata": {"labels": {"turn": str(number)}}}
        server.change(PODS, f"pod-{index}", change, namespace=f"team-{index % 20}")
        await clock.sleep(max(0.0, began + (number + 1) / _CHANGES - clock.elapsed()))
    await clock.sleep(1)
    stop.request()
    await running
    return sorted(reacted), sorted(waited)


async def _naps() -> list[float]:
    """Seconds by which a sleep of the same length is late on this machine, sorted."""
    clock = SystemClock()
    late = []
    for _ in range(_CHANGES * 3):
        before = clock.elapsed()
        await clock.sleep(1 / _CHANGES)
        late.append(clock.elapsed() - before - 1 / _CHANGES)
    return sorted(late)


def _p99(values: list[float]) -> float:
    return values[int(len(values) * 0.99)] * 1000


def figures() -> Iterable[Figure]:
    relax()
    baseline = _p99(asyncio.run(_naps()))
    reacted, waited = asyncio.run(_delays())
    against = "ms p99 of a sleep's lateness"
    name = f"{_OBJECTS:,} objects, {_CHANGES} changes/s"
    yield Figure(
        name=f"p99 in the queue, {name}",
        value=_p99(waited),
        unit="ms",
        baseline=baseline,
        against=against,
        bar="<= 1,000",
    )
    yield Figure(name="p99 from cached to attempt", value=_p99(reacted), unit="ms", baseline=baseline, against=against)
