"""Time of whole processes that print help or a completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from figure import Figure, wall

_BIN = Path(__file__).resolve().parents[2] / "bin"


def figures() -> Iterable[Figure]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    baseline = wall([sys.executable, "-I", "-c", "pass"], env)
    against = "ms python alone"
    for name, words in (
        ("kubectl-ctrl --help", ["kubectl-ctrl", "--help"]),
        ("kubectl-ctrl run --help", ["kubectl-ctrl", "run", "--help"]),
        ("completion of a verb", ["kubectl_complete-ctrl", "ru"]),
    ):
        value = wall([str(_BIN / words[0]), *words[1:]], env)
        yield Figure(name=name, value=value, unit="ms", baseline=baseline, against=against, bar="<= 100")
