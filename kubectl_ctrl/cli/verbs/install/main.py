"""The body of `install`."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output import answers
from kubectl_ctrl.cli.output.log_lines import logging_to
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.install.apply import ApplyOutcome, ApplyStep, install
from kubectl_ctrl.install.kinds import shown
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.kubeconfig.resolution import Resolved
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model import manifests
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.target.effect import CommandEffect
from kubectl_ctrl.text import verbatim

# Without --server-side, kubectl apply stores each object in an annotation of this size at most.
_LARGEST_ANNOTATION = 256 * 1024
_FORMS = ("", "name", "json", "yaml")

Wanted = Sequence[tuple[SourcedController, tuple[Obj, ...]]]


def run(app: App, given: ParsedCommandLine) -> int:
    dry_run = given.one_of("dry_run", ("none", "client", "server"))
    answers.printer(given, _FORMS)
    if given["crds_only"] and given["rbac_only"]:
        raise UsageError("--crds-only and --rbac-only exclude each other.", next_step="omit both to install everything")
    wanted = _wanted(given)
    if given["print"]:
        _print(app, [obj for _, objects in wanted for obj in objects])
        return 0
    if not given.arguments:
        app.narrate(f"all bundled controllers: {', '.join(sourced.spec.name for sourced, _ in wanted)}")
    resolved = app.meant(given, CommandEffect.WRITE if dry_run == "none" else CommandEffect.DRY_RUN)
    with logging_to(app.narrate, form="text", verbosity=app.verbosity):
        asyncio.run(_install(app, given, resolved, wanted))
    return 0


def _wanted(given: ParsedCommandLine) -> Wanted:
    """Each controller with its objects."""
    sourced = sources.resolve(given.arguments or BUNDLED)
    crds, rbac = not given["rbac_only"], not given["crds_only"]
    return [(one, needs(one.parts(), given["namespace"], crds=crds, rbac=rbac)) for one in sourced]


def _print(app: App, objects: Sequence[Obj]) -> None:
    if any(len(json.dumps(obj)) > _LARGEST_ANNOTATION for obj in objects):
        app.narrate("for objects of this size kubectl apply needs --server-side")
    app.answer(verbatim(manifests.text(objects).rstrip("\n")))


async def _install(app: App, given: ParsedCommandLine, resolved: Resolved, wanted: Wanted) -> None:
    client = await app.connected(resolved, clock=SystemClock(), rng=random.SystemRandom())
    try:
        done = await install(
            client,
            [(one.spec.name, objects) for one, objects in wanted],
            lambda step: _tell(app, given["output"], step, given["dry_run"]),
            dry_run=given["dry_run"],
            force=given["force_conflicts"],
            wait=given["wait"],
        )
        _show(app, given, done)
    finally:
        await client.close()


_DRY = {"none": "", "client": " (dry run)", "server": " (server dry run)"}


def _tell(app: App, form: str, step: ApplyStep, dry_run: str) -> None:
    """Print a line for a finished step; on standard error if standard output has another format."""
    line = f"{step}{_DRY[dry_run]}"
    if form == "":
        app.answer(line)
    elif step.outcome in (ApplyOutcome.CREATED, ApplyOutcome.CONFIGURED):
        app.narrate(line)


def _show(app: App, given: ParsedCommandLine, steps: Sequence[ApplyStep]) -> None:
    form = answers.printer(given, _FORMS)
    listed: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [_bare(step.would or step.live or step.desired) for step in steps],
    }
    match form.form:
        case "":
            pass
        case "yaml":
            app.answer(verbatim(manifests.text([listed])), end="")
        case _:
            app.answer(verbatim(form.text(listed, listed["items"], [shown(step.ref) for step in steps])), end="")


def _bare(obj: Obj) -> Obj:
    """Without managedFields, as kubectl shows objects."""
    return {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
