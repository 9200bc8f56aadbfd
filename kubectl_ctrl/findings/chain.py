"""The chain of causes that leads to an attempt, back to the first change and its writer.

A retry, a timer and another pass name the attempt before them. An event is joined with the call that wrote the object's
version, by UID and resourceVersion. Without such a call, a change of the status alone probably follows from the
controller's last write to that object: such a link is marked as inferred. Every other cause came from outside.
"""

from __future__ import annotations

from kubectl_ctrl.findings.account import ChainStep
from kubectl_ctrl.findings.case import Case
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCause

_LONGEST = 500
_CHAINED = (CauseKind.RETRY, CauseKind.TIMER, CauseKind.AGAIN)
_EVENTS = (CauseKind.ADDED, CauseKind.MODIFIED)


def chain(case: Case, attempt: RecordedAttempt | None, cause: RecordedCause | None = None) -> tuple[ChainStep, ...]:
    """The steps that led to the attempt, oldest first; the cause of the first came from outside or is unknown.

    With a cause, one of the attempt's, they are the steps that led to that.
    """
    found: list[ChainStep] = []
    seen: set[str] = set()
    while attempt is not None and attempt.id not in seen and len(found) < _LONGEST:
        seen.add(attempt.id)
        step, attempt = _step(case, attempt, cause or leading(attempt))
        found.append(step)
        cause = None
    return tuple(reversed(found))


def _step(
    case: Case, attempt: RecordedAttempt, cause: RecordedCause | None
) -> tuple[ChainStep, RecordedAttempt | None]:
    """The last step of the chain, and the attempt before it."""
    if cause is None:
        return ChainStep(attempt=attempt, cause=None), None
    if cause.kind in _CHAINED:
        before = case.attempt(cause.attempt)
        proof = f"{case.short(attempt.id)} is the {cause.kind.value} that {case.short(cause.attempt)} requested"
        return ChainStep(
            attempt=attempt, cause=cause, link=FactSource.RECORDED if before else None, proof=proof
        ), before
    if cause.kind not in _EVENTS or not cause.uid:
        return ChainStep(attempt=attempt, cause=cause), None
    if (wrote := case.writers.get((cause.uid, cause.new_version))) and wrote[0] != attempt.id:
        proof = (
            f"{case.short(attempt.id)} was triggered by {named(cause)} version {cause.new_version} (uid {cause.uid}), "
            f"which call {case.short(wrote[1])} wrote"
        )
        return ChainStep(attempt=attempt, cause=cause, link=FactSource.RECORDED, proof=proof), case.attempt(wrote[0])
    if before := _writer_before_status(case, attempt, cause):
        proof = f"{named(cause)} changed only in its status after {case.short(before.id)} wrote it"
        return ChainStep(attempt=attempt, cause=cause, link=FactSource.INFERRED, proof=proof), before
    return ChainStep(attempt=attempt, cause=cause), None


def _writer_before_status(case: Case, attempt: RecordedAttempt, cause: RecordedCause) -> RecordedAttempt | None:
    """The attempt that wrote a child before the child's status changed."""
    paths = [difference.path for difference in cause.changes.shown]
    if cause.resource == case.resource or not paths or cause.relisted:
        return None
    if not all(path.startswith(("status", "metadata.annotations")) for path in paths):
        return None
    for one in reversed(case.attempts):
        if one.started <= cause.at and any(made.call.uid == cause.uid and made.call.granted for made in one.writes):
            return one if one.id != attempt.id else None
    return None


def edited(case: Case, steps: tuple[ChainStep, ...]) -> ChainStep | None:
    """The last change of the object's spec before the chain ended, unless the chain contains it.

    A join by versions ends at other controllers, which do not record why they write. Time order proves no cause, but
    readers look for this change first. A change while no run watched has no known time: it is not shown.
    """
    if not steps:
        return None
    causes = [step.cause for step in steps]
    first, last = causes[0], steps[-1].attempt
    about_it = first is not None and (first.resource, first.key) == (case.resource, case.key)
    for one in reversed([one for one in case.attempts if one.run == last.run]):
        for cause in reversed(one.causes):
            if one.started > last.started or (cause.resource, cause.key) != (case.resource, case.key):
                continue
            added = cause.kind is CauseKind.ADDED
            paths = [difference.path for difference in cause.changes.shown]
            if added or any(not path.startswith(("status", "metadata")) for path in paths):
                # The creation is no news if the chain begins with a later change of the object.
                return None if cause in causes or (added and about_it) else ChainStep(attempt=one, cause=cause)
    return None


def leading(attempt: RecordedAttempt) -> RecordedCause | None:
    """The cause that the chain follows: the first, but a listing of existing objects only if there is no other."""
    quiet = (CauseKind.INITIAL, CauseKind.RESYNC, CauseKind.RELOADED)
    return next((one for one in attempt.causes if one.kind not in quiet), None) or next(iter(attempt.causes), None)


def named(cause: RecordedCause) -> str:
    """The object of a cause: `Deployment/web`."""
    return f"{cause.resource.kind}/{cause.key.name}" if cause.resource and cause.key else "an object"
