"""One run from the moment that its cluster is known: connect, take the place, run, say how it went."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, replace
from datetime import UTC
from random import Random
from typing import TYPE_CHECKING, TypeGuard
from urllib.parse import urlsplit

from kubectl_ctrl.cli import guard
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.holder import identity, is_dead
from kubectl_ctrl.cli.interrupts import Signals, interrupts
from kubectl_ctrl.cli.logs import logging_to
from kubectl_ctrl.cli.runlock import only_runner
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.connect import connect
from kubectl_ctrl.client.kubeconfig import Resolved, ca_fingerprint
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CallError
from kubectl_ctrl.model.attempt import Attempt, Background, Called, Observed
from kubectl_ctrl.model.objects import uid_of
from kubectl_ctrl.model.resources import LEASES, NAMESPACES
from kubectl_ctrl.model.summary import Reason, Summary
from kubectl_ctrl.render.attempts import Style, attempt_json, attempt_line, call_text
from kubectl_ctrl.render.summary import summary_lines
from kubectl_ctrl.render.text import escaped
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.election import Candidate, LeaseElector
from kubectl_ctrl.runtime.events import EventRecorder
from kubectl_ctrl.runtime.health import Answer, Page, check, serving
from kubectl_ctrl.runtime.manager import Manager
from kubectl_ctrl.runtime.observers import Observer
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.runs import new_run
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.watchdog import Watchdog
from kubectl_ctrl.version import VERSION

if TYPE_CHECKING:
    from kubectl_ctrl.runtime.metrics import Metrics

_log = logging.getLogger(__name__)

_CALLS_FROM = 4
_LEASE_NAMESPACE = "default"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to run, where, and how it is to be told."""

    clock: Clock
    rng: Random
    controllers: tuple[ControllerSpec, ...]
    resolved: Resolved
    all_namespaces: bool
    options: RunOptions
    log: str  # text or json
    elect: str  # auto, true, false or required
    local: bool
    utc: bool
    metrics_address: str
    health_address: str

    @property
    def namespace(self) -> str:
        return "" if self.all_namespaces else self.resolved.namespace

    @property
    def elects(self) -> bool:
        return self.elect in ("true", "required") or (self.elect == "auto" and not self.local)


async def session(app: App, plan: Plan) -> int:
    """The whole run; its exit code, or the error that ended it."""
    with logging_to(app.err, form=plan.log, verbosity=app.verbosity):
        client = await connect(
            plan.resolved,
            clock=plan.clock,
            rng=plan.rng,
            environ=app.environ,
            user_agent=f"kubectl-ctrl/{VERSION}",
            interactive=app.interactive,
        )
        try:
            cluster = await _cluster_id(client, plan.resolved)
            with ExitStack() as places:
                for spec in plan.controllers:
                    place = only_runner(app.state_dir, cluster=cluster, controller=spec.name, scope=plan.namespace)
                    places.enter_context(place)
                return await _run(app, plan, client)
        finally:
            await client.close()


async def _cluster_id(client: Client, resolved: Resolved) -> str:
    """The same for every way to the same cluster where we may look; else what the kubeconfig says of it."""
    try:
        return uid_of(await client.get(NAMESPACES.ref("kube-system")))
    except CallError as error:
        _log.debug("The cluster's UID cannot be read: %s", error.message)
        return hashlib.sha256(f"{resolved.server} {ca_fingerprint(resolved)}".encode()).hexdigest()


async def _run(app: App, plan: Plan, client: Client) -> int:
    stop = Stop()
    style = _style(app, plan)
    run_id = new_run(plan.rng)
    metrics = _metrics(plan, client)
    observers: list[Observer] = [_printer(app, plan, style, stop)]
    if metrics is not None:
        observers.append(metrics)
    manager = Manager(
        plan.controllers,
        client=client,
        clock=plan.clock,
        rng=plan.rng,
        observers=observers,
        options=replace(plan.options, namespace=plan.namespace, run_id=run_id),
        services=_services(app, plan, run_id),
    )
    _say_what_runs(app, plan, run_id)
    async with AsyncExitStack() as beside:
        signals = beside.enter_context(interrupts(stop.request))
        beside.enter_context(_watchdog(app, plan, manager))
        for address, pages in _pages(plan, manager, metrics).items():
            at = await beside.enter_async_context(serving(address, pages, clock=plan.clock))
            _log.info("Serving %s on http://%s", " ".join(pages), at, extra={"action": "serving", "address": at})
        summary = await manager.run(stop)
    return _ended(app, summary, style, signals)


