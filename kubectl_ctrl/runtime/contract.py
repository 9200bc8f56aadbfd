"""The contract between the runtime and a reconciler: `async (ctx, request) -> Result | None`.

A reconciler is told where to look, not what happened: it reads what is, makes what should be, and says what it waits
for. Everything it does to a cluster passes one of two doors, `ctx.read` and `ctx.write`. Both are small protocols, so
that the same reconciler runs live, as a plan and as a replay; both note what passed. `ctx` also gives time and chance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from logging import Logger, LoggerAdapter
from random import Random
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, TypeVarTuple

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.conditions import Condition
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.value import Value

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Labels = str | Mapping[str, str] | Selector
EventType = Literal["Normal", "Warning"]


class Result(Value):
    """What a reconcile that did not fail asks for; None means that it is done until something changes.

    `after` alone is a schedule: call me again then. `waiting_for` says that the object is not there yet and why; with
    `after` it is also looked at again then. `again` asks for another pass at once, past the dropping of own echoes.
    `failed` is an error that does not stop the schedule: the attempt is judged as if it had raised it, and the object
    runs again after `after` at the latest. An error that is raised leaves the schedule of the attempt before it.
    `after` must be above 0: RequeueAfter: 0 means done in Go, so here a 0 is refused rather than taken for "at once".
    """

    after: float | timedelta | None = None
    again: bool = False
    waiting_for: str = ""
    failed: Exception | None = None

    def __post_init__(self) -> None:
        if self.seconds == 0:
            raise ControllerError(
                f"Result(after={self.after!r}) could mean at once, or never: return Result(again=True) to run again at"
                " once, None when the object is done, or Result(max(1, seconds)) for a time that may have passed."
            )
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise ControllerError(f"Result(after={self.after!r}) must be a time above 0, in seconds or a timedelta.")
        if self.again and (self.after is not None or self.waiting_for):
            raise ControllerError("Result(again=True) runs at once, so it takes neither `after` nor `waiting_for`.")
        if self.failed is not None and (self.after is None or self.waiting_for):
            raise ControllerError("Result(failed=error) takes `after` and nothing else; without a schedule, raise it.")

    @property
    def seconds(self) -> float | None:
        return self.after.total_seconds() if isinstance(self.after, timedelta) else self.after


class How(StrEnum):
    """What `ensure` found or did."""

    CREATED = "created"
    APPLIED = "applied"
    UNCHANGED = "unchanged"
    FOREIGN = "foreign"  # there is an object of that name which this owner does not control; it was not touched


class Ensured(Value):
    """The child as the server now holds it, and how it came to be so."""

    obj: Obj
    how: How

    @property
    def ours(self) -> bool:
        return self.how is not How.FOREIGN


class Reader(Protocol):
    """The door to what is. All but `live` answer from the cache, own writes included.

    What comes back is shared with everyone else, so change a copy: `copy.deepcopy(obj)`. An object of the cache raises
    ReadOnlyObject at the line that changes it in place, and the attempt ends as terminal; only runs of bundled
    controllers alone go without that check. What `live` returns, and what a write was answered, is the caller's own.
    `namespace` left out means the request's own; "" means all namespaces, or none for a cluster-scoped resource. Only
    resources that the controller declared (for_, owns, watches, reads) are cached.
    """

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        """The object, or None when there is none."""

    async def list(
        self, resource: Resource, *, namespace: str | None = None, labels: Labels | None = None
    ) -> Sequence[Obj]:
        """All objects, in the order of their keys."""

    async def children(self, owner: Obj, resource: Resource) -> Sequence[Obj]:
        """The objects that this owner controls (by UID, in its namespace if it has one), in the order of their keys."""

    async def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]:
        """The objects for which the index declared with `.index(resource, index, ...)` gave this value."""

    async def live(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        """The object as the API server has it now: a call. For what may not be decided on a view that could be old."""


class Writer(Protocol):
    """The door to change, as field manager `kubectl-ctrl-<controller>`; nothing is sent when nothing would change.

    The resource follows from the object's apiVersion and kind, among those that the controller declared (for_, owns,
    watches, reads). `resource` names it for others, and for objects without a kind of their own, such as those that
    `.caching(..., metadata_only=True)` keeps.
    """

    async def ensure(
        self, child: Obj, *, owner: Obj, resource: Resource | None = None, leave_out: Iterable[str] = ()
    ) -> Ensured:
        """Make the child exist as given, controlled by `owner`; fields of others stay.

        `leave_out` names fields (`spec.replicas`) that somebody else decides from now on: they keep their value.
        """

    async def status(self, obj: Obj, status: Obj, *, resource: Resource | None = None) -> Obj:
        """Make the object's status so, and return the object.

        `status` is all that this controller says: a field that it said before and leaves out now goes away.
        """

    async def conditions(
        self, obj: Obj, /, *conditions: Condition, resource: Resource | None = None, **status: Any
    ) -> Obj:
        """Make the object's status these conditions, `observedGeneration` and the fields given by name.

        Times and generations are filled in; a transition time moves only when the condition's status does. Conditions
        of others stay theirs. As with `status`, a condition or field that was stated before and is left out goes away.
        """

    async def create(self, obj: Obj, *, resource: Resource | None = None) -> Obj:
        """Create it; AlreadyExists when there is one of that name."""

    async def patch(
        self,
        obj: Obj,
        change: Obj,
        *,
        resource: Resource | None = None,
        subresource: str = "",
        any_version: bool = False,
    ) -> Obj:
        """Merge-patch this very object (by UID), as read unless `any_version`; Conflict when it has changed since.

        `any_version` is for a change that is right whatever else the object says, such as one label.
        """

    async def delete(
        self,
        obj: Obj,
        *,
        resource: Resource | None = None,
        propagation: str = "Background",
        any_version: bool = False,
    ) -> None:
        """Delete this very object (by UID), as read unless `any_version`; one that is gone already is fine."""

    async def add_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        """Hold the object's deletion until `remove_finalizer`; nothing happens when it is there already."""

    async def remove_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        """Let the object go as far as this finalizer is concerned."""

    def event(self, about: Obj, *, type: EventType = "Normal", reason: str, message: str) -> None:  # noqa: A002
        """Say something about an object to whoever describes it. Queued: it never waits and never fails an attempt."""


