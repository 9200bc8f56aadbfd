"""How the benchmarks measure: processor time, and the best of several rounds, because noise only ever adds."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence


def rate(work: Callable[[], int], *, rounds: int = 5) -> float:
    """Units per second of processor time in the best round; `work` says how many units it did."""
    best = 0.0
    for _ in range(rounds):
        started = time.process_time()
        done = work()
        best = max(best, done / (time.process_time() - started))
    return best


def wall(argv: Sequence[str], env: Mapping[str, str], *, rounds: int = 9) -> float:
    """Milliseconds of a whole process, the best of several runs after one that is not counted."""
    times = []
    for _ in range(rounds + 1):
        started = time.perf_counter()
        subprocess.run(argv, env=env, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return min(times[1:]) * 1000
