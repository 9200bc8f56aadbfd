"""The runs in a recording, with the numbers of their attempts and writes."""

from __future__ import annotations

from kubectl_ctrl.model.record import RecordedCluster, RecordedRun
from kubectl_ctrl.value import Value


class ControllerNumbers(Value, kw_only=True):
    """The numbers of one controller in one run."""

    controller: str
    attempts: int
    failures: int  # ended RETRY or TERMINAL
    unfinished: int  # running, or interrupted
    writes: int
    first: float  # wall time of the start of the first attempt, and of the last
    last: float


class RunNumbers(Value, kw_only=True):
    """A run and its numbers."""

    run: RecordedRun
    amounts: tuple[ControllerNumbers, ...] = ()
    over: bool  # it ended, or its process exited

    @property
    def attempts(self) -> int:
        return sum(one.attempts for one in self.amounts)

    @property
    def failures(self) -> int:
        return sum(one.failures for one in self.amounts)


class Inventory(Value, kw_only=True):
    path: str
    size: int  # bytes
    clusters: tuple[RecordedCluster, ...] = ()
    runs: tuple[RunNumbers, ...] = ()  # newest first
    now: float  # the time of the read
