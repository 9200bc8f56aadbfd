"""What a benchmark gives: one number, and beside it what this machine needs for something comparable without us."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number beside what this machine needs for something comparable without us."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    against: str = ""  # what the baseline is
    bar: str = ""

    def row(self) -> Sequence[str]:
        ratio = f"{self.value / self.baseline:.2f}" if self.baseline else ""
        beside = f"{shown(self.baseline)} {self.against}" if self.baseline is not None else ""
        return (self.name, f"{shown(self.value)} {self.unit}", beside, ratio, self.bar)


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
