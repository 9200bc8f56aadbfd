"""How a controller of a run was last seen from outside of its process."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.attempt import State
from kubectl_ctrl.value import Value

# A run reports every two seconds; one that has been silent for longer may work, and only cannot record it.
SILENT_AFTER = 10.0
# On another machine nothing but its reports shows that a run goes on: without any for so long it counts as gone.
LOST_AFTER = 120.0


class Life(StrEnum):
    """Whether the process of a run is there: the one vocabulary for it."""

    RUNNING = "running"  # it is, and was heard of lately
    SILENT = "silent"  # it is, and has said nothing for a while
    STOPPED = "stopped"  # it is, and is stopped, by SIGSTOP or a debugger
    GONE = "gone"  # it ended without a word
    ENDED = "ended"  # it came to its end
    ELSEWHERE = "elsewhere"  # it is of another machine, and cannot be looked for from here

    @property
    def here(self) -> bool:
        """Whether its process is there for sure."""
        return self in (Life.RUNNING, Life.SILENT, Life.STOPPED)


class Sighting(Value, kw_only=True):
    """One controller of one run."""

    controller: str
    run: str
    pid: int
    context: str
    namespace: str  # "" is all of them
    began: float  # wall time
    life: Life
    seen: float  # wall time of the last sign of life
    recorded: bool = True  # False: it runs with --record off, so nothing but its process is known
    state: State | None = None  # None: it did not tell yet
    host: str = ""
    gaps: int = 0  # rows that its recording lost
