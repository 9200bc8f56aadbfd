"""`kubectl ctrl run`: controllers in this process, against one cluster that is chosen once and pinned."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kubectl_ctrl.cli import bundled, guard
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.command import Given, Verb
from kubectl_ctrl.cli.flags import config_flags
from kubectl_ctrl.cli.grammar import DURATION, Flag
from kubectl_ctrl.cli.session import Plan, session
from kubectl_ctrl.cli.table import find
from kubectl_ctrl.client.kubeconfig import load
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.runtime.options import RESYNC, RunOptions

_TIMEOUT = 300.0
_MOST_WORKERS = 1000


@dataclass(frozen=True, slots=True)
class _Range:
    """Which values of a flag can be meant."""

    least: float
    most: float
    text: str


_WORKERS = _Range(1, _MOST_WORKERS, f"a whole number from 1 to {_MOST_WORKERS}")
_RESYNC = _Range(1, 1e9, "at least 1s, or 0 for never")
_SOME_TIME = _Range(0.001, 1e9, "more than nothing, like 30s or 5m")


def _run(app: App, given: Given) -> int:
    names = bundled.check(given.arguments)
    if not names:
        raise UsageError("run needs a controller.", next_step=f"the bundled controllers are: {', '.join(BUNDLED)}")
    options = _options(given)
    resolved = load(config_flags(given.flags), app.environ, app.home)
    standing = guard.standing_list(app.config_file)
    guard.check(find("run").effect, resolved, allow=given["allow_context"], standing=standing)
    plan = Plan(
        controllers=tuple(bundled.load(name) for name in names),
        resolved=resolved,
        all_namespaces=given["all_namespaces"],
        options=options,
        log=_one_of(given, "log", ("text", "json")),
        elect=_one_of(given, "leader_elect", ("auto", "true", "false", "required")),
        local=guard.is_local(resolved),
        utc=given["utc"],
        metrics_address=given["metrics_bind_address"],
        health_address=given["health_probe_bind_address"],
    )
    return asyncio.run(session(app, plan))


def _options(given: Given) -> RunOptions:
    """What the flags say about the run; the namespace comes with the context."""
    if given["once"] and given["until_idle"]:
        raise UsageError("--once and --until-idle exclude each other.", next_step="--until-idle also retries and waits")
    ends = given["once"] or given["until_idle"]
    timeout = given["timeout"]
    if timeout is None:
        timeout = _TIMEOUT if ends else None
    else:
        _check("timeout", timeout, _SOME_TIME)
    resync = given["resync"]
    if resync:
        _check("resync", resync, _RESYNC)
    _check("workers", given["workers"], _WORKERS)
    _check("attempt-timeout", given["attempt_timeout"], _SOME_TIME)
    _check("drain", given["drain"], _SOME_TIME)
    Selector.parse(given["selector"])
    return RunOptions(
        labels=given["selector"],
        workers=given["workers"],
        resync=resync or None,
        once=given["once"],
        until_idle=given["until_idle"],
        timeout=timeout,
        attempt_timeout=given["attempt_timeout"],
        drain=given["drain"],
    )


def _check(flag: str, value: float, allowed: _Range) -> None:
    if not allowed.least <= value <= allowed.most:
        raise UsageError(f"Invalid value for --{flag}: {value:g}.", next_step=f"give {allowed.text}")


def _one_of(given: Given, name: str, words: tuple[str, ...]) -> str:
    value: str = given[name]
    if value not in words:
        flag = name.replace("_", "-")
        raise UsageError(f"Invalid value for --{flag}: {value!r}.", next_step=f"use one of: {', '.join(words)}")
    return value


VERB = Verb(
    name="run",
    usage="run CONTROLLER... [flags]",
    summary="Run controllers here, against the current context.",
    details=(
        "Prints a line for each reconcile: when, which object, its id, why it ran, what it\n"
        "wrote, how long it took and what follows. The first Ctrl-C lets what is under way\n"
        "finish; the second ends at once."
    ),
    examples=(
        ("Run foo in the context's namespace", "run foo"),
        ("In all namespaces, with each reconcile as a line of JSON", "run foo -A --log json"),
        ("Until there is nothing left to do, for a script", "run foo --until-idle --timeout 2m"),
        ("On a cluster that is not local", "run foo --context staging --allow-context staging"),
    ),
    flags=(
        Flag("-A", "--all-namespaces", help="Work in all namespaces."),
        Flag(
            "--allow-context",
            value="NAME",
            default="",
            help="Permit changes to a cluster that is not local; must equal the name of the context that is used.",
        ),
        Flag(
            "--attempt-timeout",
            value="DURATION",
            type=DURATION,
            default="60s",
            help="The longest time for one reconcile.",
        ),
        Flag(
            "--drain",
            value="DURATION",
            type=DURATION,
            default="30s",
            help="How long reconciles under way may take to finish after the first Ctrl-C.",
        ),
        Flag(
            "--health-probe-bind-address",
            value="HOST:PORT",
            default="",
            help="Serve /healthz and /readyz there; off when not given.",
        ),
        Flag(
            "--leader-elect",
            value="WHEN",
            bare="true",
            default="auto",
            help="auto, true, false or required: hold a Lease while running. auto is off on local clusters and on "
            "elsewhere; required fails without the right to use Leases.",
        ),
        Flag("--log", value="FORMAT", default="text", help="text, or json for machines: one object per line."),
        Flag(
            "--metrics-bind-address",
            value="HOST:PORT",
            default="",
            help="Serve Prometheus metrics there under /metrics; off when not given.",
        ),
        Flag("--once", help="Reconcile each object that is there once, without retries, and end."),
        Flag(
            "--resync",
            value="DURATION",
            type=DURATION,
            default=f"{RESYNC / 3600:g}h",
            help="Reconcile everything again after this time, give or take a tenth; 0 for never.",
        ),
        Flag(
            "-l",
            "--selector",
            value="SELECTOR",
            default="",
            help="Only objects with these labels (for example app=web).",
        ),
        Flag(
            "--timeout",
            value="DURATION",
            type=DURATION,
            default=None,
            help="End with code 124 after this time; 5m with --once and --until-idle, never otherwise.",
        ),
        Flag("--until-idle", help="End when nothing is left to do."),
        Flag("--utc", help="Show times in UTC rather than in local time."),
        Flag("--workers", value="N", type=int, default=8, help="How many reconciles of a controller run at once."),
    ),
    body=_run,
    completes=bundled.candidates,
)
