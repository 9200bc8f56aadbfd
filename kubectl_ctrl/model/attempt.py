"""What observers get: frozen values that say what one run of a controller did, in the order it happened."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.errors import StatusCause
from kubectl_ctrl.model.cause import Cause, Request
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Unshown, Value


class Call(Value, kw_only=True):
    """One call to the API server, or one that was not needed; bodies are by reference and never in a repr."""

    id: str  # `r7f3-12.3`: attempt and number; what the server was sent as Audit-ID
    verb: str  # get, list, create, update, patch, apply, delete
    resource: Resource | None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    started: float  # wall time
    took: float = 0.0
    code: int | None = None  # None: no answer came, or the call is still on its way
    reason: str = ""
    error: str = ""  # one line, without bodies and credentials
    sends: int = 1  # how often the request was sent, retries included
    dry_run: bool = False
    uid: str = ""  # of the object answered
    old_version: str = ""  # what the writer knew before, "" when nothing
    new_version: str = ""  # of the object answered
    before: Unshown[Obj | None] = None  # the object that the writer knew, when it knew one
    sent: Unshown[Obj | list[Obj] | None] = None
    answer: Unshown[Obj | None] = None

    @property
    def write(self) -> bool:
        return self.verb in WRITES and not self.dry_run

    @property
    def granted(self) -> bool:
        """Whether the server answered that it has done what was asked."""
        return self.code is not None and self.code < 300


WRITES = frozenset({"create", "update", "patch", "apply", "delete"})


class Raised(Value, kw_only=True):
    """An error that a door raised, as far as a reconciler can tell: a replay raises it again."""

    error: str  # its class: Forbidden
    message: str
    next_step: str = ""
    verb: str = ""  # of the call that it is about
    target: str = ""
    code: int = 0  # what the server answered
    reason: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after: float | None = None


class Read(Value, kw_only=True):
    """One read through the reader's door: what was asked, and which versions answered it."""

    verb: str  # get, list, live
    resource: Resource
    query: str  # `default/example-foo`, `default app=nginx`, `default index owner=uid`
    found: tuple[tuple[str, str], ...]  # (UID, resourceVersion) of each object returned
    objects: Unshown[tuple[Obj, ...]] = ()  # the same, by reference
    raised: Raised | None = None  # instead
    wishes: int = 0  # how many had been asked of the writing door before


class WriteResult(StrEnum):
    """How the writing door answered, where the verb does not say more."""

    ANSWERED = "answered"  # with the object that stands beside it
    GIVEN = "given"  # with the very object that it was given: nothing would have changed
    DONE = "done"  # with nothing: a delete


class WriteRequest(Value, kw_only=True):
    """One thing that a reconciler asked of the writing door, whether or not a call came of it, and what it was told."""

    verb: str  # ensure, status, create, patch, delete, add_finalizer, remove_finalizer
    resource: Resource
    key: Key
    body: Unshown[str] = ""  # JSON of what was given, as it was then
    options: tuple[tuple[str, str], ...] = ()  # of the verb, as text: leave_out, subresource, propagation, owner's UID
    how: str = ""  # ensure: created, applied, unchanged, foreign; else see `WriteResult`; "" when it raised or was cut
    uid: str = ""  # of the object that was returned
    version: str = ""
    answer: Unshown[Obj | None] = None  # the object that was returned, by reference
    raised: Raised | None = None  # instead
    calls: tuple[str, ...] = ()  # ids of the calls made for it


class Outside(Value, kw_only=True):
    """One answer from outside the doors that a reconciler let be recorded."""

    name: str
    value: Unshown[str] = ""  # JSON
    raised: Raised | None = None  # instead


class Outcome(StrEnum):
    DONE = "done"
    AFTER = "after"  # done, and the reconciler asked to be called again after a delay
    AGAIN = "again"  # done, and the reconciler asked for another pass at once
    WAITING = "waiting"  # not an error: something outside has to happen first
    RETRY = "retry"  # failed, will be tried again after a backoff
    TERMINAL = "terminal"  # failed, only a new cause runs it again
    DROPPED = "dropped"  # cut by shutdown or a lost lease


