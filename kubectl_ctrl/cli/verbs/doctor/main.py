"""The body of `doctor`: runs all checks and prints the results, or fixes problems."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output.answers import document
from kubectl_ctrl.cli.parsing.grammar import truth
from kubectl_ctrl.cli.parsing.query import CommandTarget
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs.doctor.downloads import RECIPES, install
from kubectl_ctrl.cli.verbs.doctor.fixes import FixResult, fix_all
from kubectl_ctrl.clock import Clock, SystemClock
from kubectl_ctrl.clusters import names
from kubectl_ctrl.clusters.provider import ClusterSpec
from kubectl_ctrl.clusters.providers import providers
from kubectl_ctrl.doctor import context, controllers, leftovers, recordings, tools
from kubectl_ctrl.doctor.checks import Check, CheckInput, benched, run_checks
from kubectl_ctrl.doctor.diagnosis import Diagnosis, Group
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.render.diagnosis import diagnosis_json, diagnosis_lines
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.text import Text, verbatim
from kubectl_ctrl.value import replace

_FORMS = ("text", "json", "yaml")

CHECKS = (
    Check(name="python", group=Group.MACHINE, look=tools.python),
    Check(name="kubectl", group=Group.MACHINE, look=tools.kubectl),
    Check(name="plugin", group=Group.MACHINE, look=tools.plugin),
    Check(name="config", group=Group.MACHINE, look=tools.configuration),
    Check(name="providers", group=Group.PROVIDERS, look=tools.providers, waits=True),
    Check(name="context", group=Group.CLUSTER, look=context.context, waits=True),
    Check(name="guard", group=Group.CLUSTER, look=context.permission, remote=True),
    Check(name="skew", group=Group.CLUSTER, look=tools.skew, remote=True),
    Check(name="controllers", group=Group.CONTROLLERS, look=controllers.controllers, remote=True),
    Check(name="crds", group=Group.CONTROLLERS, look=controllers.stored, remote=True),
    Check(name="machine", group=Group.LEFTOVERS, look=leftovers.machine),
    Check(name="cluster", group=Group.LEFTOVERS, look=leftovers.cluster, remote=True),
    Check(name="recording", group=Group.RECORDINGS, look=recordings.recording),
)


def run(app: App, given: ParsedCommandLine) -> int:
    """The body of the verb."""
    form = given.one_of("output", _FORMS)
    given = _with_name(given)
    for flag in ("yes", "allow_context"):
        if given[flag] and not given["fix"]:
            raise UsageError(f"--{flag.replace('_', '-')} is for doctor --fix.", next_step="kubectl ctrl doctor --help")
    if not given["fix"]:
        if given.arguments:
            raise UsageError("doctor takes a name only with --fix.", next_step="kubectl ctrl doctor --help")
        found = asyncio.run(_check(app, given))
        _answer(app, found, form)
        return found.code
    if given.arguments:
        [name, *more] = given.arguments
        if more or name not in RECIPES:
            raise UsageError(f"doctor --fix installs one of {', '.join(RECIPES)}.", next_step="name one of them")
        return asyncio.run(install(app, given, name))

    async def fix() -> FixResult:
        async with _benched(app, given, SystemClock()) as bench:
            return await fix_all(app, given, bench)

    fixed = asyncio.run(fix())
    _answer(app, fixed.diagnosis, form)
    if fixed.refused is not None:
        raise fixed.refused
    return fixed.code


def _with_name(given: ParsedCommandLine) -> ParsedCommandLine:
    """`--fix=kind` means `--fix kind`."""
    fix = truth(given["fix"])
    if fix is None:
        return replace(given, flags={**given.flags, "fix": True}, arguments=(given["fix"], *given.arguments))
    return replace(given, flags={**given.flags, "fix": fix})


async def _check(app: App, given: ParsedCommandLine) -> Diagnosis:
    clock = SystemClock()
    async with _benched(app, given, clock) as bench:
        groups = await run_checks(CHECKS, bench)
    # The printed commands address the checked cluster, even if the current context changes.
    pinned = [tuple(replace(line, command=app.pin.into(line.command)) for line in one.lines) for one in groups]
    return Diagnosis(
        at=clock.now(),
        groups=tuple(replace(one, lines=lines) for one, lines in zip(groups, pinned, strict=True)),
    )


def _benched(app: App, given: ParsedCommandLine, clock: Clock) -> AbstractAsyncContextManager[CheckInput]:
    spec = ClusterSpec(bin_dir=Path(given["bin_dir"]) if given["bin_dir"] else None, offline=given["offline"])
    return benched(
        CommandTarget(app, given),
        spec,
        clock,
        providers(names.machine(app.user, clock)),
        user=app.user,
        narrate=app.narrate,
    )


def _answer(app: App, found: Diagnosis, form: str) -> None:
    if form != "text":
        app.answer(verbatim(app.as_called(app.hide(document(diagnosis_json(found), form)))))
        return
    style = Style(width=app.width, color=app.color, unicode=app.unicode)
    lines = diagnosis_lines(found, style)
    app.answer(Text(app.as_called(app.hide("\n".join(lines)))) if lines else "No leftovers were found.")
