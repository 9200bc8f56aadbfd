"""What a recording says: clusters, runs, and the attempts of their controllers, as they are told long after.

A live Attempt holds the objects of its causes and calls by reference. Here stands what matters of them: differences and
writers, worked out once. `to_recorded` makes the one from the other, so a run and a recording are shown by the same
code.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TypeVar

from kubectl_ctrl.model.attempt import (
    Attempt,
    Call,
    Echoed,
    Intent,
    Outside,
    Read,
    Started,
    State,
    Tally,
    Verdict,
    WriteRequest,
)
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.diffs import Difference, diff
from kubectl_ctrl.model.managed_fields import writer
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import SECRETS, Resource
from kubectl_ctrl.value import Unshown, Value, replace

T = TypeVar("T")

# So many differences of one step are kept; the rest is counted.
MOST_CHANGES = 32


class Changes(Value, kw_only=True):
    """What a step between two versions changed; the first of them, and how many there were."""

    shown: tuple[Difference, ...] = ()
    total: int = 0


NO_CHANGES = Changes()


class Why(Value, kw_only=True):
    """One cause of an attempt."""

    kind: CauseKind
    at: float  # wall time
    resource: Resource | None = None
    key: Key | None = None
    uid: str = ""
    old_version: str = ""
    new_version: str = ""
    relisted: bool = False  # versions in between may have gone unseen
    attempt: str = ""
    count: int = 0
    detail: str = ""
    changes: Changes = NO_CHANGES
    writers: tuple[str, ...] = ()  # one is proven, several are candidates, none is unknown

    @property
    def writer(self) -> str:
        """The proven one, "" where there is none."""
        return self.writers[0] if len(self.writers) == 1 else ""


class Made(Value, kw_only=True):
    """One call, and what it changed; the call's own bodies are gone."""

    call: Call
    changes: Changes = NO_CHANGES


class Recorded(Value, kw_only=True):
    """One attempt. Without a verdict it still runs, or its process died: then it is `interrupted`."""

    id: str
    controller: str
    request: Request
    uid: str = ""  # of the object that the request named, as far as it was seen
    causes: tuple[Why, ...]
    causes_total: int
    queued_at: float
    started: float
    waited: float
    try_no: int
    took: float | None = None
    verdict: Verdict | None = None
    interrupted: bool = False
    calls: tuple[Made, ...] = ()  # one whose `call.code` is None was sent, and its answer is unknown
    background: tuple[Made, ...] = ()  # events that it asked for
    reads: tuple[Read, ...] = ()
    wishes: tuple[WriteRequest, ...] = ()
    intents: tuple[Intent, ...] = ()
    echoes: int = 0  # dropped while it ran
    heard: tuple[Echoed, ...] = ()  # dropped after it had ended
    skipped: tuple[str, ...] = ()
    outside: tuple[Outside, ...] = ()
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
    def writes(self) -> tuple[Made, ...]:
        return tuple(made for made in self.calls if made.call.write)

    @property
    def over(self) -> bool:
        """Whether it came to an end, or was cut off with its process."""
        return self.verdict is not None or self.interrupted

    @property
    def failed(self) -> bool:
        """Whether it ended in an error."""
        return self.verdict is not None and self.verdict.failed

    @property
    def outcome(self) -> str:
        """In one word; of one without a verdict, whether it still runs."""
        if self.verdict is None:
            return "interrupted" if self.interrupted else "running"
        return self.verdict.outcome.value

    @property
    def end(self) -> float:
        """When it ended; of one that did not, when the last was heard of it."""
        if self.took is not None:
            return self.started + self.took
        return max([self.started, *(made.call.started + made.call.took for made in self.calls)])


class Cluster(Value, kw_only=True):
    """One cluster that something was recorded of."""

    key: str  # UID of kube-system; where that cannot be read, a hash of server and CA
    servers: tuple[tuple[str, str], ...]  # (server, CA hash) under which it was reached
    contexts: tuple[str, ...]  # names under which it was meant, newest first
    seen: float  # wall time
    # Of a cluster that we made and that is gone:
    name: str = ""
    provider: str = ""
    ended: float | None = None  # wall time at which it was deleted


class Known(Value, kw_only=True):
    """A resource type that a run had to do with, with the other names that kubectl knows it by."""

    resource: Resource
    singular: str = ""
    short_names: tuple[str, ...] = ()


class Played(Value, kw_only=True):
    """One controller of a run."""

    name: str
    word: str  # what was typed for it
    code: str = ""  # path of the code, for a controller of one's own
    settings: tuple[tuple[str, str], ...] = ()  # that it was given on the command line and takes
    primaries: tuple[Resource, ...]
    owns: tuple[Resource, ...] = ()
    watches: tuple[Resource, ...] = ()
    manager: str  # its field manager


