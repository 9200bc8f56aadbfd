"""The contract between the runtime and a reconciler: `async (ctx, request) -> Result | None`.

A reconciler gets a name, not an event: it reads the actual state, writes the desired one, and returns what it waits
for. Every call to a cluster goes through `ctx.read` or `ctx.write`. Both are small protocols, so that the same
reconciler runs live, as a plan and as a replay; both record their calls. `ctx` also has the time and random numbers.
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
    """The result of a successful reconcile; None means that it is done until something changes.

    `after` alone is a schedule: the object runs again after that time. `waiting_for` is the reason why the desired
    state is not reached yet; with `after` the object also runs again. `again` requests another run at once, which the
    dropping of own echoes does not prevent. `failed` is an error that keeps the schedule: the verdict is that of the
    raised error, and the object runs again after `after` at the latest. A raised error keeps the schedule of the
    attempt before. `after` must be above 0: RequeueAfter: 0 means done in Go, so a 0 is refused here rather than taken
    for "at once".
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
    """What `ensure` did."""

    CREATED = "created"
    APPLIED = "applied"
    UNCHANGED = "unchanged"
    FOREIGN = "foreign"  # an object of that name has another controller, or none; it was not changed


class Ensured(Value):
    """The child as it is now on the server, and what `ensure` did for it."""

    obj: Obj
    how: How

    @property
    def ours(self) -> bool:
        return self.how is not How.FOREIGN


class Reader(Protocol):
    """Reads the actual state. All methods but `live` read from the cache, which includes own writes.

    Cached objects are shared, so change a copy: `copy.deepcopy(obj)`. A change in place raises ReadOnlyObject at its
    line, and the attempt ends as terminal; only runs of bundled controllers alone have no such check. Objects returned
    by `live` and by writes are the caller's own. `namespace` defaults to that of the request; "" means all namespaces,
    or none for a cluster-scoped resource. Only resources that the controller declared (for_, owns, watches, reads) are
    cached.
    """

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        """The object, or None."""

    async def list(
        self, resource: Resource, *, namespace: str | None = None, labels: Labels | None = None
    ) -> Sequence[Obj]:
        """All objects, sorted by key."""

    async def children(self, owner: Obj, resource: Resource) -> Sequence[Obj]:
        """The objects that this owner controls (by UID, in its namespace if it has one), sorted by key."""

    async def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]:
        """The objects for which the index declared with `.index(resource, index, ...)` gave this value."""

    async def live(self, resource: Resource, name: str, namespace: str | None = None) -> Obj | None:
        """The object from the API server: one request. For decisions that must not be based on a stale cache."""


class Writer(Protocol):
    """Writes, as field manager `kubectl-ctrl-<controller>`; sends nothing if nothing would change.

    The resource is found by the object's apiVersion and kind, among those that the controller declared (for_, owns,
    watches, reads). `resource` names another, and that of objects without their kind, as `.caching(...,
    metadata_only=True)` caches them.
    """

    async def ensure(
        self, child: Obj, *, owner: Obj, resource: Resource | None = None, leave_out: Iterable[str] = ()
    ) -> Ensured:
        """Make the child exist as given, controlled by `owner`; fields of others stay.

        `leave_out` names fields (`spec.replicas`) that another manager sets from now on: they keep their value.
        """

    async def status(self, obj: Obj, status: Obj, *, resource: Resource | None = None) -> Obj:
        """Set the object's status, and return the object.

        `status` has all fields of this controller: a field that it set before and omits now is removed.
        """

    async def conditions(
        self, obj: Obj, /, *conditions: Condition, resource: Resource | None = None, **status: Any
    ) -> Obj:
        """Set the object's status to these conditions, `observedGeneration` and the fields given by name.

        Times and generations are filled in; a transition time changes only with the status of its condition. Conditions
        of other managers stay. As with `status`, a condition or field that was set before and is omitted is removed.
        """

    async def create(self, obj: Obj, *, resource: Resource | None = None) -> Obj:
        """Create the object; raises AlreadyExists if there is one of that name."""

    async def patch(
        self,
        obj: Obj,
        change: Obj,
        *,
        resource: Resource | None = None,
        subresource: str = "",
        any_version: bool = False,
    ) -> Obj:
        """Merge-patch this very object (by UID); raises Conflict if it has changed since, unless `any_version`.

        `any_version` is for a change that is correct whatever else the object contains, such as one label.
        """

    async def delete(
        self,
        obj: Obj,
        *,
        resource: Resource | None = None,
        propagation: str = "Background",
        any_version: bool = False,
    ) -> None:
        """Delete this very object (by UID and, unless `any_version`, version); deleting a deleted one is no error."""

    async def add_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        """Block the object's deletion until `remove_finalizer`; does nothing if the finalizer is there."""

    async def remove_finalizer(self, obj: Obj, name: str, *, resource: Resource | None = None) -> Obj:
        """No longer block the object's deletion with this finalizer."""

    def event(self, about: Obj, *, type: EventType = "Normal", reason: str, message: str) -> None:  # noqa: A002
        """Record an Event about an object, as `kubectl describe` prints. Queued: it never waits or fails an attempt."""


class Outside(Protocol):
    """Reads from elsewhere: a file, another system, the memory of former reconciles.

    The result of `look()` has to be JSON: it is recorded, and a replay uses the recorded one. For blocking code:
    `await ctx.outside("price", lambda: ctx.in_thread(read_price))`.
    """

    async def __call__(self, name: str, look: Callable[[], Awaitable[T]]) -> T: ...


class Context(Value, kw_only=True):
    """The argument of a reconciler for one attempt. It refuses calls after the end of the attempt."""

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
        """Run blocking code in a thread. The end of the attempt does not stop the thread."""
        return await asyncio.to_thread(function, *args)


Reconciler = Callable[[Context, Request], Awaitable[Result | None]]


class Cached(Protocol):
    """The cache, for mappings: reads without await. Objects must not be changed."""

    def get(self, resource: Resource, name: str, namespace: str = "") -> Obj | None: ...

    def list(self, resource: Resource, namespace: str = "") -> Sequence[Obj]: ...

    def indexed(self, resource: Resource, index: str, value: str) -> Sequence[Obj]: ...


# From a watched object to requests; called for the old and for the new state of the object.
Mapper = Callable[[Obj, Cached], Iterable[Request]]
# From a cached object to the values under which `indexed` finds it.
Indexer = Callable[[Obj], Iterable[str]]
