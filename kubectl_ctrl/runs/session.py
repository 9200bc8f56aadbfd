"""One run from the moment that its cluster is known: connect, take the place, run, say how it went."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clusters.registry import Book
from kubectl_ctrl.errors import (
    CtrlError,
    DeadlinePassed,
    ServerError,
    TimedOut,
    TooManyRequests,
    Unreachable,
    Untrusted,
)
from kubectl_ctrl.loader.reload import Reloader
from kubectl_ctrl.model.attempt import Background
from kubectl_ctrl.model.resources import ObjectRef
from kubectl_ctrl.runs.holder import identity, is_dead
from kubectl_ctrl.runs.impersonation import installed
from kubectl_ctrl.runs.instances import lease_labels, lease_ref
from kubectl_ctrl.runs.recorder import prepared, recorded
from kubectl_ctrl.runs.rivals import alone
from kubectl_ctrl.runs.runners import Runner, keys, look_ahead, note_asked, only_runner, runners
from kubectl_ctrl.runs.settings import RunPlan
from kubectl_ctrl.runtime.election import Candidate, LeaseElector
from kubectl_ctrl.runtime.endpoints import Answer, Page, check, serving
from kubectl_ctrl.runtime.events import EventRecorder
from kubectl_ctrl.runtime.ids import new_run
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.observers import Observer
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Summary
from kubectl_ctrl.runtime.watchdog import Watchdog
from kubectl_ctrl.target import guard
from kubectl_ctrl.target.connection import Connect, check_namespace, cluster_id
from kubectl_ctrl.user import User
from kubectl_ctrl.value import Value, replace

if TYPE_CHECKING:
    from kubectl_ctrl.runtime.metrics import Metrics

T = TypeVar("T")

_log = logging.getLogger(__name__)

# What passes by itself: a cluster that starts, a laptop that is not online yet.
_AWAY = (Unreachable, DeadlinePassed, ServerError, TooManyRequests)
_ASK_AGAIN = 2.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Voice(Protocol):
    """Reports of a run, as they come."""

    at_work: Callable[[], Sequence[tuple[str, bool]]]  # what it does, once it runs: see Member

    def begin(self, run_id: str, recording: str) -> None: ...

    def waiting(self, error: CtrlError) -> None:
        """No cluster answers yet; it keeps trying."""

    def observer(self, nobody_reads: Callable[[], None]) -> Observer: ...

    def stopping(self, under_way: Sequence[str]) -> None: ...


class Surroundings(Value, kw_only=True):
    """What a run gets from whoever starts it."""

    user: User
    connect: Connect
    voice: Voice
    stop: Stop


async def session(around: Surroundings, plan: RunPlan) -> Summary | None:
    """The whole run; None where it was stopped before it could begin."""
    place = prepared(plan)
    plan = replace(plan, options=replace(plan.options, run_id=new_run(plan.rng, place.runs)))
    _look_ahead(around.user, plan, place.clusters)
    around.voice.begin(plan.options.run_id, place.text)
    async with AsyncExitStack() as held:
        began = plan.clock.elapsed()
        ground = await _unless_stopped(around.stop, _begun(around, plan, held, place.clusters))
        if ground is None:
            return None
        if (timeout := plan.options.timeout) is not None:
            left = max(timeout - (plan.clock.elapsed() - began), 0.0)
            plan = replace(plan, options=replace(plan.options, timeout=left))
        return await _run(around, plan, ground)


async def _unless_stopped(stop: Stop, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives, or None when a signal came first."""
    doing, stopped = asyncio.create_task(work), asyncio.create_task(stop.first())
    try:
        await asyncio.wait((doing, stopped), return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        doing.cancel()
        stopped.cancel()
        await asyncio.wait((doing, stopped))


class _Ground(Value, kw_only=True):
    """What a run stands on once its cluster is known."""

    client: Client
    cluster: str  # its id
    clients: Mapping[str, Client]  # of the controllers that act as somebody else
    leases: Mapping[str, ObjectRef]  # by controller, where it elects a leader


async def _begun(around: Surroundings, plan: RunPlan, held: AsyncExitStack, known: Sequence[str]) -> _Ground:
    """Connected, and in the place of the only runner; `held` gives both up again. `known` are keys of the cluster."""
    client = await around.connect(plan.resolved)
    held.push_async_callback(client.close)
    try:
        async with plan.clock.timeout(plan.options.timeout):
            cluster = await _cluster_id(around.voice, client, plan, known)
            if plan.namespace:
                await check_namespace(client, plan.namespace)
            for runner in _runners(plan, cluster):
                held.enter_context(only_runner(around.user.state, runner))
            clients = {}
            for name in plan.names if plan.as_installed else ():
                clients[name] = await installed(around.connect, plan, client, name)
                held.push_async_callback(clients[name].close)
            here = {runner.holder for runner in runners(around.user.state)}
            await held.enter_async_context(alone(client, plan, identity(plan.options.run_id), here))
            leases = {name: await lease_ref(client, name, plan.namespace) for name in plan.names if plan.elects}
    except TimeoutError:
        raise TimedOut(f"The run could not begin in time on {plan.resolved.server}.") from None
    return _Ground(client=client, cluster=cluster, clients=clients, leases=leases)


def _look_ahead(user: User, plan: RunPlan, known: Sequence[str]) -> None:
    """Refused before anything is said or asked, where a run that has the place can be told by what we know already."""
    made = Book.of(user).find(plan.ours) if plan.ours else None
    for key in {*known, *(keys(made) if made else ())}:
        for mine in _runners(plan, key):
            look_ahead(user.state, mine)


def _runners(plan: RunPlan, cluster: str) -> list[Runner]:
    """How this run introduces itself on this machine, once for each controller."""
    return [
        Runner(
            cluster=cluster,
            controller=name,
            scope=plan.namespace,
            pid=os.getpid(),
            run=plan.options.run_id,
            controllers=plan.names,
            context=guard.context_name(plan.resolved),
            since=plan.clock.now(),
            holder=identity(plan.options.run_id),
        )
        for name in plan.names
    ]


async def _cluster_id(voice: Voice, client: Client, plan: RunPlan, known: Sequence[str]) -> str:
    """The same for every way to the same cluster where we may look; else what the kubeconfig says of it.

    This is the first call of a run. A server that does not answer is waited for, except with --once. One whose TLS is
    not what the kubeconfig expects will not become another by waiting.
    """
    told = False
    while True:
        try:
            return await cluster_id(client, plan.resolved, known)
        except _AWAY as error:
            if plan.options.once or isinstance(error, Untrusted):
                raise
            if not told:
                voice.waiting(error)
            told = True
        await plan.clock.sleep(_ASK_AGAIN * plan.rng.uniform(0.8, 1.2))


async def _run(around: Surroundings, plan: RunPlan, ground: _Ground) -> Summary:
    user, voice, stop = around.user, around.voice, around.stop
    metrics = _metrics(plan, ground.client)
    observers: list[Observer] = [voice.observer(stop.request)]
    if metrics is not None:
        observers.append(metrics)
    async with AsyncExitStack() as beside:
        observers += await beside.enter_async_context(recorded(plan, ground.cluster, ground.client))
        manager = Manager(
            plan.specs,
            client=ground.client,
            clock=plan.clock,
            rng=plan.rng,
            observers=observers,
            options=replace(plan.options, namespace=plan.namespace),
            services=_services(plan, ground),
        )
        voice.at_work = lambda: [one for member in manager.members for one in member.at_work]
        beside.enter_context(_watchdog(plan, manager))
        for address, pages in _pages(plan, manager, metrics).items():
            at = await beside.enter_async_context(serving(address, pages, clock=plan.clock))
            _log.info("Serving %s on http://%s", " ".join(pages), at, extra={"action": "serving", "address": at})
        if plan.shelves:
            reloading = asyncio.create_task(Reloader(plan.shelves, manager, clock=plan.clock).run(), name="reloads")
            beside.callback(reloading.cancel)
        announcing = asyncio.create_task(_announce_stop(user, manager, voice, stop))
        beside.callback(announcing.cancel)
        return await manager.run(stop)


async def _announce_stop(user: User, manager: Manager, voice: Voice, stop: Stop) -> None:
    await stop.first()
    note_asked(user.state, identity(manager.run_id))
    voice.stopping(_under_way(manager))


def _under_way(manager: Manager) -> list[str]:
    return [entry for member in manager.members for entry in member.under_way]


def _metrics(plan: RunPlan, client: Client) -> Metrics | None:
    if not plan.metrics_address:
        return None
    from kubectl_ctrl.runtime.metrics import Metrics

    host = urlsplit(plan.resolved.server).netloc
    return Metrics([spec.name for spec in plan.specs], host=host, counters=client.counters)


def _pages(plan: RunPlan, manager: Manager, metrics: Metrics | None) -> dict[str, dict[str, Page]]:
    """What to serve on which address; one address may serve all of it."""
    pages: dict[str, dict[str, Page]] = {}
    if metrics is not None:
        metrics.attach(manager)
        text = metrics.text
        pages.setdefault(plan.metrics_address, {})["/metrics"] = lambda: Answer(200, text(), METRICS_TYPE)
    if plan.health_address:

        def sick() -> list[str]:
            return [f"the lease of {member.spec.name} has passed" for member in manager.members if member.overdue]

        def unready() -> list[str]:
            return [what for member in manager.members for what, _ in member.obstacles()]

        pages.setdefault(plan.health_address, {}).update({"/healthz": check(sick), "/readyz": check(unready)})
    return pages


def _watchdog(plan: RunPlan, manager: Manager) -> Watchdog:
    def end() -> None:
        sys.stderr.flush()
        os._exit(1)

    return Watchdog(
        clock=plan.clock,
        must_end=lambda: any(member.overdue for member in manager.members),
        end=end,
        who=lambda: " ".join(_under_way(manager)),
    )


def _services(plan: RunPlan, ground: _Ground) -> Services:
    def elector(name: str, client: Client, tell: Callable[[Background], None]) -> LeaseElector:
        candidate = Candidate(
            identity=identity(plan.options.run_id),
            is_dead=is_dead,
            patient=False,
            required=plan.elect == "required",
            labels=lease_labels(name),
        )
        return LeaseElector(client, ground.leases[name], candidate, clock=plan.clock, rng=plan.rng, tell=tell)

    def recorder(name: str, client: Client, tell: Callable[[Background], None]) -> EventRecorder:
        return EventRecorder(client, f"kubectl-ctrl-{name}", clock=plan.clock, rng=plan.rng, tell=tell)

    return Services(elector=elector if plan.elects else None, recorder=recorder, clients=ground.clients)
