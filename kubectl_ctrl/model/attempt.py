"""The values that observers receive: everything that a controller does in one run, in order."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.errors import StatusCause
from kubectl_ctrl.model.cause import Cause, Request
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Unshown, Value


class Call(Value, kw_only=True):
    """One call to the API server. Bodies are references, and not in the repr."""

    id: str  # `r7f3-12.3`: attempt and number; also the Audit-ID of the request
    verb: str  # get, list, create, update, patch, apply, delete
    resource: Resource | None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    started: float  # wall time
    took: float = 0.0
    code: int | None = None  # None: no response, or none yet
    reason: str = ""
    error: str = ""  # one line, without bodies and credentials
    sends: int = 1  # how often the request was sent
    dry_run: bool = False
    uid: str = ""  # of the returned object
    old_version: str = ""  # that the writer had read, "" for none
    new_version: str = ""  # of the returned object
    before: Unshown[Obj | None] = None  # the object that the writer had read
    sent: Unshown[Obj | list[Obj] | None] = None
    answer: Unshown[Obj | None] = None

    @property
    def write(self) -> bool:
        return self.verb in WRITES and not self.dry_run

    @property
    def granted(self) -> bool:
        """Whether the response was a success."""
        return self.code is not None and self.code < 300


WRITES = frozenset({"create", "update", "patch", "apply", "delete"})


class RaisedError(Value, kw_only=True):
    """An error that ctx.read or ctx.write raised; a replay raises it again."""

    error: str  # its class, such as Forbidden
    message: str
    next_step: str = ""
    verb: str = ""  # of the call
    target: str = ""
    code: int = 0  # of the response
    reason: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after: float | None = None


class ObjectRead(Value, kw_only=True):
    """One read of ctx.read: the query, and the versions that it returned."""

    verb: str  # get, list, live
    resource: Resource
    query: str  # `default/example-foo`, `default app=nginx`, `default index owner=uid`
    found: tuple[tuple[str, str], ...]  # (UID, resourceVersion) of each returned object
    objects: Unshown[tuple[Obj, ...]] = ()  # the same, by reference
    raised: RaisedError | None = None  # instead
    wishes: int = 0  # the number of write requests before it


class WriteResult(StrEnum):
    """What a method of ctx.write returned, for verbs without a result of their own."""

    ANSWERED = "answered"  # the object in `answer`
    GIVEN = "given"  # its argument: nothing would have changed
    DONE = "done"  # nothing: a delete


class WriteRequest(Value, kw_only=True):
    """One call of a method of ctx.write, with its result, whether or not it needed calls to the API server."""

    verb: str  # ensure, status, create, patch, delete, add_finalizer, remove_finalizer
    resource: Resource
    key: Key
    body: Unshown[str] = ""  # JSON of the argument at that time
    options: tuple[tuple[str, str], ...] = ()  # as text: leave_out, subresource, propagation, owner's UID
    how: str = (
        ""  # ensure: created, applied, unchanged, foreign; others: `WriteResult`; "" after an error or a cancellation
    )
    uid: str = ""  # of the returned object
    version: str = ""
    answer: Unshown[Obj | None] = None  # the returned object, by reference
    raised: RaisedError | None = None  # instead
    calls: tuple[str, ...] = ()  # ids of its calls


class OutsideResult(Value, kw_only=True):
    """One result of ctx.outside, which a reconciler records so that it can be replayed."""

    name: str
    value: Unshown[str] = ""  # JSON
    raised: RaisedError | None = None  # instead


class Outcome(StrEnum):
    DONE = "done"
    AFTER = "after"  # done, and the reconciler requested another reconcile after a delay
    AGAIN = "again"  # done, and the reconciler requested another reconcile at once
    WAITING = "waiting"  # not an error: it waits for something else
    RETRY = "retry"  # failed; retried after a backoff
    TERMINAL = "terminal"  # failed; not retried until there is a new cause
    DROPPED = "dropped"  # cancelled by shutdown or a lost Lease


class Verdict(Value, kw_only=True):
    """The outcome of an attempt and the next step; only `runtime/verdict` decides it."""

    outcome: Outcome
    delay: float = 0.0
    message: str = ""  # one line: the reason to wait, or the error
    error_id: str = ""
    where: str = ""  # file:line of the raise in the reconciler's own code
    last: bool = False  # there is no next attempt in this run (--once)

    @property
    def failed(self) -> bool:
        """Whether it ended with an error; waiting and cancellation are none."""
        return self.outcome in (Outcome.RETRY, Outcome.TERMINAL)


class AttemptStarted(Value, kw_only=True):
    """An attempt has started."""

    id: str  # `r7f3-12`
    controller: str
    request: Request
    causes: tuple[Cause, ...]
    causes_total: int  # including those that are not kept
    queued_at: float  # wall time of the first cause
    started: float
    waited: float  # seconds in the queue after it was ready
    try_no: int  # 1 + the number of consecutive failures


class CallProgress(Value, kw_only=True):
    """A call was sent (`answered` is False), or has finished."""

    attempt: str
    call: Call
    answered: bool


class Intent(Value, kw_only=True):
    """A Kubernetes Event that an attempt requested; a background call with the attempt's id sends it."""

    type: str
    reason: str
    message: str
    about: Key


