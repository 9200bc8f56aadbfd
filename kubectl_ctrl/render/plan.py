"""A plan: a row for each field that would change, then the outcome.

live reads · server-side dry run of writes · 1 round
~ Deployment/web   spec.replicas   3 → 5
= Foo/web          unchanged until rollout 3/5
1 change; then waits for rollout 3/5
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any, NamedTuple, cast

from kubectl_ctrl.model.attempt import Attempt, Outcome, Verdict
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.diffs import ABSENT, BOOKKEEPING, Difference, diff
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.masking import LAST_APPLIED, is_secret
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.secrecy import Secrecy
from kubectl_ctrl.plan.steps import Plan, PlannedEffect, PlannedObject, PlannedReconcile, PlannedWrite
from kubectl_ctrl.render.attempt_json import difference_json
from kubectl_ctrl.render.attempts import value_text
from kubectl_ctrl.render.plan_diff import secrecy_of, shown_sides
from kubectl_ctrl.render.style import Style, painted
from kubectl_ctrl.text import counted, cut, escaped
from kubectl_ctrl.value import replace

_MARKS = {
    PlannedEffect.CREATED: "+",
    PlannedEffect.DELETED: "-",
    PlannedEffect.CHANGED: "~",
    PlannedEffect.UNCHANGED: "=",
    PlannedEffect.FOREIGN: "=",
}
_COLORS = {"+": "32", "-": "31", "~": "33", "=": "2"}
_GAP = "   "
_INDENT = "    "
_WIDEST = 48  # a longer name or path does not widen its column
_MOST_OPENED = 24
_CONDITION = re.compile(r"status\.conditions\[type=([^\]]+)\]")
# The API server sets these.
_SERVER_SET = frozenset({"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"})
_UNCHECKED = "not validated by the server"


class PlanRow(NamedTuple):
    """One line; `path` is empty if `change` is about the whole object."""

    mark: str
    who: str
    path: str
    change: str | Difference


def plan_lines(plan: Plan, style: Style) -> Iterator[str]:
    plan, secrecy = _quiet(plan), secrecy_of(plan)
    dot = " · " if style.unicode else ", "
    facts = ["live reads", "server-side dry run of writes", counted(plan.rounds, "round")]
    facts += ["assuming that no other controller acts"] if plan.to_fixpoint else []
    yield from _folded(dot.join(facts), style)
    if plan.given:
        yield "after the file is applied:"
        yield from _rows(plan, plan.given, style, secrecy)
        yield f"then {plan.controller}:"
    yield from _rows(plan, plan.fates, style, secrecy)
    for line in (*_writes(plan), *_unsent(plan)):
        yield from _folded(line, style)
    yield from _ending(plan, style)


def _rows(plan: Plan, fates: Iterable[PlannedObject], style: Style, secrecy: Secrecy) -> Iterator[str]:
    """Aligned columns; on a narrow terminal, the values of a row are on the lines below it."""
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
        yield _marked(cut(head.rstrip(), style.width, mark=style.mark), row.mark, style)
        if isinstance(row.change, str):
            yield from wrap(row.change, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
        else:
            yield _INDENT + _change(row.change, style, width - len(_INDENT))


def _rows_of(fate: PlannedObject, namespace: str, secrecy: Secrecy, style: Style) -> Iterator[PlanRow]:
    mark, who = _MARKS[fate.effect], object_name(fate.resource, fate.key, namespace)
    lines = _notes(fate)
    differences = differences_of(fate, secrecy) if fate.effect is PlannedEffect.CHANGED else ()
    if not lines and not differences:
        lines = ["only field ownership changes"]
    for line in lines:
        yield PlanRow(mark, who, "", line)
        mark, who = " ", ""
    conditions: set[str] = set()
    for one in differences:
        found = _CONDITION.match(one.path)
        path, change = one.path, cast("Difference | str", one)
        if found is not None:  # all differences of one condition are one row
            if found[1] in conditions:
                continue
            conditions.add(found[1])
            before, after = (find(side or {}, found[1]) for side in (fate.before, fate.after))
            path, change = found[1], _condition_change(before, after, style, secrecy)
        yield PlanRow(mark, who, escaped(path), change)
        mark, who = " ", ""


def _condition_change(before: Obj | None, after: Obj | None, style: Style, secrecy: Secrecy) -> str:
    """`True → False, RollingOut: It has 3 of 5 replicas.`; without its times."""
    old, new = ("-" if side is None else str(side.get("status")) for side in (before, after))
    parts = [] if old == new else [f"{old} {style.arrow} {new}"]
    if after is not None:
        reason, message = (str(after.get(name) or "") for name in ("reason", "message"))
        same_words = before is not None and (before.get("reason"), before.get("message")) == (reason, message)
        parts += [] if same_words else [": ".join(filter(None, (reason, message)))]
    return escaped(secrecy.text(", ".join(filter(None, parts)) or "timestamps only"))


def _notes(fate: PlannedObject) -> list[str]:
    """The lines about an object beside its differences."""
    note = escaped(fate.note)
    aside = [] if fate.checked else [_UNCHECKED]
    match fate.effect:
        case PlannedEffect.CREATED:
            text = f"created ({counted(_count(fate.after or {}), 'field')})"
        case PlannedEffect.DELETED:
            text = "deleted"
        case PlannedEffect.FOREIGN:
            text = note
        case PlannedEffect.UNCHANGED:
            text = f"unchanged {note}".rstrip() if note.startswith("until ") or not note else f"unchanged: {note}"
        case PlannedEffect.CHANGED:
            return [", ".join([*filter(None, [note]), *aside])] if note or aside else []
    return [", ".join([text, *aside])]


def differences_of(fate: PlannedObject, secrecy: Secrecy) -> tuple[Difference, ...]:
    """The differences without bookkeeping fields, and with secrets masked."""
    found = diff(fate.before, fate.after, ignore=BOOKKEEPING, keys_only=is_secret(fate.resource))
    return tuple(secrecy.difference(part) for one in found if LAST_APPLIED not in one.path for part in _opened(one))


def _quiet(plan: Plan) -> Plan:
    """The plan with secrets masked in its messages."""
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
    """The fields of an object that was added or removed, unless there are very many."""
    side = one.new if one.old is ABSENT else one.old
    if ABSENT not in (one.old, one.new) or not isinstance(side, dict) or not side:
        return [one]
    # diff() names the items of a list by their type only if both sides have the list: the other side gets empty ones.
    none: Obj = {
        name: []
        for name, part in side.items()
        if isinstance(part, list) and all(isinstance(item, dict) and "type" in item for item in part)
    }
    opened: list[Difference] = []
    for part in diff(none, side) if one.old is ABSENT else diff(side, none):
        path = f"{one.path}{'' if part.path[0] == '[' else '.'}{part.path}"
        opened += _opened(Difference(path=path, old=part.old, new=part.new))
    return opened if len(opened) <= _MOST_OPENED else [one]


def object_name(resource: Resource, key: Key, namespace: str) -> str:
    """`Deployment/web`; of another namespace `Deployment/web in kube-system`."""
    name = escaped(f"{resource.kind}/{key.name}")
    return f"{name} in {escaped(key.namespace)}" if key.namespace not in ("", namespace) else name


def _change(change: str | Difference, style: Style, room: int | None) -> str:
    if isinstance(change, str):
        return change
    arrow = f" {style.arrow} "
    old, new = value_text(change.old), value_text(change.new)
    if room is not None and len(old) + len(arrow) + len(new) > room:
        half = (room - len(arrow)) // 2
        old = cut(old, max(half, room - len(arrow) - len(new)), mark=style.mark)
        new = cut(new, room - len(arrow) - len(old), mark=style.mark)
    return f"{old}{arrow}{new}"


def _count(obj: Obj) -> int:
    """The number of values that a new object sets."""
    meta = {key: value for key, value in obj.get("metadata", {}).items() if key not in _SERVER_SET}
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


def step_text(step: PlannedWrite, namespace: str) -> str:
    """`apply Foo/web/status`."""
    tail = f"/{step.subresource}" if step.subresource else ""
    name, inside, place = object_name(step.resource, step.key, namespace).partition(" in ")
    return f"{step.verb} {name}{tail}{inside}{place}"


def _unsent(plan: Plan) -> Iterator[str]:
    intents = dict.fromkeys(intent for one in plan.passes for intent in one.attempt.intents)
    for intent in intents:
        about, message = escaped(intent.about.name), escaped(intent.message)
        yield f"not sent: event {intent.type} {escaped(intent.reason)} about {about}: {message}"
    if plan.lease is not None:
        yield f"not acquired: Lease {plan.lease.key}, which a run would hold"


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
    """The outcome of a reconcile that only planned."""
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
    return [line] if style.width is None else wrap(line, style.width, subsequent_indent=_INDENT)


# For machines.


def plan_json(plan: Plan, *, objects: bool = False) -> dict[str, Any]:
    """`objects`: also both states of each object."""
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


def _fate_json(fate: PlannedObject, secrecy: Secrecy, *, objects: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        **_place_json(fate.resource, fate.key),
        "effect": fate.effect.value,
        "checkedByServer": fate.checked,
        "note": fate.note,
        "changed": list(map(difference_json, differences_of(fate, secrecy)))
        if fate.effect is PlannedEffect.CHANGED
        else [],
    }
    if objects and fate.effect not in (PlannedEffect.UNCHANGED, PlannedEffect.FOREIGN):
        shown["live"], shown["planned"] = shown_sides(fate, secrecy)
    return shown


def _pass_json(one: PlannedReconcile) -> dict[str, Any]:
    verdict = one.attempt.verdict
    return {
        "round": one.round,
        "namespace": one.request.namespace,
        "name": one.request.name,
        "writes": [
            {
                "verb": step.verb,
                **_place_json(step.resource, step.key),
                "subresource": step.subresource,
                "changes": step.changes,
                "checkedByServer": step.checked,
            }
            for step in one.steps
        ],
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


def _place_json(resource: Resource, key: Key) -> dict[str, Any]:
    return {
        "resource": resource.full_name,
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "namespace": key.namespace,
        "name": key.name,
    }
