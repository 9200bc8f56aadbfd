"""What goes into the queue and what comes out of it: frozen values."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Generic, TypeVar

from kubectl_ctrl.value import Value

K = TypeVar("K")
C = TypeVar("C")

# Any number is a priority and makes a level of its own; there should be few levels.
LIVE = 0
BULK = -100  # initial lists and resyncs: work that nobody is waiting for


class Work(Value, Generic[K, C], kw_only=True):
    """One key, handed to one worker; it is running until the worker says `done`."""

    key: K
    causes: tuple[C, ...]  # the first ones and the last one, in the order in which they came
    total: int  # of all causes, also those not kept
    priority: int
    queued_at: float  # wall time of the first cause
    ready_at: float  # elapsed time from which it could have run
    taken_at: float  # elapsed time at which it was handed out
    failures: int  # retries in a row so far


class After(Value, Generic[C]):
    """Run the key again after a delay; nothing but a run takes this back."""

    delay: float
    cause: C
    priority: int | None = None  # None: the priority of the work that is done


class Again(Value, Generic[C]):
    """Run the key again at once, behind those that are ready."""

    cause: C
    priority: int | None = None


class Retry(Value, Generic[C]):
    """Run the key again when the rate limiter says, within the bounds given here; `at_least` wins over `at_most`."""

    cause_of: Callable[[int, float], C]  # (failures in a row, delay) -> the cause of that run
    at_least: float = 0.0
    at_most: float = float("inf")
    priority: int | None = None


class Settled(Value, Generic[C], kw_only=True):
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


class Entry(Value, Generic[K], kw_only=True):
    """One key of the queue, for people to look at; times are wall times."""

    key: K
    state: Stage
    since: float  # ready, timer, backoff: the first cause; running: the start of the run
    due: float | None  # timer and backoff: when it becomes ready
    failures: int
    causes: int  # for the next run; while it runs, those that came since
    priority: int


class Lane(Value, kw_only=True):
    """The ready keys of one lane."""

    name: object
    ready: int
    since: float  # wall time of the first cause of its oldest key


class Counts(Value, kw_only=True):
    """The queue in numbers, made without looking at the keys one by one."""

    adds: int  # how often a key came to need a run
    retries: int
    ready: tuple[tuple[int, int], ...]  # (priority, keys), highest first
    running: int
    backoff: int  # also keys that are ready or running and have a retry pending
    timers: int
    longest_running: float  # seconds; 0.0 when nothing runs
    unfinished: float  # seconds, summed over what runs