class Attempt(Value, kw_only=True):
    """One complete attempt."""

    start: AttemptStarted
    took: float
    verdict: Verdict
    calls: tuple[Call, ...]
    reads: tuple[ObjectRead, ...]
    intents: tuple[Intent, ...] = ()
    echoes: int = 0  # watch events of its own writes that were dropped while it ran
    skipped: tuple[str, ...] = ()  # requested writes that were not needed
    wishes: tuple[WriteRequest, ...] = ()  # requests to ctx.write, in order
    outside: tuple[OutsideResult, ...] = ()  # results of `ctx.outside`, in order
    seed: int = 0  # of `ctx.random`
    times: tuple[float, ...] = ()  # results of `ctx.now`, in order
    traceback: Unshown[str] = ""

    @property
    def id(self) -> str:
        return self.start.id

    @property
    def writes(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.write)


class DroppedEcho(Value, kw_only=True):
    """A watch event of an own write arrived after its attempt had finished, and was dropped."""

    attempt: str
    request: Request
    uid: str
    version: str
    after: float


class BackgroundCall(Value, kw_only=True):
    """A call that no attempt waits for, such as for events and Leases; `attempt` is "" if no attempt requested it."""

    attempt: str
    call: Call


class FilteredChange(Value, kw_only=True):
    """The last change of an object that triggered no reconcile, and the predicates that filtered it out."""

    resource: Resource
    key: Key
    uid: str
    version: str
    kind: str  # of the change: added, modified
    by: tuple[str, ...]  # predicates, or why no mapping returned a request of this run
    at: float  # wall time
    count: int  # consecutive changes of this object that triggered nothing
    changed: tuple[str, ...] = ()  # changed fields, the first few
    writers: tuple[str, ...] = ()  # one is proven, several are candidates, none is unknown


class Tally(Value, kw_only=True):
    """Changes that were filtered out, and the resourceVersions that the stores have reached."""

    controller: str
    at: float
    filtered: tuple[tuple[str, int], ...]  # (predicate, number of changes it filtered out)
    versions: tuple[tuple[Resource, str], ...]  # of the stores
    held: tuple[
        FilteredChange, ...
    ] = ()  # objects whose last change triggered nothing; only the latest, if there are very many


class WaitingRequest(Value, kw_only=True):
    """One entry of the queue, for `queue` and the list of pending requests."""

    request: Request
    state: str  # ready, running, backoff, timer
    since: float  # wall time
    due: float | None = None
    failures: int = 0
    causes: int = 0
    attempt: str = ""  # the running one


class Depth(Value, kw_only=True):
    """The number of requests in each state, including those not listed."""

    ready: int = 0
    running: int = 0
    backoff: int = 0
    timers: int = 0


class NamespaceQueue(Value, kw_only=True):
    """The ready requests of one namespace."""

    namespace: str
    ready: int
    since: float  # wall time of the oldest


class ControllerState(Value, kw_only=True):
    """A controller's queue and health at one time; also its heartbeat."""

    controller: str
    at: float
    leading: bool
    synced: bool
    entries: tuple[WaitingRequest, ...]  # all running ones, and the first ready ones and timers; `depth` counts all
    message: str = ""  # why it does not run
    workers: int = 0
    depth: Depth = Depth()
    crowds: tuple[NamespaceQueue, ...] = ()  # the namespaces with the most ready requests
    namespaces: int = 0  # number of namespaces with ready requests


Observed = AttemptStarted | CallProgress | Attempt | DroppedEcho | BackgroundCall | Tally | ControllerState
