"""FIGHTING: one field goes to and fro between two values, ours and somebody else's.

The other side is seen in the causes of attempts: a step from our value to theirs, by one proven manager. Our side is a
call that set it back; where a recording has the call and not what it changed, that the call lies between two steps of
theirs which both begin at our value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.findings.account import Coming, Fact, Finding, Gap, Qualifier, Risk, Try, Turn
from kubectl_ctrl.findings.case import Case, Found
from kubectl_ctrl.model.attempt import Call
from kubectl_ctrl.model.diffs import HIDDEN
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Recorded, Source, Why
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value

_LEAST = 3
_SHOWN = 6
# It is over once nothing came for so many of its usual pauses, and at least for so long.
_QUIET = 10
_LEAST_QUIET = 60.0
_STOPPED_AFTER = 3  # attempts that were about something else


class _Theirs(Value, kw_only=True):
    """Somebody else's step on one field, and the attempt that it caused."""

    attempt: Recorded
    cause: Why
    path: str
    ours: Any
    theirs: Any

    def alike(self, other: _Theirs) -> bool:
        """A step within the same second as the one before it is noted for nobody: it is anybody's."""
        by, others = self.cause.writer, other.cause.writer
        return (self.ours, self.theirs) == (other.ours, other.theirs) and (not by or not others or by == others)


_Series = list[tuple[_Theirs, Call]]


def fighting(case: Case, qualifier: Qualifier | None) -> Found | None:
    if case.controller is None:
        return None
    series = max(_series(case), key=_known, default=[])
    return _found(case, series) if _known(series) >= _LEAST else None


def _known(series: _Series) -> int:
    """How many of the steps are known to be by one and the same manager."""
    names = [step.cause.writer for step, _ in series if step.cause.writer]
    return len(names) if len(set(names)) == 1 else 0


def _series(case: Case) -> Iterator[_Series]:
    """Of each field, the steps at the end that are all alike, each with the call of ours that answered it."""
    fields: dict[tuple[str, str], list[_Theirs]] = {}
    for step in _steps(case):
        fields.setdefault((step.cause.uid, step.path), []).append(step)
    for steps in fields.values():
        found: _Series = []
        for step, following in zip(steps[::-1], (None, *steps[::-1]), strict=False):
            answer = _answer(case, step, following)
            # The last step may still be unanswered.
            if not step.alike(steps[-1]) or (answer is None and following is not None):
                break
            found.append((step, answer or _NONE))
        if not _over(case, [step for step, _ in found[::-1]]):
            yield found[::-1]


_NONE = Call(id="", verb="", resource=None, started=0.0)


def _steps(case: Case) -> Iterator[_Theirs]:
    assert case.controller is not None
    ours = case.controller.manager
    for attempt in case.attempts:
        for cause in attempt.causes:
            if cause.relisted or cause.writer == ours:
                continue
            for one in cause.changes.shown:
                if one.old is not HIDDEN and one.new is not HIDDEN:
                    yield _Theirs(attempt=attempt, cause=cause, path=one.path, ours=one.old, theirs=one.new)


def _answer(case: Case, step: _Theirs, following: _Theirs | None) -> Call | None:
    """The call of ours that set the field back, before they set it again."""
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
            # What it changed may not have been recorded; the last of these is the likeliest.
            unknown = unknown if made.changes.total else call
    return unknown


def _over(case: Case, steps: list[_Theirs]) -> bool:
    if len(steps) < _LEAST:
        return True
    pause = (steps[-1].cause.at - steps[0].cause.at) / (len(steps) - 1)
    after = [one for one in case.attempts if one.started > steps[-1].attempt.started]
    return case.now - steps[-1].cause.at > max(_QUIET * pause, _LEAST_QUIET) or (
        len(after) >= _STOPPED_AFTER and not any(one.uid == steps[-1].cause.uid for a in after for one in a.causes)
    )


def _found(case: Case, series: _Series) -> Found:
    assert case.controller is not None
    last = series[-1][0]
    resource = last.cause.resource or case.resource
    key = last.cause.key or case.key
    other = next(step.cause.writer for step, _ in series if step.cause.writer)
    ours = case.controller.manager
    since = series[0][0].cause.at
    why = (
        Fact(
            text=f"{other} and {ours} set {resource.kind}/{key.name} {last.path} alternately,"
            f" {len(series)} times each within {format_duration(last.cause.at - since)}",
            at=last.cause.at,
        ),
        Fact(text="neither gives way: one of them has to stop managing this field"),
    )
    return Found(
        finding=Finding.FIGHTING,
        since=since,
        why=why,
        tries=_tries(case, resource, key, last.path),
        about=series[0][0].attempt,
        evidence=tuple(_evidence(case, series)),
        turns=tuple(_turns(series, ours))[-_SHOWN:],
        field=f"{resource.kind}/{key.name} {last.path}",
        gap=() if series[-1][1].id else (_gap(last, resource, key, other),),
        next=(Coming(text=f"the next write by {other}, every {format_duration(_pause(series))} so far"),),
    )


def _pause(series: _Series) -> float:
    return (series[-1][0].cause.at - series[0][0].cause.at) / max(len(series) - 1, 1)


def _gap(last: _Theirs, resource: Resource, key: Key, other: str) -> Gap:
    """Until our turn, theirs is what is there."""
    return Gap(
        resource=resource,
        key=key,
        path=last.path,
        want=last.ours,
        live=last.theirs,
        owners=(other,),
        source=Source.RECORDED,
        at=last.cause.at,
    )


def _turns(series: _Series, manager: str) -> Iterator[Turn]:
    for step, call in series:
        yield Turn(at=step.cause.at, who=" or ".join(step.cause.writers) or "?", value=step.theirs, ours=False)
        if call.id:
            yield Turn(at=call.started, who=manager, value=step.ours, ours=True, attempt=call.id)


def _evidence(case: Case, series: _Series) -> Iterator[Fact]:
    for step, call in series[-_LEAST:]:
        answered = f"; call {case.short(call.id)} answered with version {call.new_version}" if call.id else ""
        yield Fact(
            text=f"version {step.cause.new_version} (uid {step.cause.uid})"
            f" triggered {case.short(step.attempt.id)}{answered}",
            at=step.cause.at,
            cause=step.cause,
        )


def _tries(case: Case, resource: Resource, key: Key, path: str) -> tuple[Try, ...]:
    place = f"{resource.full_name}/{key.name}"
    tries = [
        case.kubectl(Risk.READ, "get", place, "--output=yaml", "--show-managed-fields"),
        case.ctrl(Risk.READ, "trace", case.target, "--diff", "--last=6"),
    ]
    if path == "spec.replicas":
        tries.insert(0, case.kubectl(Risk.READ, "get", "horizontalpodautoscalers"))
    return tuple(tries)
