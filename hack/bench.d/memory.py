"""Memory of a cached Pod, whole and metadata only, and after many changes; each in its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from figure import Figure

_PROBE = Path(__file__).with_name("probe.py")
_CHURN = 10


def _kilobytes(how: str, versions: int = 1) -> float:
    """Per Pod."""
    words = [sys.executable, str(_PROBE), how, str(versions)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def figures() -> Iterable[Figure]:
    plain, full = _kilobytes("plain"), _kilobytes("full")
    against = "KB as plain dicts"
    yield Figure(name="memory per cached Pod", value=full, unit="KB", baseline=plain, against=against, bar="<= 20")
    yield Figure(
        name=f"the same after {_CHURN} versions of each",
        value=_kilobytes("full", _CHURN),
        unit="KB",
        baseline=full,
        against="KB before",
        bar="flat",
    )
    yield Figure(
        name="memory per metadata-only Pod",
        value=_kilobytes("metadata"),
        unit="KB",
        baseline=plain,
        against=against,
        bar="<= 4",
    )
