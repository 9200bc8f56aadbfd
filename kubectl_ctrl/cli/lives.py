"""Whether the controllers that a recording knows live, and how they stood when they were last heard of."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_ctrl.cli import recordings, runlock
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.recordings import Meant
from kubectl_ctrl.cli.sightings import Traces, sightings
from kubectl_ctrl.model.record import Moment, Run
from kubectl_ctrl.model.sighting import Life, Sighting


class Lives:
    """One look at the processes behind a cluster's runs."""

    def __init__(self, app: App, meant: Meant, runs: Sequence[Run], now: float) -> None:
        cluster = meant.cluster.key
        self.moments = meant.recording.moments(cluster=cluster)
        self._now = now
        traces = Traces(runs=runs, moments=self.moments, runners=runlock.runners(app.state_dir, cluster=cluster))
        self._seen = {(one.run, one.controller): one for one in sightings(traces, now)}

    def of(self, run: Run) -> list[Sighting]:
        """Those of its controllers that no later run took up."""
        return [one for one in self._seen.values() if one.run == run.id]

    def alive(self, run: Run | None, controller: str) -> bool | None:
        """Whether its process is there; None where that cannot be told."""
        if run is None:
            return None
        if run.ended is not None:
            return False
        seen = self._seen.get((run.id, controller))
        if seen is None:
            return False if recordings.is_over(run, self._now) else None
        return None if seen.life is Life.ELSEWHERE else seen.life is not Life.GONE

    def stopped(self, run: Run | None, controller: str) -> bool:
        """Whether its process is there and stopped, by SIGSTOP or a debugger."""
        return run is not None and any(
            one.controller == controller and one.life is Life.STOPPED for one in self.of(run)
        )

    def moment(self, run: Run | None, controller: str) -> Moment | None:
        place = (run.id if run is not None else "", controller)
        return next((one for one in self.moments if (one.run, one.state.controller) == place), None)

    def __repr__(self) -> str:
        return f"Lives({len(self._seen)})"
