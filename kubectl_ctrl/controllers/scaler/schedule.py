"""Times of starts and stops: cron expressions, time zones, and the events that they define. Pure.

A cron expression has five fields, in the wall time of its zone. A wall time that clocks skip (the gap in spring) means
the first instant after the gap; one that occurs twice (autumn) means the first of the two, and only that. If day of
month and day of week are both restricted (neither matches all of its values), either match is enough, as in every cron.

The latest event of all schedules decides. Nothing here counts ticks, so it makes no difference whether the program ran
at the time of an event.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_ITEM = re.compile(r"(?P<low>\*|[0-9]{1,4}|[A-Za-z]{3})(-(?P<high>[0-9]{1,4}|[A-Za-z]{3}))?(/(?P<step>[0-9]{1,4}))?")
_LONGEST = 200
# Some time zone databases also contain the machine's own zone, and clocks that count leap seconds.
_NO_ZONES = re.compile(r"localtime|posixrules|Factory|right/.*|posix/.*", re.IGNORECASE)


class BadSchedule(ValueError):
    """An invalid schedule; the message is a sentence without its subject: "has 4 fields, ..."."""


# The name of the schedule that stands for force-up or force-down: its action applies at all times.
FORCE = "force"


class Action(StrEnum):
    START = "start"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields: its position, its range, and the names of its values."""

    position: int
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of different values: Sunday is 0 and 7."""
        return 7 if self.words is _DAYS else self.high - self.low + 1

    def error(self, text: str, problem: str) -> BadSchedule:
        known = f" or {self.words[0]}-{self.words[-1]}" if self.words else ""
        return BadSchedule(
            f"has {shown(text)} in field {self.position} ({self.name}), {problem};"
            f" allowed: {self.low}-{self.high}{known}."
        )


_FIELDS = (
    _Field(1, "minute", 0, 59),
    _Field(2, "hour", 0, 23),
    _Field(3, "day of month", 1, 31),
    _Field(4, "month", 1, 12, _MONTHS),
    _Field(5, "day of week", 0, 7, _DAYS),
)


def shown(text: str) -> str:
    """A user's text for a message: quoted, escaped and of limited length."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")


@dataclass(frozen=True, slots=True)
class Cron:
    """A valid cron expression that fires."""

    text: str  # as it was given
    plain: str  # the same with every field as `*` or a list of numbers

    @property
    def both_days(self) -> bool:
        """Whether day of month and day of week are both restricted, so that either match is enough."""
        _, _, day, _, weekday = self.plain.split()
        return "*" not in (day, weekday)


def parse_cron(text: str) -> Cron:
    """The cron expression; BadSchedule names the invalid field and its range."""
    if len(text) > _LONGEST:
        raise BadSchedule(f"has {len(text)} characters; the limit is {_LONGEST}.")
    if re.match(r"\s*(CRON_)?TZ\s*=", text):
        raise BadSchedule("begins with a time zone; set it with the time-zone annotation (timeZone in schedules).")
    if text.lstrip().startswith("@"):
        raise BadSchedule(f"is {shown(text)}, which is not supported; write five fields, such as '0 7 * * 1-5'.")
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise BadSchedule(
            f"has {len(parts)} fields, expected 5: minute, hour, day of month, month, day of week"
            f" ({shown(text)}; seconds and years are not supported)."
        )
    values = [_values(field, part) for field, part in zip(_FIELDS, parts, strict=True)]
    _check_fires(values)
    plain = " ".join(
        "*" if len(found) == field.size else ",".join(map(str, found))
        for field, found in zip(_FIELDS, values, strict=True)
    )
    return Cron(text=" ".join(parts), plain=plain)


def _values(field: _Field, text: str) -> list[int]:
    found: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise field.error(item, "which is not a value, a range a-b, or one of them or * with a /step")
        found.update(_range(field, item, match))
    return sorted(found)


def _range(field: _Field, item: str, match: re.Match[str]) -> Iterable[int]:
    step = int(match["step"] or 1)
    if not 1 <= step <= field.high:
        raise field.error(item, "whose step is out of range")
    if match["low"] == "*":
        if match["high"] is not None:
            raise field.error(item, "which is not a range")
        return range(field.low, field.low + field.size, step)
    low = _number(field, item, match["low"])
    # A value with a step and no end goes to the end of the field, as in other crons.
    high = _number(field, item, match["high"]) if match["high"] else (field.high if match["step"] else low)
    if field.words is _DAYS:
        # A week is a circle: sat-sun and fri-mon are valid ranges.
        high = min(high, 6) if match["step"] and not match["high"] else high
        last = high + 7 if high < low else high
        return [day % 7 for day in range(low, last + 1, step)]
    if low > high:
        raise field.error(item, f"which runs backwards (write {low}-{field.high},{field.low}-{high})")
    return range(low, high + 1, step)


def _number(field: _Field, item: str, text: str) -> int:
    if not text.isdigit():
        try:
            return field.words.index(text.lower()) + (1 if field.words is _MONTHS else 0)
        except ValueError:
            raise field.error(item, "which is not a known name" if field.words else "which is not a number") from None
    number = int(text)
    if not field.low <= number <= field.high:
        raise field.error(item, "which is out of range")
    return number


