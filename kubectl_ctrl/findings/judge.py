"""The verdict on one object: each finding is asked in turn, and the first that holds is told with all that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kubectl_ctrl.findings.account import Account, Coming, Fact, Finding, Qualifier, Risk, Single, Step
from kubectl_ctrl.findings.case import Case, Found, short
from kubectl_ctrl.findings.chain import chain, edited
from kubectl_ctrl.findings.controller_state import standing
from kubectl_ctrl.findings.convergence import converged, not_converged, waiting
from kubectl_ctrl.findings.deletion import blocked, gone
from kubectl_ctrl.findings.fights import fighting
from kubectl_ctrl.findings.gap import gap
from kubectl_ctrl.findings.loops import looping
from kubectl_ctrl.findings.next_attempt import coming
from kubectl_ctrl.findings.unseen import never_ran, not_seen
from kubectl_ctrl.model.record import Recorded, Source
from kubectl_ctrl.value import replace

# What is told of these is how far what was asked for has come.
_WANTED = (Finding.NOT_CONVERGED, Finding.WAITING, Finding.CONVERGED)

Finder = Callable[[Case, Qualifier | None], Found | None]

# In this order; CONVERGED holds when none of them does.
FINDERS: tuple[Finder, ...] = (
    gone,
    blocked,
    not_seen,
    never_ran,
    looping,
    fighting,
    not_converged,
    waiting,
)


def judge(case: Case) -> Account:
    """How the object stands, and why."""
    worked = case.last.started if case.last is not None else 0.0
    qualifier = standing(case.run, case.moment, case.now, life=case.life, worked=worked)
    found = next((one for finder in FINDERS if (one := finder(case, qualifier))), None) or converged(case, qualifier)
    steps = found.chain or chain(case, found.about)
    return Account(
        finding=found.finding,
        resource=case.resource,
        key=case.key,
        uid=case.uid,
        controller=case.controller.name if case.controller else "",
        run=case.run.id if case.run else "",
        context=case.run.context if case.run else "",
        now=case.now,
        since=found.since,
        attempts=len(case.attempts),
        cut=case.cut,
        latest=case.last.run if case.last is not None else "",
        why=found.why,
        qualifier=qualifier,
        chain=steps,
        edited=edited(case, steps) if found.finding in _WANTED else None,
        turns=found.turns,
        field=found.field,
        gap=gap(case, found.about) if found.gap is None else found.gap,
        where=found.where,
        call=found.call,
        next=_next(case, found, qualifier),
        tries=case.possible(found.tries),
        evidence=(*found.evidence, *proofs(steps)),
        notes=_notes(case),
    )


def _next(case: Case, found: Found, qualifier: Qualifier | None) -> tuple[Coming, ...]:
    if case.deleted:
        return (Coming(text="nothing: its cluster was deleted"),)
    if found.finding is Finding.GONE:
        return (Coming(text=f"nothing; a new {case.resource.kind} with this name would be reconciled"),)
    return coming(case, qualifier) if qualifier is not None else (*found.next, *coming(case, qualifier))


def proofs(steps: tuple[Step, ...]) -> tuple[Fact, ...]:
    """What shows that each step of a chain caused the next; the latest first."""
    return tuple(
        Fact(
            text=step.proof,
            source=step.link or Source.RECORDED,
            at=step.cause.at,
            cause=step.cause if step.cause.uid else None,  # of a retry or a timer the text says it all
        )
        for step in reversed(steps)
        if step.proof and step.cause is not None
    )


def _notes(case: Case) -> tuple[str, ...]:
    if not case.older:
        return ()
    objects = "one earlier object" if case.older == 1 else f"{case.older} earlier objects"
    return (f"{objects} had this name; select one with --uid=UID",)


def foremost(accounts: list[Account]) -> Account:
    """Of several controllers of one object the one whose finding comes first, with the others noted."""
    order = list(Finding)
    first = min(accounts, key=lambda one: (order.index(one.finding), -(one.since or 0.0)))
    others = tuple(
        f"{one.controller} reports {one.finding}: add --controller={one.controller}"
        for one in accounts
        if one is not first
    )
    return replace(first, notes=(*first.notes, *others))


# One attempt.


def single(case: Case, attempt: Recorded, woken: Mapping[str, Sequence[str]]) -> Single:
    """One attempt explained: the chain that led to it, and what it caused.

    `woken`: of each of its calls the attempts that the version caused which the call was answered with.
    """
    steps = chain(case, attempt)
    return Single(
        attempt=attempt,
        resource=case.resource,
        chain=steps,
        caused=tuple(_caused(case, attempt, woken)),
        tries=(
            case.ctrl(Risk.READ, "trace", case.target, f"--id={attempt.id}"),
            case.ctrl(Risk.READ, "replay", attempt.id),
        ),
        evidence=proofs(steps),
    )


def _caused(case: Case, attempt: Recorded, woken: Mapping[str, Sequence[str]]) -> Iterator[Fact]:
    for made in attempt.writes:
        for one in woken.get(made.call.id, ()):
            if one != attempt.id:
                version = f"version {made.call.new_version} (uid {made.call.uid})"
                yield Fact(text=f"{_named(one, attempt)}, triggered by {version} that call {short(made.call.id)} wrote")
    for later in case.attempts:
        for cause in later.causes:
            if cause.attempt == attempt.id:
                yield Fact(
                    text=f"{_named(later.id, attempt)}, the {cause.kind.value} that it requested", at=later.started
                )


def _named(id_: str, beside: Recorded) -> str:
    """Without the run where that is the same."""
    return short(id_) if id_.rpartition("-")[0] == beside.run else id_
