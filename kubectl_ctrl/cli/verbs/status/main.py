"""`status`: the controllers that run on this machine, or that were started in the background and no longer run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.output import answers
from kubectl_ctrl.cli.output.answers import style_of
from kubectl_ctrl.cli.parsing.one_cluster import where
from kubectl_ctrl.cli.parsing.verb import ParsedCommandLine
from kubectl_ctrl.clock import SystemClock, rfc3339
from kubectl_ctrl.errors import ConfigError, UsageError
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.render.style import Style, moment_text
from kubectl_ctrl.runs import local
from kubectl_ctrl.runs.local import LocalController, ProcessState, SelectedCluster
from kubectl_ctrl.target.choice import deleted_cluster, selects_nothing
from kubectl_ctrl.text import counted

_HEADER = ("CONTROLLER", "CLUSTER", "SCOPE", "PID", "SINCE", "STATE", "RUN")
_WIDE = ("CONTEXT", "PLACE", "LOG")


def run(app: App, given: ParsedCommandLine) -> int:
    form = answers.printer(given)
    if given.arguments:
        raise UsageError("status takes no arguments.", next_step="kubectl ctrl status --help")
    found, elsewhere, place = _found(app, given)
    rows = form.ordered(found, _fields)
    if form.form not in ("", "wide"):
        answers.printed(app, form, {"controllers": [_fields(one) for one in rows]}, "controllers")
        return 0
    if rows:
        wide, style, now = form.form == "wide", style_of(app, given), SystemClock().now()
        cells = [_cells(one, style, now, wide=wide) for one in rows]
        app.answer(form.table(cells, (*_HEADER, *_WIDE) if wide else _HEADER))
    else:
        app.narrate(f"No controller runs here{f' on {place.text}' if place else ''}.")
    for line in filter(None, (*map(_hint, rows), _others(elsewhere, place))):
        app.narrate(line)
    return 0


def _found(
    app: App, given: ParsedCommandLine
) -> tuple[list[LocalController], list[LocalController], SelectedCluster | None]:
    """The controllers to list, those on other clusters, and the selected cluster; None for all."""
    every = [one for one, _ in local.controllers(app.user)]
    if given["all_clusters"]:
        return every, [], None
    try:
        place = where(app, given)
    except ConfigError:
        if not selects_nothing(app.user, given.cluster_flags) and not deleted_cluster(app.user, given.cluster_flags):
            raise
        return every, [], None
    return *local.split_by_cluster(app.user, place), place


def _others(elsewhere: Sequence[LocalController], here: SelectedCluster | None) -> str:
    """A line about the controllers on other clusters."""
    if not elsewhere:
        return ""
    ways = {one.flag: one.place for one in elsewhere}
    single = len(ways) == 1 and (here is None or here.flag not in ways)
    flag, place = next(iter(ways.items())) if single else (command("-A"), "other clusters")
    return f"{counted(len(elsewhere), 'controller')} on {place}: {ctrl('status', flag)}"


def _cells(one: LocalController, style: Style, now: float, *, wide: bool) -> Sequence[str]:
    if one.unreadable:
        unknown = (one.controller, "?", "?", "?", "?", one.state, "?")
        return (*unknown, "?", "?", "") if wide else unknown
    cells = (
        one.controller,
        one.cluster or one.context,
        one.scope or "(all)",
        str(one.pid),
        moment_text(one.since, now, style),
        one.state if one.code in (None, 0) else f"{one.state} ({one.code})",
        one.run,
    )
    more = (one.context, "background" if one.log else "foreground", str(one.log or ""))
    return (*cells, *more) if wide else cells


def _hint(one: LocalController) -> str:
    """The next step for a controller that failed in the background, or whose process is unknown."""
    if one.unreadable:
        lock = one.unreadable.unreadable
        return f"The lock file of {one.controller} cannot be read: {lock}. To find its process: {command('lsof', lock)}"
    if one.state not in (ProcessState.DEAD, ProcessState.FAILED):
        return ""
    how = "is dead" if one.state is ProcessState.DEAD else "has failed"
    return f"{one.controller} {how}; its log: {ctrl('logs', one.controller, '--name', one.cluster)}"


def _fields(one: LocalController) -> dict[str, Any]:
    return {
        "name": one.controller,
        "cluster": one.cluster or None,
        "context": one.context,
        "namespace": one.scope,
        "pid": None if one.unreadable else one.pid,
        "since": None if one.unreadable else rfc3339(one.since),
        "state": str(one.state),
        "run": one.run or None,
        "background": one.log is not None,
        "word": one.word or None,
        "log": str(one.log) if one.log else None,
        "exitCode": one.code,
    }
