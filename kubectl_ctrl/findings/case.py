"""The recorded and live facts on one object that the verdict is derived from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_ctrl.findings.account import (
    ChainStep,
    Fact,
    FightTurn,
    Finding,
    Gap,
    Inactivity,
    Qualifier,
    Risk,
    Trigger,
    Try,
)
from kubectl_ctrl.model.attempt import FilteredChange, Outcome, WaitingRequest
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.life import SILENT_AFTER, Life
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import (
    FactSource,
    RecordedAttempt,
    RecordedCall,
    RecordedController,
    RecordedRun,
    RecordedState,
)
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.value import Value, field

Place = tuple[Resource, Key]
Version = tuple[str, str]  # UID and resourceVersion

# The commands that need no cluster.
_OFFLINE = ("kubectl ctrl trace ", "kubectl ctrl explain ", "kubectl ctrl replay ")


class Body(Value, kw_only=True):
    """The last known state of an object."""

    obj: Obj | None  # None: it was read, and does not exist
    source: FactSource
    at: float


class Case(Value, kw_only=True):
    """One object of one controller, and everything known about it."""

    resource: Resource
    key: Key
    uid: str
    word: str  # its type as the user typed it
    flags: tuple[str, ...] = ()  # the namespace in suggested commands; whoever prints them adds the cluster
    source: tuple[str, ...] = ()  # flags that select the recording
    now: float
    controller: RecordedController | None = None
    run: RecordedRun | None = None
    life: Life = Life.ELSEWHERE  # of the run's process
    moment: RecordedState | None = None
    attempts: tuple[RecordedAttempt, ...] = ()  # oldest first
    cut: bool = False  # there are older ones
    others: Mapping[str, RecordedAttempt] = field(default_factory=dict)  # related attempts of other objects
    writers: Mapping[Version, tuple[str, str]] = field(default_factory=dict)  # the attempt and call of each version
    bodies: Mapping[Place, Body] = field(default_factory=dict)
    older: int = 0  # earlier objects of the same name
    deleted: bool = False  # its cluster was deleted

    @property
    def last(self) -> RecordedAttempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def ended(self) -> RecordedAttempt | None:
        """The last attempt that ended or was interrupted."""
        return next((one for one in reversed(self.attempts) if one.over), None)

    @property
    def body(self) -> Body | None:
        return self.bodies.get((self.resource, self.key))

    @property
    def entry(self) -> WaitingRequest | None:
        """Its queue entry in the last recorded state of the controller, unless its last attempt took that entry.

        States are recorded less often than attempts. An attempt leaves the queue a moment after its end.
        """
        state, last = self.moment.state if self.moment else None, self.last
        if state is None or (last is not None and state.at <= last.end):
            return None
        found = next((entry for entry in state.entries if entry.request == self.key), None)
        return None if found is not None and last is not None and found.attempt == last.id else found

    @property
    def filtered(self) -> FilteredChange | None:
        """Its last change, if a predicate filtered it out."""
        held = self.moment.tally.held if self.moment and self.moment.tally else ()
        return next((one for one in held if (one.resource, one.key) == (self.resource, self.key)), None)

    @property
    def qualifier(self) -> Qualifier | None:
        worked = self.last.started if self.last is not None else 0.0
        return qualifier(self.run, self.moment, self.now, life=self.life, worked=worked)

    @property
    def target(self) -> str:
        """Its name in commands."""
        return f"{self.word}/{self.key.name}"

    def short(self, id_: str) -> str:
        """An attempt or a call by its number alone if it is of the run that a number refers to."""
        same = self.last is not None and id_.startswith(f"{self.last.run}-")
        return short(id_) if same else id_

    def attempt(self, id_: str) -> RecordedAttempt | None:
        return next((one for one in self.attempts if one.id == id_), None) or self.others.get(id_)

    # Suggested commands.

    def ctrl(self, risk: Risk, verb: str, *words: str) -> Try:
        return Try(risk=risk, command=str(ctrl(verb, *words, *self.flags, *self.source)))

    def kubectl(self, risk: Risk, *words: str) -> Try:
        return Try(risk=risk, command=str(command("kubectl", *words, *self.flags)))

    def possible(self, tries: Iterable[Try]) -> tuple[Try, ...]:
        """Without those that need a deleted cluster."""
        return tuple(one for one in tries if not self.deleted or one.command.startswith(_OFFLINE))

    def resume(self) -> Try:
        """The command that makes the controller active again. `run` beside a live process would be refused."""
        assert self.controller is not None
        if self.life is Life.STOPPED and self.run is not None:
            return Try(risk=Risk.WRITE, command=f"kill -CONT {self.run.pid}")
        return self.ctrl(Risk.READ, "queue", self.controller.name) if self.life.here else self.rerun()

    def rerun(self) -> Try:
        """The command that starts the controller again with the scope of its run."""
        assert self.controller is not None
        scope = [] if self.run is None else ["-A"] if not self.run.namespace else [f"--namespace={self.run.namespace}"]
        labels = [f"--selector={self.run.labels}"] if self.run and self.run.labels else []
        return Try(risk=Risk.WRITE, command=str(ctrl("run", self.controller.word, *scope, *labels)))


def qualifier(
    run: RecordedRun | None, moment: RecordedState | None, now: float, *, life: Life, worked: float = 0.0
) -> Qualifier | None:
    """Why the controller is inactive, None if it is active as far as known. `worked`: start of its last attempt."""
    if run is None:
        return None
    heard = max(run.seen, run.began, moment.state.at if moment else 0.0)
    who = f"process {run.pid} on {run.host}"
    if run.ended is not None:
        return Qualifier(state=Inactivity.ENDED, since=run.ended, text=f"{who} was stopped")
    if life is Life.GONE:
        return Qualifier(state=Inactivity.DEAD, since=heard, text=f"{who} exited unexpectedly")
    if life is Life.STOPPED:
        return Qualifier(state=Inactivity.PAUSED, since=heard, text=f"{who} is suspended by a signal")
    if now - heard > SILENT_AFTER:
        # A process that exists may be working and unable to record.
        there = "is running but " if life.here else ""
        text = f"{who} {there}has recorded nothing for {format_duration(now - heard)}"
        return Qualifier(state=Inactivity.UNHEARD, since=heard, text=text)
    if moment is None or moment.state.at <= worked:  # the state is older than the last attempt, so it has passed
        return None
    state = moment.state
    if not state.leading:
        return Qualifier(state=Inactivity.PAUSED, since=heard, text=state.message or "another process leads")
    return Qualifier(state=Inactivity.UNREADY, since=heard, text=state.message) if state.message else None


def failed(attempt: RecordedAttempt) -> bool:
    """It failed, was dropped or was interrupted."""
    return attempt.interrupted or attempt.failed or attempt.outcome == Outcome.DROPPED


def tail(attempts: tuple[RecordedAttempt, ...], *outcomes: Outcome) -> list[RecordedAttempt]:
    """The last attempts with one of these outcomes, oldest first; one that is still running does not count."""
    found: list[RecordedAttempt] = []
    for one in reversed(attempts):
        if not one.over:
            continue
        if one.verdict is None or one.verdict.outcome not in outcomes:
            break
        found.append(one)
    return found[::-1]


def short(id_: str) -> str:
    """`r7f3-12` and `r7f3-12.3` as `#12` and `#12.3`."""
    return f"#{id_.rpartition('-')[2]}"


class CaseFinding(Value, kw_only=True):
    """A verdict and its facts."""

    finding: Finding
    since: float | None
    why: tuple[Fact, ...]
    tries: tuple[Try, ...]
    about: RecordedAttempt | None = None  # the attempt whose chain of causes is printed
    evidence: tuple[Fact, ...] = ()
    gap: tuple[Gap, ...] | None = None  # None: the gap of `about`
    turns: tuple[FightTurn, ...] = ()
    field: str = ""
    where: str = ""
    call: RecordedCall | None = None
    chain: tuple[ChainStep, ...] = ()  # empty: the chain of `about`
    next: tuple[Trigger, ...] = ()  # in addition to the usual triggers
