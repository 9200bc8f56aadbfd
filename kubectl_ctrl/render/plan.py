"""A plan: a row for each field of each object that would change, then what the controller waits for.

live reads · server-side dry run of writes · 1 round
~ Deployment/web   spec.replicas   3 → 5
= Foo/web          unchanged until rollout 3/5
1 change; then waits for rollout 3/5
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any, NamedTuple

from kubectl_ctrl.model.attempt import Attempt, Intent, Outcome, Verdict
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.diffs import ABSENT, BOOKKEEPING, Difference, Marker, diff
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.masking import LAST_APPLIED, MASK, is_secret
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.secrecy import Secrecy
from kubectl_ctrl.plan.steps import Effect, Fate, Pass, Plan, Step
from kubectl_ctrl.render.attempt_json import difference_json
from kubectl_ctrl.render.plan_diff import secrecy_of, shown_sides
from kubectl_ctrl.render.style import Style, painted
from kubectl_ctrl.text import counted, cut, escaped
from kubectl_ctrl.value import replace

_MARKS = {Effect.CREATED: "+", Effect.DELETED: "-", Effect.CHANGED: "~", Effect.UNCHANGED: "=", Effect.FOREIGN: "="}
_COLORS = {"+": "32", "-": "31", "~": "33", "=": "2"}
_GAP = "   "
_INDENT = "    "
_WIDEST = 48  # no name and no path makes all others start further right than this
_MOST_OPENED = 24
_CONDITION = re.compile(r"status\.conditions\[type=([^\]]+)\]")
# What every object has without anybody's asking.
_UNASKED = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
_UNCHECKED = "not validated by the server"


class Row(NamedTuple):
    """One line: `change` alone where nothing is compared."""

    mark: str
    who: str
    path: str
    change: str | Difference


def plan_lines(plan: Plan, style: Style) -> Iterator[str]:
    """The whole plan."""
    plan, secrecy = _quiet(plan), secrecy_of(plan)
    dot = " · " if style.unicode else ", "
    still = f"{dot}assuming that no other controller acts" if plan.to_fixpoint else ""
    yield from _folded(
        f"live reads{dot}server-side dry run of writes{dot}{counted(plan.rounds, 'round')}{still}", style
    )
    if plan.given:
        yield "after the file is applied:"
        yield from _rows(plan, plan.given, style, secrecy)
        yield f"then {plan.controller}:"
    yield from _rows(plan, plan.fates, style, secrecy)
    for line in (*_writes(plan), *_unsent(plan)):
        yield from _folded(line, style)
    yield from _ending(plan, style)


def _rows(plan: Plan, fates: Iterable[Fate], style: Style, secrecy: Secrecy) -> Iterator[str]:
    """In columns: as wide as they need to be, and none wider than is good for the others."""
    rows = [row for fate in fates for row in _rows_of(fate, plan.requests[0].namespace, secrecy, style)]
    who = max((len(row.who) for row in rows if len(row.who) <= _WIDEST), default=0)
    path = max((len(row.path) for row in rows if len(row.path) <= _WIDEST), default=0)
    for row in rows:
        head = f"{row.mark} {row.who:<{who}}"
        if row.path:
            head += f"{_GAP}{row.path:<{path}}"
        change = _change(row.change, style, None)
        lines = (f"{head}{_GAP}{change}", f"{head.rstrip()}{_GAP}{change}")
        width = max(map(len, lines)) if style.width is None else style.width
        if fitting := [line for line in lines if len(line) <= width]:
            yield _marked(fitting[0], row.mark, style)
            continue
        # The values stand below, in all the room that there is.
        yield _marked(_fit(head.rstrip(), style), row.mark, style)
        if isinstance(row.change, str):
            yield from wrap(row.change, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
        else:
            yield _INDENT + _change(row.change, style, width - len(_INDENT))


def _rows_of(fate: Fate, namespace: str, secrecy: Secrecy, style: Style) -> Iterator[Row]:
    mark, who = _MARKS[fate.effect], object_name(fate.resource, fate.key, namespace)
    lines = _told(fate)
    differences = differences_of(fate, secrecy) if fate.effect is Effect.CHANGED else ()
    if not lines and not differences:
        lines = ["only field ownership changes"]
    for line in lines:
        yield Row(mark, who, "", line)
        mark, who = " ", ""
    for path, change in _told_apart(fate, differences, secrecy, style):
        yield Row(mark, who, escaped(path), change)
        mark, who = " ", ""


def _told_apart(
    fate: Fate, differences: Iterable[Difference], secrecy: Secrecy, style: Style
) -> Iterator[tuple[str, Difference | str]]:
    """Each difference; those of one condition as one, by its type."""
    told: set[str] = set()
    for one in differences:
        found = _CONDITION.match(one.path)
        if found is None:
            yield one.path, one
        elif found[1] not in told:
            told.add(found[1])
            before, after = (find(side or {}, found[1]) for side in (fate.before, fate.after))
            yield found[1], _condition_change(before, after, style, secrecy)


def _condition_change(before: Obj | None, after: Obj | None, style: Style, secrecy: Secrecy) -> str:
    """`True → False, RollingOut: It has 3 of 5 replicas.`; without its times."""
    old, new = ("-" if side is None else str(side.get("status")) for side in (before, after))
    said = [] if old == new else [f"{old} {style.arrow} {new}"]
    if after is not None:
        reason, message = (str(after.get(name) or "") for name in ("reason", "message"))
        same_words = before is not None and (before.get("reason"), before.get("message")) == (reason, message)
        said += [] if same_words else [": ".join(filter(None, (reason, message)))]
    return escaped(secrecy.text(", ".join(filter(None, said)) or "timestamps only"))


def _has_type(item: Any) -> bool:
    return isinstance(item, dict) and "type" in item


def _told(fate: Fate) -> list[str]:
    """What is said of an object beside its differences."""
    note = escaped(fate.note)
    aside = [] if fate.checked else [_UNCHECKED]
    match fate.effect:
        case Effect.CREATED:
            told = f"created ({counted(_count(fate.after or {}), 'field')})"
        case Effect.DELETED:
            told = "deleted"
        case Effect.FOREIGN:
            told = note
        case Effect.UNCHANGED:
            told = f"unchanged {note}".rstrip() if note.startswith("until ") or not note else f"unchanged: {note}"
        case Effect.CHANGED:
            return [", ".join([*filter(None, [note]), *aside])] if note or aside else []
    return [", ".join([told, *aside])]


def differences_of(fate: Fate, secrecy: Secrecy) -> tuple[Difference, ...]:
    """What differs, without what says nothing, and with what may not be shown hidden."""
    found = diff(fate.before, fate.after, ignore=BOOKKEEPING, keys_only=is_secret(fate.resource))
    return tuple(secrecy.difference(part) for one in found if LAST_APPLIED not in one.path for part in _opened(one))


def _quiet(plan: Plan) -> Plan:
    """The plan with its messages as they may be shown."""
    secrecy = secrecy_of(plan)

    def quiet(attempt: Attempt) -> Attempt:
        verdict = replace(attempt.verdict, message=secrecy.text(attempt.verdict.message))
        intents = tuple(replace(it, message=secrecy.text(it.message)) for it in attempt.intents)
        return replace(attempt, verdict=verdict, intents=intents, skipped=tuple(map(secrecy.text, attempt.skipped)))

    return replace(
        plan,
        passes=tuple(replace(one, attempt=quiet(one.attempt)) for one in plan.passes),
        fates=tuple(replace(one, note=secrecy.text(one.note)) for one in plan.fates),
    )


def _opened(one: Difference) -> list[Difference]:
    """An object that came or went, field by field, unless there are very many."""
    side = one.new if one.old is ABSENT else one.old
    if ABSENT not in (one.old, one.new) or not isinstance(side, dict) or not side:
        return [one]
    # Next to none at all, items that have a type are told apart too.
    none: Obj = {name: [] for name, part in side.items() if isinstance(part, list) and all(map(_has_type, part))}
    parts = diff(none, side) if one.old is ABSENT else diff(side, none)
    named = [_below(one.path, part) for part in parts]
    opened = [deeper for part in named for deeper in _opened(part)]
    return opened if len(opened) <= _MOST_OPENED else [one]


def _below(path: str, part: Difference) -> Difference:
    """A difference of what is at a path, with that path."""
    dot = "" if part.path[0] == "[" else "."
    return Difference(path=f"{path}{dot}{part.path}", old=part.old, new=part.new)


def object_name(resource: Resource, key: Key, namespace: str) -> str:
    """`Deployment/web`, with its namespace where that is another."""
    name = escaped(f"{resource.kind}/{key.name}")
    return f"{name} in {escaped(key.namespace)}" if key.namespace not in ("", namespace) else name


def _change(change: str | Difference, style: Style, room: int | None) -> str:
    if isinstance(change, str):
        return change
    arrow = f" {style.arrow} "
    old, new = _value(change.old), _value(change.new)
    if room is not None and len(old) + len(arrow) + len(new) > room:
        half = (room - len(arrow)) // 2
        old = cut(old, max(half, room - len(arrow) - len(new)), mark=style.mark)
        new = cut(new, room - len(arrow) - len(old), mark=style.mark)
    return f"{old}{arrow}{new}"


def _value(value: Any) -> str:
    match value:
        case Marker.ABSENT:
            return "-"
        case Marker.HIDDEN:
            return MASK
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return f"{{{counted(len(value), 'field')}}}"
        case list():
            return f"[{counted(len(value), 'item')}]"
        case "":
            return '""'
    return escaped(str(value))


def _count(obj: Obj) -> int:
    """How many values an object was made with."""
    meta = {key: value for key, value in obj.get("metadata", {}).items() if key not in _UNASKED}
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return _leaves({"metadata": meta, **rest})


def _leaves(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_leaves, parts)) if parts else 1


# Below the objects.


def _writes(plan: Plan) -> Iterator[str]:
    for one in plan.passes:
        if one.steps:
            round_ = f"round {one.round}" if plan.rounds > 1 else "writes"
            who = f" for {escaped(str(one.request))}" if len(plan.requests) > 1 else ""
            yield f"{round_}{who}: {', '.join(step_text(step, one.request.namespace) for step in one.steps)}"


def step_text(step: Step, namespace: str) -> str:
    """`apply Foo/web/status`."""
    tail = f"/{step.subresource}" if step.subresource else ""
    name, inside, place = object_name(step.resource, step.key, namespace).partition(" in ")
    return f"{step.verb} {name}{tail}{inside}{place}"


def _unsent(plan: Plan) -> Iterator[str]:
    intents = dict.fromkeys(intent for one in plan.passes for intent in one.attempt.intents)
    for intent in intents:
        yield f"not sent: event {_event(intent)}"
    if plan.lease is not None:
        yield f"not acquired: Lease {plan.lease.key}, which a run would hold"


def _event(intent: Intent) -> str:
    return f"{intent.type} {escaped(intent.reason)} about {escaped(intent.about.name)}: {escaped(intent.message)}"


def _ending(plan: Plan, style: Style) -> Iterator[str]:
    count = len(plan.changed)
    made = counted(count, "change") if count else "no changes"
    if not plan.settled:
        still = [step for one in plan.last for step in one.steps if step.changes]
        names = ", ".join(dict.fromkeys(step_text(step, plan.requests[0].namespace) for step in still))
        yield from _folded(f"does not settle: round {plan.rounds} would still {names or 'continue'}", style)
    if len(plan.last) != 1:
        yield made
    for one in plan.last:
        who = made + ";" if len(plan.last) == 1 else escaped(str(one.request))
        for line in _folded(f"{who} then {then(one.attempt.verdict)}", style):
            yield painted(line, "31" if one.error is not None else "", style)


def then(verdict: Verdict) -> str:
    """What follows, in words; a plan comes to none of it."""
    message = escaped(verdict.message)
    match verdict.outcome:
        case Outcome.DONE:
            return "done until something changes"
        case Outcome.AGAIN:
            return "again immediately"
        case Outcome.AFTER:
            return f"again in {format_duration(verdict.delay)}"
        case Outcome.WAITING:
            again = f", and runs again in {format_duration(verdict.delay)}" if verdict.delay else ""
            return f"waits for {message}{again}"
        case Outcome.RETRY:
            return f"FAILED, would be retried: {message}"
        case Outcome.TERMINAL:
            until = f" for {format_duration(verdict.delay)}" if verdict.delay else ""
            return f"FAILED, no retry{until}: {message}"
        case Outcome.DROPPED:
            return f"canceled: {message}"


def _marked(line: str, mark: str, style: Style) -> str:
    return painted(line[0], _COLORS.get(mark, ""), style) + line[1:]


def _folded(line: str, style: Style) -> list[str]:
    """One line, or as many as a terminal takes for it."""
    return [line] if style.width is None else wrap(line, style.width, subsequent_indent=_INDENT)


def _fit(line: str, style: Style) -> str:
    return cut(line, style.width, mark=style.mark)


# For machines.


def plan_json(plan: Plan, *, objects: bool = False) -> dict[str, Any]:
    """The plan for machines; the schema's name says which version of it this is. `objects`: also both states whole."""
    plan, secrecy = _quiet(plan), secrecy_of(plan)
    return {
        "schema": "kubectl-ctrl.plan/v1",
        "controller": plan.controller,
        "requests": [{"namespace": one.namespace, "name": one.name} for one in plan.requests],
        "toFixpoint": plan.to_fixpoint,
        "settled": plan.settled,
        "changes": len(plan.changed),
        "given": [_fate_json(fate, secrecy, objects=objects) for fate in plan.given],
        "objects": [_fate_json(fate, secrecy, objects=objects) for fate in plan.fates],
        "leaseNotTaken": None if plan.lease is None else str(plan.lease.key),
        "reconciles": [_pass_json(one) for one in plan.passes],
    }