def _metrics(plan: Plan, client: Client) -> Metrics | None:
    if not plan.metrics_address:
        return None
    from kubectl_ctrl.runtime.metrics import Metrics

    host = urlsplit(plan.resolved.server).netloc
    return Metrics([spec.name for spec in plan.controllers], host=host, counters=client.counters)


def _pages(plan: Plan, manager: Manager, metrics: Metrics | None) -> dict[str, dict[str, Page]]:
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


def _watchdog(app: App, plan: Plan, manager: Manager) -> Watchdog:
    def end() -> None:
        app.err.flush()
        os._exit(1)

    def who() -> str:
        return " ".join(entry for member in manager.members for entry in member.controller.under_way)

    return Watchdog(
        clock=plan.clock,
        must_end=lambda: any(member.overdue for member in manager.members),
        end=end,
        who=who,
    )


def _style(app: App, plan: Plan) -> Style:
    return Style(
        width=app.width,
        color=app.color,
        unicode=app.unicode,
        zone=UTC if plan.utc else None,
        full_times=not app.terminal,
        controllers=len(plan.controllers) > 1,
        primaries={spec.name: spec.primary for spec in plan.controllers},
    )


def _printer(app: App, plan: Plan, style: Style, stop: Stop) -> Callable[[Observed], None]:
    """What a run says of itself: one line per attempt, and from -v 4 on one per call."""

    def show(value: Observed) -> None:
        try:
            if isinstance(value, Attempt):
                app.answer(json.dumps(attempt_json(value)) if plan.log == "json" else attempt_line(value, style))
            elif app.verbosity >= _CALLS_FROM and _is_answer(value):
                _log.info("%s %s", value.call.id, call_text(value.call), extra={"action": "call"})
        except BrokenPipeError:
            stop.request()  # nobody reads any more

    return show


def _is_answer(value: Observed) -> TypeGuard[Called | Background]:
    return isinstance(value, Background) or (isinstance(value, Called) and value.answered)


def _services(app: App, plan: Plan, run_id: str) -> Services:
    def elector(name: str, client: Client, tell: Callable[[Background], None]) -> LeaseElector:
        suffix = f"-{plan.namespace}" if plan.namespace else ""
        candidate = Candidate(
            identity=identity(run_id), is_dead=is_dead, patient=False, required=plan.elect == "required"
        )
        lease = LEASES.ref(f"kubectl-ctrl-{name}{suffix}", _LEASE_NAMESPACE)
        return LeaseElector(client, lease, candidate, clock=plan.clock, rng=plan.rng, tell=tell)

    def recorder(name: str, client: Client, tell: Callable[[Background], None]) -> EventRecorder:
        return EventRecorder(client, f"kubectl-ctrl-{name}", clock=plan.clock, rng=plan.rng, tell=tell)

    return Services(elector=elector if plan.elects else None, recorder=recorder)


def _say_what_runs(app: App, plan: Plan, run_id: str) -> None:
    names = ", ".join(spec.name for spec in plan.controllers)
    where = f"namespace {plan.namespace} (-A for all)" if plan.namespace else "all namespaces"
    place = f"context {guard.context_name(plan.resolved)} ({plan.resolved.server}), {where}"
    election = "on" if plan.elects else "off (local cluster)" if plan.elect == "auto" else "off"
    if plan.log == "json":
        _log.info(
            "The run begins.",
            extra={
                "action": "run.begin",
                "run": run_id,
                "controllers": [spec.name for spec in plan.controllers],
                "context": guard.context_name(plan.resolved),
                "server": plan.resolved.server,
                "namespace": plan.namespace,
                "leaderElection": plan.elects,
            },
        )
        return
    app.narrate(escaped(f"run {run_id}: {names} on {place}"))
    app.narrate(f"leader election {election}; Ctrl-C ends it")


def _ended(app: App, summary: Summary, style: Style, signals: Signals) -> int:
    """Say what was left, and give the exit code; raises what ended the run otherwise than meant."""
    for line in summary_lines(summary, style):
        app.narrate(line)
    if problem := summary.problem():
        raise problem
    if summary.reason is Reason.CUT:
        return signals.exit_code
    ends = summary.reason in (Reason.ONCE, Reason.IDLE)
    return 1 if ends and summary.failed else 0
