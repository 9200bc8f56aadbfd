"""What `explain` answers on an object, a reconcile or a controller: one verdict, and the facts that it stands on."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Made, Recorded, Source, Why
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value


class Finding(StrEnum):
    """The verdicts on an object; the first that holds is the one."""

    GONE = "GONE"
    BLOCKED_DELETION = "BLOCKED DELETION"
    NOT_SEEN = "NOT SEEN"  # it exists, and namespace, selector, predicate or CRD keep it out
    NEVER_RAN = "NEVER RAN"  # in scope, and no attempt
    LOOPING = "LOOPING"  # the controller wakes itself by writes that it makes outside of its writing door
    FIGHTING = "FIGHTING"  # two managers set one field to two values in turns
    NOT_CONVERGED = "NOT CONVERGED"  # the last attempt failed
    WAITING = "WAITING"
    CONVERGED = "CONVERGED"


class Risk(StrEnum):
    """What a command does to the cluster."""

    READ = "read"
    WRITE = "write"
    DESTROY = "destroy"


class Standing(StrEnum):
    """Why a controller does not work now, where it does not."""

    DEAD = "dead"  # its process is gone and never said goodbye
    ENDED = "ended"  # it was stopped
    PAUSED = "paused"  # its process is there and does not work: stopped, or another one leads
    UNREADY = "not ready"  # its caches are not complete, or a type that it needs is missing
    UNHEARD = "not heard of"  # asleep, on another machine, or it cannot record: nothing tells what it does


class Fact(Value, kw_only=True):
    """One thing that is known: how, and as of when."""

    text: str
    source: Source = Source.RECORDED
    at: float | None = None
    cause: Why | None = None  # to be told behind the text, in the words that causes are told in


class Qualifier(Value, kw_only=True):
    """Why a verdict may no longer be true: what it stands on is as old as this."""

    standing: Standing
    since: float
    text: str


class Step(Value, kw_only=True):
    """One attempt of a chain of causes, oldest first; `link` says how the step to it from the one before is known."""

    attempt: Recorded
    cause: Why | None  # the one that the chain runs through
    link: Source | None = None  # None: nothing before it is known, or it was caused from outside
    proof: str = ""  # what shows that the step before caused it


class Gap(Value, kw_only=True):
    """One field that is not as the controller wants it; ABSENT on the side that has nothing."""

    resource: Resource
    key: Key
    path: str  # "": the object itself
    want: Any
    live: Any
    owners: tuple[str, ...] = ()
    source: Source = Source.RECORDED
    at: float | None = None  # when it was seen so


class Turn(Value, kw_only=True):
    """One step of a fight: who set the field to what."""

    at: float
    who: str
    value: Any
    ours: bool
    attempt: str = ""


class Coming(Value, kw_only=True):
    """One thing that will make it run again."""

    text: str
    at: float | None = None


class Try(Value, kw_only=True):
    """A command to copy."""

    risk: Risk
    command: str


class Account(Value, kw_only=True):
    """How one object stands, and why."""

    finding: Finding
    resource: Resource
    key: Key
    uid: str
    controller: str
    run: str
    context: str
    now: float
    since: float | None
    attempts: int  # that were looked at
    cut: bool = False  # there are more, before these
    latest: str = ""  # run of the last of them: what a number alone means
    why: tuple[Fact, ...]
    qualifier: Qualifier | None = None
    chain: tuple[Step, ...] = ()
    edited: Step | None = None  # the last change of what is wanted of it, where that is not in the chain
    turns: tuple[Turn, ...] = ()
    field: str = ""  # that is fought over
    gap: tuple[Gap, ...] = ()
    where: str = ""  # file:line of the raise, in the controller's own code
    call: Made | None = None  # that failed
    next: tuple[Coming, ...]
    tries: tuple[Try, ...]
    evidence: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()  # other UIDs, other controllers

    @property
    def good(self) -> bool:
        """Whether a script may go on: it is as it should be, and somebody keeps it so."""
        return self.finding is Finding.GONE or (self.finding is Finding.CONVERGED and self.qualifier is None)

    @property
    def source(self) -> Source:
        """The weakest of what the verdict stands on."""
        sources = {fact.source for fact in self.why}
        return next((one for one in (Source.INFERRED, Source.LIVE) if one in sources), Source.RECORDED)


class Single(Value, kw_only=True):
    """Why one attempt ran, what it saw and did, and what it caused."""

    attempt: Recorded
    resource: Resource | None
    chain: tuple[Step, ...]
    caused: tuple[Fact, ...]
    tries: tuple[Try, ...]
    evidence: tuple[Fact, ...] = ()


class Failing(Value, kw_only=True):
    """Objects whose last attempt failed alike."""

    outcome: Outcome
    error: str
    where: str
    objects: tuple[Key, ...]  # the first few
    count: int
    since: float


class Unready(Value, kw_only=True):
    """An object whose last attempt ended well and that says all the same that it is not ready."""

    key: Key
    said: str


class Hot(Value, kw_only=True):
    """An object that is reconciled more than others."""

    key: Key
    attempts: int
    noops: int
    cause: str  # the commonest
    because: int  # how often it was that


class Saving(Value, kw_only=True):
    """What a predicate would hold back: attempts that did nothing, and attempts that did something."""

    resource: Resource
    predicate: str
    noops: int
    useful: int
    paths: tuple[str, ...]  # what changed in those that did nothing


class Health(Value, kw_only=True):
    """How a controller does over all of its objects."""

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
    slowest: Recorded | None
    waited: tuple[float, float, float]
    failing: tuple[Failing, ...]
    unready: tuple[Unready, ...]
    hot: tuple[Hot, ...]
    savings: tuple[Saving, ...]
    held: tuple[tuple[str, int], ...]  # (predicate, changes that it held back)
    queue: tuple[tuple[str, int], ...]  # (state, how many objects)
    gaps: int
    tries: tuple[Try, ...]
