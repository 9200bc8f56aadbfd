"""The settings in the annotations of a workload, its namespace's as defaults, and all errors in them at once.

The docstring of the package lists their names and meanings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import yaml

from kubectl_ctrl import Obj, UsageError, annotations_of
from kubectl_ctrl.controllers.scaler.schedule import (
    FORCE,
    BadSchedule,
    Cron,
    Schedule,
    instant,
    parse_cron,
    parse_zone,
    shown,
)

T = TypeVar("T")

DEFAULT_PREFIX = "ars.44smkn.github.io/"

_NAMES = (
    *("start", "stop", "start-replicas", "stop-replicas", "time-zone", "schedules"),
    *("exclude", "exclude-until", "pause", "force-up", "force-down"),
    *("grace-period", "enforce", "allow-owned", "allow-gitops"),
)
_MAIN = "main"

_MOST_REPLICAS = 2**31 - 1
_LONGEST_LIST = 16 * 1024
_MOST_SCHEDULES = 64
_LIST_KEYS = {
    "name": "name",
    "start": "start",
    "stop": "stop",
    "startReplicas": "start-replicas",
    "stopReplicas": "stop-replicas",
    "timeZone": "time-zone",
}
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._]{0,38}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PERIOD = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")


class BadAnnotation(ValueError):
    """Invalid annotations; the message lists each with its error."""

    def __init__(self, message: str, *, inherited: bool) -> None:
        super().__init__(message)
        self.inherited = inherited  # all of them are the namespace's


@dataclass(frozen=True, slots=True)
class Names:
    """The annotations under one prefix. The properties are those that the scaler itself writes."""

    prefix: str = DEFAULT_PREFIX

    def __post_init__(self) -> None:
        domain = self.prefix.removesuffix("/")
        if len(domain) > 253 or not _PREFIX.fullmatch(domain) or not self.prefix.endswith("/"):
            raise UsageError(
                f"The annotation prefix {self.prefix!r} is invalid.",
                next_step="use a DNS name in lower case and a slash, such as scaler.example.com/",
            )

    @property
    def original(self) -> str:
        """The replicas before the first stop, which a start restores."""
        return f"{self.prefix}original-replicas"

    @property
    def last(self) -> str:
        """The last event that was carried out."""
        return f"{self.prefix}last-event"

    @property
    def least(self) -> str:
        """On an autoscaler: its minReplicas before the first change."""
        return f"{self.prefix}original-min-replicas"

    @property
    def most(self) -> str:
        return f"{self.prefix}original-max-replicas"

    @property
    def state(self) -> tuple[str, ...]:
        return self.original, self.last, self.least, self.most

    def on(self, obj: Obj | None) -> bool:
        """Whether the object has any of them."""
        return obj is not None and any(name.startswith(self.prefix) for name in annotations_of(obj))

    def given(self, obj: Obj | None) -> dict[str, str]:
        """The user's annotations on the object, by short names."""
        found = annotations_of(obj) if obj is not None else {}
        own = {name: value for name, value in found.items() if name.startswith(self.prefix) and name not in self.state}
        return {name.removeprefix(self.prefix): value for name, value in own.items()}


def normal_prefix(prefix: str) -> str:
    return prefix if prefix.endswith("/") else f"{prefix}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one workload."""

    schedules: tuple[Schedule, ...] = ()
    forced: Schedule | None = None  # its one action replaces the schedules
    exclude: bool = False
    exclude_until: float = 0.0
    pause: bool = False
    grace: float = 0.0
    enforce: bool = False
    allow_owned: bool = False
    allow_gitops: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing is to be scaled."""
        return not self.schedules and self.forced is None


def read_settings(own: Mapping[str, str], defaults: Mapping[str, str]) -> Settings:
    """The settings of a workload from its annotations and its namespace's, by short names; or BadAnnotation."""
    return _Reading(own, defaults).settings()


