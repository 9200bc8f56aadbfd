"""The cost of recording: Foos from creation to convergence, alternately with `--record off` and with a recording."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from figure import Figure
from foos import CTRL, cluster, foos

_FOOS = 200
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class _Spent:
    """Seconds of one run."""

    wall: float
    cpu: float


def _run(env: Mapping[str, str], namespace: str, record: str) -> _Spent:
    words = [CTRL, "run", "foo", "--until-idle", "--timeout=5m", f"--namespace={namespace}", f"--record={record}"]
    before, began = os.times(), time.perf_counter()
    subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, os.times()
    return _Spent(wall, after.children_user + after.children_system - before.children_user - before.children_system)


def _least(values: Iterable[float]) -> float:
    """The median of the better half: other load of the machine only adds time."""
    ordered = sorted(values)
    return statistics.median(ordered[: (len(ordered) + 1) // 2])


def figures() -> Iterable[Figure]:
    spent: dict[str, list[_Spent]] = {"off": [], "on": []}
    with cluster() as (kubectl, env), tempfile.TemporaryDirectory() as folder:
        for turn in range(2 * _ROUNDS):
            # Off first in every other pair, so that the growth of the cluster affects both equally.
            way = ("off", "on")[(turn + turn // 2) % 2]
            namespace = f"turn-{turn}"
            kubectl("create", "namespace", namespace)
            kubectl("create", f"--namespace={namespace}", "--filename=-", given=foos(_FOOS))
            spent[way].append(_run(env, namespace, "off" if way == "off" else str(Path(folder) / "history.db")))
            kubectl("delete", "namespace", namespace)
    for name, part in (("wall", "wall"), ("CPU", "cpu")):
        off, on = (_least(getattr(one, part) for one in spent[way]) for way in ("off", "on"))
        yield Figure(
            name=f"{_FOOS} Foos to converged, recorded, {name}",
            value=on,
            unit="s",
            baseline=off,
            against="s with --record off",
            bar="<= 1.05" if part == "wall" else "",
        )
