"""Durations: as Go reads them, and as people do."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubectl_ctrl.model.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("+0", 0.0),
        ("0s", 0.0),
        ("300ms", 0.3),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("1h30m10s", 5410.0),
        ("-1m", -60.0),
        ("2us", 2e-6),
        ("2µs", 2e-6),
        ("7ns", 7e-9),
    ],
)
def test_what_go_reads(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "1", "1 s", "1d", "1s ", "--1s", ".s", "1h-1m", "٣s", "1e3s", "-", "inf"])
def test_what_go_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write it like"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0ms"),
        (0.0084, "8ms"),
        (0.9994, "999ms"),
        (0.9996, "1s"),
        (1.24, "1.2s"),
        (9.96, "10s"),
        (59.6, "1m"),
        (190.0, "3m10s"),
        (3599.7, "1h"),
        (7500.0, "2h5m"),
        (86_399.9, "1d"),
        (270_000.0, "3d3h"),
        (-42.0, "-42s"),
    ],
)
def test_what_people_read(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(0.001, 86_000))
def test_what_people_read_is_near_enough(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, rel=0.06, abs=0.0006)
