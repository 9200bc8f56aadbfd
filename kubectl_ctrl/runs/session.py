"""One run from connecting to its summary."""

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
from kubectl_ctrl.clusters.registry import Registry
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
from kubectl_ctrl.model.attempt import BackgroundCall
from kubectl_ctrl.model.resources import ObjectRef
from kubectl_ctrl.runs.holder import identity, is_dead
from kubectl_ctrl.runs.impersonation import installed
from kubectl_ctrl.runs.instances import lease_labels, lease_ref
from kubectl_ctrl.runs.recorder import prepared, recorded
from kubectl_ctrl.runs.rivals import alone
from kubectl_ctrl.runs.runners import Runner, check_free, keys, note_asked, only_runner, runners
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

# Errors that pass without a change of the kubeconfig: a cluster that starts, a laptop that is offline.
_TRANSIENT = (Unreachable, DeadlinePassed, ServerError, TooManyRequests)
_RETRY_AFTER = 2.0
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Reporter(Protocol):
    """Receives the events of a run that a user should see."""

    at_work: Callable[[], Sequence[tuple[str, bool]]]  # set by the run: its running reconciles, see Member.at_work

    def begin(self, run_id: str, recording: str) -> None: ...

    def waiting(self, error: CtrlError) -> None:
        """The cluster does not answer yet; the run retries."""

    def observer(self, nobody_reads: Callable[[], None]) -> Observer: ...

    def stopping(self, under_way: Sequence[str]) -> None: ...


class RunSurroundings(Value, kw_only=True):
    """Everything that a run gets from its caller beside the plan."""

    user: User
    connect: Connect
    reporter: Reporter
    stop: Stop


async def session(caller: RunSurroundings, plan: RunPlan) -> Summary | None:
    """The whole run; None if it was stopped before its controllers started."""
    recording = prepared(plan)
    plan = replace(plan, options=replace(plan.options, run_id=new_run(plan.rng, recording.runs)))
    made = Registry.of(caller.user).find(plan.ours) if plan.ours else None
    for key in {*recording.clusters, *(keys(made) if made else ())}:  # refuse at once, if the cluster's key is known
        for mine in _runners(plan, key):
            check_free(caller.user.state, mine)
    caller.reporter.begin(plan.options.run_id, recording.text)
    async with AsyncExitStack() as held:
        began = plan.clock.elapsed()
        connected = await _unless_stopped(caller.stop, _connect(caller, plan, held, recording.clusters))
        if connected is None:
            return None
        if (timeout := plan.options.timeout) is not None:
            left = max(timeout - (plan.clock.elapsed() - began), 0.0)
            plan = replace(plan, options=replace(plan.options, timeout=left))
        return await _run(caller, plan, connected)


