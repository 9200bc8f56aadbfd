"""The body of `up`: from its flags to a cluster, and controllers on it."""

from __future__ import annotations

import re

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.devcluster import bring_up
from kubectl_ctrl.cli.foreground.run import options_of, run_on
from kubectl_ctrl.cli.output.progress import Progress
from kubectl_ctrl.cli.parsing import new_cluster
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.cli.verbs import table
from kubectl_ctrl.clusters import names
from kubectl_ctrl.devcluster.up import Up, UpOptions, already_runs
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.loader import sources
from kubectl_ctrl.loader.sources import SourcedController
from kubectl_ctrl.model.suggestions import ctrl

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OF_CONTROLLERS = ("--detach", "--example", "--until-idle", "--timeout")


def run(app: App, given: ParsedCommandLine) -> int:
    app.machine, app.quiet = given["progress"] == "json", given["quiet"]
    options = _options(app, given)
    run_given(app, given, options.sourced)  # its flags are checked before anything is changed
    up, progress, code = bring_up(app, given, options)
    if up.entry is None or options.detach or not options.sourced:
        return code
    return _foreground(app, given, up, progress)


def _options(app: App, given: ParsedCommandLine) -> UpOptions:
    app.registry.place(given["name"])
    if given["namespace"] and not _LABEL.fullmatch(given["namespace"]):
        raise UsageError(
            f"{given['namespace']!r} is not a valid namespace name.",
            next_step="use at most 63 characters of a-z, 0-9 and '-', without '-' at either end",
        )
    _check_together(given)
    return UpOptions(
        name=given["name"],
        provider=given["provider"],
        spec=new_cluster.spec(given),
        use=given["use"],
        images=given["load"],
        sourced=sources.resolve(given.arguments),
        example=given["example"] and bool(given.arguments),
        detach=given["detach"] and bool(given.arguments),
        namespace=given["namespace"],
        everywhere=given["all_namespaces"],
    )


def _check_together(given: ParsedCommandLine) -> None:
    """Flags that need a controller count only as typed: a variable that is set for other commands is no error here."""
    typed = [name for flag in given.typed if (name := flag.partition("=")[0]) in _OF_CONTROLLERS]
    if given["detach"] and given["until_idle"]:
        raise UsageError("--detach and --until-idle exclude each other.", next_step="kubectl ctrl up --help")
    if given["detach"] and "--timeout" in typed:
        raise UsageError("--timeout is for controllers in the foreground.", next_step="omit it, or --detach")
    if typed and not given.arguments:
        raise UsageError(f"{typed[0]} needs a controller.", next_step=f"for instance: {ctrl('up', 'foo', typed[0])}")


def run_given(
    app: App, given: ParsedCommandLine, sourced: tuple[SourcedController, ...], *more: str
) -> ParsedCommandLine:
    """The flags of `run` for these controllers; those that come from the environment count here too."""
    words = ["--until-idle"] if given["until_idle"] else []
    words += [f"--timeout={given['timeout']}s"] if given["timeout"] is not None else []
    words += [f"--namespace={given['namespace']}"] if given["namespace"] else []
    words += ["--all-namespaces"] if given["all_namespaces"] else []
    words += ["--log=json"] if given["progress"] == "json" else []
    of_run = table.load(table.find("run")).parse(
        [*words, *more, "--", *(one.word for one in sourced)], app.user.environ
    )
    assert of_run is not None
    options_of(of_run)
    return of_run


def _foreground(app: App, given: ParsedCommandLine, up: Up, progress: Progress) -> int:
    """Run the controllers until Ctrl-C, or until idle; the cluster is kept."""
    entry, sourced = up.entry, up.options.sourced
    assert entry is not None
    resolved = up.resolved(entry)
    if not given["until_idle"]:
        running = up.running(entry, resolved)
        for one in sourced:
            if one.spec.name in running:
                progress.say(already_runs(running[one.spec.name]))
        sourced = tuple(one for one in sourced if one.spec.name not in running)
    if not sourced:
        return 0
    of_run = run_given(app, given, up.options.sourced, f"--context={entry.context}")
    try:
        return run_on(app, of_run, sourced, lambda: resolved)
    finally:
        progress.say(names.left(app.registry, entry.name))
