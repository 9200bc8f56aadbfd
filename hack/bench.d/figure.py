"""The result of a benchmark, a number beside that of a comparable task without kubectl-ctrl; and its measurement.

Measured is processor time, and the best of several rounds, because noise only adds time.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
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


def rate(work: Callable[[], int], *, rounds: int = 5) -> float:
    """Units per second of processor time in the best round; `work` returns its number of units."""
    best = 0.0
    for _ in range(rounds):
        started = time.process_time()
        done = work()
        best = max(best, done / (time.process_time() - started))
    return best


def processor(argvs: Sequence[Sequence[str]], env: Mapping[str, str], *, rounds: int = 9) -> Sequence[float]:
    """Milliseconds of processor time of whole processes, the best of several runs each, in turns."""
    best = [float("inf")] * len(argvs)
    for counted in range(rounds + 1):
        for place, argv in enumerate(argvs):
            process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise subprocess.CalledProcessError(process.returncode, argv)
            if counted:
                best[place] = min(best[place], usage.ru_utime + usage.ru_stime)
    return [seconds * 1000 for seconds in best]


def wall(argv: Sequence[str], env: Mapping[str, str], *, rounds: int = 9) -> float:
    """Milliseconds of a whole process, the best of several runs after one that is not counted."""
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        subprocess.run(argv, env=env, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times[1:]) * 1000