class Run(Value, kw_only=True):
    """One process that ran controllers."""

    id: str
    cluster: str  # key of the cluster
    context: str
    server: str
    ca: str = ""  # hash of the CA
    namespace: str  # "" is all of them
    labels: str = ""  # a selector over the primaries
    controllers: tuple[Played, ...]
    pid: int
    host: str
    holder: str = ""  # how its process signs; tells whether it still lives
    program: str  # version of kubectl-ctrl
    began: float
    seen: float = 0.0  # last sign of life
    ended: float | None = None  # None: it runs, or it died
    gaps: int = 0  # rows that were dropped


class Subject(Value, kw_only=True):
    """One object that attempts were about, and how its last one went."""

    controller: str
    resource: Resource
    key: Key
    uid: str
    attempts: int
    failures: int  # attempts that ended RETRY or TERMINAL
    first: float
    last: Recorded


class Counts(Value, kw_only=True):
    """How many attempts there are about an object, however many of them are looked at."""

    attempts: int = 0
    reads: int | None = None  # None: not counted
    writes: int = 0
    errors: int = 0  # attempts that ended RETRY or TERMINAL
    interrupted: int = 0
    first: float = 0.0  # wall time of the first; 0 without any


class Moment(Value, kw_only=True):
    """How a controller of a run stood when it was last heard of."""

    run: str
    state: State
    tally: Tally | None = None


class Source(StrEnum):
    """How a fact came to be known."""

    RECORDED = "recorded"  # noted by the process that did it, as it was done
    LIVE = "live"  # read from the cluster just now
    INFERRED = "inferred"  # concluded from events, managedFields and conditions


class Incarnation(Value, kw_only=True):
    """One incarnation of an object's name."""

    uid: str
    first: float  # wall time of the first attempt, and of the last
    last: float
    attempts: int


class Branch(Value, kw_only=True):
    """An object and those it owns, as they are read."""

    resource: Resource
    key: Key
    uid: str = ""
    ready: str = ""  # True, False, Unknown; "" where it has no such condition
    reason: str = ""
    created: float | None = None
    source: Source = Source.LIVE
    at: float  # when that was so
    branches: tuple[Branch, ...] = ()


class Story(Value, kw_only=True):
    """What `trace` tells: of one object, or without `key` of all objects of a type."""

    cluster: Cluster | None = None  # None: nothing of it is recorded
    runs: tuple[Run, ...] = ()  # of which attempts are told, newest first
    resource: Resource | None = None  # None: attempts of objects of any type
    key: Key | None = None
    uid: str = ""
    older: tuple[Incarnation, ...] = ()  # former objects of this name, newest first
    attempts: tuple[Recorded, ...] = ()  # oldest first
    subjects: tuple[Subject, ...] = ()  # where `key` is None: each object with its last outcome
    moments: tuple[Moment, ...] = ()  # how the controllers stood when last heard of
    tree: Branch | None = None
    source: Source = Source.RECORDED  # of the attempts
    at: float  # when it is told


def to_recorded(what: Attempt | Started, *, steps: bool = True, uid: str = "") -> Recorded:
    """An attempt as it is to be told; of one that has only begun, its beginning.

    `steps`: also what each call changed, which nobody looks at while a run shows a line for each attempt. The
    bodies of calls are left out. `uid`: of the object of the request.
    """
    start = what.start if isinstance(what, Attempt) else what
    begun = partial(
        Recorded,
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
    if isinstance(what, Started):
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


def to_why(cause: Cause) -> Why:
    """A cause as it is to be told."""
    stepped = cause.kind is CauseKind.MODIFIED
    found = diff(cause.old, cause.new, keys_only=cause.resource == SECRETS) if stepped else ()
    return Why(
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
        writers=_writers(cause, found),
    )


def _writers(cause: Cause, found: tuple[Difference, ...]) -> tuple[str, ...]:
    if cause.new is None or cause.relisted or cause.kind not in (CauseKind.ADDED, CauseKind.MODIFIED):
        return ()
    return writer(cause.old, cause.new, found)


def to_made(call: Call, *, steps: bool = True) -> Made:
    """A call and what it changed, as far as the object before it is known; without its bodies."""
    told_call = replace(call, before=None, sent=None, answer=None)
    if not steps or not call.write or call.before is None or call.answer is None or call.answer.get("kind") == "Status":
        return Made(call=told_call)
    return Made(call=told_call, changes=changes(call.before, call.answer, call.resource))


def changes(old: Obj | None, new: Obj | None, resource: Resource | None) -> Changes:
    """What differs; of Secrets the places alone."""
    return _bounded(diff(old, new, keys_only=resource == SECRETS))


def _bounded(found: tuple[Difference, ...]) -> Changes:
    return Changes(shown=found[:MOST_CHANGES], total=len(found)) if found else NO_CHANGES
