"""How a controller does over all of its objects: pace, failures, hot keys, and what runs for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from kubectl_ctrl.findings.account import Failing, Health, Hot, Qualifier, Risk, Saving, Try, Unready
from kubectl_ctrl.findings.case import Body, Case, Place, failed
from kubectl_ctrl.findings.convergence import says_unready
from kubectl_ctrl.findings.deletion import gone
from kubectl_ctrl.model.attempt import Depth, Outcome
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Played, Recorded, Run, Why
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, field, replace

_MOST = 5
_OBJECTS = 4
# An object is hot that has so many times its share of the reconciles, and so many of them at all.
_HOT = 2.0
_LEAST_HOT = 5
_ASIDE = ("status", "metadata")
GENERATION = "generation_changed"


class Work(Value, kw_only=True):
    """What a controller did in one run, as far as it is looked at."""

    controller: Played
    run: Run
    case: Case  # of no object: how the run stands, and how commands name its cluster
    attempts: Sequence[Recorded]  # of all objects
    qualifier: Qualifier | None
    counted: AbstractSet[Resource] = frozenset()  # types that are known to count a generation
    bodies: Mapping[Place, Body] = field(default_factory=dict)  # of objects whose status the controller never wrote


def health(work: Work) -> Health:
    """The numbers of one run, and what stands out among them."""
    attempts = sorted(work.attempts, key=lambda one: one.started)
    ended = [one for one in attempts if one.took is not None]
    took = [one.took for one in ended if one.took is not None]
    moment = work.case.moment
    failing = tuple(_failing(attempts))
    unready = tuple(_unready(work, attempts))
    found = tuple(savings(attempts, work.counted))
    return Health(
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
        savings=found,
        held=moment.tally.filtered if moment and moment.tally else (),
        queue=_queue(moment.state.depth) if moment else (),
        gaps=work.run.gaps,
        tries=work.case.possible(_tries(work, [*(one.objects[0] for one in failing), *(one.key for one in unready)])),
    )


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Median, 95th percentile and the most."""
    if len(values) < 2:
        return (values[0],) * 3 if values else (0.0, 0.0, 0.0)
    from statistics import quantiles

    cuts = quantiles(values, n=20, method="inclusive")
    return cuts[9], cuts[18], max(values)


def noop(attempt: Recorded) -> bool:
    """It ended well, and neither wrote nor waits: nothing would be different without it."""
    done = attempt.verdict is not None and attempt.verdict.outcome in (Outcome.DONE, Outcome.AFTER)
    return done and not attempt.writes


def _failing(attempts: Sequence[Recorded]) -> Iterator[Failing]:
    """Objects whose last attempt failed, those with the same error together; the most first."""
    last: dict[Key, Recorded] = {}
    begun: dict[Key, float] = {}  # the first of the failures in a row
    for one in sorted(attempts, key=lambda one: one.started):
        if one.verdict is not None or one.interrupted:
            last[one.request] = one
            if failed(one):
                begun.setdefault(one.request, one.started)
            else:
                begun.pop(one.request, None)
    groups: dict[tuple[Outcome, str, str], list[Recorded]] = {}
    for one in last.values():
        if failed(one) and one.verdict is not None:
            verdict = one.verdict
            said = verdict.message.replace(str(one.request), "NAMESPACE/NAME").replace(
                f'"{one.request.name}"', '"NAME"'
            )
            groups.setdefault((verdict.outcome, said, verdict.where), []).append(one)
    for (outcome, said, where), found in sorted(groups.items(), key=lambda item: -len(item[1]))[:_MOST]:
        text = found[0].verdict.message if len(found) == 1 and found[0].verdict else said
        keys = tuple(one.request for one in found[:_OBJECTS])
        since = min(begun[one.request] for one in found)
        yield Failing(outcome=outcome, error=text, where=where, objects=keys, count=len(found), since=since)