class _Reading:
    """One pass over the annotations, which collects all errors instead of stopping at the first."""

    def __init__(self, own: Mapping[str, str], defaults: Mapping[str, str]) -> None:
        defaults = {name: value for name, value in defaults.items() if not _overruled(name, own)}
        self._given = {name: value for name, value in {**defaults, **own}.items() if value.strip()}
        self._inherited = {name for name in self._given if name not in own}
        self._problems: list[str] = []
        self._own_problem = False

    def settings(self) -> Settings:
        for name in sorted(set(self._given) - set(_NAMES)):
            near = get_close_matches(name, _NAMES, n=1)
            self._wrong(name, f"is unknown{f'; did you mean {near[0]}?' if near else '.'}")
        base = Schedule(
            name=_MAIN,
            zone=self._read("time-zone", parse_zone, parse_zone("UTC")),
            start=self._read("start", parse_cron, None),
            stop=self._read("stop", parse_cron, None),
            start_replicas=self._read("start-replicas", _start_count, None),
            stop_replicas=self._read("stop-replicas", _stop_count, 0),
        )
        schedules = tuple(one for one in (base, *self._listed(base)) if one.start or one.stop)
        for one in schedules or (base,):
            self._check(one)
        found = Settings(
            schedules=schedules,
            forced=self._forced(base),
            exclude=self._read("exclude", _truth, False),
            exclude_until=self._read("exclude-until", lambda text: parse_moment(text, base.zone), 0.0),
            pause=self._read("pause", _truth, False),
            grace=self._read("grace-period", _period, 0.0),
            enforce=self._read("enforce", _truth, False),
            allow_owned=self._read("allow-owned", _truth, False),
            allow_gitops=self._read("allow-gitops", _truth, False),
        )
        if self._problems:
            raise BadAnnotation(" ".join(self._problems), inherited=not self._own_problem)
        return found

    def _wrong(self, name: str, problem: str) -> None:
        inherited = bool(self._inherited & {name, name.partition("[")[0]})
        self._own_problem |= not inherited
        self._problems.append(f"{'Namespace annotation' if inherited else 'Annotation'} {_safe(name)} {problem}")

    def _read(self, name: str, parse: Callable[[str], T], default: T) -> T:
        if name not in self._given:
            return default
        try:
            return parse(self._given[name].strip())
        except BadSchedule as error:
            self._wrong(name, str(error))
            return default

    def _forced(self, base: Schedule) -> Schedule | None:
        up, down = self._read("force-up", _truth, False), self._read("force-down", _truth, False)
        if up and down:
            self._wrong("force-up", "and force-down are both true; set only one of them.")
        if not up and not down:
            return None
        always = Cron(text="", plain="")
        return replace(base, name=FORCE, start=always if up else None, stop=None if up else always)

    def _check(self, schedule: Schedule) -> None:
        """Errors in the combination of valid values."""
        name = "start" if schedule.name == _MAIN else f"schedules ({schedule.name})"
        if schedule.start and schedule.stop and schedule.start.plain == schedule.stop.plain:
            self._wrong(name, f"and stop are both {shown(schedule.start.text)}, so nothing would ever be stopped.")
        if schedule.start_replicas is not None and schedule.start_replicas < schedule.stop_replicas:
            self._wrong(
                f"{name}-replicas" if schedule.name == _MAIN else name,
                f"starts with {schedule.start_replicas} and stops with {schedule.stop_replicas} replicas;"
                " a start cannot have fewer than a stop.",
            )

    def _listed(self, base: Schedule) -> Iterator[Schedule]:
        taken = {_MAIN, FORCE}
        for at, entry in enumerate(self._entries()):
            where = f"schedules[{at}]"
            one = self._entry(where, entry, base)
            if one is None:
                continue
            if one.name in taken:
                self._wrong(where, f"has the name {one.name!r}, which is already used.")
            taken.add(one.name)
            yield one

    def _entries(self) -> list[Any]:
        text = self._given.get("schedules", "")
        if not text:
            return []
        if len(text) > _LONGEST_LIST:
            self._wrong("schedules", f"has {len(text)} characters; the limit is {_LONGEST_LIST}.")
            return []
        # Deep nesting would keep the parser busy for seconds.
        if text.count("[") + text.count("{") > _MOST_SCHEDULES + 1:
            self._wrong("schedules", f"must be a list of 1 to {_MOST_SCHEDULES} schedules.")
            return []
        try:
            found = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            where = getattr(error, "problem_mark", None)
            line = f" (line {where.line + 1})" if where is not None else ""
            self._wrong("schedules", f"is neither YAML nor JSON{line}; quote a cron expression that begins with *.")
            return []
        if not isinstance(found, list) or not 1 <= len(found) <= _MOST_SCHEDULES:
            self._wrong("schedules", f"must be a list of 1 to {_MOST_SCHEDULES} schedules.")
            return []
        return found

    def _entry(self, where: str, entry: Any, base: Schedule) -> Schedule | None:
        if not isinstance(entry, dict):
            self._wrong(where, f"is {shown(str(entry))}; it must be a mapping with start, stop or both.")
            return None
        for key in sorted(map(str, set(entry) - set(_LIST_KEYS))):
            near = get_close_matches(key, _LIST_KEYS, n=1)
            self._wrong(f"{where}.{_safe(key)}", f"is unknown{f'; did you mean {near[0]}?' if near else '.'}")
        if not entry.get("start") and not entry.get("stop"):
            self._wrong(where, "has neither start nor stop.")
            return None
        own = {f"{where}.{key}": _text(entry[key]) for key in _LIST_KEYS if entry.get(key) is not None}
        inner = _Reading(own if "schedules" not in self._inherited else {}, own)
        one = Schedule(
            name=inner._read(f"{where}.name", _name, where),
            zone=inner._read(f"{where}.timeZone", parse_zone, base.zone),
            start=inner._read(f"{where}.start", parse_cron, None),
            stop=inner._read(f"{where}.stop", parse_cron, None),
            start_replicas=inner._read(f"{where}.startReplicas", _start_count, base.start_replicas),
            stop_replicas=inner._read(f"{where}.stopReplicas", _stop_count, base.stop_replicas),
        )
        self._problems += inner._problems
        self._own_problem |= inner._own_problem
        return one


