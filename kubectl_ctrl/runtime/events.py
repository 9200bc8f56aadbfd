"""Sends Events in the background, with the rules of client-go's recorder, so that a loop cannot flood a cluster.

The same event again increments the count of the first. From the tenth different message of one reason about one object
within ten minutes on, they become one combined event. Beyond 25 events about one object, one is sent every five
minutes. An event that cannot be sent is dropped and counted; no attempt waits for one or fails because of one. While
the client's gate is closed, because another process may lead, events wait as they do for a server that does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from random import Random
from typing import Generic, TypeVar

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import PatchKind, Scope
from kubectl_ctrl.clock import Clock, rfc3339
from kubectl_ctrl.errors import ApiError, CallError, CtrlError, NotFound
from kubectl_ctrl.model.attempt import BackgroundCall, Call
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of, uid_of, version_of
from kubectl_ctrl.model.resources import EVENTS
from kubectl_ctrl.value import Struct, Value, field, replace

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_QUEUE = 1000
_KNOWN = 4096
_SIMILAR = 10
_SIMILAR_WITHIN = 600.0
_BURST = 25
_REFILL = 300.0
_TRIES = 12
_BETWEEN_TRIES = 10.0
_MESSAGE = 1024
_COMBINED = "(combined from similar events): "


class _About(Value, kw_only=True):
    """The object of an event, as its `involvedObject`."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class _Wanted(Value, kw_only=True):
    """One event of an attempt."""

    about: _About
    version: str
    type: str
    reason: str
    message: str
    attempt: str
    at: float  # wall time


