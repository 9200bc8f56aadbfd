"""The state of a run's process, as seen from another process."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.attempt import ControllerState
from kubectl_ctrl.value import Value

# A run reports every two seconds. A silent one may still work, but be unable to record.
SILENT_AFTER = 10.0
# A run on another machine is known only by its reports: without one for this time it counts as gone.
LOST_AFTER = 120.0


class Life(StrEnum):
    """The state of the process of a run."""

    RUNNING = "running"  # the process exists, and has reported recently
    SILENT = "silent"  # the process exists, but has not reported for a while
    STOPPED = "stopped"  # the process exists, and is stopped by SIGSTOP or a debugger
    GONE = "gone"  # the process no longer exists, and has not recorded its end
    ENDED = "ended"  # it has exited and recorded that
    ELSEWHERE = "elsewhere"  # it is on another machine, and cannot be checked

    @property
    def here(self) -> bool:
        """Whether its process certainly exists on this machine."""
        return self in (Life.RUNNING, Life.SILENT, Life.STOPPED)


class Sighting(Value, kw_only=True):
    """One controller of one run."""

    controller: str
    run: str
    pid: int
    context: str
    namespace: str  # "" for all
    began: float  # wall time
    life: Life
    seen: float  # wall time of the last report
    recorded: bool = True  # False: it runs with --record off, so only its process is known
    state: ControllerState | None = None  # None: it has not reported yet
    host: str = ""
    gaps: int = 0  # rows that its recording lost
