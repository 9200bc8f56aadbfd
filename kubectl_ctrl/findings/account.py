"""The results of `explain` for an object, a reconcile or a controller: one verdict, and the facts behind it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCall, RecordedCause
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value


class Finding(StrEnum):
    """The verdicts on an object, in the order in which they are tried."""

    GONE = "GONE"
    BLOCKED_DELETION = "BLOCKED DELETION"
    NOT_SEEN = "NOT SEEN"  # it exists; namespace, selector, predicate or CRD exclude it
    NEVER_RAN = "NEVER RAN"  # in scope, and no attempt
    LOOPING = "LOOPING"  # the controller triggers itself by writes outside ctx.write
    FIGHTING = "FIGHTING"  # two managers set one field to different values in turn
    NOT_CONVERGED = "NOT CONVERGED"  # the last attempt failed
    WAITING = "WAITING"
    CONVERGED = "CONVERGED"


class Risk(StrEnum):
    """The effect of a command on the cluster."""

    READ = "read"
    WRITE = "write"
    DESTROY = "destroy"


class Inactivity(StrEnum):
    """Why a controller is inactive."""

    DEAD = "dead"  # its process exited without recording its end
    ENDED = "ended"  # it was stopped
    PAUSED = "paused"  # its process exists: it is suspended, or another replica leads
    UNREADY = "not ready"  # its caches are incomplete, or a type that it needs is missing
    UNHEARD = "not heard of"  # the machine sleeps, or the process cannot record: its state is unknown


class Fact(Value, kw_only=True):
    """One known fact, its source and its time."""

    text: str
    source: FactSource = FactSource.RECORDED
    at: float | None = None
    cause: RecordedCause | None = None  # printed after the text, as causes are


class Qualifier(Value, kw_only=True):
    """Why a verdict may be outdated: the controller has been inactive since then."""

    state: Inactivity
    since: float
    text: str


class ChainStep(Value, kw_only=True):
    """One attempt of a chain of causes; `link` is the source of the connection to the step before."""

    attempt: RecordedAttempt
    cause: RecordedCause | None  # the cause that the chain follows
    link: FactSource | None = None  # None: the chain begins here
    proof: str = ""  # the evidence that the step before caused it


class Gap(Value, kw_only=True):
    """One field whose live value differs from the desired one; ABSENT on the side without a value."""

    resource: Resource
    key: Key
    path: str  # "": the object itself
    want: Any
    live: Any
    owners: tuple[str, ...] = ()
    source: FactSource = FactSource.RECORDED
    at: float | None = None  # the time of `live`


class FightTurn(Value, kw_only=True):
    """One write of a fight."""

    at: float
    who: str
    value: Any
    ours: bool
    attempt: str = ""


class Trigger(Value, kw_only=True):
    """What triggers the next reconcile, and when."""

    text: str
    at: float | None = None


class Try(Value, kw_only=True):
    """A command to copy."""

    risk: Risk
    command: str


class Account(Value, kw_only=True):
    """The state of one object, and why."""

    finding: Finding
    resource: Resource
    key: Key
    uid: str
    controller: str
    run: str
    context: str
    now: float
    since: float | None
    attempts: int  # that were examined
    cut: bool = False  # there are older ones
    latest: str = ""  # run of the last of them, to which a number without a run refers
    why: tuple[Fact, ...]
    qualifier: Qualifier | None = None
    chain: tuple[ChainStep, ...] = ()
    edited: ChainStep | None = None  # the last change of its spec, unless the chain contains it
    turns: tuple[FightTurn, ...] = ()
    field: str = ""  # the field of a fight
    gap: tuple[Gap, ...] = ()
    where: str = ""  # file:line of the raise in the controller's code
    call: RecordedCall | None = None  # the failed call
    next: tuple[Trigger, ...]
    tries: tuple[Try, ...]
    evidence: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()  # other UIDs, other controllers

    @property
    def good(self) -> bool:
        """Converged or gone, with an active controller: `--exit-code` exits with 0."""
        return self.finding is Finding.GONE or (self.finding is Finding.CONVERGED and self.qualifier is None)

    @property
    def source(self) -> FactSource:
        """The weakest source among the facts of the verdict."""
        sources = {fact.source for fact in self.why}
        return next((one for one in (FactSource.INFERRED, FactSource.LIVE) if one in sources), FactSource.RECORDED)


class AttemptAccount(Value, kw_only=True):
    """Why one attempt ran, and what it caused."""

    attempt: RecordedAttempt
    resource: Resource | None
    chain: tuple[ChainStep, ...]
    caused: tuple[Fact, ...]
    tries: tuple[Try, ...]
    evidence: tuple[Fact, ...] = ()


class FailingGroup(Value, kw_only=True):
    """Objects whose last attempt failed with the same error."""

    outcome: Outcome
    error: str
    where: str
    objects: tuple[Key, ...]  # the first few
    count: int
    since: float


class UnreadyObject(Value, kw_only=True):
    """An object that reports Ready=False although its last attempt succeeded."""

    key: Key
    condition: str


class HotObject(Value, kw_only=True):
    """An object that is reconciled far more often than others."""

    key: Key
    attempts: int
    noops: int
    cause: str  # the most frequent one
    because: int  # the number of its attempts with that cause


class Saving(Value, kw_only=True):
    """The attempts that a predicate would have prevented, those without and those with effect."""

    resource: Resource
    predicate: str
    noops: int
    useful: int
    paths: tuple[str, ...]  # the fields whose changes triggered the attempts without effect


class RunHealth(Value, kw_only=True):
    """The numbers of one run of a controller, over all objects."""

    controller: str
    run: str
    context: str
    now: float
    qualifier: Qualifier | None
    began: float
    until: float
    objects: int
    attempts: int
    failures: int
    retries: int
    noops: int
    took: tuple[float, float, float]  # p50, p95, the longest
    slowest: RecordedAttempt | None
    waited: tuple[float, float, float]
    failing: tuple[FailingGroup, ...]
    unready: tuple[UnreadyObject, ...]
    hot: tuple[HotObject, ...]
    savings: tuple[Saving, ...]
    filtered: tuple[tuple[str, int], ...]  # (predicate, number of changes)
    queue: tuple[tuple[str, int], ...]  # (state, number of objects)
    gaps: int
    tries: tuple[Try, ...]
