"""Runs the benchmarks and prints a table: value, baseline of this machine, ratio, and the limit if there is one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from figure import Figure  # noqa: E402 - after the path is set

from kubectl_ctrl.text import table  # noqa: E402


def benches() -> dict[str, Callable[[], Iterable[Figure]]]:
    import decode
    import foos
    import latency
    import memory
    import queues
    import recording
    import sandboxes
    import starts
    import traces
    import ups

    return {
        "queue": queues.figures,
        "decode": decode.figures,
        "memory": memory.figures,
        "latency": latency.figures,
        "start": starts.figures,
        "foos": foos.figures,
        "trace": traces.figures,
        "recording": recording.figures,
        "up": ups.figures,
        "sandbox": sandboxes.figures,
    }


def main() -> int:
    known = benches()
    wanted = sys.argv[1:] or list(known)
    if unknown := [name for name in wanted if name not in known]:
        print(f"{unknown[0]!r} is not a benchmark. The benchmarks are: {', '.join(known)}.", file=sys.stderr)
        return 2
    rows = []
    for name in wanted:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += [figure.row() for figure in known[name]()]
    print(table(rows, header=("FIGURE", "VALUE", "BASELINE", "RATIO", "BAR")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
