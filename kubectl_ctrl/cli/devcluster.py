"""Bringing up and deleting local clusters from a terminal: for `up`, `down`, `cluster create` and `cluster delete`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from random import SystemRandom

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.interrupts import cancellable
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.output.progress import Progress, stopping
from kubectl_ctrl.cli.parsing import new_cluster
from kubectl_ctrl.cli.parsing.flags import KUBECTL_FLAGS
from kubectl_ctrl.cli.parsing.grammar import variable
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters import names
from kubectl_ctrl.devcluster import down
from kubectl_ctrl.devcluster.access import pointers
from kubectl_ctrl.devcluster.up import Up, UpOptions, UpSurroundings
from kubectl_ctrl.errors import CtrlError, UsageError


def bring_up(app: App, given: ParsedCommandLine, options: UpOptions) -> tuple[Up, Progress, int]:
    """Bring the cluster up; the exit code is that of the signal that interrupted it, or 0."""
    clock = SystemClock()
    progress = Progress.of(app, given, options.steps, clock)
    surroundings = UpSurroundings(
        user=app.user,
        clock=clock,
        steps=progress,
        resolve=app.pointed_at,
        connect=partial(app.connected, clock=clock, rng=SystemRandom()),
        environ=background_environ(app.user.environ),
    )
    up = Up(options, surroundings)
    try:
        with logging_to(progress.say, form="text", verbosity=app.verbosity):
            code = asyncio.run(cancellable(up.run(), stopping=stopping(progress), forced=up.report_state))
    except CtrlError:
        if up.has_left_something:
            up.report_state()
        raise
    if code or up.entry is None:
        up.report_state()
    else:
        for line in pointers(app.user, options, up.entry):
            progress.say(line)
    return up, progress, code


def background_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that would stop a controller in the background, or redirect it."""
    flags = ("once", "timeout", "until", "until-idle", *(flag.long for flag in KUBECTL_FLAGS))
    left_out = {variable(flag) for flag in flags}
    return {name: value for name, value in environ.items() if name not in left_out}


def down_verb(app: App, given: ParsedCommandLine) -> int:
    """The body of `down`."""
    return delete(app, given, given.arguments)


def delete(app: App, given: ParsedCommandLine, words: Sequence[str]) -> int:
    """Delete the cluster of that name, the default one, or with --all every managed cluster."""
    app.machine = given["progress"] == "json"
    clusters = _clusters(app, given, words)
    clock = SystemClock()
    progress = Progress.of(app, given, down.STEPS, clock)
    if not clusters:
        progress.say("there is no managed cluster")

    def report_state() -> None:
        for name in clusters:
            if names.is_there(app.registry, name):
                progress.say(names.left(app.registry, name))

    work = down.all_deleted(app.user, clusters, clock, progress)
    with logging_to(progress.say, form="text", verbosity=app.verbosity):
        code = asyncio.run(cancellable(work, stopping=stopping(progress), forced=report_state))
    if code:
        report_state()
    return code


def _clusters(app: App, given: ParsedCommandLine, words: Sequence[str]) -> list[str]:
    if given["all"]:
        if words or any(flag.startswith("--name=") for flag in given.typed):
            raise UsageError("--all and a name exclude each other.", next_step="kubectl ctrl down --help")
        return sorted({*names.names(app.registry), *names.locks(app.registry)})
    name = new_cluster.named(given, words) or names.only(app.registry)
    return [name] if name else []