def _unready(work: Work, attempts: Sequence[Recorded]) -> Iterator[Unready]:
    """Objects that are NOT CONVERGED although nothing failed, by the same judgement as of each alone."""
    of: dict[Key, list[Recorded]] = {}
    for one in attempts:
        of.setdefault(one.request, []).append(one)
    for key, own in sorted(of.items()):
        uid = next((one.uid for one in reversed(own) if one.uid), "")
        known = tuple(one for one in own if one.uid in ("", uid))  # not of one of that name before it
        for resource in work.controller.primaries:
            case = replace(work.case, resource=resource, key=key, uid=uid, attempts=known, bodies=work.bodies)
            said = says_unready(case)
            if said is not None and gone(case, work.qualifier) is None:
                yield Unready(key=key, said=said.text.removeprefix("it reports "))
                break


def _hot(attempts: Sequence[Recorded]) -> Iterator[Hot]:
    by: dict[Key, list[Recorded]] = {}
    for one in attempts:
        by.setdefault(one.request, []).append(one)
    share = len(attempts) / len(by) if by else 0.0
    for key, found in sorted(by.items(), key=lambda item: -len(item[1]))[:_MOST]:
        if len(found) >= _LEAST_HOT and len(found) >= _HOT * share and len(by) > 1:
            cause, because = Counter(map(_leading, found)).most_common(1)[0]
            noops = sum(map(noop, found))
            yield Hot(key=key, attempts=len(found), noops=noops, cause=cause, because=because)


def _leading(attempt: Recorded) -> str:
    """What the first cause was, in words that are the same for causes that are alike."""
    if not attempt.causes:
        return "no recorded cause"
    cause = attempt.causes[0]
    if cause.kind is not CauseKind.MODIFIED:
        return cause.kind.value
    kind = cause.resource.kind if cause.resource else "object"
    paths = sorted({_top(one.path) for one in cause.changes.shown}) or ["metadata"]
    return f"{kind} {', '.join(paths)} by {' or '.join(cause.writers) or '?'}"


def _top(path: str) -> str:
    return path.partition("[")[0].partition(".")[0]


def savings(attempts: Sequence[Recorded], counted: AbstractSet[Resource]) -> Iterator[Saving]:
    """Of each resource: the attempts that a filter on the generation would have saved, those that did something too.

    `counted` are the types that have a generation: of all others such a filter lets everything pass.
    """
    saved: dict[Resource, list[Recorded]] = {}
    for one in attempts:
        resources = {cause.resource for cause in one.causes}
        if len(resources) == 1 and one.causes and all(map(_is_aside, one.causes)) and _all_kept(one):
            resource = next(iter(resources))
            if resource in counted and resource is not None:
                saved.setdefault(resource, []).append(one)
    for resource, found in saved.items():
        noops = [one for one in found if noop(one)]
        if noops:
            paths = _paths(cause for one in noops for cause in one.causes)
            useful = len(found) - len(noops)
            yield Saving(resource=resource, predicate=GENERATION, noops=len(noops), useful=useful, paths=paths)


def _is_aside(cause: Why) -> bool:
    whole = cause.changes.total == len(cause.changes.shown)
    aside = all(one.path.startswith(_ASIDE) for one in cause.changes.shown)
    # What begins to be deleted passes every filter.
    deleting = any(one.path == "metadata.deletionTimestamp" for one in cause.changes.shown)
    return cause.kind is CauseKind.MODIFIED and whole and aside and not deleting


def _all_kept(attempt: Recorded) -> bool:
    return attempt.causes_total == len(attempt.causes)


def _paths(causes: Iterable[Why]) -> tuple[str, ...]:
    found = Counter(one.path for cause in causes for one in cause.changes.shown)
    return tuple(path for path, _ in found.most_common(3))


def _queue(depth: Depth) -> tuple[tuple[str, int], ...]:
    counts = (("ready", depth.ready), ("running", depth.running), ("backoff", depth.backoff), ("timer", depth.timers))
    return tuple((name, count) for name, count in counts if count)


def _tries(work: Work, wrong: Sequence[Key]) -> Iterator[Try]:
    kind = work.controller.primaries[0].kind.lower()
    case = work.case
    for key in wrong[:1]:
        place = (f"--namespace={key.namespace}",) if key.namespace else ()
        yield case.ctrl(Risk.READ, "explain", f"{kind}/{key.name}", *place)
    if work.qualifier is not None:
        yield case.revived()
    yield case.ctrl(Risk.READ, "queue", work.controller.name)
    yield case.ctrl(Risk.READ, "trace", kind)
