"""The chain of causes that leads to an attempt, back to the first change and who made it.

A retry, a timer and another pass name the attempt before them. An event is joined with the call that wrote the object's
version, by UID and resourceVersion. Where neither tells, a change of a status alone follows, as far as anybody can say,
from the last write of ours to that object: such a link is marked as inferred. Everything else came from outside.
"""

from __future__ import annotations

from kubectl_ctrl.findings.account import Step
from kubectl_ctrl.findings.case import Case
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.record import Recorded, Source, Why

_LONGEST = 500
_CHAINED = (CauseKind.RETRY, CauseKind.TIMER, CauseKind.AGAIN)
_EVENTS = (CauseKind.ADDED, CauseKind.MODIFIED)


def chain(case: Case, attempt: Recorded | None) -> tuple[Step, ...]:
    """The steps that led to the attempt, oldest first; the first of them was caused from outside, or is not known."""
    found: list[Step] = []
    seen: set[str] = set()
    while attempt is not None and attempt.id not in seen and len(found) < _LONGEST:
        seen.add(attempt.id)
        step, attempt = _step(case, attempt)
        found.append(step)
    return tuple(reversed(found))


def _step(case: Case, attempt: Recorded) -> tuple[Step, Recorded | None]:
    cause = leading(attempt)
    if cause is None:
        return Step(attempt=attempt, cause=None), None
    if cause.kind in _CHAINED:
        before = case.attempt(cause.attempt)
        proof = f"{case.short(attempt.id)} is the {cause.kind.value} that {case.short(cause.attempt)} requested"
        return Step(attempt=attempt, cause=cause, link=Source.RECORDED if before else None, proof=proof), before
    if cause.kind not in _EVENTS or not cause.uid:
        return Step(attempt=attempt, cause=cause), None
    if (wrote := case.writers.get((cause.uid, cause.new_version))) and wrote[0] != attempt.id:
        return Step(
            attempt=attempt, cause=cause, link=Source.RECORDED, proof=_joined(case, attempt, cause, wrote[1])
        ), case.attempt(wrote[0])
    if before := _followed(case, attempt, cause):
        proof = f"{named(cause)} changed only in its status after {case.short(before.id)} wrote it"
        return Step(attempt=attempt, cause=cause, link=Source.INFERRED, proof=proof), before
    return Step(attempt=attempt, cause=cause), None


def edited(case: Case, steps: tuple[Step, ...]) -> Step | None:
    """The last change of what is wanted of the object before the chain ended, where the chain does not have it.

    A join by versions ends at other controllers, which note for nobody why they write. Time order proves no cause, and
    it is what a reader looks for first. What was edited while no run looked, nobody saw: then it is not told.
    """
    if not steps:
        return None
    told = [step.cause for step in steps]
    last = steps[-1].attempt
    for one in reversed([one for one in case.attempts if one.run == last.run]):
        for cause in reversed(one.causes):
            if one.started <= last.started and _is_edit(case, cause):
                return None if cause in told or _is_older(case, cause, told[0]) else Step(attempt=one, cause=cause)
    return None


def _is_older(case: Case, cause: Why, first: Why | None) -> bool:
    """That an object was made is no news where the chain begins with a change of it."""
    about = first is not None and (first.resource, first.key) == (case.resource, case.key)
    return cause.kind is CauseKind.ADDED and about


def _is_edit(case: Case, cause: Why) -> bool:
    if (cause.resource, cause.key) != (case.resource, case.key):
        return False
    paths = [difference.path for difference in cause.changes.shown]
    return cause.kind is CauseKind.ADDED or any(not path.startswith(("status", "metadata")) for path in paths)


def leading(attempt: Recorded) -> Why | None:
    """The cause that the chain runs through: the first, unless that only repeats what is there anyway."""
    quiet = (CauseKind.INITIAL, CauseKind.RESYNC, CauseKind.RELOADED)
    return next((one for one in attempt.causes if one.kind not in quiet), None) or next(iter(attempt.causes), None)


def _joined(case: Case, attempt: Recorded, cause: Why, call: str) -> str:
    return (
        f"{case.short(attempt.id)} was triggered by {named(cause)} version {cause.new_version} (uid {cause.uid}), "
        f"which call {case.short(call)} wrote"
    )


def _followed(case: Case, attempt: Recorded, cause: Why) -> Recorded | None:
    """The attempt that wrote the object before its status moved; only of an object that requests are not about."""
    paths = [difference.path for difference in cause.changes.shown]
    if cause.resource == case.resource or not paths or cause.relisted:
        return None
    if not all(path.startswith(("status", "metadata.annotations")) for path in paths):
        return None
    before = case.wrote(cause.uid, cause.at)
    return before if before is not None and before.id != attempt.id else None


def named(cause: Why) -> str:
    """The object that a cause is about: `Deployment/web`."""
    return f"{cause.resource.kind}/{cause.key.name}" if cause.resource and cause.key else "an object"
