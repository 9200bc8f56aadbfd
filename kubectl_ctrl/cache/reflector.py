"""Keeps a replica equal to the server: one complete list, then watches that resume from the last event, for ever.

It owns the version, bookmarks, reconnecting, pacing and listing again; `recovery` decides what follows an end, and
nothing that a server does stops it. Lists always request the newest state: one from a server's cache could miss own
writes that were answered before it, and would let versions go back without a reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

from kubectl_ctrl.cache.backoff import WatchBackoff
from kubectl_ctrl.cache.poison import flaw_of
from kubectl_ctrl.cache.recovery import SHORTEST, FailureCounter, InformerState, Pace, Recovery, after_list, after_watch
from kubectl_ctrl.cache.replica import Replica, Staging
from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import ListQuery, WatchQuery
from kubectl_ctrl.client.shapes import InvalidItem
from kubectl_ctrl.client.watch import EndKind, EventKind, WatchEvent, WatchItem, WatchStream
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError, Expired
from kubectl_ctrl.model.objects import Obj, annotations_of, key_of, version_of
from kubectl_ctrl.value import Struct

_log = logging.getLogger(__name__)

_PAGE = 500
# A server sends a bookmark every minute where anything moves, so a connection that is silent for longer may be dead.
_SILENCE = 70.0
# Watches of many informers that start together must not all end together.
_SHORTEST_WATCH, _LONGEST_WATCH = 300.0, 600.0
_LONGEST_RETRY_AFTER = 300.0  # of a server, in a Retry-After
# So many events are processed before other tasks run.
_SLICE = 100

# A huge list that breaks off again and again may arrive in pages.
_MOST_BROKEN = 2

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"

OnState = Callable[[InformerState, str], None]


class WatchCounts(Struct):
    """Counts since the start."""

    lists: int = 0  # begun, streamed or in pages
    watches: int = 0  # begun, streamed lists included
    events: int = 0
    bookmarks: int = 0
    poisoned: int = 0  # objects that could not be used
    failures: int = 0  # abnormal ends


class Reflector:
    """Follows one selection while `run` runs."""

    def __init__(self, client: Client, replica: Replica, *, clock: Clock, rng: Random, on_state: OnState) -> None:
        self.counts = WatchCounts()
        self._client = client
        self._replica = replica
        self._selection = replica.selection
        self._clock = clock
        self._rng = rng
        self._on_state = on_state
        self._backoff = WatchBackoff(clock, rng)
        self._doubts = FailureCounter()
        self._relist = True
        self._streams = True  # the server can stream a list, as far as is known
        self._broken_lists = 0  # streamed lists that broke off, in a row
        self._missing = False  # the server had no such type at the last answer
        self._retry = asyncio.Event()
        self._stream: WatchStream | None = None

    @property
    def connected(self) -> bool:
        return self._stream is not None and self._stream.opened

    def retry_now(self) -> None:
        """Retry now instead of after the backoff, which starts again: a new type is often not ready at once."""
        self._backoff.reset()
        self._retry.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._retry.clear()
            started = self._clock.elapsed()
            try:
                recovery = await self._cycle()
            except Exception as error:  # noqa: BLE001  # a bug here must not leave a controller without events
                _log.exception("A watch failed with an unexpected error; listing again.", extra=self._fields("bug"))
                recovery = Recovery(relist=True, state=InformerState.RETRYING, message=f"Unexpected error: {error!r}.")
            self._stream = None
            await self._recover(recovery, started)

    async def _cycle(self) -> Recovery:
        if self._relist and not self._streams and (error := await self._list()) is not None:
            return after_list(error)
        return await self._watch()

    async def _recover(self, recovery: Recovery, started: float) -> None:
        self._relist = self._relist or recovery.relist
        self._streams = self._streams and not recovery.paged
        if self._missing and recovery.state is not InformerState.MISSING:
            self._backoff.forgive()  # the type is back, and only not ready yet
        self._missing = recovery.state is InformerState.MISSING
        if recovery.state is not None:
            self.counts.failures += 1
            self._on_state(recovery.state, recovery.message)
        delay = max(self._delay(recovery.pace, started), min(recovery.at_least, _LONGEST_RETRY_AFTER))
        _log.debug("A watch or list ended.", extra={**self._fields("ended"), "why": recovery.message, "delay": delay})
        if delay <= 0:
            await self._clock.sleep(0)
            return
        with suppress(TimeoutError):
            async with self._clock.timeout(delay):
                await self._retry.wait()

    def _delay(self, pace: Pace, started: float) -> float:
        match pace:
            case Pace.NOW:
                return 0.0
            case Pace.STEADY:
                return started + 1.0 - self._clock.elapsed()
        return self._backoff.next()

    # A list in pages.

    async def _list(self) -> CtrlError | None:
        """Returns the error of a failed list, or None when the store has the list."""
        try:
            try:
                await self._list_by(_PAGE)
            except Expired:  # 410 for a page: the server has compacted the rest, so the list is requested in one piece
                await self._list_by(0)
        except CtrlError as error:
            return error
        return None

    async def _list_by(self, page_size: int) -> None:
        self.counts.lists += 1
        selection, version = self._selection, ""
        staging = self._replica.stage()
        query = ListQuery(
            namespace=selection.namespace,
            labels=selection.labels,
            fields=selection.fields,
            limit=page_size,
            metadata_only=selection.metadata_only,
        )
        async for page in self._client.pages(selection.resource, query):
            version = page.version or version
            for poisoned in page.poisoned:
                self._skip(poisoned.why, poisoned.excerpt)
            for place in range(0, len(page.items), _SLICE):
                for obj in page.items[place : place + _SLICE]:
                    self._stage(obj, staging)
                await self._clock.sleep(0)
        await self._complete(staging, version)

    # A watch, with or without a streamed list at its start.

    async def _watch(self) -> Recovery:
        self.counts.watches += 1
        self.counts.lists += self._relist
        staging = self._replica.stage() if self._relist else None
        poisoned_before = self.counts.poisoned
        async with self._client.watch(self._selection.resource, self._watch_query()) as watch, self._noting_open(watch):
            self._stream = watch
            async for batch in watch:
                self._doubts.heard()
                for place in range(0, len(batch), _SLICE):
                    staging, leave = await self._take_all(batch[place : place + _SLICE], staging)
                    if leave is not None:
                        return leave
        assert watch.end is not None
        if watch.end.kind is EndKind.EXPIRED:  # 410 is an answer too: the outage is over
            self._backoff.forgive()
        # An event that could not be read may have been a deletion.
        incomplete = staging is None and self.counts.poisoned > poisoned_before
        unversioned = not self._replica.store.version
        self._relist = self._relist or self._doubts.ended(watch.end) or incomplete or unversioned
        if staging is not None and watch.end.kind is EndKind.BROKEN:
            self._broken_lists += 1
            self._streams = self._broken_lists < _MOST_BROKEN
        return after_watch(watch.end, listing=staging is not None)

    @asynccontextmanager
    async def _noting_open(self, watch: WatchStream) -> AsyncIterator[None]:
        """An accepted watch that lasts is a recovery, also when no event arrives; one that ends at once is not."""

        async def note() -> None:
            await watch.accepted()
            await self._clock.sleep(SHORTEST)
            if not self._relist:
                self._on_state(InformerState.SYNCED, "")

        task = asyncio.create_task(note(), name=f"opening of {self._selection}")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def _watch_query(self) -> WatchQuery:
        selection = self._selection
        return WatchQuery(
            namespace=selection.namespace,
            labels=selection.labels,
            fields=selection.fields,
            version="" if self._relist else self._replica.store.version,
            initial_events=self._relist,
            timeout=self._rng.uniform(_SHORTEST_WATCH, _LONGEST_WATCH),
            silence=_SILENCE,
            metadata_only=selection.metadata_only,
        )

    async def _take_all(
        self, items: list[WatchItem], staging: Staging | None
    ) -> tuple[Staging | None, Recovery | None]:
        """Process a slice. Returns the list that is still incomplete, if any, and a recovery in place of reading on."""
        for item in items:
            if isinstance(item, InvalidItem):
                self._skip(item.why, item.excerpt)
            elif item.kind is not EventKind.BOOKMARK:
                self._take(item, staging)
            elif staging is None:
                if not self._bookmark(item.obj):
                    return None, Recovery(relist=True, pace=Pace.NOW)
            elif annotations_of(item.obj).get(_INITIAL_EVENTS_END) == "true":
                await self._complete(staging, version_of(item.obj))
                staging = None
            else:
                # A server that does not know streamed lists ignores the request for one.
                return staging, Recovery(relist=True, paged=True, pace=Pace.NOW)
        if staging is None:
            self._on_state(InformerState.SYNCED, "")
            await self._replica.fanout.settled()
        if len(items) == _SLICE:  # between smaller batches the client yields to other tasks
            await self._clock.sleep(0)
        return staging, None

    def _bookmark(self, obj: Obj) -> bool:
        self.counts.bookmarks += 1
        return self._replica.bookmark(version_of(obj) or self._replica.store.version)

    def _take(self, event: WatchEvent, staging: Staging | None) -> None:
        self.counts.events += 1
        obj = event.obj
        if staging is None:
            act = self._replica.remove if event.kind is EventKind.DELETED else self._replica.put
            self._guarded(obj, lambda: act(obj))
        elif event.kind is EventKind.DELETED:
            self._replica.drop(staging, obj)
        else:
            self._stage(obj, staging)

    def _stage(self, obj: Obj, staging: Staging) -> None:
        if not self._guarded(obj, lambda: self._replica.add(staging, obj)):
            self._replica.keep(staging, obj)

    def _guarded(self, obj: Obj, act: Callable[[], None]) -> bool:
        """Do it, unless the object is malformed: one bad object must not stop the watch."""
        why = flaw_of(obj)
        if not why:
            try:
                act()
            except Exception as error:  # noqa: BLE001  # the cause is in this object
                why = f"it raises {type(error).__name__}"
        if why:
            self._skip(why, str(key_of(obj)))
        return not why

    async def _complete(self, staging: Staging, version: str) -> None:
        self._replica.replace(staging, version)
        self._relist = False
        self._broken_lists = 0
        self._on_state(InformerState.SYNCED, "")
        await self._replica.fanout.settled()

    def _skip(self, why: str, what: str) -> None:
        self.counts.poisoned += 1
        self._replica.missed()
        fields = {**self._fields("poisoned"), "why": why, "object": what}
        _log.error("An object from the server is malformed and is omitted.", extra=fields)

    def _fields(self, action: str) -> dict[str, object]:
        return {"action": f"cache.{action}", "selection": str(self._selection)}

    def __repr__(self) -> str:
        state = "watching" if self.connected else "waiting"
        return f"Reflector({self._selection}, {state}, {self.counts}, {self._doubts!r}, {self._backoff!r})"
