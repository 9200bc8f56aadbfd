"""The body of `run`."""

from __future__ import annotations

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.foreground.run import run_on
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.controllers import BUNDLED
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.loader import sources
from kubectl_ctrl.target.effect import CommandEffect


def run(app: App, given: ParsedCommandLine) -> int:
    app.machine = given.one_of("log", ("text", "json")) == "json"
    if not given.arguments:
        raise UsageError("run needs a controller.", next_step=f"the bundled controllers are: {', '.join(BUNDLED)}")
    prefix = given["annotation_prefix"]
    sourced = sources.resolve(given.arguments, {"annotation_prefix": prefix} if prefix else None)
    return run_on(app, given, sourced, lambda: app.meant(given, CommandEffect.WRITE))
