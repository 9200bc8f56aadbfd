"""Durations in Go's format: `300ms`, `1h30m`, `-1.5s`."""

from __future__ import annotations

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> float:
    """Seconds, or ValueError as in Go's ParseDuration."""
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, at = 0.0, 0
    while match := _PART.match(rest, at):
        total += float(match[1]) * _UNITS[match[2]]
        at = match.end()
    if at == 0 or at != len(rest):
        raise ValueError(f"{text!r} is not a duration; write it like 300ms, 10s or 1h30m.")
    return sign * total


def format_duration(seconds: float) -> str:
    """A short form: `8ms`, `1.2s`, `42s`, `3m10s`, `2h5m`, `3d4h`."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s".replace(".0s", "s")
    whole = round(seconds)
    for size, unit, smaller, sub in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit}" + (f"{rest}{sub}" if rest else "")
    return f"{whole}s"
