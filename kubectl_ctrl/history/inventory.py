"""What a recording holds: its runs, and how much each of them did."""

from __future__ import annotations

from kubectl_ctrl.model.record import Cluster, Run
from kubectl_ctrl.value import Value


class Amount(Value, kw_only=True):
    """What one controller did in one run."""

    controller: str
    attempts: int
    failures: int  # ended RETRY or TERMINAL
    unfinished: int  # they still run, or their process died
    writes: int
    first: float  # wall time at which the first attempt began, and the last
    last: float


class Filled(Value, kw_only=True):
    """One run, and what is recorded of it."""

    run: Run
    amounts: tuple[Amount, ...] = ()
    over: bool  # it ended, or its process died

    @property
    def attempts(self) -> int:
        return sum(one.attempts for one in self.amounts)

    @property
    def failures(self) -> int:
        return sum(one.failures for one in self.amounts)


class Inventory(Value, kw_only=True):
    """One file."""

    path: str
    size: int  # bytes
    clusters: tuple[Cluster, ...] = ()
    runs: tuple[Filled, ...] = ()  # newest first
    now: float  # when it was looked at