def _fate_json(fate: Fate, secrecy: Secrecy, *, objects: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        **_place_json(fate.resource, fate.key),
        "effect": fate.effect.value,
        "checkedByServer": fate.checked,
        "note": fate.note,
        "changed": _changed_json(fate, secrecy),
    }
    if objects and fate.effect not in (Effect.UNCHANGED, Effect.FOREIGN):
        shown["live"], shown["planned"] = shown_sides(fate, secrecy)
    return shown


def _changed_json(fate: Fate, secrecy: Secrecy) -> list[dict[str, Any]]:
    if fate.effect is not Effect.CHANGED:
        return []
    return list(map(difference_json, differences_of(fate, secrecy)))


def _pass_json(one: Pass) -> dict[str, Any]:
    verdict = one.attempt.verdict
    return {
        "round": one.round,
        "namespace": one.request.namespace,
        "name": one.request.name,
        "writes": [_step_json(step) for step in one.steps],
        "eventsNotSent": [
            {"type": it.type, "reason": it.reason, "message": it.message, "object": str(it.about)}
            for it in one.attempt.intents
        ],
        "left": list(one.attempt.skipped),
        "outcome": verdict.outcome.value,
        "delaySeconds": verdict.delay,
        "message": verdict.message,
        "errorId": verdict.error_id,
        "where": verdict.where,
    }


def _step_json(step: Step) -> dict[str, Any]:
    return {
        "verb": step.verb,
        **_place_json(step.resource, step.key),
        "subresource": step.subresource,
        "changes": step.changes,
        "checkedByServer": step.checked,
    }


def _place_json(resource: Resource, key: Key) -> dict[str, Any]:
    return {
        "resource": resource.full_name,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "namespace": key.namespace,
        "name": key.name,
    }
