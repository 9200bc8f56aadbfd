from __future__ import annotations

from itertools import pairwise

import pytest

from kubectl_ctrl.clock import parse_rfc3339, rfc3339
from kubectl_ctrl.sandbox.kinds.schedules import BadSchedule, parse_schedule


def next_of(text: str, at: str, zone: str = "") -> str:
    found = parse_schedule(text, zone).next(parse_rfc3339(at))
    return "" if found is None else rfc3339(found)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
        ("* * * * *", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z"),
        ("*/15 * * * *", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"),
        ("5/20 * * * *", "2026-01-01T00:26:00Z", "2026-01-01T00:45:00Z"),
        ("30 6-16/4 * * 1-5", "2026-01-02T14:31:00Z", "2026-01-05T06:30:00Z"),
        ("0 0 13 * FRI", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        ("0 0 13 * *", "2026-01-01T00:00:00Z", "2026-01-13T00:00:00Z"),
        ("0 0 */1 * FRI", "2026-01-03T00:00:00Z", "2026-01-09T00:00:00Z"),
        ("0 0 */2 * FRI", "2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z"),
        ("0 0 29 feb ?", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 31 2 *", "2026-01-01T00:00:00Z", ""),
        ("0 0 1 1 *", "9999-12-30T00:00:00Z", ""),
        ("* * * * *", "9999-12-31T23:59:30Z", ""),
        ("@hourly", "2026-01-01T00:30:00Z", "2026-01-01T01:00:00Z"),
        ("@weekly", "2026-01-01T00:30:00Z", "2026-01-04T00:00:00Z"),
        ("@every 1h30m", "2026-01-01T00:30:00Z", "2026-01-01T02:00:00Z"),
        ("TZ=America/New_York 0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-01T14:00:00Z"),
    ],
)
def test_the_next_time(text: str, at: str, expected: str) -> None:
    assert next_of(text, at) == expected


def test_skipped_hours_do_not_exist_and_repeated_ones_do_twice() -> None:
    assert next_of("30 2 * * *", "2026-03-28T12:00:00Z", "Europe/Berlin") == "2026-03-30T00:30:00Z"
    first = next_of("30 2 * * *", "2026-10-24T12:00:00Z", "Europe/Berlin")
    assert (first, next_of("30 2 * * *", first, "Europe/Berlin")) == ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("@often", "unrecognized descriptor: @often"),
    ],
)
def test_an_invalid_schedule_has_the_words_of_the_real_one(text: str, message: str) -> None:
    with pytest.raises(BadSchedule) as error:
        parse_schedule(text, "")
    assert str(error.value) == message


def test_times_grow() -> None:
    schedule, times = parse_schedule("*/7 1,3 * jan-mar mon", "Asia/Kathmandu"), [0.0]
    for _ in range(100):
        times.append(schedule.next(times[-1]) or 0.0)
    assert all(a < b for a, b in pairwise(times))
