"""LOOPING: the controller wakes itself, by writes that it does not make through its writing door.

Echoes of what goes through the door are dropped; those of other writes cannot be told from news. Such a write is known
by the controller's field manager and by no recorded call having made that version. One under another name is inferred:
it appears while an attempt runs that writes nothing, again and again.
"""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ctrl.findings.account import Fact, Finding, Qualifier, Risk, Step
from kubectl_ctrl.findings.case import Case, Found
from kubectl_ctrl.findings.chain import chain, leading, named
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import Recorded, Source, Why

_Turn = tuple[Recorded, Why]

# A settled controller may wake itself once; from so many in a row on it goes round.
_PROVEN = 2
_INFERRED = 3
_UNNOTED = 5
# Under whose names nobody's controller writes.
_KUBERNETES = ("kube-controller-manager", "kube-scheduler", "kube-apiserver", "kubelet")
# An event may arrive a little after the write's answer, and so after the attempt.
_LATE = 0.25


def looping(case: Case, qualifier: Qualifier | None) -> Found | None:
    if case.controller is None:
        return None
    manager = case.controller.manager
    turns = _turns(case, lambda before, cause: cause.writer == manager)
    if _known(turns) >= _PROVEN:
        return _found(case, turns, Source.RECORDED)
    turns = _turns(case, lambda before, cause: _appears_in(case, before, cause))
    if _known(turns) >= _INFERRED:
        return _found(case, turns, Source.INFERRED)
    turns = _unnoted(case)
    return _found(case, turns, Source.INFERRED) if len(turns) >= _UNNOTED else None


def _turns(case: Case, is_own: Callable[[Recorded | None, Why], bool]) -> list[_Turn]:
    """The attempts at the end that were each caused by such a write; oldest first.

    A write within the same second as the one before it is noted for nobody: it counts with those around it that change
    the same fields.
    """
    found: list[_Turn] = []
    for before, one in zip((None, *case.attempts)[-2::-1], case.attempts[::-1], strict=False):
        cause = leading(one)
        if cause is None or not _is_step(case, cause):
            break
        if cause.writer and not is_own(before, cause):
            break
        found.append((one, cause))
    while found and not found[-1][1].writer:
        found.pop()
    fields = {path for _, cause in found if cause.writer for path in _fields(cause)}
    return found[::-1] if all(_fields(cause) <= fields for _, cause in found) else []


def _unnoted(case: Case) -> list[_Turn]:
    """The same of an object on which the server notes nobody's writes."""
    found: list[_Turn] = []
    for before, one in zip((None, *case.attempts)[-2::-1], case.attempts[::-1], strict=False):
        cause = leading(one)
        if cause is None or cause.writers or not _is_step(case, cause) or not _appears_in(case, before, cause):
            break
        found.append((one, cause))
    return found[::-1]


def _known(turns: list[_Turn]) -> int:
    """How many of them are known to be by one and the same manager."""
    names = [cause.writer for _, cause in turns if cause.writer]
    return len(names) if len(set(names)) == 1 else 0


def _fields(cause: Why) -> set[str]:
    return {one.path for one in cause.changes.shown}


def _is_step(case: Case, cause: Why) -> bool:
    stepped = cause.kind in (CauseKind.ADDED, CauseKind.MODIFIED) and not cause.relisted
    return stepped and (cause.uid, cause.new_version) not in case.writers


def _appears_in(case: Case, before: Recorded | None, cause: Why) -> bool:
    """Whether the write appears while the attempt before ran, which made none itself: nobody else has a reason to."""
    if before is None or before.writes or _is_looked_after(case, cause):
        return False
    return before.started <= cause.at <= before.end + _LATE


def _is_looked_after(case: Case, cause: Why) -> bool:
    """Whether those have a reason to who look after that object, as while a Deployment rolls out step by step."""
    own = (cause.resource, cause.key) == (case.resource, case.key)
    parts = {path.partition(".")[0] for path in _fields(cause)}
    return cause.writer in _KUBERNETES or (not own and parts == {"status"})


def _found(case: Case, turns: list[_Turn], source: Source) -> Found:
    assert case.controller is not None
    first, (last, cause) = turns[0][0], turns[-1]
    name = named(cause)
    fields = ", ".join(dict.fromkeys(one.path for _, why in turns for one in why.changes.shown)) or "metadata"
    by = next((step.writer for _, step in turns if step.writer), "an unknown field manager")
    cycle = " → ".join(case.short(one.id) for one, _ in turns[-3:])
    rate = (len(turns) - 1) / (last.started - first.started) if last.started > first.started else 0.0
    pace = f", {rate:.1f} per second" if rate >= 0.1 else ""
    why = (
        Fact(
            text=f"{case.controller.name} triggers itself: it writes {name} {fields} outside ctx.write, as {by}",
            source=source,
            at=cause.at,
        ),
        Fact(
            text=f"{len(turns)} reconciles in a row within {format_duration(last.started - turns[0][1].at)}{pace}:"
            f" {cycle}",
            source=source,
        ),
        Fact(text="writes through ctx.write do not trigger it: their echoes are dropped"),
    )
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
    tries = (
        case.ctrl(Risk.READ, "trace", case.target, "--calls", "--last=10"),
        case.kubectl(Risk.READ, "get", case.target, "--output=yaml", "--show-managed-fields"),
    )
    return Found(
        finding=Finding.LOOPING,
        since=turns[0][1].at,
        why=why,
        tries=tries,
        about=last,
        evidence=evidence,
        gap=(),
        chain=_chain(case, turns, source),
    )


def _chain(case: Case, turns: list[_Turn], source: Source) -> tuple[Step, ...]:
    """What led to the first turn, and the turns, each of which led to the next."""
    at = case.attempts.index(turns[0][0])
    before = chain(case, case.attempts[at - 1]) if at else ()
    return (*before, *(Step(attempt=one, cause=cause, link=source) for one, cause in turns))
