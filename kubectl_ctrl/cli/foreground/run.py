"""Runs controllers with the flags of `run`. All flags are checked before anything changes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.foreground.memory import relax
from kubectl_ctrl.cli.foreground.output import TerminalReporter
from kubectl_ctrl.cli.interrupts import FORCE_AFTER, Signals, interrupts, leave_within
from kubectl_ctrl.cli.output.answers import style_of
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import Refused, UsageError
from kubectl_ctrl.history.location import recording_file
from kubectl_ctrl.history.pruning import Caps
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader.reload import CodeGroup, code_groups
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.secrecy import Secrecy
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.runs.session import RunSurroundings, session
from kubectl_ctrl.runs.settings import RunPlan
from kubectl_ctrl.runtime.endpoints import parse_address
from kubectl_ctrl.runtime.options import RunOptions
from kubectl_ctrl.runtime.stop import Stop
from kubectl_ctrl.runtime.summary import Reason, Summary
from kubectl_ctrl.runtime.until import parse_until
from kubectl_ctrl.target import guard
from kubectl_ctrl.value import Value, replace

_TIMEOUT = 300.0
_MOST_WORKERS = 1000


class _Range(Value):
    """The valid values of a flag."""

    least: float
    most: float
    text: str


_WORKERS = _Range(1, _MOST_WORKERS, f"a whole number from 1 to {_MOST_WORKERS}")
_RESYNC = _Range(1, 1e9, "at least 1s, or 0 for never")
_RECORD_AGE = _Range(60, 1e9, "at least 1m")
_RECORD_SIZE = _Range(1_000_000, 1e12, "at least 1MB")
_SOME_TIME = _Range(0.001, 1e9, "more than zero, for example 30s or 5m")


def run_on(
    app: App, given: ParsedCommandLine, sourced: tuple[SourcedController, ...], where: Callable[[], Resolved]
) -> int:
    """Run these controllers; `where` resolves the cluster, after the flags are checked."""
    options = options_of(given, sourced)
    resolved = where()
    # As for kubectl wait, the context's namespace, also with -A.
    options = replace(options, until=tuple(replace(one, namespace=resolved.namespace) for one in options.until))
    _check_identity(given, resolved)
    ours = guard.managed(resolved, app.registry)
    _check_takeover(given, resolved, trusted=ours is not None or guard.is_local(resolved))
    plan = RunPlan(
        clock=SystemClock(),
        rng=random.Random(),  # noqa: S311  # for names, spreading and jitter; SystemRandom makes a system call for each number
        controllers=sourced,
        resolved=resolved,
        all_namespaces=given["all_namespaces"],
        options=options,
        elect=given.one_of("leader_elect", ("auto", "true", "false", "required")),
        local=guard.is_local(resolved),
        ours=ours.name if ours is not None else "",
        takeover=given["takeover"],
        holder_gone=given["yes"],
        again=partial(given.again, "run"),
        as_installed=given["as_installed"],
        metrics_address=_address(given, "metrics_bind_address"),
        health_address=_address(given, "health_probe_bind_address"),
        record=_record(app, given["record"]),
        caps=_caps(given),
        reloadable=_groups(given, sourced),
    )
    relax()
    return asyncio.run(_session(app, given, plan))


async def _session(app: App, given: ParsedCommandLine, plan: RunPlan) -> int:
    """The run with its output and signal handlers; returns the exit code, or raises the error of the run."""
    stop, secrecy = Stop(), Secrecy()
    app.hide = secrecy.text
    style, form = style_of(app, given), given["log"]
    log = logging_to(app.narrate, form=form, verbosity=app.verbosity, hide=secrecy.text, style=style)
    with log, interrupts(stop.request) as signals:
        reporter = TerminalReporter(app, plan, secrecy, machine=form == "json", style=style)
        signals.unheard = reporter.unheard
        signals.forced = lambda: reporter.forced(blocked=signals.blocked)
        connect = partial(app.connected, clock=plan.clock, rng=plan.rng)
        summary = await session(RunSurroundings(user=app.user, connect=connect, reporter=reporter, stop=stop), plan)
        if summary is None:
            return 0
        problem = reporter.end(summary)
        code = problem.exit_code if problem else _exit_code(summary, signals)
        if summary.reason is Reason.CUT or any(one.entry.state == "running" for one in summary.left):
            leave_within(FORCE_AFTER, code)  # asyncio.run would wait for tasks that ignore their cancellation
        if problem:
            raise problem
        return code


def _exit_code(summary: Summary, signals: Signals) -> int:
    if summary.reason is Reason.CUT:
        return signals.exit_code
    ends = summary.reason in (Reason.ONCE, Reason.IDLE)
    return 1 if ends and summary.failed else 0


def _groups(given: ParsedCommandLine, sourced: tuple[SourcedController, ...]) -> tuple[CodeGroup, ...]:
    if not given["reload"]:
        return ()
    if given["once"]:
        raise UsageError("--once and --reload exclude each other.", next_step="--until-idle goes with --reload")
    return code_groups(sourced)


def options_of(given: ParsedCommandLine, sourced: Sequence[SourcedController] = ()) -> RunOptions:
    """The options of the run. Their namespace is set later, from the context."""
    endings = [flag for flag in ("--once", "--until", "--until-idle") if given[flag.strip("-").replace("-", "_")]]
    if len(endings) > 1:
        raise UsageError(
            f"{' and '.join(endings)} exclude each other.", next_step="--until-idle and --until also retry and wait"
        )
    ends = bool(endings)
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
        until=tuple(parse_until(source, "") for source in given["until"]),
        timeout=timeout,
        attempt_timeout=given["attempt_timeout"],
        drain=given["drain"],
        # It costs CPU time, and the tests of the bundled controllers already use it.
        read_only_objects=given["reload"] or not all(one.bundled for one in sourced),
        words={one.spec.name: one.word for one in sourced},
    )


def _check_identity(given: ParsedCommandLine, resolved: Resolved) -> None:
    if given["as_installed"] and resolved.impersonate.user:
        raise UsageError(
            f"--as-installed impersonates a ServiceAccount, and {resolved.impersonate.user!r} is already impersonated.",
            next_step="leave out --as, or select a kubeconfig user without it",
        )


def _check_takeover(given: ParsedCommandLine, resolved: Resolved, *, trusted: bool) -> None:
    if given["takeover"] and not trusted and not given["yes"]:
        words = " ".join(given.arguments)
        raise Refused(
            f"--takeover would scale the Deployment of {words} in {guard.context_name(resolved)!r} to zero for as long "
            "as this run lasts.",
            next_step=given.again("run", "--yes"),
        )


def _check(flag: str, value: float, allowed: _Range) -> None:
    if not allowed.least <= value <= allowed.most:
        raise UsageError(f"Invalid value for --{flag}: it must be {allowed.text}.")


def _record(app: App, word: str) -> Path | None:
    if word == "off":
        return None
    return recording_file(app.user) if word == "auto" else Path(word).expanduser().absolute()


def _caps(given: ParsedCommandLine) -> Caps:
    _check("record-max-age", given["record_max_age"], _RECORD_AGE)
    _check("record-max-size", given["record_max_size"], _RECORD_SIZE)
    return Caps(size=given["record_max_size"], age=given["record_max_age"])


def _address(given: ParsedCommandLine, name: str) -> str:
    address: str = given[name]
    if address:
        parse_address(address)
    return address
