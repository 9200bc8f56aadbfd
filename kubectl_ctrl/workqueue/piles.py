"""The parts of the queue: piles of causes, keys with their state, and timers."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Generic

from kubectl_ctrl.value import Value
from kubectl_ctrl.workqueue.values import C, K, KeyWork


class Pile(Generic[C]):
    """The causes of one future run: the first `keep - 1` and the last are kept, the others only counted."""

    __slots__ = ("first_at", "kept", "priority", "total")

    def __init__(self) -> None:
        self.kept: list[C] = []
        self.total = 0  # 0 exactly when the pile is empty
        self.priority = 0  # the highest of its causes
        self.first_at = 0.0  # wall time of the first

    def add(self, cause: C, keep: int, priority: int, at: float) -> None:
        if self.total == 0:
            self.first_at = at
            self.priority = priority
        elif priority > self.priority:
            self.priority = priority
        self.total += 1
        if len(self.kept) < keep:
            self.kept.append(cause)
        else:
            self.kept[-1] = cause

    def merge(self, later: Pile[C], keep: int) -> None:
        """Add everything in `later`."""
        for cause in later.kept:
            self.add(cause, keep, later.priority, later.first_at)
        self.total += later.total - len(later.kept)
        self.first_at = min(self.first_at, later.first_at)

    def clear(self) -> None:
        self.kept = []
        self.total = 0

    def without(self, unwanted: Callable[[C], bool]) -> tuple[C, ...]:
        """Remove and return the unwanted causes; none if some were not kept, which may be wanted."""
        if self.total > len(self.kept):
            return ()
        judged = [(cause, unwanted(cause)) for cause in self.kept]
        self.kept = [cause for cause, out in judged if not out]
        self.total = len(self.kept)
        return tuple(cause for cause, out in judged if out)


class Timer(Generic[K, C]):
    """The time at which a key becomes ready by itself."""

    __slots__ = ("backoff", "due", "item", "pile")

    def __init__(self, item: Item[K, C], due: float) -> None:
        self.item = item
        self.due = due  # elapsed time
        self.pile: Pile[C] = Pile()
        self.backoff = False  # a retry is among its causes


class ScheduledRun(Value, Generic[C]):
    """The next run that the last successful run asked for. Failures keep it, also beside a retry."""

    due: float  # elapsed time
    cause: C
    priority: int


class Item(Generic[K, C]):
    """The state of one key; forgotten when the key is neither dirty, running nor has a timer."""

    __slots__ = ("key", "lane", "pile", "queued", "ready_at", "schedule", "since", "started_at", "timer", "work")

    def __init__(self, key: K, lane: object) -> None:
        self.key = key
        self.lane = lane
        self.pile: Pile[C] = Pile()  # for the next run; not empty: the key is dirty
        self.queued: int | None = None  # the level in which it is ready; set exactly when it is dirty and not running
        self.ready_at = 0.0  # elapsed time at which it became ready
        self.since = 0.0  # elapsed time at which it entered its level
        self.work: KeyWork[K, C] | None = None  # set exactly while it runs
        self.started_at = 0.0  # wall time, while it runs
        self.timer: Timer[K, C] | None = None
        self.schedule: ScheduledRun[C] | None = None  # may lie in the past


class Timers(Generic[K, C]):
    """All timers, the earliest first; equal ones in the order in which they were set."""

    def __init__(self) -> None:
        # A cancelled or replaced timer stays in the heap until it comes up or there are too many of them.
        self._heap: list[tuple[float, int, Timer[K, C]]] = []
        self._set = 0
        self.live = 0  # timers that are set
        self.backoffs = 0  # those of them with a retry

    def earliest(self, count: int) -> list[Timer[K, C]]:
        """At most `count` timers, in the order in which they are due."""
        found: Iterable[tuple[float, int, Timer[K, C]]] = (node for node in self._heap if node[2].item.timer is node[2])
        return [timer for _, _, timer in heapq.nsmallest(count, found)]

    def set(self, item: Item[K, C], due: float, *, backoff: bool) -> Timer[K, C]:
        """Set the item's timer. It replaces a later one, and takes its causes over."""
        timer, old = Timer(item, due), item.timer
        timer.backoff = backoff
        if old is not None:
            timer.pile = old.pile
            timer.backoff = backoff or old.backoff
            self.cancel(item)
        item.timer = timer
        self.live += 1
        self.backoffs += timer.backoff
        self._set += 1
        heapq.heappush(self._heap, (due, self._set, timer))
        return timer

    def cancel(self, item: Item[K, C]) -> None:
        timer = item.timer
        if timer is None:
            return
        item.timer = None
        self.live -= 1
        self.backoffs -= timer.backoff
        if len(self._heap) > 2 * self.live + 64:
            self._heap = [node for node in self._heap if node[2].item.timer is node[2]]
            heapq.heapify(self._heap)

    def next_due(self) -> float | None:
        """The time of the first timer. Removes cancelled ones before it."""
        while self._heap:
            due, _, timer = self._heap[0]
            if timer.item.timer is timer:
                return due
            heapq.heappop(self._heap)
        return None

    def take_due(self, now: float) -> Iterator[Timer[K, C]]:
        """Cancel and yield each timer that is due, in order."""
        while (due := self.next_due()) is not None and due <= now:
            timer = heapq.heappop(self._heap)[2]
            self.cancel(timer.item)
            yield timer

    def clear(self) -> list[Item[K, C]]:
        """Cancel all; returns their keys, in the order in which they were due."""
        items = [timer.item for timer in self.earliest(len(self._heap))]
        for item in items:
            item.timer = None
        self._heap.clear()
        self.live = self.backoffs = 0
        return items
