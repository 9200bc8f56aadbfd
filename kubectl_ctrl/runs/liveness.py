"""Whether runs and their controllers are alive. No other module decides this.

A run of this machine is alive while it holds its lock. If only its recording is known, its process must exist. A run on
another machine is known only by its recorded reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubectl_ctrl.model.attempt import ControllerState
from kubectl_ctrl.model.life import LOST_AFTER, SILENT_AFTER, Life, Sighting
from kubectl_ctrl.model.record import RecordedController, RecordedRun, RecordedState
from kubectl_ctrl.runs import holder, runners
from kubectl_ctrl.runs.runners import Runner
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubectl_ctrl.history.reader import Recording

_PROC = Path("/proc")


class RunEvidence(Value, kw_only=True):
    """The evidence of controllers on one cluster."""

    runs: Sequence[RecordedRun] = ()  # recorded, newest first
    moments: Sequence[RecordedState] = ()
    runners: Sequence[Runner] = ()  # processes of this machine that hold a lock


class RunStates:
    """The states of a cluster's runs at one moment."""

    def __init__(
        self, state: Path, recording: Recording, cluster: str, runs: Sequence[RecordedRun], now: float
    ) -> None:
        self.moments = recording.moments(cluster=cluster)
        self._now = now
        traces = RunEvidence(runs=runs, moments=self.moments, runners=runners.runners(state, cluster=cluster))
        self._seen = {(one.run, one.controller): one for one in sightings(traces, now)}

    def of(self, run: RecordedRun) -> list[Sighting]:
        """Its controllers, without those that a later run continued."""
        return [one for one in self._seen.values() if one.run == run.id]

    def life(self, run: RecordedRun | None, controller: str) -> Life:
        """The state of one controller of a run; ELSEWHERE if it is unknown."""
        if run is None:
            return Life.ELSEWHERE
        if run.ended is not None:
            return Life.ENDED
        if (seen := self._seen.get((run.id, controller))) is not None:
            return seen.life
        return Life.GONE if is_over(run, self._now) else Life.ELSEWHERE

    def moment(self, run: RecordedRun | None, controller: str) -> RecordedState | None:
        place = (run.id if run is not None else "", controller)
        return next((one for one in self.moments if (one.run, one.state.controller) == place), None)

    def __repr__(self) -> str:
        return f"RunStates({len(self._seen)})"


def opened(file: Path, now: float) -> Recording:
    """Open a recording; unfinished reconciles of dead processes read as interrupted."""
    from kubectl_ctrl.history.reader import Recording

    return Recording.open(file, dead=lambda run: is_over(run, now))


def is_over(run: RecordedRun, now: float) -> bool:
    """Whether the run or its process has ended. It does not use the lock: the recording may be from another machine."""
    if run.ended is not None:
        return True
    return holder.is_dead(run.holder) if holder.is_here(run.holder) else now - run.seen > LOST_AFTER


def sightings(traces: RunEvidence, now: float, *, controller: str = "", proc: Path = _PROC) -> list[Sighting]:
    """One for each controller that runs or was killed, sorted by name; for a named controller, also if it has ended.

    A run is left out if a later run of the same controller has an overlapping scope.
    """
    states = {(moment.run, moment.state.controller): moment.state for moment in traces.moments}
    held = {(runner.run, runner.controller) for runner in traces.runners}
    found: list[Sighting] = []
    for run, played in _played(traces.runs, controller):
        if any(
            one.controller == played.name and (one.namespace == run.namespace or "" in (one.namespace, run.namespace))
            for one in found
        ):
            continue
        life = _life(run, (run.id, played.name) in held, states.get((run.id, played.name)), now, proc)
        found.append(_recorded(run, played, life, states.get((run.id, played.name))))
    recorded = {run.id for run in traces.runs}
    alone = [
        _unrecorded(one)
        for one in traces.runners
        if one.run not in recorded and controller in ("", one.controller) and not one.unreadable
    ]
    shown = [one for one in found if controller or one.life is not Life.ENDED]
    return sorted((*shown, *alone), key=lambda one: (one.controller, one.namespace))


def _played(runs: Sequence[RecordedRun], controller: str) -> Iterator[tuple[RecordedRun, RecordedController]]:
    for run in runs:
        for played in run.controllers:
            if controller in ("", played.name, played.word):
                yield run, played


def _life(run: RecordedRun, held: bool, state: ControllerState | None, now: float, proc: Path) -> Life:
    if run.ended is not None:
        return Life.ENDED
    if held:
        if holder.is_stopped(run.pid, proc):
            return Life.STOPPED
        heard = max(run.seen, state.at if state else run.began)
        return Life.SILENT if now - heard > SILENT_AFTER else Life.RUNNING
    return Life.GONE if holder.is_here(run.holder, proc) else Life.ELSEWHERE


def _recorded(run: RecordedRun, played: RecordedController, life: Life, state: ControllerState | None) -> Sighting:
    return Sighting(
        controller=played.name,
        run=run.id,
        pid=run.pid,
        context=run.context,
        namespace=run.namespace,
        began=run.began,
        life=life,
        seen=run.ended if run.ended is not None else max(run.seen, state.at if state else run.began),
        state=state,
        host=run.host,
        gaps=run.gaps,
    )


def _unrecorded(runner: Runner) -> Sighting:
    return Sighting(
        controller=runner.controller,
        run=runner.run,
        pid=runner.pid,
        context=runner.context,
        namespace=runner.scope,
        began=runner.since,
        life=Life.RUNNING,
        seen=runner.since,
        recorded=False,
        host=holder.machine_of(runner.holder),
    )
