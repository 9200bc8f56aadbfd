"""The numbers of one run of a controller: durations, failures, hot objects, and reconciles without effect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from kubectl_ctrl.findings.account import (
    FailingGroup,
    HotObject,
    Qualifier,
    Risk,
    RunHealth,
    Saving,
    Try,
    UnreadyObject,
)
from kubectl_ctrl.findings.case import Body, Case, Place, failed
from kubectl_ctrl.findings.convergence import reports_unready
from kubectl_ctrl.findings.deletion import gone
from kubectl_ctrl.model.attempt import Depth, Outcome
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import RecordedAttempt, RecordedCause, RecordedController, RecordedRun
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, field, replace

_MOST = 5
_OBJECTS = 4
# An object is hot with this many times the average number of reconciles, and at least this many.
_HOT = 2.0
_LEAST_HOT = 5
_ASIDE = ("status", "metadata")
GENERATION = "generation_changed"


class HealthInput(Value, kw_only=True):
    """One run of a controller."""

    controller: RecordedController
    run: RecordedRun
    case: Case  # of no object: the state of the run, and the flags of suggested commands
    attempts: Sequence[RecordedAttempt]  # of all objects
    qualifier: Qualifier | None
    counted: AbstractSet[Resource] = frozenset()  # types known to have metadata.generation
    bodies: Mapping[Place, Body] = field(default_factory=dict)  # of objects whose status the controller never wrote


def health(work: HealthInput) -> RunHealth:
    attempts = sorted(work.attempts, key=lambda one: one.started)
    ended = [one for one in attempts if one.took is not None]
    took = [one.took for one in ended if one.took is not None]
    moment = work.case.moment
    depth = moment.state.depth if moment else Depth()
    queue = (("ready", depth.ready), ("running", depth.running), ("backoff", depth.backoff), ("timer", depth.timers))
    failing = tuple(_failing(attempts))
    unready = tuple(_unready(work, attempts))
    return RunHealth(
        controller=work.controller.name,
        run=work.run.id,
        context=work.run.context,
        now=work.case.now,
        qualifier=work.qualifier,
        began=work.run.began,
        until=work.qualifier.since if work.qualifier else work.case.now,
        objects=len({one.request for one in attempts}),
        attempts=len(attempts),
        failures=sum(one.failed for one in attempts),
        retries=sum(any(cause.kind is CauseKind.RETRY for cause in one.causes) for one in attempts),
        noops=sum(map(noop, attempts)),
        took=_spread(took),
        slowest=max(ended, key=lambda one: one.took or 0.0, default=None),
        waited=_spread([one.waited for one in attempts]),
        failing=failing,
        unready=unready,
        hot=tuple(_hot(attempts)),
        savings=tuple(savings(attempts, work.counted)),
        filtered=moment.tally.filtered if moment and moment.tally else (),
        queue=tuple((name, count) for name, count in queue if count),
        gaps=work.run.gaps,
        tries=work.case.possible(_tries(work, [*(one.objects[0] for one in failing), *(one.key for one in unready)])),
    )


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Median, 95th percentile and maximum."""
    if len(values) < 2:
        return (values[0],) * 3 if values else (0.0, 0.0, 0.0)
    from statistics import quantiles

    cuts = quantiles(values, n=20, method="inclusive")
    return cuts[9], cuts[18], max(values)


def noop(attempt: RecordedAttempt) -> bool:
    """It succeeded, wrote nothing and waits for nothing: nothing would differ without it."""
    done = attempt.verdict is not None and attempt.verdict.outcome in (Outcome.DONE, Outcome.AFTER)
    return done and not attempt.writes


def _failing(attempts: Sequence[RecordedAttempt]) -> Iterator[FailingGroup]:
    """Objects whose last attempt failed, grouped by error, the largest group first."""
    last: dict[Key, RecordedAttempt] = {}
    begun: dict[Key, float] = {}  # start of the first of consecutive failures
    for one in sorted(attempts, key=lambda one: one.started):
        if one.verdict is not None or one.interrupted:
            last[one.request] = one
            if failed(one):
                begun.setdefault(one.request, one.started)
            else:
                begun.pop(one.request, None)
    groups: dict[tuple[Outcome, str, str], list[RecordedAttempt]] = {}
    for one in last.values():
        if failed(one) and one.verdict is not None:
            verdict = one.verdict
            error = verdict.message.replace(str(one.request), "NAMESPACE/NAME")
            error = error.replace(f'"{one.request.name}"', '"NAME"')
            groups.setdefault((verdict.outcome, error, verdict.where), []).append(one)
    for (outcome, error, where), found in sorted(groups.items(), key=lambda item: -len(item[1]))[:_MOST]:
        text = found[0].verdict.message if len(found) == 1 and found[0].verdict else error
        keys = tuple(one.request for one in found[:_OBJECTS])
        since = min(begun[one.request] for one in found)
        yield FailingGroup(outcome=outcome, error=text, where=where, objects=keys, count=len(found), since=since)


