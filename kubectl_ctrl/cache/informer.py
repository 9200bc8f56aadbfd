"""One watch and the local copy that it feeds, shared by all users of the same selection."""

from __future__ import annotations

import asyncio
import builtins
import logging
from collections.abc import Callable
from random import Random

from kubectl_ctrl.cache.fanout import Handler, Subscription
from kubectl_ctrl.cache.projection import StringPool
from kubectl_ctrl.cache.recovery import InformerState
from kubectl_ctrl.cache.reflector import Reflector, WatchCounts
from kubectl_ctrl.cache.replica import Replica
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.cache.store import IndexFn
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)


class InformerHealth(Value, kw_only=True):
    """State of an informer, and since when (wall time)."""

    state: InformerState
    since: float
    message: str = ""


class Informer:
    """Reads from the local copy, through the overlay of own writes; no read waits for the server."""

    def __init__(
        self,
        selection: Selection,
        client: Client,
        *,
        managers: frozenset[str],
        texts: StringPool,
        clock: Clock,
        rng: Random,
        read_only_objects: bool = False,
    ) -> None:
        self.selection = selection
        self._clock = clock
        self._replica = Replica(
            selection, managers=managers, texts=texts, clock=clock, rng=rng, read_only_objects=read_only_objects
        )
        self._reflector = Reflector(client, self._replica, clock=clock, rng=rng, on_state=self._note_state)
        self._health = InformerHealth(state=InformerState.STARTING, since=clock.now())
        self._synced = asyncio.Event()
        self._listeners: tuple[tuple[Callable[[Informer], None]], ...] = ()

    # Reads. Each is consistent; the objects are shared and must not be changed.

    def get(self, key: Key) -> Obj | None:
        return self._replica.get(key)

    def list(self, namespace: str = "", selector: Selector | None = None) -> list[Obj]:
        """Sorted by key."""
        return self._replica.list(namespace, selector)

    def by_index(self, index: str, value: str) -> builtins.list[Obj]:
        """Sorted by key."""
        return self._replica.by_index(index, value)

    def add_index(self, name: str, values: IndexFn) -> None:
        """`values` must be a pure function of the object. Objects that are in the store already are indexed too."""
        self._replica.add_index(name, values)

    def drop_index(self, name: str) -> None:
        self._replica.drop_index(name)

    def __len__(self) -> int:
        """Objects in the store; the overlay does not count."""
        return len(self._replica.store)

    # Changes.

    def subscribe(
        self,
        name: str,
        handler: Handler,
        *,
        resync: float | None = None,
        replaced: Callable[[], None] | None = None,
    ) -> Subscription:
        """Call `handler` for each object of the store, and then for every change.

        `resync` is the mean number of seconds between two resyncs, which read nothing from the server. `replaced` is
        called, in its place between the changes, when a list replaced the store: older versions mean nothing any more.
        """
        return self._replica.subscribe(name, handler, resync=resync, replaced=replaced)

    def on_health(self, listener: Callable[[Informer], None]) -> Callable[[], None]:
        """Call `listener` whenever the state changes, until the returned function is called."""
        # A listener added twice is called twice, so each function removes its own entry.
        entry = (listener,)
        self._listeners = (*self._listeners, entry)

        def stop() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not entry)

        return stop

    # State.

    @property
    def synced(self) -> bool:
        """A complete list has arrived; stays true. A subscription has a `synced` of its own."""
        return self._replica.synced

    @property
    def version(self) -> str:
        """The resourceVersion that list and watch have reached."""
        return self._replica.store.version

    @property
    def epoch(self) -> int:
        """The number of complete lists so far. Versions can be compared within one epoch."""
        return self._replica.epoch

    @property
    def pending(self) -> int:
        """The number of own writes that the watch has not reached yet."""
        return self._replica.overlay.pending

    @property
    def counts(self) -> WatchCounts:
        return self._reflector.counts

    @property
    def indexes(self) -> tuple[str, ...]:
        return self._replica.indexes

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        return self._replica.fanout.subscriptions

    @property
    def health(self) -> InformerHealth:
        return self._health

    async def wait_synced(self) -> None:
        """Return when the store and all present subscriptions are synced."""
        await self._synced.wait()
        await self._replica.fanout.settled()

    # Own writes.

    def wrote(self, answer: Obj) -> None:
        """Show the answer of an own write to readers until the watch has reached it."""
        self._replica.wrote(answer)

    def removed(self, key: Key, uid: str, version: str) -> None:
        """Hide an object that the server reported as deleted; `version` is the last one that the deleter knew."""
        self._replica.removed(key, uid, version)

    # Life.

    def retry_now(self) -> None:
        """Retry now instead of after the backoff."""
        self._reflector.retry_now()

    async def run(self) -> None:
        """Until cancelled. After that reads still work, on objects that grow stale."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._replica.fanout.run(), name=f"fanout of {self.selection}")
            group.create_task(self._reflector.run(), name=f"reflector of {self.selection}")

    def _note_state(self, state: InformerState, message: str) -> None:
        if self._replica.synced:
            self._synced.set()
        if (state, message) == (self._health.state, self._health.message):
            return
        before = self._health.state
        since = self._clock.now() if state is not before else self._health.since
        self._health = InformerHealth(state=state, since=since, message=message)
        if state is before:
            return
        self._log_state(before)
        for (listener,) in self._listeners:
            listener(self)

    def _log_state(self, before: InformerState) -> None:
        state, of, why = self._health.state, str(self.selection), self._health.message
        fields = {"action": f"cache.{state}", "of": of, "why": why}
        if state is InformerState.SYNCED:
            level = logging.DEBUG if before is InformerState.STARTING else logging.INFO
            _log.log(level, "The cache of %s is up to date again.", of, extra=fields)
        elif state is InformerState.MISSING:
            _log.warning("%s is not installed; waiting for it.", self.selection.resource, extra={**fields, "why": ""})
        else:
            _log.warning("The cache of %s cannot follow the server; it keeps trying: %s", of, why, extra=fields)

    def __repr__(self) -> str:
        return (
            f"Informer({self.selection}, {self._health.state}, objects={len(self)}, version={self.version!r}, "
            f"epoch={self.epoch}, subscribers={len(self.subscriptions)}, overlay={self._replica.overlay!r})"
        )
