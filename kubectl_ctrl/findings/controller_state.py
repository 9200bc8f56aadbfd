"""Whether the controller still works, and if not since when: then a verdict is only as good as its age."""

from __future__ import annotations

from kubectl_ctrl.findings.account import Qualifier, Standing
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.life import SILENT_AFTER, Life
from kubectl_ctrl.model.record import Moment, Run


def standing(
    run: Run | None,
    moment: Moment | None,
    now: float,
    *,
    life: Life,
    worked: float = 0.0,
) -> Qualifier | None:
    """None: it works, as far as anybody can tell. `worked` is when its last attempt began."""
    if run is None:
        return None
    heard = max(run.seen, run.began, moment.state.at if moment else 0.0)
    who = f"process {run.pid} on {run.host}"
    if run.ended is not None:
        return Qualifier(standing=Standing.ENDED, since=run.ended, text=f"{who} was stopped")
    if life is Life.GONE:
        return Qualifier(standing=Standing.DEAD, since=heard, text=f"{who} exited unexpectedly")
    if life is Life.STOPPED:
        return Qualifier(standing=Standing.PAUSED, since=heard, text=f"{who} is suspended by a signal")
    if now - heard > SILENT_AFTER:
        silent = format_duration(now - heard)
        # A process that is there may work all the same, and only cannot record it.
        there = "is running but " if life.here else ""
        text = f"{who} {there}has recorded nothing for {silent}"
        return Qualifier(standing=Standing.UNHEARD, since=heard, text=text)
    # What it told of itself before it worked is what it was then.
    return _unready(moment, heard) if moment is not None and moment.state.at > worked else None


def _unready(moment: Moment, heard: float) -> Qualifier | None:
    state = moment.state
    if not state.leading:
        return Qualifier(standing=Standing.PAUSED, since=heard, text=state.message or "another process leads")
    if state.message:
        return Qualifier(standing=Standing.UNREADY, since=heard, text=state.message)
    return None
