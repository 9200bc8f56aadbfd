"""Printing a run: attempts on stdout, the rest on stderr, as text or JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import TypeGuard

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.interrupts import FORCE_AFTER
from kubectl_ctrl.errors import CtrlError, NotInstalled
from kubectl_ctrl.model.attempt import Attempt, BackgroundCall, CallProgress, ControllerState, Observed
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import to_recorded
from kubectl_ctrl.model.secrecy import Secrecy, secrets_in
from kubectl_ctrl.model.suggestions import ctrl
from kubectl_ctrl.render.attempt_json import attempt_json
from kubectl_ctrl.render.attempts import attempt_text, call_text
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.summary import summary_fields, summary_lines
from kubectl_ctrl.runs.impersonation import user_of
from kubectl_ctrl.runs.settings import RunPlan
from kubectl_ctrl.runtime.summary import Summary
from kubectl_ctrl.target import guard
from kubectl_ctrl.text import Text, counted, headed
from kubectl_ctrl.value import replace

_log = logging.getLogger(__name__)

_CALLS_FROM = 4
_TRACEBACKS_FROM = 6


class TerminalReporter:
    """Prints one run; secrets that `secrecy` learns from its attempts are masked. See session.Reporter."""

    def __init__(self, app: App, plan: RunPlan, secrecy: Secrecy, *, machine: bool, style: Style) -> None:
        self._app = app
        self._plan = plan
        self._machine = machine
        self._secrecy = secrecy
        self._advised = False
        self.at_work: Callable[[], Sequence[tuple[str, bool]]] = tuple  # what a run does, once it runs: see Member
        self._style = replace(
            style,
            namespace=plan.namespace if app.terminal else None,
            controllers=len(plan.specs) > 1,
            primaries={spec.name: spec.primary for spec in plan.specs},
        )

    def begin(self, run_id: str, recording: str) -> None:
        plan = self._plan
        name = guard.context_name(plan.resolved)
        names = [spec.name for spec in plan.specs]
        if self._machine:
            fields = {
                "action": "run.begin",
                "run": run_id,
                "controllers": names,
                "context": name,
                "server": plan.resolved.server,
                "ours": plan.ours,
                "namespace": plan.namespace,
                "leaderElection": plan.elects,
                "asInstalled": plan.as_installed,
                "recording": recording,
            }
            _log.info("The run starts.", extra=fields)
            return
        if self._app.quiet:
            return
        where = f"namespace {plan.namespace} (-A for all)" if plan.namespace else "all namespaces"
        whose = "managed cluster" if plan.ours else "local cluster"
        election = "on" if plan.elects else f"off ({whose})" if plan.elect == "auto" else "off"
        place = (
            f"context {name} ({plan.resolved.server}{f', managed cluster {plan.ours}' if plan.ours else ''}), {where}"
        )
        for line in headed(f"run {run_id}: {', '.join(names)}", f"on {place}", self._app.width):
            self._app.narrate(line)
        if plan.as_installed:
            self._app.narrate(f"acting as {', '.join(map(user_of, plan.names))}")
        self._app.narrate(recording)
        self._app.narrate(f"leader election {election}; {self._app.end} stops it")

    def waiting(self, error: CtrlError) -> None:
        _log.warning(
            "The cluster does not answer yet; retrying: %s", self._app.briefly(error), extra={"action": "waiting"}
        )

    def observer(self, nobody_reads: Callable[[], None]) -> Callable[[Observed], None]:
        """Prints one line per attempt, and from -v 4 one per call; calls `nobody_reads` once stdout is closed."""

        def show(value: Observed) -> None:
            if isinstance(value, Attempt):
                self._secrecy.learn(secrets_in(value))
                shown = self._secrecy.attempt(to_recorded(value if self._machine else _in_brief(value), steps=False))
                if shown.traceback and self._app.verbosity >= _TRACEBACKS_FROM:
                    _log.info("%s failed:\n%s", shown.id, shown.traceback.rstrip(), extra={"action": "traceback"})
                text = json.dumps(attempt_json(shown)) if self._machine else Text(attempt_text(shown, self._style))
                try:
                    self._app.answer(text)
                except BrokenPipeError:
                    self._app.nobody_reads()
                    nobody_reads()
            elif isinstance(value, ControllerState):
                self._advise(value)
            elif self._app.verbosity >= _CALLS_FROM and _is_answer(value):
                _log.info("%s %s", value.call.id, call_text(value.call), extra={"action": "call"})

        return show

    def _advise(self, state: ControllerState) -> None:
        """If a controller waits for its own type, the command that installs it; once."""
        waits = any(f"{spec.primary} is not installed" in state.message for spec in self._plan.specs)
        if waits and not (self._advised or self._plan.options.once):
            self._advised = True
            advice = self._app.pin.into(self._install())
            _log.info("In another terminal: %s", advice, extra={"action": "run.advice"})

    def stopping(self, under_way: Sequence[str]) -> None:
        """After the first signal, if reconciles are running."""
        if under_way:
            _log.info(
                "Stopping: %s in progress may take up to %s to finish; %s again cancels them.",
                counted(len(under_way), "reconcile"),
                format_duration(self._plan.options.drain),
                self._app.end,
                extra={"action": "run.stopping"},
            )

    def unheard(self) -> None:
        """After the first signal, if the blocked event loop could not handle it."""
        _log.warning(
            "Stopping: %s, so nothing can finish; %s again stops the run.",
            self._in_progress(blocked=True),
            self._app.end,
            extra={"action": "run.stopping"},
        )

    def forced(self, *, blocked: bool) -> None:
        """The last line of a run that did not stop after the second signal."""
        in_progress = self._in_progress(blocked=blocked)
        _log.error(
            "Exiting: the run did not stop within %s%s.",
            format_duration(FORCE_AFTER),
            f": {in_progress}" if in_progress else "",
            extra={"action": "run.forced"},
        )

    def _in_progress(self, *, blocked: bool) -> str:
        """The reconciles in progress, or the one that blocks the event loop."""
        at_work = self.at_work()
        under_way = f"{', '.join(one for one, _ in at_work)} in progress" if at_work else ""
        if not blocked:
            return under_way
        holding = [one for one, holds_loop in at_work if holds_loop]
        if holding:
            return f"{holding[0]} blocks the event loop"
        return f"the event loop is blocked, with {under_way}" if under_way else "the event loop is blocked"

    def end(self, summary: Summary) -> CtrlError | None:
        """Print the summary; the error to exit with, or None after a success."""
        summary = self._shown(summary)
        if self._machine:
            _log.info("The run stopped.", extra={"action": "run.end", **summary_fields(summary)})
        elif not self._app.quiet:
            for line in summary_lines(summary, self._style):
                self._app.narrate(Text(line))
        problem = summary.problem()
        if isinstance(problem, NotInstalled):
            problem.next_step = self._install()
        return problem

    def _shown(self, summary: Summary) -> Summary:
        """The summary with masked messages."""
        text = self._secrecy.text
        failed = tuple(
            replace(one, verdict=replace(one.verdict, message=text(one.verdict.message))) for one in summary.failed
        )
        unmet = tuple(replace(one, what=text(one.what)) for one in summary.unmet)
        return replace(summary, failed=failed, unmet=unmet)

    def _install(self) -> str:
        """The next step if a resource type is missing."""
        command = ctrl("install", *(sourced.word for sourced in self._plan.controllers))
        if any((sourced.folder / "crd.yaml").exists() for sourced in self._plan.controllers):
            return str(command)
        return f"apply its CRD; or put it beside the code as crd.yaml, and use {command}"


def _in_brief(attempt: Attempt) -> Attempt:
    """Only the parts that a line of text shows: to compare causes and to search texts for secrets takes time."""
    start = replace(attempt.start, causes=attempt.start.causes[:1])
    return replace(attempt, start=start, reads=(), wishes=(), intents=(), outside=())


def _is_answer(value: Observed) -> TypeGuard[CallProgress | BackgroundCall]:
    return isinstance(value, BackgroundCall) or (isinstance(value, CallProgress) and value.answered)
