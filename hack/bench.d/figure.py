"""The result of a benchmark: a number, and the number of a comparable task without kubectl-ctrl on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    name: str
    value: float
    unit: str
    baseline: float | None = None
    against: str = ""  # unit and name of the baseline
    bar: str = ""

    def row(self) -> Sequence[str]:
        ratio = f"{self.value / self.baseline:.2f}" if self.baseline else ""
        beside = f"{shown(self.baseline)} {self.against}" if self.baseline is not None else ""
        return (self.name, f"{shown(self.value)} {self.unit}", beside, ratio, self.bar)


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