def _unready(work: HealthInput, attempts: Sequence[RecordedAttempt]) -> Iterator[UnreadyObject]:
    """Objects that are NOT CONVERGED although nothing failed, by the same rule as `explain` of one object."""
    of: dict[Key, list[RecordedAttempt]] = {}
    for one in attempts:
        of.setdefault(one.request, []).append(one)
    for key, own in sorted(of.items()):
        uid = next((one.uid for one in reversed(own) if one.uid), "")
        known = tuple(one for one in own if one.uid in ("", uid))  # not those of an earlier object of this name
        for resource in work.controller.primaries:
            case = replace(work.case, resource=resource, key=key, uid=uid, attempts=known, bodies=work.bodies)
            fact = reports_unready(case)
            if fact is not None and gone(case) is None:
                yield UnreadyObject(key=key, condition=fact.text.removeprefix("it reports "))
                break


def _hot(attempts: Sequence[RecordedAttempt]) -> Iterator[HotObject]:
    by: dict[Key, list[RecordedAttempt]] = {}
    for one in attempts:
        by.setdefault(one.request, []).append(one)
    share = len(attempts) / len(by) if by else 0.0
    for key, found in sorted(by.items(), key=lambda item: -len(item[1]))[:_MOST]:
        if len(found) >= _LEAST_HOT and len(found) >= _HOT * share and len(by) > 1:
            cause, because = Counter(map(_leading, found)).most_common(1)[0]
            noops = sum(map(noop, found))
            yield HotObject(key=key, attempts=len(found), noops=noops, cause=cause, because=because)


def _leading(attempt: RecordedAttempt) -> str:
    """The first cause, in words that are the same for similar causes."""
    if not attempt.causes:
        return "no recorded cause"
    cause = attempt.causes[0]
    if cause.kind is not CauseKind.MODIFIED:
        return cause.kind.value
    kind = cause.resource.kind if cause.resource else "object"
    paths = sorted({re.split(r"[.\[]", one.path)[0] for one in cause.changes.shown}) or ["metadata"]
    return f"{kind} {', '.join(paths)} by {' or '.join(cause.writers) or '?'}"


def savings(attempts: Sequence[RecordedAttempt], counted: AbstractSet[Resource]) -> Iterator[Saving]:
    """For each type, the attempts that a predicate on the generation would have prevented.

    `counted` are the types with metadata.generation: for all others the predicate passes every change.
    """
    saved: dict[Resource, list[RecordedAttempt]] = {}
    for one in attempts:
        resource = one.causes[0].resource if one.causes else None
        whole = one.causes_total == len(one.causes) and all(cause.resource == resource for cause in one.causes)
        if resource is not None and resource in counted and whole and all(map(_is_aside, one.causes)):
            saved.setdefault(resource, []).append(one)
    for resource, found in saved.items():
        noops = [one for one in found if noop(one)]
        if noops:
            paths = Counter(change.path for one in noops for cause in one.causes for change in cause.changes.shown)
            yield Saving(
                resource=resource,
                predicate=GENERATION,
                noops=len(noops),
                useful=len(found) - len(noops),
                paths=tuple(path for path, _ in paths.most_common(3)),
            )


def _is_aside(cause: RecordedCause) -> bool:
    """A modification of status and metadata alone, with all its changes known."""
    whole = cause.changes.total == len(cause.changes.shown)
    aside = all(one.path.startswith(_ASIDE) for one in cause.changes.shown)
    # Every predicate passes the start of a deletion.
    deleting = any(one.path == "metadata.deletionTimestamp" for one in cause.changes.shown)
    return cause.kind is CauseKind.MODIFIED and whole and aside and not deleting


def _tries(work: HealthInput, wrong: Sequence[Key]) -> Iterator[Try]:
    kind = work.controller.primaries[0].kind.lower()
    case = work.case
    for key in wrong[:1]:
        place = (f"--namespace={key.namespace}",) if key.namespace else ()
        yield case.ctrl(Risk.READ, "explain", f"{kind}/{key.name}", *place)
    if work.qualifier is not None:
        yield case.resume()
    yield case.ctrl(Risk.READ, "queue", work.controller.name)
    yield case.ctrl(Risk.READ, "trace", kind)
