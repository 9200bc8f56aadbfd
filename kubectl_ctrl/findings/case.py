"""All that a verdict on one object may stand on, put together before anything is judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubectl_ctrl.findings.account import Coming, Fact, Finding, Gap, Risk, Step, Try, Turn
from kubectl_ctrl.model.attempt import Held, Outcome, Waiting
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import Made, Moment, Played, Recorded, Run, Source
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.value import Value, field

Place = tuple[Resource, Key]
Version = tuple[str, str]  # UID and resourceVersion


class Body(Value, kw_only=True):
    """An object as it was last seen."""

    obj: Obj | None  # None: it was looked for and is not there
    source: Source
    at: float


# What answers out of a recording alone.
_LOOKING_BACK = ("kubectl ctrl trace ", "kubectl ctrl explain ", "kubectl ctrl replay ")


class Case(Value, kw_only=True):
    """One object of one controller, as far as it is known."""

    resource: Resource
    key: Key
    uid: str
    word: str  # its type as the user says it
    flags: tuple[str, ...] = ()  # that make a command mean the same namespace; whoever tells it adds the cluster
    source: tuple[str, ...] = ()  # flags that name the recording
    now: float
    controller: Played | None = None
    run: Run | None = None
    life: Life = Life.ELSEWHERE  # of the run's process
    moment: Moment | None = None
    attempts: tuple[Recorded, ...] = ()  # oldest first
    cut: bool = False  # there are more before these
    others: Mapping[str, Recorded] = field(default_factory=dict)  # attempts of other objects that had to do with it
    writers: Mapping[Version, tuple[str, str]] = field(default_factory=dict)  # which attempt's which call wrote it
    bodies: Mapping[Place, Body] = field(default_factory=dict)
    older: int = 0  # objects of the same name before it
    deleted: bool = False  # its cluster was taken away

    @property
    def last(self) -> Recorded | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def ended(self) -> Recorded | None:
        """The last attempt that came to an end, or was cut off."""
        return next((one for one in reversed(self.attempts) if one.over), None)

    @property
    def body(self) -> Body | None:
        return self.bodies.get((self.resource, self.key))

    @property
    def entry(self) -> Waiting | None:
        """Its place in the queue, when the controller was last heard of."""
        entries = self.moment.state.entries if self.moment else ()
        return next((entry for entry in entries if entry.request == self.key), None)

    @property
    def held(self) -> Held | None:
        """Its last change, if that woke nobody."""
        held = self.moment.tally.held if self.moment and self.moment.tally else ()
        return next((one for one in held if (one.resource, one.key) == (self.resource, self.key)), None)

    @property
    def target(self) -> str:
        """How commands name it."""
        return f"{self.word}/{self.key.name}"

    @property
    def title(self) -> str:
        return f"{self.resource.kind} {self.key}"

    def short(self, id_: str) -> str:
        """An attempt or a call by its number, where that means the newest run that has the object; else whole."""
        same = self.last is not None and id_.startswith(f"{self.last.run}-")
        return short(id_) if same else id_

    def attempt(self, id_: str) -> Recorded | None:
        return next((one for one in self.attempts if one.id == id_), None) or self.others.get(id_)

    def wrote(self, uid: str, before: float) -> Recorded | None:
        """The last attempt that wrote that object before then."""
        for one in reversed(self.attempts):
            if one.started <= before and any(made.call.uid == uid and made.call.granted for made in one.writes):
                return one
        return None

    # Commands to copy.

    def ctrl(self, risk: Risk, verb: str, *words: str) -> Try:
        return Try(risk=risk, command=str(ctrl(verb, *words, *self.flags, *self.source)))

    def kubectl(self, risk: Risk, *words: str) -> Try:
        return Try(risk=risk, command=str(command("kubectl", *words, *self.flags)))

    def possible(self, tries: Iterable[Try]) -> tuple[Try, ...]:
        """Without those that a cluster would have to be there for."""
        return tuple(one for one in tries if not self.deleted or one.command.startswith(_LOOKING_BACK))

    def revived(self) -> Try:
        """What makes the controller work again: a second one beside it would be refused."""
        assert self.controller is not None
        if self.life is Life.STOPPED and self.run is not None:
            return Try(risk=Risk.WRITE, command=f"kill -CONT {self.run.pid}")
        return self.ctrl(Risk.READ, "queue", self.controller.name) if self.life.here else self.rerun()

    def rerun(self) -> Try:
        """Start the controller where it ran."""
        assert self.controller is not None
        scope = [] if self.run is None else ["-A"] if not self.run.namespace else [f"--namespace={self.run.namespace}"]
        labels = [f"--selector={self.run.labels}"] if self.run and self.run.labels else []
        return Try(risk=Risk.WRITE, command=str(ctrl("run", self.controller.word, *scope, *labels)))


def failed(attempt: Recorded) -> bool:
    """Whether it went wrong, or never came to its end."""
    return attempt.interrupted or attempt.failed or attempt.outcome == Outcome.DROPPED


def tail(attempts: tuple[Recorded, ...], *outcomes: Outcome) -> list[Recorded]:
    """The attempts at the end that all came out so; one that still runs does not count. Oldest first."""
    found: list[Recorded] = []
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


class Found(Value, kw_only=True):
    """A verdict with what it stands on."""

    finding: Finding
    since: float | None
    why: tuple[Fact, ...]
    tries: tuple[Try, ...]
    about: Recorded | None = None  # the attempt whose chain of causes is told
    evidence: tuple[Fact, ...] = ()
    gap: tuple[Gap, ...] | None = None  # None: the gap of `about`
    turns: tuple[Turn, ...] = ()
    field: str = ""
    where: str = ""
    call: Made | None = None
    chain: tuple[Step, ...] = ()  # where `about` alone does not give it
    next: tuple[Coming, ...] = ()  # before what comes anyway
