"""What a run says of itself: attempts to stdout, the rest to stderr; as text for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import TypeGuard

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.interrupts import LAST_WORDS
from kubectl_ctrl.errors import CtrlError, NotInstalled
from kubectl_ctrl.model.attempt import Attempt, Background, Called, Observed, State
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import told
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
from kubectl_ctrl.text import Text, headed
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
            _log.info("The run begins.", extra=fields)
            return
        if self._app.quiet:
            return
        where = f"namespace {plan.namespace} (-A for all)" if plan.namespace else "all namespaces"
        whose = "cluster of ours" if plan.ours else "local cluster"
        election = "on" if plan.elects else f"off ({whose})" if plan.elect == "auto" else "off"
        place = f"context {name} ({plan.resolved.server}{f', our {plan.ours}' if plan.ours else ''}), {where}"
        for line in headed(f"run {run_id}: {', '.join(names)}", f"on {place}", self._app.width):
            self._app.narrate(line)
        if plan.as_installed:
            self._app.narrate(f"acting as {', '.join(map(user_of, plan.names))}")
        self._app.narrate(recording)
        self._app.narrate(f"leader election {election}; {self._app.end} ends it")

    def waiting(self, error: CtrlError) -> None:
        _log.warning(
            "No cluster answers yet; it keeps trying: %s", self._app.briefly(error), extra={"action": "waiting"}
        )

    def observer(self, nobody_reads: Callable[[], None]) -> Callable[[Observed], None]:
        """Shows one line per attempt, and from -v 4 on one per call; `nobody_reads` is called once stdout is closed."""

        def show(value: Observed) -> None:
            if isinstance(value, Attempt):
                self._secrecy.learn(secrets_in(value))
                shown = self._secrecy.told(told(value, steps=False))
                if shown.traceback and self._app.verbosity >= _TRACEBACKS_FROM:
                    _log.info("%s failed:\n%s", shown.id, shown.traceback.rstrip(), extra={"action": "traceback"})
                text = json.dumps(attempt_json(shown)) if self._machine else Text(attempt_text(shown, self._style))
                try:
                    self._app.answer(text)
                except BrokenPipeError:
                    self._app.nobody_reads()
                    nobody_reads()
            elif isinstance(value, State):
                self._advise(value)
            elif self._app.verbosity >= _CALLS_FROM and _is_answer(value):
                _log.info("%s %s", value.call.id, call_text(value.call), extra={"action": "call"})

        return show

    def _advise(self, state: State) -> None:
        """Where a controller waits for its own type, what gives it that; once."""
        waits = any(f"{spec.primary} is not installed" in state.message for spec in self._plan.specs)
        if waits and not (self._advised or self._plan.options.once):
            self._advised = True
            advice = self._app.pin.into(self._install())
            _log.info("What helps from another terminal: %s", advice, extra={"action": "run.advice"})

    def stopping(self, under_way: Sequence[str]) -> None:
        """After the first signal, where there is something to wait for."""
        if under_way:
            _log.info(
                "Stopping: %s under way may take up to %s to finish; %s again ends them.",
                "1 reconcile" if len(under_way) == 1 else f"{len(under_way)} reconciles",
                format_duration(self._plan.options.drain),
                self._app.end,
                extra={"action": "run.stopping"},
            )

    def unheard(self) -> None:
        """After the first signal, where that could not be told: the event loop is blocked."""
        _log.warning(
            "Stopping: %s, so nothing can finish; %s again ends the run.",
            self._standing(blocked=True),
            self._app.end,
            extra={"action": "run.stopping"},
        )

    def forced(self, *, blocked: bool) -> None:
        """The last words of a run that did not end by itself after the second signal."""
        standing = self._standing(blocked=blocked)
        _log.error(
            "Ended, as it did not stop within %s%s.",
            format_duration(LAST_WORDS),
            f": {standing}" if standing else "",
            extra={"action": "run.forced"},
        )

    def _standing(self, *, blocked: bool) -> str:
        """Which reconciles are under way, or else the one that keeps all others from it."""
        at_work = self.at_work()
        under_way = f"{', '.join(one for one, _ in at_work)} under way" if at_work else ""
        if not blocked:
            return under_way
        holding = [one for one, holds_loop in at_work if holds_loop]
        if holding:
            return f"{holding[0]} blocks the event loop"
        return f"the event loop is blocked, with {under_way}" if under_way else "the event loop is blocked"

    def end(self, summary: Summary) -> CtrlError | None:
        """Say what was left; gives what to end the process with, None when the run did what it was meant to."""
        summary = self._shown(summary)
        if self._machine:
            _log.info("The run is over.", extra={"action": "run.end", **summary_fields(summary)})
        elif not self._app.quiet:
            for line in summary_lines(summary, self._style):
                self._app.narrate(Text(line))
        problem = summary.problem()
        if isinstance(problem, NotInstalled):
            problem.next_step = self._install()
        return problem

    def _shown(self, summary: Summary) -> Summary:
        """The same, its messages as they may be seen."""
        text = self._secrecy.text
        failed = tuple(
            replace(one, verdict=replace(one.verdict, message=text(one.verdict.message))) for one in summary.failed
        )
        unmet = tuple(replace(one, what=text(one.what)) for one in summary.unmet)
        return replace(summary, failed=failed, unmet=unmet)

    def _install(self) -> str:
        """What helps where a resource type is missing."""
        command = ctrl("install", *(sourced.word for sourced in self._plan.controllers))
        if any((sourced.folder / "crd.yaml").exists() for sourced in self._plan.controllers):
            return str(command)
        return f"apply its CRD, or put it beside the code as crd.yaml, for {command}"


def _is_answer(value: Observed) -> TypeGuard[Called | Background]:
    return isinstance(value, Background) or (isinstance(value, Called) and value.answered)