class _Recent(Generic[K, V]):
    """A mapping of the most recently used keys."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, make: Callable[[], V]) -> V:
        if key not in self._values:
            self._values[key] = make()
            if len(self._values) > self._limit:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]

    def __len__(self) -> int:
        return len(self._values)


class _Bucket(Struct):
    """Tokens for the events of one object."""

    tokens: float
    filled: float

    def take(self, now: float) -> bool:
        self.tokens = min(_BURST, self.tokens + (now - self.filled) / _REFILL)
        self.filled = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _Group(Struct):
    """Recent messages of one reason about one object."""

    last: float
    messages: dict[str, None] = field(default_factory=dict)


class _Sent(Struct):
    """An event on the server: its name and count."""

    name: str = ""
    count: int = 0


class EventRecorder:
    """See the module; one for each controller, the source of its events."""

    def __init__(
        self, client: Client, component: str, *, clock: Clock, rng: Random, tell: Callable[[BackgroundCall], None]
    ) -> None:
        self._client = client
        self._component = component
        self._clock = clock
        self._rng = rng
        self._tell = tell
        self._queue: deque[_Wanted] = deque()
        self._arrived = asyncio.Event()
        self._settled = asyncio.Event()  # the queue is empty and no request is under way
        self._settled.set()
        self._buckets: _Recent[_About, _Bucket] = _Recent(_KNOWN)
        self._groups: _Recent[tuple[_About, str, str], _Group] = _Recent(_KNOWN)
        self._sent: _Recent[tuple[_About, str, str, str], _Sent] = _Recent(_KNOWN)
        self._number = 0  # of deliveries, so that no two calls share an Audit-ID
        self.dropped = 0

    def __repr__(self) -> str:
        return f"EventRecorder({self._component}, queued={len(self._queue)}, dropped={self.dropped})"

    def record(self, about: Obj, *, type: str, reason: str, message: str, attempt: str) -> None:  # noqa: A002
        """Queue an event; never waits and never raises. A full queue drops it."""
        if len(self._queue) >= _QUEUE:
            self._drop("the queue is full", reason)
            return
        subject = _About(
            api_version=str(about.get("apiVersion", "")),
            kind=str(about.get("kind", "")),
            namespace=namespace_of(about),
            name=name_of(about),
            uid=uid_of(about),
        )
        wanted = _Wanted(
            about=subject,
            version=version_of(about),
            type=type,
            reason=reason,
            message=_cut(message),
            attempt=attempt,
            at=self._clock.now(),
        )
        self._queue.append(wanted)
        self._settled.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Send until cancelled, one after the other."""
        while True:
            await self._arrived.wait()
            while self._queue:
                await self._send(self._queue.popleft())
            self._arrived.clear()
            self._settled.set()

    async def flush(self) -> None:
        """Return when all queued events are sent or dropped."""
        await self._settled.wait()

    async def _send(self, wanted: _Wanted) -> None:
        if not self._buckets.get(wanted.about, lambda: _Bucket(_BURST, self._clock.elapsed())).take(
            self._clock.elapsed()
        ):
            self._drop("too many about this object", wanted.reason)
            return
        wanted, key = self._grouped(wanted)
        sent = self._sent.get(key, _Sent)
        for number in range(_TRIES):
            try:
                await self._deliver(wanted, sent)
                return
            except ApiError as error:
                self._drop(error.message, wanted.reason)  # the server refused it: a retry changes nothing
                return
            except CallError as error:
                _log.debug("An event could not be sent: %s", error.message)
                # The first wait is a random part, so that clients do not all call a restarted API server at once.
                await self._clock.sleep(_BETWEEN_TRIES * (self._rng.random() if number == 0 else 1.0))
            except CtrlError as error:
                self._drop(error.message, wanted.reason)
                return
        self._drop(f"no answer in {_TRIES} tries", wanted.reason)

    def _grouped(self, wanted: _Wanted) -> tuple[_Wanted, tuple[_About, str, str, str]]:
        """The event to send, and the key by which a later one is the same."""
        now = self._clock.elapsed()
        group = self._groups.get((wanted.about, wanted.type, wanted.reason), lambda: _Group(now))
        if now - group.last > _SIMILAR_WITHIN:
            group.messages.clear()
        group.last = now
        group.messages[wanted.message] = None
        if len(group.messages) < _SIMILAR:
            return wanted, (wanted.about, wanted.type, wanted.reason, wanted.message)
        # The group stays at its limit, which is enough to know that there are many.
        del group.messages[next(iter(group.messages))]
        return replace(wanted, message=_cut(_COMBINED + wanted.message)), (wanted.about, wanted.type, wanted.reason, "")

    async def _deliver(self, wanted: _Wanted, sent: _Sent) -> None:
        """Increment the count of the event, or create one; `sent` changes only when the server has it."""
        self._number += 1
        prefix = f"{wanted.attempt}e{self._number}"
        client = self._client.scoped(
            Scope(prefix=prefix, note=self._note(wanted.attempt), gate=self._client.scope.gate)
        )
        now, namespace = rfc3339(wanted.at), wanted.about.namespace or "default"
        if sent.count:
            ref = EVENTS.ref(sent.name, namespace)
            body = {"count": sent.count + 1, "lastTimestamp": now, "message": wanted.message}
            with contextlib.suppress(NotFound):  # the server deletes events after an hour; then it is created again
                await client.patch(ref, body, PatchKind.MERGE)
                sent.count += 1
                return
        # Named by time and a random number, so that two processes never use the same name.
        name = f"{wanted.about.name[:220]}.{int(wanted.at * 1e6):x}{self._rng.getrandbits(20):05x}"
        await client.create(EVENTS, self._event(wanted, name, namespace, now))
        sent.name, sent.count = name, 1

    def _event(self, wanted: _Wanted, name: str, namespace: str, now: str) -> Obj:
        about = wanted.about
        involved = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}
        if about.namespace:
            involved["namespace"] = about.namespace
        if wanted.version:
            involved["resourceVersion"] = wanted.version
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "type": wanted.type,
            "reason": wanted.reason,
            "message": wanted.message,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
        }

    def _note(self, attempt: str) -> Callable[[Call, bool], None]:
        def note(call: Call, answered: bool) -> None:
            if answered:
                self._tell(BackgroundCall(attempt=attempt, call=call))

        return note

    def _drop(self, why: str, reason: str) -> None:
        self.dropped += 1
        _log.info("An event was not sent: %s", why, extra={"action": "event.dropped", "reason": reason})


def _cut(message: str) -> str:
    """Shorten to the limit of the API in bytes, without half a character."""
    data = message.encode()
    return message if len(data) <= _MESSAGE else data[: _MESSAGE - 3].decode(errors="ignore") + "..."
