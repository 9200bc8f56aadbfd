"""LOOPING: the controller triggers itself, by writes outside ctx.write.

Echoes of writes through ctx.write are dropped; echoes of other writes look like foreign changes. Such a write is
recognized by the controller's field manager and a version that no recorded call wrote. A write under another manager is
inferred: it repeatedly appears while an attempt without writes of its own runs.
"""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ctrl.findings.account import ChainStep, Fact, Finding, Risk
from kubectl_ctrl.findings.case import Case, CaseFinding
from kubectl_ctrl.findings.chain import chain, leading, named
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCause

_Turn = tuple[RecordedAttempt, RecordedCause]

# A controller may trigger itself once until it settles; this many turns in a row are a loop.
_PROVEN = 2
_INFERRED = 3
_UNNOTED = 5
# Managers that no controller of ours writes as.
_KUBERNETES = ("kube-controller-manager", "kube-scheduler", "kube-apiserver", "kubelet")
# An event may arrive a little later than the response to the write, and so after the end of the attempt.
_LATE = 0.25


def looping(case: Case) -> CaseFinding | None:
    if case.controller is None:
        return None
    manager = case.controller.manager
    turns = _turns(case, lambda before, cause: cause.writer in ("", manager))
    if _known(turns := _same_fields(turns)) >= _PROVEN:
        return _found(case, turns, FactSource.RECORDED)
    turns = _turns(case, lambda before, cause: not cause.writer or _appears_in(case, before, cause))
    if _known(turns := _same_fields(turns)) >= _INFERRED:
        return _found(case, turns, FactSource.INFERRED)
    # Objects without managedFields.
    turns = _turns(case, lambda before, cause: not cause.writers and _appears_in(case, before, cause))
    return _found(case, turns, FactSource.INFERRED) if len(turns) >= _UNNOTED else None


def _turns(case: Case, is_own: Callable[[RecordedAttempt | None, RecordedCause], bool]) -> list[_Turn]:
    """The last attempts that were each triggered by such a write, oldest first."""
    found: list[_Turn] = []
    for before, one in zip((None, *case.attempts)[-2::-1], case.attempts[::-1], strict=False):
        cause = leading(one)
        if cause is None or cause.kind not in (CauseKind.ADDED, CauseKind.MODIFIED) or cause.relisted:
            break
        if (cause.uid, cause.new_version) in case.writers or not is_own(before, cause):
            break
        found.append((one, cause))
    return found[::-1]


def _same_fields(turns: list[_Turn]) -> list[_Turn]:
    """Without unknown writers at the beginning; none at all if an unknown writer changed other fields.

    managedFields have whole seconds, so a write in the same second as the one before it has no known manager. It counts
    together with the writes around it that change the same fields.
    """
    first = next((place for place, (_, cause) in enumerate(turns) if cause.writer), len(turns))
    fields = {path for _, cause in turns if cause.writer for path in _fields(cause)}
    return turns[first:] if all(_fields(cause) <= fields for _, cause in turns[first:]) else []


def _known(turns: list[_Turn]) -> int:
    """The number of turns with a known manager, 0 if there are several managers."""
    names = [cause.writer for _, cause in turns if cause.writer]
    return len(names) if len(set(names)) == 1 else 0


def _fields(cause: RecordedCause) -> set[str]:
    return {one.path for one in cause.changes.shown}


def _appears_in(case: Case, before: RecordedAttempt | None, cause: RecordedCause) -> bool:
    """The write appears during the previous attempt, which wrote nothing, and no other controller has a reason for it.

    The controllers of Kubernetes have one, and so do those that write the status of a child, as while a Deployment
    rolls out.
    """
    own = (cause.resource, cause.key) == (case.resource, case.key)
    parts = {path.partition(".")[0] for path in _fields(cause)}
    if before is None or before.writes or cause.writer in _KUBERNETES or (not own and parts == {"status"}):
        return False
    return before.started <= cause.at <= before.end + _LATE


def _found(case: Case, turns: list[_Turn], source: FactSource) -> CaseFinding:
    assert case.controller is not None
    first, (last, cause) = turns[0][0], turns[-1]
    name = named(cause)
    fields = ", ".join(dict.fromkeys(one.path for _, why in turns for one in why.changes.shown)) or "metadata"
    by = next((step.writer for _, step in turns if step.writer), "an unknown field manager")
    cycle = " → ".join(case.short(one.id) for one, _ in turns[-3:])
    rate = (len(turns) - 1) / (last.started - first.started) if last.started > first.started else 0.0
    pace = f", {rate:.1f} per second" if rate >= 0.1 else ""
    took = format_duration(last.started - turns[0][1].at)
    evidence = tuple(
        Fact(
            text=f"{case.short(one.id)} was triggered by {name} version {step.new_version} (uid {step.uid}),"
            " which no recorded call wrote",
            source=source,
            at=step.at,
            cause=step,
        )
        for one, step in turns[-3:]
    )
    at = case.attempts.index(first)
    before = chain(case, case.attempts[at - 1]) if at else ()
    return CaseFinding(
        finding=Finding.LOOPING,
        since=turns[0][1].at,
        why=(
            Fact(
                text=f"{case.controller.name} triggers itself: it writes {name} {fields} outside ctx.write, as {by}",
                source=source,
                at=cause.at,
            ),
            Fact(text=f"{len(turns)} reconciles in a row within {took}{pace}: {cycle}", source=source),
            Fact(text="writes through ctx.write do not trigger it: their echoes are ignored"),
        ),
        tries=(
            case.ctrl(Risk.READ, "trace", case.target, "--calls", "--last=10"),
            case.kubectl(Risk.READ, "get", case.target, "--output=yaml", "--show-managed-fields"),
        ),
        about=last,
        evidence=evidence,
        gap=(),
        chain=(*before, *(ChainStep(attempt=one, cause=cause, link=source) for one, cause in turns)),
    )
