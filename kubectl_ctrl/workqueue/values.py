"""What goes into the queue and what comes out of it: frozen values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Generic, TypeVar

K = TypeVar("K")
C = TypeVar("C")

# Any number is a priority and makes a level of its own; there should be few levels.
LIVE = 0
BULK = -100  # initial lists and resyncs: work that nobody is waiting for


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[K, C]):
    """One key, handed to one worker; it is running until the worker says `done`."""

    key: K
    causes: tuple[C, ...]  # the first ones and the last one, in the order in which they came
    total: int  # of all causes, also those not kept
    priority: int
    queued_at: float  # wall time of the first cause
    ready_at: float  # elapsed time from which it could have run
    taken_at: float  # elapsed time at which it was handed out
    failures: int  # retries in a row so far


@dataclass(frozen=True, slots=True)
class After(Generic[C]):
    """Run the key again after a delay; nothing but a run takes this back."""

    delay: float
    cause: C
    _: KW_ONLY
    priority: int | None = None  # None: the priority of the work that is done


@dataclass(frozen=True, slots=True)
class Again(Generic[C]):
    """Run the key again at once, behind those that are ready."""

    cause: C
    _: KW_ONLY
    priority: int | None = None


@dataclass(frozen=True, slots=True)
class Retry(Generic[C]):
    """Run the key again when the rate limiter says, within the bounds given here; `at_least` wins over `at_most`."""

    cause_of: Callable[[int, float], C]  # (failures in a row, delay) -> the cause of that run
    _: KW_ONLY
    at_least: float = 0.0
    at_most: float = float("inf")
    priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Generic[C]):
    """What `done` made of a work and of what piled up while it ran."""

    dropped: tuple[C, ...] = ()  # the causes that the caller did not want
    delay: float | None = (
        None  # until the run that `then` asked for; None when it asked for none, or the queue is closed
    )
    ready: bool = False  # the key is ready again, at once


class Stage(StrEnum):
    READY = "ready"
    RUNNING = "running"
    BACKOFF = "backoff"  # waits for a retry
    TIMER = "timer"  # waits for a time that somebody asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Generic[K]):
    """One key of the queue, for people to look at; times are wall times."""

    key: K
    state: Stage
    since: float  # ready, timer, backoff: the first cause; running: the start of the run
    due: float | None  # timer and backoff: when it becomes ready
    failures: int
    causes: int  # for the next run; while it runs, those that came since
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The ready keys of one lane."""

    name: object
    ready: int
    since: float  # wall time of the first cause of its oldest key


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The queue in numbers, made without looking at the keys one by one."""

    adds: int  # how often a key came to need a run
    retries: int
    ready: tuple[tuple[int, int], ...]  # (priority, keys), highest first
    running: int
    backoff: int  # also keys that are ready or running and have a retry pending
    timers: int
    longest_running: float  # seconds; 0.0 when nothing runs
    unfinished: float  # seconds, summed over what runs
