"""The health of a controller over all of its objects, as labelled lines and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubectl_ctrl.findings.account import FailingGroup, RunHealth, UnreadyObject
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.render.account import commands, labelled
from kubectl_ctrl.render.account_json import SCHEMA, qualifier_json, try_json
from kubectl_ctrl.render.attempt_json import stamp, time_json
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.text import counted, cut, escaped

_OBJECTS = 4


def health_lines(health: RunHealth, style: Style) -> list[str]:
    minutes = max(health.until - health.began, 1.0) / 60
    failed = f"{health.failures} failed{_share(health.failures, health.attempts)}, {health.retries} retries"
    share = _share(health.noops, health.attempts)
    noops = f"{health.noops} of {health.attempts} reconciles were done without a write{share}"
    filtered = (f"{counted(count, 'change')} filtered out by {escaped(repr(name))}" for name, count in health.filtered)
    parts: list[tuple[str, Iterable[str]]] = [
        ("AS OF", _as_of(health, style)),
        ("PACE", (f"{health.attempts} reconciles, {health.attempts / minutes:.1f} per minute; {failed}",)),
        ("TOOK", _took(health)),
        ("WAITED", (_spread(health.waited),) if health.attempts else ()),
        ("FAILING", (line for one in health.failing for line in _failing(one, health.now))),
        ("NOT READY", _unready(health.unready)),
        ("HOT", _hot(health)),
        ("NO-OPS", (noops,)),
        ("SAVE", _savings(health)),
        ("FILTERED", filtered),
        ("QUEUE", (", ".join(f"{count} {name}" for name, count in health.queue) or "empty",)),
        ("GAPS", (f"{counted(health.gaps, 'row')} could not be recorded",) if health.gaps else ()),
    ]
    context = f", context {health.context}" if health.context else ""
    by = f"run {health.run}{context}, since {timestamp(health.began, style)}; {counted(health.objects, 'object')}"
    by = cut(escaped(by), style.width, mark=style.mark)
    lines = [_headline(health, style), painted(by, "2", style), ""]
    for label, texts in parts:
        lines += labelled(label, texts, style)
    return lines + commands(health.tries, style)


def _headline(health: RunHealth, style: Style) -> str:
    failing, unready = sum(one.count for one in health.failing), len(health.unready)
    if failing:
        more = f", {unready} NOT READY" if unready else ""
        verdict, color = f"{failing} of {health.objects} objects FAILING{more}", "31"
    elif unready:
        verdict, color = f"{unready} of {health.objects} objects NOT READY", "31"
    elif health.qualifier is not None:
        verdict, color = f"NOT WORKING ({health.qualifier.state})", "33"
    else:
        verdict, color = "HEALTHY", "32"
    title = f" {style.dash} controller {health.controller}"
    text = cut(f"{verdict}{title}", style.width, mark=style.mark)
    return painted(text[: len(verdict)], color, style) + text[len(verdict) :]


def _as_of(health: RunHealth, style: Style) -> Iterator[str]:
    if health.qualifier is not None:
        one = health.qualifier
        yield f"{timestamp(one.since, style)}: {one.state}: {one.text}"


def _share(part: int, whole: int) -> str:
    return f" ({100 * part / whole:.0f} %)" if whole and part else ""


def _took(health: RunHealth) -> Iterator[str]:
    if health.slowest is not None:
        slowest = health.slowest
        yield f"{_spread(health.took)}: {slowest.id} of {escaped(str(slowest.request))}"


def _spread(values: tuple[float, float, float]) -> str:
    return "p50 {}, p95 {}, max {}".format(*map(format_duration, values))


def _failing(one: FailingGroup, now: float) -> Iterator[str]:
    names = ", ".join(map(str, one.objects))
    more = f" and {one.count - len(one.objects)} more" if one.count > len(one.objects) else ""
    tried = "not retried" if one.outcome is Outcome.TERMINAL else "retried"
    yield escaped(f"{names}{more}, for {format_duration(max(now - one.since, 0.0))}, {tried}: {one.error}")
    if one.where:
        yield f"  at {escaped(one.where)}"


def _unready(objects: Sequence[UnreadyObject]) -> Iterator[str]:
    """Objects with a condition that is not True, although nothing failed or waits."""
    for one in objects[:_OBJECTS]:
        yield escaped(f"{one.key}: {one.condition}")
    if (more := len(objects) - _OBJECTS) > 0:
        yield f"and {more:,} more"


def _hot(health: RunHealth) -> Iterator[str]:
    for one in health.hot:
        share = _share(one.attempts, health.attempts)
        noops = "1 no-op" if one.noops == 1 else f"{one.noops} no-ops"
        yield escaped(f"{one.key}: {one.attempts} reconciles{share}, {noops}; {one.because} triggered by {one.cause}")


def _savings(health: RunHealth) -> Iterator[str]:
    for one in health.savings:
        changed = f" (changes of {', '.join(map(escaped, one.paths))})" if one.paths else ""
        share = f"{one.noops} of {health.attempts} reconciles"
        text = f"when={one.predicate} on {one.resource.kind} would save {share}{changed}"
        if one.useful:
            text += f", but would also skip {one.useful} that wrote: not recommended"
        yield text


def health_json(health: RunHealth) -> dict[str, Any]:
    names = ("p50", "p95", "longest")
    return {
        "schema": SCHEMA,
        "about": "controller",
        "time": stamp(health.now),
        "source": "recorded",
        "controller": health.controller,
        "run": health.run,
        "context": health.context,
        "asOf": time_json(health.qualifier.since) if health.qualifier else stamp(health.now),
        "qualifier": qualifier_json(health.qualifier),
        "began": stamp(health.began),
        "objects": health.objects,
        "attempts": health.attempts,
        "failures": health.failures,
        "retries": health.retries,
        "noops": health.noops,
        "tookSeconds": dict(zip(names, health.took, strict=True)),
        "slowest": health.slowest.id if health.slowest else None,
        "waitedSeconds": dict(zip(names, health.waited, strict=True)),
        "failing": [
            {
                "outcome": one.outcome.value,
                "error": one.error,
                "where": one.where,
                "objects": [str(key) for key in one.objects],
                "count": one.count,
                "since": stamp(one.since),
            }
            for one in health.failing
        ],
        "notReady": [{"object": str(one.key), "said": one.condition} for one in health.unready],
        "hot": [
            {
                "object": str(one.key),
                "attempts": one.attempts,
                "noops": one.noops,
                "cause": one.cause,
                "because": one.because,
            }
            for one in health.hot
        ],
        "savings": [
            {
                "resource": one.resource.full_name,
                "predicate": one.predicate,
                "noops": one.noops,
                "useful": one.useful,
                "paths": list(one.paths),
            }
            for one in health.savings
        ],
        "heldBack": dict(health.filtered),
        "queue": dict(health.queue),
        "gaps": health.gaps,
        "try": list(map(try_json, health.tries)),
    }
