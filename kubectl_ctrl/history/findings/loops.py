"""LOOPING: the controller wakes itself, by writes that it does not make through its writing door.

Echoes of what goes through the door are dropped; those of other writes cannot be told from news. Such a write is known
by the controller's field manager and by no recorded call having made that version. One under another name is inferred:
it appears while an attempt runs that writes nothing, again and again.
"""

from __future__ import annotations

from kubectl_ctrl.history.findings.case import Case, end_of, short
from kubectl_ctrl.history.findings.chain import leading
from kubectl_ctrl.history.findings.found import Found
from kubectl_ctrl.model.account import Fact, Finding, Qualifier, Risk
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import Recorded, Source, Why

# A settled controller may wake itself once; from so many in a row on it goes round.
_PROVEN = 2
_INFERRED = 3
# An event may arrive a little after the write's answer, and so after the attempt.
_LATE = 0.25


def looping(case: Case, qualifier: Qualifier | None) -> Found | None:
    if case.controller is None:
        return None
    turns = _turns(case, _proven)
    if len(turns) >= _PROVEN:
        return _found(case, turns, Source.RECORDED)
    turns = _turns(case, _likely)
    return _found(case, turns, Source.INFERRED) if len(turns) >= _INFERRED else None


def _turns(case: Case, is_own: object) -> list[tuple[Recorded, Why]]:
    """The attempts at the end that were each caused by a write of the one before it; oldest first."""
    found: list[tuple[Recorded, Why]] = []
    for before, one in zip((None, *case.attempts)[::-1][1:], case.attempts[::-1], strict=False):
        cause = leading(one)
        if cause is None or not callable(is_own) or not is_own(case, before, cause):
            break
        found.append((one, cause))
    return found[::-1]


def _is_step(case: Case, cause: Why) -> bool:
    stepped = cause.kind in (CauseKind.ADDED, CauseKind.MODIFIED) and len(cause.writers) == 1
    return stepped and (cause.uid, cause.new_version) not in case.writers


def _proven(case: Case, before: Recorded | None, cause: Why) -> bool:
    assert case.controller is not None
    return _is_step(case, cause) and cause.writers[0] == case.controller.manager


def _likely(case: Case, before: Recorded | None, cause: Why) -> bool:
    if before is None or before.writes or not _is_step(case, cause):
        return False
    return before.started <= cause.at <= end_of(before) + _LATE


def _found(case: Case, turns: list[tuple[Recorded, Why]], source: Source) -> Found:
    assert case.controller is not None
    first, (last, cause) = turns[0][0], turns[-1]
    name = f"{cause.resource.kind}/{cause.key.name}" if cause.resource and cause.key else "an object"
    fields = ", ".join(dict.fromkeys(one.path for _, why in turns for one in why.changes.shown)) or "metadata"
    cycle = " → ".join(short(one.id) for one, _ in turns[-3:])
    rate = (len(turns) - 1) / (last.started - first.started) if last.started > first.started else 0.0
    pace = f", {rate:.1f} a second" if rate >= 0.1 else ""
    why = (
        Fact(
            text=f"{case.controller.name} wakes itself: it writes {name} {fields} outside of ctx.write,"
            f" as {cause.writers[0]}",
            source=source,
            at=cause.at,
        ),
        Fact(
            text=f"{len(turns)} reconciles in a row within {format_duration(last.started - turns[0][1].at)}{pace}:"
            f" {cycle}",
            source=source,
        ),
        Fact(text="writes through ctx.write do not come back: their echoes are dropped"),
    )
    evidence = tuple(
        Fact(
            text=f"{short(one.id)} was woken by {name} version {step.new_version} (uid {step.uid}), written by"
            f" {step.writers[0]}; no recorded call made that version",
            source=source,
            at=step.at,
            cause=step,
        )
        for one, step in turns[-3:]
    )
    tries = (
        case.ctrl(Risk.READ, "trace", case.target, "--calls", "--last=10"),
        case.kubectl(Risk.READ, "get", case.target, "--output=yaml", "--show-managed-fields"),
    )
    return Found(
        finding=Finding.LOOPING, since=turns[0][1].at, why=why, tries=tries, about=last, evidence=evidence, gap=()
    )
