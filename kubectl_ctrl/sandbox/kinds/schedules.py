"""Cron schedules as a CronJob understands them: five fields or a descriptor, in one time zone."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubectl_ctrl.model.durations import parse_duration
from kubectl_ctrl.value import Value

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: 1 + place for place, name in enumerate(_MONTH_NAMES)}
_DAYS = {name: place for place, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_YEARS = 5  # a schedule without a match for so long has none


class BadSchedule(ValueError):
    """An invalid schedule, in the words of a kube-controller-manager."""


class Schedule(Protocol):
    def next(self, at: float) -> float | None:
        """The first time after `at`; None if there is none."""


class Every(Value):
    """Every so many seconds, counted from the last time."""

    seconds: int

    def next(self, at: float) -> float | None:
        return float(int(at) + self.seconds)


class Cron(Value):
    """The allowed values of each field. If both days are restricted, either is enough."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    zone: ZoneInfo

    def next(self, at: float) -> float | None:
        with suppress(OverflowError, ValueError):  # a date has four digits for its year
            return self._next(datetime.fromtimestamp(int(at) // 60 * 60 + 60, self.zone))
        return None

    def _next(self, first: datetime) -> float | None:
        day = first.date()
        for _ in range(366 * _YEARS):
            if day.month in self.months and self._has_day(day.day, day.isoweekday() % 7):
                start = datetime(day.year, day.month, day.day, tzinfo=self.zone)
                if (found := self._within(max(first, start), start)) is not None:
                    return found
            day += timedelta(days=1)
        return None

    def _has_day(self, day: int, weekday: int) -> bool:
        matches = (day in self.days, weekday in self.weekdays)
        return any(matches) if self.either else all(matches)

    def _within(self, first: datetime, day: datetime) -> float | None:
        """The first match of that day, in steps of real time: skipped hours do not exist, repeated ones do twice."""
        at = first.astimezone(UTC)
        while (here := at.astimezone(self.zone)).date() == day.date():
            if here.hour not in self.hours:
                at += timedelta(minutes=60 - here.minute)
            elif here.minute not in self.minutes:
                at += timedelta(minutes=1)
            else:
                return at.timestamp()
        return None


def parse_schedule(text: str, zone: str) -> Schedule:
    """BadSchedule for an invalid one; the zone must exist."""
    if found := re.match(r"(?:CRON_)?TZ=(\S*)\s+", text):
        zone, text = found[1], text[found.end() :]
    if text.startswith(_EVERY):
        return _every(text.removeprefix(_EVERY))
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise BadSchedule(f"unrecognized descriptor: {text}")
    fields = _DESCRIPTORS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        raise BadSchedule(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = (_field(*one) for one in zip(fields, _FIELDS, strict=True))
    either = not any(_is_star(field) for field in (fields[2], fields[4]))
    return Cron(minutes, hours, days, months, weekdays, either, ZoneInfo(zone or "UTC"))


def problem_of(text: str) -> str:
    """The reason why a schedule cannot be read; empty if it can."""
    try:
        parse_schedule(text, "")
    except BadSchedule as error:
        return str(error)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # the others for zones such as ../x and America
        zone = text.partition("=")[2].partition(" ")[0]
        return f"provided bad location {zone}: unknown time zone {zone}"
    return ""


def _every(text: str) -> Every:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        raise BadSchedule(f"failed to parse duration @every {text}: {error}") from error
    return Every(max(1, int(seconds)))


def _is_star(field: str) -> bool:
    """Whether the field does not restrict the days."""
    return any(part in ("*", "?", "*/1", "?/1") or re.fullmatch(r"[*?]-.*", part) for part in field.split(","))


def _field(text: str, bounds: tuple[int, int, dict[str, int]]) -> frozenset[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        found.update(_range(part, *bounds))
    return frozenset(found)


def _range(part: str, low: int, high: int, names: dict[str, int]) -> range:
    span, *steps = part.split("/")
    first, *rest = span.split("-")
    whole = first in ("*", "?")
    start = low if whole else _number(first, names)
    if len(rest) > 1 and not whole:
        raise BadSchedule(f"too many hyphens: {part}")
    end = high if whole else _number(rest[0], names) if rest else start
    if len(steps) > 1:
        raise BadSchedule(f"too many slashes: {part}")
    if steps and not rest:
        end = high
    step = _number(steps[0], {}) if steps else 1
    _check_range(part, (start, end, step), (low, high))
    return range(start, end + 1, step)


def _check_range(part: str, given: tuple[int, int, int], bounds: tuple[int, int]) -> None:
    (start, end, step), (low, high) = given, bounds
    if start < low:
        raise BadSchedule(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise BadSchedule(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise BadSchedule(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise BadSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise BadSchedule(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