async def _unless_stopped(stop: Stop, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None if a signal comes first."""
    doing, stopped = asyncio.create_task(work), asyncio.create_task(stop.first())
    try:
        await asyncio.wait((doing, stopped), return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        doing.cancel()
        stopped.cancel()
        await asyncio.wait((doing, stopped))


class _Connected(Value, kw_only=True):
    """The cluster of a run, on which it is the only runner of its controllers."""

    client: Client
    cluster: str  # its key, see target.connection.cluster_id
    clients: Mapping[str, Client]  # by controller, with --as-installed
    leases: Mapping[str, ObjectRef]  # by controller, with leader election


async def _connect(caller: RunSurroundings, plan: RunPlan, held: AsyncExitStack, known: Sequence[str]) -> _Connected:
    """Connect, and lock out other runners; `held` undoes both. `known` are keys of the cluster in the recording."""
    client = await caller.connect(plan.resolved)
    held.push_async_callback(client.close)
    try:
        async with plan.clock.timeout(plan.options.timeout):
            cluster = await _cluster_id(caller.reporter, client, plan, known)
            if plan.namespace:
                await check_namespace(client, plan.namespace)
            for runner in _runners(plan, cluster):
                held.enter_context(only_runner(caller.user.state, runner))
            clients = {}
            for name in plan.names if plan.as_installed else ():
                clients[name] = await installed(caller.connect, plan, client, name)
                held.push_async_callback(clients[name].close)
            here = {runner.holder for runner in runners(caller.user.state)}
            await held.enter_async_context(alone(client, plan, identity(plan.options.run_id), here))
            leases = {name: await lease_ref(client, name, plan.namespace) for name in plan.names if plan.elects}
    except TimeoutError:
        raise TimedOut(f"The run did not start within its timeout on {plan.resolved.server}.") from None
    return _Connected(client=client, cluster=cluster, clients=clients, leases=leases)


def _runners(plan: RunPlan, cluster: str) -> list[Runner]:
    """The entries of this run in the locks of this machine, one for each controller."""
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


async def _cluster_id(reporter: Reporter, client: Client, plan: RunPlan, known: Sequence[str]) -> str:
    """The key of the cluster. This is the first call of a run.

    It waits for a server that does not answer, except with --once. It does not wait for one whose certificate is not
    the expected one: that will not change.
    """
    reported = False
    while True:
        try:
            return await cluster_id(client, plan.resolved, known)
        except _TRANSIENT as error:
            if plan.options.once or isinstance(error, Untrusted):
                raise
            if not reported:
                reporter.waiting(error)
            reported = True
        await plan.clock.sleep(_RETRY_AFTER * plan.rng.uniform(0.8, 1.2))


async def _run(caller: RunSurroundings, plan: RunPlan, connected: _Connected) -> Summary:
    user, reporter, stop = caller.user, caller.reporter, caller.stop
    metrics = _metrics(plan, connected.client)
    observers: list[Observer] = [reporter.observer(stop.request)]
    if metrics is not None:
        observers.append(metrics)
    async with AsyncExitStack() as beside:
        observers += await beside.enter_async_context(recorded(plan, connected.cluster, connected.client))
        manager = Manager(
            plan.specs,
            client=connected.client,
            clock=plan.clock,
            rng=plan.rng,
            observers=observers,
            options=replace(plan.options, namespace=plan.namespace),
            services=_services(plan, connected),
        )
        reporter.at_work = lambda: [one for member in manager.members for one in member.at_work]
        beside.enter_context(_watchdog(plan, manager))
        for address, pages in _pages(plan, manager, metrics).items():
            at = await beside.enter_async_context(serving(address, pages, clock=plan.clock))
            _log.info("Serving %s on http://%s", " ".join(pages), at, extra={"action": "serving", "address": at})
        if plan.reloadable:
            reloading = asyncio.create_task(Reloader(plan.reloadable, manager, clock=plan.clock).run(), name="reloads")
            beside.callback(reloading.cancel)
        announcing = asyncio.create_task(_announce_stop(user, manager, reporter, stop))
        beside.callback(announcing.cancel)
        return await manager.run(stop)


async def _announce_stop(user: User, manager: Manager, reporter: Reporter, stop: Stop) -> None:
    await stop.first()
    note_asked(user.state, identity(manager.run_id))
    reporter.stopping(_under_way(manager))


def _under_way(manager: Manager) -> list[str]:
    return [entry for member in manager.members for entry in member.under_way]


def _metrics(plan: RunPlan, client: Client) -> Metrics | None:
    if not plan.metrics_address:
        return None
    from kubectl_ctrl.runtime.metrics import Metrics

    host = urlsplit(plan.resolved.server).netloc
    return Metrics([spec.name for spec in plan.specs], host=host, counters=client.counters)


def _pages(plan: RunPlan, manager: Manager, metrics: Metrics | None) -> dict[str, dict[str, Page]]:
    """The pages by address; one address may serve all of them."""
    pages: dict[str, dict[str, Page]] = {}
    if metrics is not None:
        metrics.attach(manager)
        text = metrics.text
        pages.setdefault(plan.metrics_address, {})["/metrics"] = lambda: Answer(200, text(), METRICS_TYPE)
    if plan.health_address:

        def overdue() -> list[str]:
            return [
                f"another process may hold the Lease of {member.spec.name} by now"
                for member in manager.members
                if member.overdue
            ]

        def unready() -> list[str]:
            return [what for member in manager.members for what, _ in member.obstacles()]

        pages.setdefault(plan.health_address, {}).update({"/healthz": check(overdue), "/readyz": check(unready)})
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


def _services(plan: RunPlan, connected: _Connected) -> Services:
    def elector(name: str, client: Client, tell: Callable[[BackgroundCall], None]) -> LeaseElector:
        candidate = Candidate(
            identity=identity(plan.options.run_id),
            is_dead=is_dead,
            patient=False,
            required=plan.elect == "required",
            labels=lease_labels(name),
        )
        return LeaseElector(client, connected.leases[name], candidate, clock=plan.clock, rng=plan.rng, tell=tell)

    def recorder(name: str, client: Client, tell: Callable[[BackgroundCall], None]) -> EventRecorder:
        return EventRecorder(client, f"kubectl-ctrl-{name}", clock=plan.clock, rng=plan.rng, tell=tell)

    return Services(elector=elector if plan.elects else None, recorder=recorder, clients=connected.clients)