def _overruled(name: str, own: Mapping[str, str]) -> bool:
    """Whether the workload itself has a true force-up or force-down, against which this default must not count."""
    return name in ("force-up", "force-down") and "true" in (own.get("force-up"), own.get("force-down"))


def _safe(name: str) -> str:
    return name if name.isascii() and name.isprintable() else shown(name)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise BadSchedule(f"is {shown(text)}; use at most 40 letters, digits, dashes and dots.")
    return text


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise BadSchedule(f"is {shown(text)}; use true or false.")
    return text == "true"


def _count(text: str, least: int) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= _MOST_REPLICAS:
        raise BadSchedule(f"is {shown(text)}; use a whole number from {least} to {_MOST_REPLICAS}.")
    return int(text)


def _start_count(text: str) -> int:
    return _count(text, 1)


def _stop_count(text: str) -> int:
    return _count(text, 0)


def _period(text: str) -> float:
    match = _PERIOD.fullmatch(text)
    if not match or not text:
        raise BadSchedule(f"is {shown(text)}; write a duration like 15m, 1h30m or 2d.")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def parse_moment(text: str, zone: ZoneInfo) -> float:
    """A time with its offset, or a date with or without a time in the zone."""
    try:
        if _DATE.fullmatch(text):
            return instant(datetime.fromisoformat(text), zone)
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.timestamp()
    except (ValueError, OverflowError):
        pass
    raise BadSchedule(f"is {shown(text)}; write 2026-12-24T18:00:00Z, 2026-12-24T18:00 or 2026-12-24.")
