"""The verdict on one object, the first finding that applies, and the account of one attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_ctrl.findings.account import Account, AttemptAccount, ChainStep, Fact, Finding, Risk, Trigger
from kubectl_ctrl.findings.case import Case, short
from kubectl_ctrl.findings.chain import chain, edited
from kubectl_ctrl.findings.convergence import converged, not_converged, waiting
from kubectl_ctrl.findings.deletion import blocked, gone
from kubectl_ctrl.findings.fights import fighting
from kubectl_ctrl.findings.gap import find_gap
from kubectl_ctrl.findings.loops import looping
from kubectl_ctrl.findings.triggers import next_triggers
from kubectl_ctrl.findings.unseen import never_ran, not_seen
from kubectl_ctrl.model.record import FactSource, RecordedAttempt
from kubectl_ctrl.value import replace

# With these, readers ask for the last change of the spec.
_EDITED = (Finding.NOT_CONVERGED, Finding.WAITING, Finding.CONVERGED)

# The first that applies is the verdict; `converged` is the verdict if none does.
_FINDERS = (gone, blocked, not_seen, never_ran, looping, fighting, not_converged, waiting)


def explain(case: Case) -> Account:
    """The verdict on the object, and its reasons."""
    qualifier = case.qualifier
    found = next((one for finder in _FINDERS if (one := finder(case))), None) or converged(case)
    steps = found.chain or chain(case, found.about)
    if case.deleted:
        triggers: tuple[Trigger, ...] = (Trigger(text="nothing: its cluster was deleted"),)
    elif found.finding is Finding.GONE:
        triggers = (Trigger(text=f"nothing; a new {case.resource.kind} with this name would be reconciled"),)
    else:
        triggers = (*(found.next if qualifier is None else ()), *next_triggers(case, qualifier))
    objects = "one earlier object" if case.older == 1 else f"{case.older} earlier objects"
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
        edited=edited(case, steps) if found.finding in _EDITED else None,
        turns=found.turns,
        field=found.field,
        gap=find_gap(case, found.about) if found.gap is None else found.gap,
        where=found.where,
        call=found.call,
        next=triggers,
        tries=case.possible(found.tries),
        evidence=(*found.evidence, *_proofs(steps)),
        notes=(f"{objects} had this name; select one with --uid=UID",) if case.older else (),
    )


def _proofs(steps: tuple[ChainStep, ...]) -> tuple[Fact, ...]:
    """The evidence that each step of a chain caused the next, the latest first."""
    return tuple(
        Fact(
            text=step.proof,
            source=step.link or FactSource.RECORDED,
            at=step.cause.at,
            cause=step.cause if step.cause.uid else None,  # the text of a retry or a timer is complete
        )
        for step in reversed(steps)
        if step.proof and step.cause is not None
    )


def foremost(accounts: list[Account]) -> Account:
    """The most urgent account of several controllers of one object, with a note for each other one."""
    order = list(Finding)
    first = min(accounts, key=lambda one: (order.index(one.finding), -(one.since or 0.0)))
    others = tuple(
        f"{one.controller} reports {one.finding}: add --controller={one.controller}"
        for one in accounts
        if one is not first
    )
    return replace(first, notes=(*first.notes, *others))


def explain_attempt(case: Case, attempt: RecordedAttempt, triggered: Mapping[str, Sequence[str]]) -> AttemptAccount:
    """The chain that led to the attempt, and the attempts that it caused.

    `triggered`: for each of its calls, the attempts triggered by the version that the call wrote.
    """
    steps = chain(case, attempt)
    return AttemptAccount(
        attempt=attempt,
        resource=case.resource,
        chain=steps,
        caused=tuple(_caused(case, attempt, triggered)),
        tries=(
            case.ctrl(Risk.READ, "trace", case.target, f"--id={attempt.id}"),
            case.ctrl(Risk.READ, "replay", attempt.id),
        ),
        evidence=_proofs(steps),
    )


def _caused(case: Case, attempt: RecordedAttempt, triggered: Mapping[str, Sequence[str]]) -> Iterator[Fact]:
    def named(id_: str) -> str:
        return short(id_) if id_.rpartition("-")[0] == attempt.run else id_

    for made in attempt.writes:
        for one in triggered.get(made.call.id, ()):
            if one != attempt.id:
                version = f"version {made.call.new_version} (uid {made.call.uid})"
                yield Fact(text=f"{named(one)}, triggered by {version} that call {short(made.call.id)} wrote")
    for later in case.attempts:
        for cause in later.causes:
            if cause.attempt == attempt.id:
                yield Fact(text=f"{named(later.id)}, the {cause.kind.value} that it requested", at=later.started)
