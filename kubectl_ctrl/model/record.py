"""The content of a recording: clusters, runs, and the attempts of their controllers.

A live Attempt has references to the objects of its causes and calls. Its recorded form has only their differences and
writers, computed once by `to_recorded`. The output of a run and of a recording comes from the same form.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TypeVar

from kubectl_ctrl.model.attempt import (
    Attempt,
    AttemptStarted,
    Call,
    ControllerState,
    DroppedEcho,
    Intent,
    ObjectRead,
    OutsideResult,
    Tally,
    Verdict,
    WriteRequest,
)
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.diffs import Difference, diff
from kubectl_ctrl.model.managed_fields import writer
from kubectl_ctrl.model.objects import PARTIAL_KIND, Key, Obj
from kubectl_ctrl.model.resources import SECRETS, Resource
from kubectl_ctrl.value import Unshown, Value, replace

T = TypeVar("T")

# The maximum number of recorded differences of one change; all are counted.
MOST_CHANGES = 32


class Changes(Value, kw_only=True):
    """The differences between two versions: the first ones, and the number of all."""

    shown: tuple[Difference, ...] = ()
    total: int = 0


NO_CHANGES = Changes()


class RecordedCause(Value, kw_only=True):
    """One cause of an attempt."""

    kind: CauseKind
    at: float  # wall time
    resource: Resource | None = None
    key: Key | None = None
    uid: str = ""
    old_version: str = ""
    new_version: str = ""
    relisted: bool = False  # versions in between may have been missed
    attempt: str = ""
    count: int = 0
    detail: str = ""
    changes: Changes = NO_CHANGES
    writers: tuple[str, ...] = ()  # one is proven, several are candidates, none is unknown

    @property
    def writer(self) -> str:
        """The proven one, or ""."""
        return self.writers[0] if len(self.writers) == 1 else ""


class RecordedCall(Value, kw_only=True):
    """One call without its bodies, and the changes that it made."""

    call: Call
    changes: Changes = NO_CHANGES


class RecordedAttempt(Value, kw_only=True):
    """One attempt. Without a verdict it is running, or `interrupted` because its process was killed."""

    id: str
    controller: str
    request: Request
    uid: str = ""  # of the object of the request, if it was read
    causes: tuple[RecordedCause, ...]
    causes_total: int
    queued_at: float
    started: float
    waited: float
    try_no: int
    took: float | None = None
    verdict: Verdict | None = None
    interrupted: bool = False
    calls: tuple[RecordedCall, ...] = ()  # if `call.code` is None, the response is unknown
    background: tuple[RecordedCall, ...] = ()  # Events that it requested
    reads: tuple[ObjectRead, ...] = ()
    wishes: tuple[WriteRequest, ...] = ()
    intents: tuple[Intent, ...] = ()
    echoes: int = 0  # dropped while it ran
    heard: tuple[DroppedEcho, ...] = ()  # dropped afterwards
    skipped: tuple[str, ...] = ()
    outside: tuple[OutsideResult, ...] = ()
    seed: int = 0
    times: tuple[float, ...] = ()
    traceback: Unshown[str] = ""

    @property
    def run(self) -> str:
        return self.id.rpartition("-")[0]

    @property
    def number(self) -> int:
        return int(self.id.rpartition("-")[2])

    @property
    def writes(self) -> tuple[RecordedCall, ...]:
        return tuple(made for made in self.calls if made.call.write)

    @property
    def over(self) -> bool:
        """Whether it has finished, or was interrupted."""
        return self.verdict is not None or self.interrupted

    @property
    def failed(self) -> bool:
        return self.verdict is not None and self.verdict.failed

    @property
    def outcome(self) -> str:
        """The verdict's outcome, or "running" or "interrupted"."""
        if self.verdict is None:
            return "interrupted" if self.interrupted else "running"
        return self.verdict.outcome.value

    @property
    def end(self) -> float:
        """When it finished, or the time of its last recorded call."""
        if self.took is not None:
            return self.started + self.took
        return max([self.started, *(made.call.started + made.call.took for made in self.calls)])


class RecordedCluster(Value, kw_only=True):
    """One recorded cluster."""

    key: str  # UID of kube-system, or a hash of server and CA if that cannot be read
    servers: tuple[tuple[str, str], ...]  # (server, CA hash)
    contexts: tuple[str, ...]  # newest first
    seen: float  # wall time
    # Of a deleted managed cluster:
    name: str = ""
    provider: str = ""
    ended: float | None = None  # wall time of its deletion


