"""The queue: the keys that must run, that run, and that have a timer, each with its causes.

The terms are client-go's. A key is dirty when it must run, running while a worker has it, and ready when it is dirty
and not running; only ready keys are in `Ready`. A key that becomes dirty while it runs is ready once it is done.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from itertools import chain, islice
from typing import Generic, TypeVar

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import QueueClosed
from kubectl_ctrl.value import Value
from kubectl_ctrl.workqueue.limits import Limiter
from kubectl_ctrl.workqueue.piles import Item, ScheduledRun, Timer, Timers
from kubectl_ctrl.workqueue.ready import Ready
from kubectl_ctrl.workqueue.values import (
    LIVE,
    After,
    Again,
    C,
    DoneResult,
    K,
    KeyStage,
    KeyWork,
    Lane,
    QueueCounts,
    QueueEntry,
    Retry,
)

T = TypeVar("T")

# Timers of the event loop do not count the time while the machine is suspended, so due timers are checked this often.
_LONGEST_NAP = 5.0
# The loop may call a moment before the clock has reached the time; the next check is this much later, not at once.
_SHORTEST_NAP = 1e-6


class _Plan(Value, Generic[C]):
    """A requested run: `then` with its delay computed."""

    delay: float
    cause: C
    priority: int
    backoff: bool = False


class Queue(Generic[K, C]):
    """Deduplicated keys for one event loop; nothing here is safe to call from another thread.

    Keys are handed out by priority, by turns over lanes within one, and first come, first served within a lane. Keys
    that waited for `aging` seconds get turns of their own; `levels.Levels` states the bound. Of keys in doubt at most
    `doubtful_slots` run at a time; see `ready`. Only `get` waits.
    """

    def __init__(
        self,
        *,
        name: str,
        clock: Clock,
        limiter: Limiter[K],
        lane: Callable[[K], object] = lambda key: None,
        keep: int = 16,
        aging: float = 10.0,
        doubtful_slots: int | None = None,
    ) -> None:
        self._name = name
        self._clock = clock
        self._limiter = limiter
        self._lane = lane
        self._keep = max(1, keep)
        self._items: dict[K, Item[K, C]] = {}  # every key that is dirty, running or has a timer
        self._running: dict[K, Item[K, C]] = {}
        self._ready: Ready[K, C] = Ready(aging, doubtful_slots)
        self._timers: Timers[K, C] = Timers()
        self._getters: deque[asyncio.Future[None]] = deque()  # calls of get that wait; one is woken per ready key
        self._alarm: asyncio.TimerHandle | None = None  # set only while a call of get waits and a timer is set
        self._alarm_at = 0.0
        self._closed = False
        self._adds = 0
        self._retries = 0

    def add(self, key: K, cause: C, *, priority: int = LIVE) -> None:
        """Run the key after this call. A key that is dirty already keeps its place unless its priority rises."""
        if self._closed:
            return
        now = self._catch_up()
        item = self._item(key)
        fresh = item.pile.total == 0
        item.pile.add(cause, self._keep, priority, self._clock.now() if fresh else 0.0)
        self._dirty(item, fresh, now)

    async def get(self) -> KeyWork[K, C]:
        """Wait for the next key; raises QueueClosed when the queue is closed and empty.

        A worker that is cancelled here has taken nothing.
        """
        while True:
            work = self.take()
            if work is not None:
                return work
            if self._closed:
                raise QueueClosed(f"The queue {self._name!r} is closed.")
            await self._wait()

    def take(self) -> KeyWork[K, C] | None:
        """The next key if one is ready; a closed queue still hands out its ready keys."""
        now = self._catch_up()
        item = self._ready.pop(now)
        if item is None:
            return None
        self._timers.cancel(item)
        pile = item.pile
        work = item.work = KeyWork(
            key=item.key,
            causes=tuple(pile.kept),
            total=pile.total,
            priority=pile.priority,
            queued_at=pile.first_at,
            ready_at=item.ready_at,
            taken_at=now,
            failures=self._limiter.failures(item.key),
        )
        pile.clear()
        item.started_at = self._clock.now()
        self._running[item.key] = item
        return work

    def done(
        self,
        work: KeyWork[K, C],
        *,
        drop: Callable[[C], bool] | None = None,
        then: After[C] | Again[C] | Retry[C] | None = None,
        failed: bool = False,
    ) -> DoneResult[C]:
        """The worker is finished with it. A second call for the same work changes nothing.

        Each run cancels the timer of its key and requests its next run itself. A run that `failed` could not: so the
        schedule of an earlier run is kept, unless its time had passed when this run was taken.
        `drop` is called for each cause that piled up meanwhile, unless some were not kept: then all stay. If no cause
        remains, the key does not run again for them. If `drop` or a Retry's `cause_of` raises, the work stays running.
        """
        item = self._items.get(work.key)
        if item is None or item.work is not work:
            return DoneResult()
        plan = self._plan(work.key, then, work.priority) if then is not None and not self._closed else None
        dropped = item.pile.without(drop) if drop is not None and item.pile.total else ()
        now = self._catch_up()
        item.work = None
        del self._running[item.key]
        self._wake_getters(self._ready.done(item.key, now))
        if item.pile.total:
            self._enter(item, now)
        if plan is not None:
            self._carry_out(item, plan)
        self._schedule(item, work, plan if isinstance(then, After) else None, failed)
        self._release(item)
        return DoneResult(
            dropped=dropped, delay=plan.delay if plan is not None else None, ready=item.queued is not None
        )

    def forget(self, key: K) -> None:
        """The next failure of the key counts as its first."""
        self._limiter.forget(key)

    def doubt(self, key: K) -> None:
        """The key hung until its timeout; see `ready`."""
        self._ready.doubt(key)

    def trust(self, key: K) -> None:
        """The key finished in time."""
        self._wake_getters(self._ready.trust(key, self._catch_up()))

    def failures(self, key: K) -> int:
        return self._limiter.failures(key)

    def close(self) -> None:
        """Ignore adds and drop timers from now on; ready keys are still handed out. May be called twice."""
        self._catch_up()
        self._closed = True
        for item in self._timers.clear():
            self._release(item)
        self._cancel_alarm()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def abandon(self) -> list[QueueEntry[K]]:
        """Close, hand out nothing more, and return the keys that are left."""
        left = self.snapshot()
        self.close()
        self._ready.clear()
        for item in self._items.values():
            item.pile.clear()
        self._items = dict(self._running)
        return left

    def snapshot(self, most: int | None = None) -> list[QueueEntry[K]]:
        """The keys in their order: running ones, then ready ones by level, then timers.

        `most` limits the ready ones and the timers; `counts` and `lanes` cover all.
        """
        now, wall = self._catch_up(), self._clock.now()
        entries = [self._entry(item) for item in chain(self._running.values(), islice(self._ready, most))]
        room = self._timers.live if most is None else most
        # A running or ready key is in the list already, and may have a timer too.
        timers = self._timers.earliest(room + len(entries))
        waiting = [timer for timer in timers if timer.item.work is None and timer.item.queued is None]
        return entries + [self._delayed_entry(timer, wall - now) for timer in waiting[:room]]

    def lanes(self, most: int) -> tuple[list[Lane], int]:
        """The lanes with the most ready keys, and the number of lanes with any. Takes time per lane, not per key."""
        self._catch_up()
        found: dict[object, tuple[int, float]] = {}
        for count, item in self._ready.lanes():
            known, since = found.get(item.lane, (0, item.pile.first_at))
            found[item.lane] = known + count, min(since, item.pile.first_at)
        fullest = heapq.nsmallest(most, found.items(), key=lambda entry: (-entry[1][0], entry[1][1]))
        return [Lane(name=name, ready=ready, since=since) for name, (ready, since) in fullest], len(found)

    @property
    def counts(self) -> QueueCounts:
        now = self._catch_up()
        runs = [now - item.work.taken_at for item in self._running.values() if item.work is not None]
        return QueueCounts(
            adds=self._adds,
            retries=self._retries,
            ready=self._ready.depths(),
            running=len(runs),
            backoff=self._timers.backoffs,
            timers=self._timers.live - self._timers.backoffs,
            longest_running=max(runs, default=0.0),
            unfinished=sum(runs),
        )

    @property
    def closed(self) -> bool:
        return self._closed

    def __len__(self) -> int:
        """The number of ready keys; running keys and timers do not count."""
        self._catch_up()
        return len(self._ready)

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        return (
            f"<Queue {self._name!r}: {len(self._ready)} ready, {len(self._running)} running,"
            f" {self._timers.live} timers{closed}>"
        )

    def _item(self, key: K) -> Item[K, C]:
        item = self._items.get(key)
        if item is None:
            item = self._items[key] = Item(key, self._lane(key))
        return item

    def _release(self, item: Item[K, C]) -> None:
        """Forget a key that is neither dirty, running nor has a timer."""
        if item.work is None and item.timer is None and not item.pile.total:
            del self._items[item.key]

    def _dirty(self, item: Item[K, C], fresh: bool, ready_at: float) -> None:
        """A cause was added to the pile, which was empty if `fresh`: make the key ready, unless it runs."""
        self._adds += fresh
        if item.queued is not None:
            self._ready.raise_to(item, item.pile.priority, ready_at)
        elif item.work is None:
            self._enter(item, ready_at)

    def _enter(self, item: Item[K, C], ready_at: float) -> None:
        item.ready_at = ready_at
        self._ready.push(item, item.pile.priority, ready_at)
        self._wake_getter()

    def _plan(self, key: K, then: After[C] | Again[C] | Retry[C], priority: int) -> _Plan[C]:
        """The next run of the key. Changes nothing of the key if it raises."""
        priority = priority if then.priority is None else then.priority
        if isinstance(then, Again):
            return _Plan(0.0, then.cause, priority)
        if isinstance(then, After):
            return _Plan(then.delay if then.delay > 0 else 0.0, then.cause, priority)
        self._retries += 1
        delay = max(then.at_least, min(then.at_most, self._limiter.when(key)))
        return _Plan(delay, then.cause_of(self._limiter.failures(key), delay), priority, backoff=True)

    def _schedule(self, item: Item[K, C], work: KeyWork[K, C], asked: _Plan[C] | None, failed: bool) -> None:
        """Note the next run that a run asked for; after a failed run, restore the timer of the one noted before."""
        now, noted = self._clock.elapsed(), item.schedule
        if asked is not None:
            item.schedule = ScheduledRun(now + asked.delay, asked.cause, asked.priority)
        elif not failed or noted is None or noted.due <= work.taken_at:
            item.schedule = None
        elif not self._closed and (item.timer is None or noted.due < item.timer.due):
            self._carry_out(item, _Plan(noted.due - now, noted.cause, noted.priority))

    def _carry_out(self, item: Item[K, C], plan: _Plan[C]) -> None:
        if plan.delay <= 0:
            self.add(item.key, plan.cause, priority=plan.priority)
            return
        timer = self._timers.set(item, self._clock.elapsed() + plan.delay, backoff=plan.backoff)
        timer.pile.add(plan.cause, self._keep, plan.priority, self._clock.now())
        self._set_alarm()

    def _catch_up(self) -> float:
        """Make keys ready whose timers are due, so that they come before keys added now; returns the time."""
        now = self._clock.elapsed()
        if self._timers.live:
            for timer in self._timers.take_due(now):
                item = timer.item
                fresh = item.pile.total == 0
                item.pile.merge(timer.pile, self._keep)
                self._dirty(item, fresh, timer.due)
        return now

    async def _wait(self) -> None:
        """Until a key may be ready, or the queue is closed."""
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        self._set_alarm()
        woken = False
        try:
            await getter
            woken = True
        finally:
            if getter in self._getters:
                self._getters.remove(getter)
            if not woken and self._ready.takeable:
                self._wake_getter()  # it may have been woken for a key just before its cancellation: wake another
            if not self._getters:
                self._cancel_alarm()

    def _wake_getters(self, count: int) -> None:
        for _ in range(count):
            self._wake_getter()

    def _wake_getter(self) -> None:
        while self._getters:
            if _settle(self._getters.popleft(), None):
                return

    def _set_alarm(self) -> None:
        """Check the timers when the first is due, but only while a call of get waits for it."""
        due = self._timers.next_due()
        if due is None or not self._getters:
            self._cancel_alarm()
            return
        now = self._clock.elapsed()
        at = min(due, now + _LONGEST_NAP)
        if self._alarm is None or at < self._alarm_at:
            self._cancel_alarm()
            self._alarm_at = at
            self._alarm = asyncio.get_running_loop().call_later(max(_SHORTEST_NAP, at - now), self._ring)

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self._catch_up()
        self._set_alarm()

    def _entry(self, item: Item[K, C]) -> QueueEntry[K]:
        running = item.work is not None
        return QueueEntry(
            key=item.key,
            state=KeyStage.RUNNING if running else KeyStage.READY,
            since=item.started_at if running else item.pile.first_at,
            due=None,
            failures=self._limiter.failures(item.key),
            causes=item.pile.total,
            priority=item.work.priority if item.work is not None else item.pile.priority,
        )

    def _delayed_entry(self, timer: Timer[K, C], to_wall: float) -> QueueEntry[K]:
        return QueueEntry(
            key=timer.item.key,
            state=KeyStage.BACKOFF if timer.backoff else KeyStage.TIMER,
            since=timer.pile.first_at,
            due=timer.due + to_wall,
            failures=self._limiter.failures(timer.item.key),
            causes=timer.pile.total,
            priority=timer.pile.priority,
        )


def _settle(future: asyncio.Future[T], value: T) -> bool:
    """Set the result, unless the waiting task was cancelled; returns whether it did."""
    if future.done():
        return False
    future.set_result(value)
    return True
