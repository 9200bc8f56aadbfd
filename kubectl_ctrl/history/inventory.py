"""The runs in a recording, with the numbers of their attempts and writes."""

from __future__ import annotations

from kubectl_ctrl.model.record import Cluster, Run
from kubectl_ctrl.value import Value


class Amount(Value, kw_only=True):
    """The numbers of one controller in one run."""

    controller: str
    attempts: int
    failures: int  # ended RETRY or TERMINAL
    unfinished: int  # running, or interrupted
    writes: int
    first: float  # wall time of the start of the first attempt, and of the last
    last: float


class Filled(Value, kw_only=True):
    """A run and its numbers."""

    run: Run
    amounts: tuple[Amount, ...] = ()
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
    clusters: tuple[Cluster, ...] = ()
    runs: tuple[Filled, ...] = ()  # newest first
    now: float  # the time of the read
