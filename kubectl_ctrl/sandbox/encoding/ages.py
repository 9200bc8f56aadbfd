"""Ages in Tables, as a kube-apiserver computes them."""

from __future__ import annotations

from datetime import datetime

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 31_536_000

# Below this many seconds: the larger unit and its letter, the smaller unit and its letter if it is shown too.
_STEPS = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def human(seconds: float) -> str:
    """Two or three digits of a duration: `45s`, `3m10s`, `2d5h`."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    for below, unit, letter, smaller, small_letter in _STEPS:
        if whole < below:
            count, rest = divmod(max(whole, 0), unit)
            more = rest // smaller if smaller else 0
            return f"{count}{letter}{more}{small_letter}" if more else f"{count}{letter}"
    return f"{whole // _YEAR}y"


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def since(text: str | None, now: float) -> str:
    """The time since a timestamp."""
    return human(now - seconds_of(text)) if text else "<unknown>"