class Verdict(Value, kw_only=True):
    """What follows an attempt; made by `runtime/verdict` alone."""

    outcome: Outcome
    delay: float = 0.0
    message: str = ""  # one line: what it waits for, or the error
    error_id: str = ""
    where: str = ""  # file:line of the raise in the reconciler's own code
    last: bool = False  # the run will not come to what follows: each object has one attempt (--once)

    @property
    def failed(self) -> bool:
        """Whether the attempt went wrong, as against having to wait or being cut from outside."""
        return self.outcome in (Outcome.RETRY, Outcome.TERMINAL)


class Started(Value, kw_only=True):
    """An attempt began."""

    id: str  # `r7f3-12`
    controller: str
    request: Request
    causes: tuple[Cause, ...]
    causes_total: int  # all that were counted, also those not kept
    queued_at: float  # wall time of the first cause
    started: float
    waited: float  # from the moment it could have run
    try_no: int  # 1, or 1 + failures in a row


class Called(Value, kw_only=True):
    """A call left (`call.code` is None and it is not answered) or was answered."""

    attempt: str
    call: Call
    answered: bool


class Intent(Value, kw_only=True):
    """An event that an attempt asked to be sent; the sending is a background call that carries the attempt's id."""

    type: str
    reason: str
    message: str
    about: Key


class Attempt(Value, kw_only=True):
    """One reconcile, whole."""

    start: Started
    took: float
    verdict: Verdict
    calls: tuple[Call, ...]
    reads: tuple[Read, ...]
    intents: tuple[Intent, ...] = ()
    echoes: int = 0  # events of this attempt's own writes that were dropped while it ran
    skipped: tuple[str, ...] = ()  # writes that were asked for and not needed
    wishes: tuple[WriteRequest, ...] = ()  # what was asked of the writing door, in order
    outside: tuple[Outside, ...] = ()  # what `ctx.outside` answered, in order
    seed: int = 0  # what `ctx.random` was made from
    times: tuple[float, ...] = ()  # what `ctx.now` answered, in order
    traceback: Unshown[str] = ""

    @property
    def id(self) -> str:
        return self.start.id

    @property
    def writes(self) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.write)


class Echoed(Value, kw_only=True):
    """An event of an own write arrived after its attempt had ended and was dropped."""

    attempt: str
    request: Request
    uid: str
    version: str
    after: float


class Background(Value, kw_only=True):
    """A call that no attempt waits for: events, leases; `attempt` is "" when none asked for it."""

    attempt: str
    call: Call


class FilteredChange(Value, kw_only=True):
    """The last change of one object that woke nobody, and what held it back."""

    resource: Resource
    key: Key
    uid: str
    version: str
    kind: str  # of the change: added, modified
    by: tuple[str, ...]  # predicates, or why no mapping led to a request of this run
    at: float  # wall time
    count: int  # changes in a row of this object that woke nobody
    changed: tuple[str, ...] = ()  # places that it changed, the first few
    writers: tuple[str, ...] = ()  # who changed them: one is proven, several are candidates, none is unknown


class Tally(Value, kw_only=True):
    """What was watched and came to nothing, and how far the store got."""

    controller: str
    at: float
    filtered: tuple[tuple[str, int], ...]  # (predicate, how many changes it held back)
    versions: tuple[tuple[Resource, str], ...]  # store versions
    held: tuple[FilteredChange, ...] = ()  # objects whose last change woke nobody; of very many the latest


class Waiting(Value, kw_only=True):
    """One entry of the queue, for `queue` and the list of what was not done."""

    request: Request
    state: str  # ready, running, backoff, timer
    since: float  # wall time
    due: float | None = None
    failures: int = 0
    causes: int = 0
    attempt: str = ""  # that runs


class Depth(Value, kw_only=True):
    """How many requests stand where, also those that a list of them leaves out."""

    ready: int = 0
    running: int = 0
    backoff: int = 0
    timers: int = 0


class NamespaceQueue(Value, kw_only=True):
    """What is ready in one namespace."""

    namespace: str
    ready: int
    since: float  # wall time: so long the oldest waits


class State(Value, kw_only=True):
    """A controller's queue and health at one moment; doubles as heartbeat."""

    controller: str
    at: float
    leading: bool
    synced: bool
    entries: tuple[Waiting, ...]  # all that run, the first that are ready, and the first timers: see `depth`
    message: str = ""  # why it does not run, when it does not
    workers: int = 0
    depth: Depth = Depth()
    crowds: tuple[NamespaceQueue, ...] = ()  # the fullest namespaces
    namespaces: int = 0  # in how many something is ready


Observed = Started | Called | Attempt | Echoed | Background | Tally | State
