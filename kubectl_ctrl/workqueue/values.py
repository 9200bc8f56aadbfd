"""The values that go into the queue and come out of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Generic, TypeVar

from kubectl_ctrl.value import Value

K = TypeVar("K")
C = TypeVar("C")

# Any number is a priority and makes a level of its own; there should be few levels.
LIVE = 0
BULK = -100  # initial lists and resyncs: nobody waits for these


class KeyWork(Value, Generic[K, C], kw_only=True):
    """One key, handed to one worker; it is running until the worker calls `done`."""

    key: K
    causes: tuple[C, ...]  # the first ones and the last, in order
    total: int  # of all causes, with those not kept
    priority: int
    queued_at: float  # wall time of the first cause
    ready_at: float  # elapsed time at which it became ready
    taken_at: float  # elapsed time at which it was handed out
    failures: int  # retries in a row so far


class After(Value, Generic[C]):
    """Run the key again after a delay; only a run of the key cancels this."""

    delay: float
    cause: C
    priority: int | None = None  # None: the priority of the work that is done


class Again(Value, Generic[C]):
    """Run the key again at once, behind those that are ready."""

    cause: C
    priority: int | None = None


class Retry(Value, Generic[C]):
    """Run the key again after the delay of the rate limiter, within bounds; `at_least` wins over `at_most`."""

    cause_of: Callable[[int, float], C]  # (failures in a row, delay) -> the cause of that run
    at_least: float = 0.0
    at_most: float = float("inf")
    priority: int | None = None


class DoneResult(Value, Generic[C], kw_only=True):
    """The result of `done`."""

    dropped: tuple[C, ...] = ()  # causes that `drop` removed
    delay: float | None = None  # before the run that `then` requests; None without one, or if the queue is closed
    ready: bool = False  # the key is ready again, at once


class KeyStage(StrEnum):
    READY = "ready"
    RUNNING = "running"
    BACKOFF = "backoff"  # waits for a retry
    TIMER = "timer"  # waits for a scheduled time


class QueueEntry(Value, Generic[K], kw_only=True):
    """One key of the queue, for display; times are wall times."""

    key: K
    state: KeyStage
    since: float  # ready, timer, backoff: the first cause; running: the start of the run
    due: float | None  # timer and backoff: when it becomes ready
    failures: int
    causes: int  # of the next run
    priority: int


class Lane(Value, kw_only=True):
    """The ready keys of one lane."""

    name: object
    ready: int
    since: float  # wall time of the first cause of its oldest key


class QueueCounts(Value, kw_only=True):
    """The queue in numbers, computed without a loop over its keys."""

    adds: int  # times that a key became dirty
    retries: int
    ready: tuple[tuple[int, int], ...]  # (priority, keys), highest first
    running: int
    backoff: int  # with keys that are ready or running and have a retry pending
    timers: int
    longest_running: float  # seconds; 0.0 if nothing runs
    unfinished: float  # seconds, summed over running keys
