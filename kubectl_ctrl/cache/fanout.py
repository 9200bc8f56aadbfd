"""Delivers one stream of changes to every subscriber: plain calls, in order, each change once.

A change of the watch is delivered at once. A bulk (the first list, a later one, the first list of a late subscriber, a
resync) waits in the subscriber's backlog and is delivered in slices, so that the loop stays responsive; changes that
arrive meanwhile queue up behind it. The reflector reads on only when all backlogs are empty, which bounds them.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Obj, version_of
from kubectl_ctrl.model.resources import Resource

Handler = Callable[[Change], None]

_log = logging.getLogger(__name__)

_SLICE = 200
# CPU time of one call: elapsed time would blame a subscriber for a busy machine.
_SLOW = 0.050
_REPORT_EVERY = 60.0
_SHORTEST_RESYNC = 1.0


class Subscription:
    """One subscriber: its backlog, and the counts of its calls, errors and slow calls."""

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        clock: Clock,
        resync: float | None,
        replaced: Callable[[], None] | None,
    ) -> None:
        self.name = name
        self.synced = False  # every object of its first list was delivered
        self.closed = False
        self.told = 0
        self.errors = 0
        self.slow = 0
        self._next_report = -math.inf  # elapsed time
        self.resync = resync
        self.next_resync: float | None = None
        self._handler = handler
        self._clock = clock
        self._replaced = replaced
        self._backlog: deque[Change | Callable[[], None]] = deque()

    def close(self) -> None:
        self.closed = True
        self._backlog.clear()

    @property
    def behind(self) -> int:
        """The length of the backlog."""
        return len(self._backlog)

    def tell(self, change: Change) -> None:
        if self._backlog:
            self._backlog.append(change)
        else:
            self._call(change)

    def defer(self, changes: Iterable[Change]) -> None:
        self._backlog.extend(changes)

    def deliver_list(self, changes: Iterable[Change]) -> None:
        """A whole list, between the call that it replaces the one before and the mark of its end."""
        if self._replaced is not None:
            self._backlog.append(self._replaced)
        self._backlog.extend(changes)
        self._backlog.append(self._mark_synced)

    def deliver_backlog(self, most: int) -> None:
        for _ in range(min(most, len(self._backlog))):
            if not self._backlog:
                return  # the handler closed it
            item = self._backlog.popleft()
            if isinstance(item, Change):
                self._call(item)
            else:
                item()

    def _mark_synced(self) -> None:
        self.synced = True

    def _call(self, change: Change) -> None:
        if self.closed:
            return
        self.told += 1
        started = self._clock.cpu()
        try:
            self._handler(change)
        except Exception:  # noqa: BLE001  # the others and the watch go on
            self.errors += 1
            _log.exception("A subscriber of the cache raised.", extra=self._fields("cache.subscriber_raised", change))
        took = self._clock.cpu() - started
        if took > _SLOW:
            self._report_slow(took)

    def _report_slow(self, took: float) -> None:
        self.slow += 1
        now = self._clock.elapsed()
        if now < self._next_report:
            return
        self._next_report = now + _REPORT_EVERY
        # The line has to fit a terminal, so the message has what a person reads: more fields would be printed after it.
        said = f"{took * 1000:.0f} ms"
        fields = {"action": "cache.subscriber_slow", "subscriber": self.name, "took": said}
        _log.warning("Subscriber %s blocked the event loop for %s.", self.name, said, extra=fields)

    def _fields(self, action: str, change: Change) -> dict[str, object]:
        return {"action": action, "subscriber": self.name, "resource": str(change.resource), "object": str(change.key)}

    def __repr__(self) -> str:
        return (
            f"Subscription({self.name}, synced={self.synced}, told={self.told}, behind={self.behind}, "
            f"errors={self.errors}, slow={self.slow})"
        )


class Fanout:
    """The subscribers of one informer."""

    def __init__(self, resource: Resource, *, clock: Clock, rng: Random, view: Callable[[], list[Obj]]) -> None:
        self._resource = resource
        self._clock = clock
        self._rng = rng
        self._view = view  # the objects of the store, for resyncs
        self._subscriptions: tuple[Subscription, ...] = ()
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        return self._open()

    def add(
        self,
        name: str,
        handler: Handler,
        *,
        resync: float | None,
        replaced: Callable[[], None] | None,
        view: Iterable[Obj] | None,
    ) -> Subscription:
        """`view`: the objects of the store; None before the first list."""
        subscription = Subscription(name, handler, clock=self._clock, resync=resync, replaced=replaced)
        self._plan_resync(subscription)
        self._subscriptions = (*self._open(), subscription)
        if view is not None:
            initial = partial(Change, kind=ChangeKind.ADDED, resource=self._resource, old=None, initial=True)
            subscription.deliver_list(initial(new=obj, version=version_of(obj)) for obj in view)
        self._notify()
        return subscription

    def tell(self, changes: Sequence[Change]) -> None:
        """Changes of a watch; the store has the last of them already."""
        for change in changes:
            for subscription in self._subscriptions:
                subscription.tell(change)

    def deliver_list(self, changes: Sequence[Change]) -> None:
        """The changes of a completed list."""
        for subscription in self._open():
            subscription.deliver_list(changes)
        self._notify()

    async def settled(self) -> None:
        """Return once all backlogs are empty; `run` must be running."""
        await self._settled.wait()

    async def run(self) -> None:
        """Deliver backlogs and start resyncs, until cancelled."""
        while True:
            due = min((one.next_resync for one in self._open() if one.next_resync is not None), default=None)
            try:
                async with self._clock.timeout(None if due is None else due - self._clock.elapsed()):
                    await self._wake.wait()
            except TimeoutError:
                self._start_resyncs()
            self._wake.clear()
            while behind := [one for one in self._open() if one.behind]:
                for subscription in behind:
                    subscription.deliver_backlog(_SLICE)
                await self._clock.sleep(0)
            self._settled.set()

    def _notify(self) -> None:
        self._wake.set()
        if any(one.behind for one in self._subscriptions):
            self._settled.clear()

    def _open(self) -> tuple[Subscription, ...]:
        if any(one.closed for one in self._subscriptions):
            self._subscriptions = tuple(one for one in self._subscriptions if not one.closed)
        return self._subscriptions

    def _plan_resync(self, subscription: Subscription) -> None:
        if subscription.resync is not None:
            period = max(_SHORTEST_RESYNC, subscription.resync * self._rng.uniform(0.9, 1.1))
            subscription.next_resync = self._clock.elapsed() + period

    def _start_resyncs(self) -> None:
        now = self._clock.elapsed()
        for subscription in self._open():
            if subscription.next_resync is not None and subscription.next_resync <= now:
                resync = partial(Change, kind=ChangeKind.RESYNC, resource=self._resource)
                subscription.defer(resync(old=obj, new=obj, version=version_of(obj)) for obj in self._view())
                self._plan_resync(subscription)
        self._notify()

    def __repr__(self) -> str:
        behind = sum(one.behind for one in self._subscriptions)
        return f"Fanout({self._resource}, subscribers={len(self._subscriptions)}, behind={behind})"