def _check_fires(values: Sequence[Sequence[int]]) -> None:
    _, _, days, months, weekdays = values
    if len(weekdays) < len(_DAYS) or any(day <= _LONGEST_MONTHS[month - 1] for day in days for month in months):
        return
    raise BadSchedule(f"never fires: none of the months {list(months)} has day {min(days)}.")


def parse_zone(name: str) -> ZoneInfo:
    """The IANA time zone; an unknown one is an error, never UTC."""
    try:
        if not _NO_ZONES.fullmatch(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise BadSchedule(f"is {shown(name)}, which is not a known time zone; write it like Europe/Berlin or UTC.")


def instant(wall: datetime, zone: ZoneInfo) -> float:
    """The instant of a wall time: in a gap the first instant after it, and of two the first."""
    early = wall.replace(tzinfo=zone, fold=0)
    at = early.timestamp()
    if datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0) == wall:
        return at
    # In a gap: the offset changes between these two interpretations of the wall time. Find the change by bisection.
    low, high = int(wall.replace(tzinfo=zone, fold=1).timestamp()), int(at)
    before = early.utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return float(high)


def last_before(cron: Cron, zone: ZoneInfo, at: float) -> float:
    """The latest instant of the cron expression up to `at`."""
    there = datetime.fromtimestamp(at, zone)
    wall = there.replace(tzinfo=None, fold=0, microsecond=0)
    if there.fold:
        # The second pass of a repeated hour: all events of the first pass, up to its end, are in the past.
        wall += (there.replace(fold=0).utcoffset() or timedelta()) - (there.utcoffset() or timedelta())
    steps = croniter(cron.plain, wall + timedelta(seconds=1), ret_type=datetime)
    while (found := instant(steps.get_prev(datetime), zone)) > at:
        pass
    return found


def first_after(cron: Cron, zone: ZoneInfo, at: float) -> float:
    """The earliest instant of the cron expression after `at`."""
    steps = croniter(cron.plain, datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0), ret_type=datetime)
    while (found := instant(steps.get_next(datetime), zone)) <= at:
        pass
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A start, a stop or both, with their replicas."""

    name: str
    zone: ZoneInfo
    start: Cron | None = None
    stop: Cron | None = None
    start_replicas: int | None = None  # None: the remembered count
    stop_replicas: int = 0

    def crons(self) -> Iterator[tuple[Action, Cron]]:
        if self.start is not None:
            yield Action.START, self.start
        if self.stop is not None:
            yield Action.STOP, self.stop

    def count(self, action: Action) -> int | None:
        return self.start_replicas if action is Action.START else self.stop_replicas

    def fingerprint(self, action: Action) -> str:
        """Identifies the meaning of this action: it changes when the action does."""
        cron = self.start if action is Action.START else self.stop
        meaning = (str(action), cron.plain if cron else "", self.zone.key, self.count(action))
        return hashlib.sha256(repr(meaning).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A start or stop at one time. `rivals` have the same time and take no effect."""

    at: float
    action: Action
    schedule: Schedule
    rivals: tuple[Event, ...] = ()

    @property
    def count(self) -> int | None:
        return self.schedule.count(self.action)

    @property
    def fingerprint(self) -> str:
        return self.schedule.fingerprint(self.action)

    @property
    def title(self) -> str:
        """`stop of 'main' (0 20 * * 1-5, Europe/Berlin)`."""
        if self.schedule.name == FORCE:
            return "force-up" if self.action is Action.START else "force-down"
        cron = self.schedule.start if self.action is Action.START else self.schedule.stop
        when = f" ({cron.text}, {self.schedule.zone.key})" if cron else ""
        return f"{self.action} of {self.schedule.name!r}{when}"

    @property
    def time(self) -> str:
        """The time in UTC."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def latest(schedules: Iterable[Schedule], at: float) -> Event | None:
    """The event that decides at `at`: the most recent one up to then."""
    found = [
        Event(at=last_before(cron, schedule.zone, at), action=action, schedule=schedule)
        for schedule in schedules
        for action, cron in schedule.crons()
    ]
    return _winner(found, max) if found else None


def upcoming(schedules: Iterable[Schedule], at: float) -> Event | None:
    """The next event after `at`."""
    found = [
        Event(at=first_after(cron, schedule.zone, at), action=action, schedule=schedule)
        for schedule in schedules
        for action, cron in schedule.crons()
    ]
    return _winner(found, min) if found else None


def _winner(events: Sequence[Event], choose: Callable[[Iterable[float]], float]) -> Event:
    """Among events of the same time a start precedes a stop, and then the schedule listed first precedes."""
    moment = choose(event.at for event in events)
    together = [event for event in events if event.at == moment]
    winner = next((event for event in together if event.action is Action.START), together[0])
    rivals = tuple(event for event in together if event is not winner)
    return Event(at=winner.at, action=winner.action, schedule=winner.schedule, rivals=rivals)
