"""FIGHTING: two managers set one field to different values in turn, this controller and another one.

The other side is visible in the causes of attempts: a change from our value to theirs by one known manager. Our side is
a call that set the field back. Where a recording has the call but not its changes, the call counts if it lies between
two changes of theirs that both begin at our value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.findings.account import Fact, FightTurn, Finding, Gap, Risk, Trigger, Try
from kubectl_ctrl.findings.case import Case, CaseFinding
from kubectl_ctrl.findings.chain import chain
from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.diffs import HIDDEN
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCause
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value

_LEAST = 3
_SHOWN = 6
# A fight is over after this many of its average intervals without a change, and at least this many seconds.
_QUIET = 10
_LEAST_QUIET = 60.0
_STOPPED_AFTER = 3  # attempts with other causes


class _Theirs(Value, kw_only=True):
    """The other manager's change of a field, and the attempt that it triggered."""

    attempt: RecordedAttempt
    cause: RecordedCause
    path: str
    ours: Any
    theirs: Any

    def continues(self, other: _Theirs) -> bool:
        """The same change again. A write in the same second as the previous one has no known manager."""
        by, others = self.cause.writer, other.cause.writer
        return (self.ours, self.theirs) == (other.ours, other.theirs) and (not by or not others or by == others)


_Series = list[tuple[_Theirs, Call | None]]


def fighting(case: Case) -> CaseFinding | None:
    if case.controller is None:
        return None
    series = max(_series(case), key=_known, default=[])
    return _found(case, series) if _known(series) >= _LEAST else None


def _known(series: _Series) -> int:
    """The number of changes with a known manager, 0 if there are several managers."""
    names = [step.cause.writer for step, _ in series if step.cause.writer]
    return len(names) if len(set(names)) == 1 else 0


def _series(case: Case) -> Iterator[_Series]:
    """The last identical changes of each field, each with the call of ours that followed it."""
    assert case.controller is not None
    ours = case.controller.manager
    fields: dict[tuple[str, str], list[_Theirs]] = {}
    for attempt in case.attempts:
        for cause in attempt.causes:
            if cause.relisted or cause.writer == ours:
                continue
            for one in cause.changes.shown:
                if one.old is not HIDDEN and one.new is not HIDDEN:
                    step = _Theirs(attempt=attempt, cause=cause, path=one.path, ours=one.old, theirs=one.new)
                    fields.setdefault((cause.uid, one.path), []).append(step)
    for steps in fields.values():
        found: _Series = []
        for step, following in zip(steps[::-1], (None, *steps[::-1]), strict=False):
            answer = _answer(case, step, following)
            # The last change may still be unanswered.
            if not step.continues(steps[-1]) or (answer is None and following is not None):
                break
            found.append((step, answer))
        if not _over(case, found[::-1]):
            yield found[::-1]


def _answer(case: Case, step: _Theirs, following: _Theirs | None) -> Call | None:
    """The call of ours that set the field back before they changed it again."""
    until = following.cause.at if following is not None else float("inf")
    unknown: Call | None = None
    for attempt in case.attempts:
        for made in attempt.writes:
            call = made.call
            took = call.granted and call.uid == step.cause.uid
            if not took or not step.cause.at <= call.started + call.took or call.started > until:
                continue
            if any(one.path == step.path and one.new == step.ours for one in made.changes.shown):
                return call
            # The changes of a call may be missing in the recording; the last such call is the most likely one.
            unknown = unknown if made.changes.total else call
    return unknown


def _over(case: Case, series: _Series) -> bool:
    if len(series) < _LEAST:
        return True
    last = series[-1][0]
    after = [one for one in case.attempts if one.started > last.attempt.started]
    return case.now - last.cause.at > max(_QUIET * _interval(series), _LEAST_QUIET) or (
        len(after) >= _STOPPED_AFTER and not any(one.uid == last.cause.uid for a in after for one in a.causes)
    )


def _interval(series: _Series) -> float:
    return (series[-1][0].cause.at - series[0][0].cause.at) / max(len(series) - 1, 1)


def _found(case: Case, series: _Series) -> CaseFinding:
    assert case.controller is not None
    last, answer = series[-1]
    resource, key = last.cause.resource or case.resource, last.cause.key or case.key
    other = next(step.cause.writer for step, _ in series if step.cause.writer)
    ours = case.controller.manager
    since = series[0][0].cause.at
    text = (
        f"{other} and {ours} set {resource.kind}/{key.name} {last.path} alternately,"
        f" {len(series)} times each within {format_duration(last.cause.at - since)}"
    )
    # Until our write the field has their value.
    gap = Gap(
        resource=resource,
        key=key,
        path=last.path,
        want=last.ours,
        live=last.theirs,
        owners=(other,),
        source=FactSource.RECORDED,
        at=last.cause.at,
    )
    return CaseFinding(
        finding=Finding.FIGHTING,
        since=since,
        why=(
            Fact(text=text, at=last.cause.at),
            Fact(text="neither gives way: one of them has to stop managing this field"),
        ),
        tries=_tries(case, resource, key, last.path),
        about=series[0][0].attempt,
        # The attempt may have had other causes before it.
        chain=chain(case, series[0][0].attempt, series[0][0].cause),
        evidence=tuple(_evidence(case, series)),
        turns=tuple(_turns(series, ours))[-_SHOWN:],
        field=f"{resource.kind}/{key.name} {last.path}",
        gap=() if answer is not None else (gap,),
        next=(Trigger(text=f"the next write by {other}, every {format_duration(_interval(series))} so far"),),
    )


def _turns(series: _Series, manager: str) -> Iterator[FightTurn]:
    for step, call in series:
        yield FightTurn(at=step.cause.at, who=" or ".join(step.cause.writers) or "?", value=step.theirs, ours=False)
        if call is not None:
            yield FightTurn(at=call.started, who=manager, value=step.ours, ours=True, attempt=call.id)


def _evidence(case: Case, series: _Series) -> Iterator[Fact]:
    for step, call in series[-_LEAST:]:
        answered = f"; call {case.short(call.id)} answered with version {call.new_version}" if call else ""
        yield Fact(
            text=f"version {step.cause.new_version} (uid {step.cause.uid})"
            f" triggered {case.short(step.attempt.id)}{answered}",
            at=step.cause.at,
            cause=step.cause,
        )


def _tries(case: Case, resource: Resource, key: Key, path: str) -> tuple[Try, ...]:
    place = f"{resource.full_name}/{key.name}"
    scaled = (case.kubectl(Risk.READ, "get", "horizontalpodautoscalers"),) if path == "spec.replicas" else ()
    return (
        *scaled,
        case.kubectl(Risk.READ, "get", place, "--output=yaml", "--show-managed-fields"),
        case.ctrl(Risk.READ, "trace", case.target, "--diff", "--last=6"),
    )