class RecordedType(Value, kw_only=True):
    """A resource type of a run, with its other names for kubectl."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()


class RecordedController(Value, kw_only=True):
    """One controller of a run."""

    name: str
    word: str  # its argument on the command line
    code: str = ""  # path of the code, unless it is bundled
    settings: tuple[tuple[str, str], ...] = ()  # from the command line
    primaries: tuple[Resource, ...]
    owns: tuple[Resource, ...] = ()
    watches: tuple[Resource, ...] = ()
    manager: str  # its field manager


class RecordedRun(Value, kw_only=True):
    """One process that ran controllers."""

    id: str
    cluster: str  # key of the cluster
    context: str
    server: str
    ca: str = ""  # hash of the CA
    namespace: str  # "" for all
    labels: str = ""  # the selector of --selector
    controllers: tuple[RecordedController, ...]
    pid: int
    host: str
    holder: str = ""  # identity of its process, to check whether it exists
    program: str  # version of kubectl-ctrl
    began: float
    seen: float = 0.0  # last report
    ended: float | None = None  # None: it is running, or was killed
    gaps: int = 0  # rows that were dropped


class RecordedObject(Value, kw_only=True):
    """One object with recorded attempts, and its last one."""

    controller: str
    resource: Resource
    key: Key
    uid: str
    attempts: int
    failures: int  # attempts that ended RETRY or TERMINAL
    first: float
    last: RecordedAttempt


class AttemptCounts(Value, kw_only=True):
    """The numbers of all attempts of an object."""

    attempts: int = 0
    reads: int | None = None  # None: not counted
    writes: int = 0
    errors: int = 0  # attempts that ended RETRY or TERMINAL
    interrupted: int = 0
    first: float = 0.0  # wall time of the first; 0 without any


class RecordedState(Value, kw_only=True):
    """The last reported state of a controller of a run."""

    run: str
    state: ControllerState
    tally: Tally | None = None


class FactSource(StrEnum):
    RECORDED = "recorded"  # recorded by the process itself
    LIVE = "live"  # read from the cluster now
    INFERRED = "inferred"  # concluded from events, managedFields and conditions


class Incarnation(Value, kw_only=True):
    """One of the objects that had the same name, one after the other."""

    uid: str
    first: float  # wall time of the first attempt, and of the last
    last: float
    attempts: int


class Branch(Value, kw_only=True):
    """An object and the objects that it owns."""

    resource: Resource
    key: Key
    uid: str = ""
    ready: str = ""  # True, False, Unknown; "" without that condition
    reason: str = ""
    created: float | None = None
    source: FactSource = FactSource.LIVE
    at: float  # wall time
    branches: tuple[Branch, ...] = ()


class Story(Value, kw_only=True):
    """The content of `trace`: of one object, or without `key` of all objects of a type."""

    cluster: RecordedCluster | None = None  # None: it has no recording
    runs: tuple[RecordedRun, ...] = ()  # of the attempts, newest first
    resource: Resource | None = None  # None: all types
    key: Key | None = None
    uid: str = ""
    older: tuple[Incarnation, ...] = ()  # former objects of this name, newest first
    attempts: tuple[RecordedAttempt, ...] = ()  # oldest first
    subjects: tuple[RecordedObject, ...] = ()  # without `key`: each object with its last attempt
    moments: tuple[RecordedState, ...] = ()  # last reported states of the controllers
    tree: Branch | None = None
    source: FactSource = FactSource.RECORDED  # of the attempts
    at: float  # wall time of the output


def to_recorded(what: Attempt | AttemptStarted, *, steps: bool = True, uid: str = "") -> RecordedAttempt:
    """The recorded form of an attempt, or of one that has just started.

    `steps`: with the changes of each call, which the output of `run` does not need. `uid`: of the request's object.
    """
    start = what.start if isinstance(what, Attempt) else what
    begun = partial(
        RecordedAttempt,
        id=start.id,
        controller=start.controller,
        request=start.request,
        uid=uid,
        causes=tuple(map(to_why, start.causes)),
        causes_total=start.causes_total,
        queued_at=start.queued_at,
        started=start.started,
        waited=start.waited,
        try_no=start.try_no,
    )
    if isinstance(what, AttemptStarted):
        return begun()
    return begun(
        took=what.took,
        verdict=what.verdict,
        calls=tuple(to_made(call, steps=steps) for call in what.calls),
        reads=what.reads,
        wishes=what.wishes,
        intents=what.intents,
        echoes=what.echoes,
        skipped=what.skipped,
        outside=what.outside,
        seed=what.seed,
        times=what.times,
        traceback=what.traceback,
    )


def to_why(cause: Cause) -> RecordedCause:
    modified = cause.kind is CauseKind.MODIFIED
    found = diff(cause.old, cause.new, keys_only=cause.resource == SECRETS) if modified else ()
    # With versions missed in between, a difference may have several writers.
    known = not cause.relisted and (modified or cause.kind is CauseKind.ADDED)
    return RecordedCause(
        kind=cause.kind,
        at=cause.at,
        resource=cause.resource,
        key=cause.key,
        uid=cause.uid,
        old_version=cause.old_version,
        new_version=cause.new_version,
        relisted=cause.relisted,
        attempt=cause.attempt,
        count=cause.count,
        detail=cause.detail,
        changes=_bounded(found),
        writers=writer(cause.old, cause.new, found) if known and cause.new is not None else (),
    )


def to_made(call: Call, *, steps: bool = True) -> RecordedCall:
    """A call without its bodies; with its changes, if the object before it is known."""
    bare = replace(call, before=None, sent=None, answer=None)
    if not steps or not call.write or call.before is None or call.answer is None or call.answer.get("kind") == "Status":
        return RecordedCall(call=bare)
    before, after = call.before, call.answer
    if before.get("kind") == PARTIAL_KIND:  # the cache has no other field, so nothing is known of the rest
        before, after = ({"metadata": one.get("metadata")} for one in (before, after))
    return RecordedCall(call=bare, changes=changes(before, after, call.resource))


def changes(old: Obj | None, new: Obj | None, resource: Resource | None) -> Changes:
    """The differences; of Secrets without values."""
    return _bounded(diff(old, new, keys_only=resource == SECRETS))


def _bounded(found: tuple[Difference, ...]) -> Changes:
    return Changes(shown=found[:MOST_CHANGES], total=len(found)) if found else NO_CHANGES