class Outside(Protocol):
    """Asks what the doors do not tell: a file, another system, what the code remembers from reconciles before.

    What `look()` comes to has to be JSON: it is recorded, and a replay is told the same again without looking. For
    blocking code: `await ctx.outside("price", lambda: ctx.in_thread(read_price))`.
    """

    async def __call__(self, name: str, look: Callable[[], Awaitable[T]]) -> T: ...


class Context(Value, kw_only=True):
    """What a reconciler is given for one attempt. The doors close when the attempt ends."""

    request: Request
    attempt: str  # `r7f3-12`
    read: Reader
    write: Writer
    outside: Outside
    # An ApiClient of the `kubernetes` package, for its typed models: AppsV1Api(ctx.official()). Its calls are recorded,
    # planned and replayed like those of `write` and `read.live`; it is synchronous, so call it within `in_thread`.
    official: Callable[[], ApiClient]
    now: Callable[[], float]  # wall time
    random: Random
    log: LoggerAdapter[Logger]  # writes the attempt id beside every line

    async def in_thread(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run blocking code beside the loop. A cut attempt does not stop the thread: it must end by itself."""
        return await asyncio.to_thread(function, *args)


Reconciler = Callable[[Context, Request], Awaitable[Result | None]]


class Cached(Protocol):
    """What a mapping may look at while it decides: the cache alone, without waiting. Nothing in it may be changed."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Obj | None: ...

    def list(self, resource: Resource, namespace: str = "") -> Sequence[Obj]: ...

    def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]: ...


# From a watched object to the requests that it concerns; called for the old and for the new state of the object.
Mapper = Callable[[Obj, Cached], Iterable[Request]]
# From a cached object to the values under which `indexed` finds it.
Indexer = Callable[[Obj], Iterable[str]]
