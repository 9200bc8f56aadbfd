"""The activity on an object without recorded reconciles, inferred from its managedFields, conditions and events.

None of these is a reconcile: the entry of a manager has only the time of its last write, a condition that of its last
transition, and the server deletes events after an hour and counts repeated ones together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.findings.account import Account, Fact, Finding, Risk, Trigger, Try
from kubectl_ctrl.model.managed_fields import entries, fields_set
from kubectl_ctrl.model.masking import masked_text
from kubectl_ctrl.model.objects import Key, Obj, generation_of, is_deleting, uid_of
from kubectl_ctrl.model.record import FactSource
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.value import Value

_SHOWN_FIELDS = 3


class Evidence(StrEnum):
    """The source of a sign."""

    FIELDS = "managedFields"
    EVENT = "event"
    CONDITION = "condition"


class Sign(Value, kw_only=True):
    """One write, condition or event of an object."""

    at: float  # wall time, of the last if there are several
    evidence: Evidence
    by: tuple[str, ...] = ()  # one manager, several candidates, or none if unknown
    wrote: str = ""  # FIELDS: the fields owned by this manager
    verb: str = ""  # FIELDS: update or apply
    subresource: str = ""
    came: str = ""  # EVENT: its reason; CONDITION: `Type=status`
    message: str = ""
    count: int = 1
    first: float | None = None  # time of the first if there are several
    warning: bool = False


class InferredState(Value, kw_only=True):
    """The current state of an object without a recording, and its signs."""

    resource: Resource
    key: Key
    uid: str
    context: str
    at: float  # wall time of the read
    generation: int = 0
    observed: int | None = None
    standing: tuple[tuple[str, str, float | None], ...] = ()  # (type, status, since) of its conditions
    deleting: bool = False
    signs: tuple[Sign, ...] = ()  # oldest first
    lacking: tuple[str, ...] = ()  # failed reads, as sentences


def infer(
    resource: Resource, key: Key, obj: Obj, events: Iterable[Obj], *, context: str, at: float, lacking: Sequence[str]
) -> InferredState:
    status = obj.get("status") or {}
    conditions = [one for one in status.get("conditions") or () if one.get("type")]
    found = [*_written(obj), *_turned(obj, conditions), *_said(events)]
    observed = status.get("observedGeneration")
    return InferredState(
        resource=resource,
        key=key,
        uid=uid_of(obj),
        context=context,
        at=at,
        generation=generation_of(obj),
        observed=int(observed) if isinstance(observed, int) else None,
        standing=tuple(
            (str(one["type"]), str(one.get("status")), _time(one.get("lastTransitionTime"))) for one in conditions
        ),
        deleting=is_deleting(obj),
        signs=tuple(sorted(found, key=lambda sign: (sign.at, _ORDER[sign.evidence], bool(sign.subresource)))),
        lacking=tuple(lacking),
    )


# Times are whole seconds. Within one, a write comes before conditions and events, and the spec before the status.
_ORDER = {Evidence.FIELDS: 0, Evidence.CONDITION: 1, Evidence.EVENT: 2}


def _written(obj: Obj) -> Iterator[Sign]:
    for entry in entries(obj):
        at = _time(entry.get("time"))
        if at is not None:
            yield Sign(
                at=at,
                evidence=Evidence.FIELDS,
                by=tuple(filter(None, [str(entry.get("manager") or "")])),
                wrote=_fields_text(entry.get("fieldsV1") or {}),
                verb=str(entry.get("operation") or "Update").lower(),
                subresource=str(entry.get("subresource") or ""),
            )


def _fields_text(fields: Obj) -> str:
    """`spec.replicas, spec.template, 3 more`: the first paths, two levels deep, and the number of other fields."""
    places = Counter(".".join(part[2:] for part in path[:2] if part.startswith("f:")) for path in fields_set(fields))
    places.pop("", None)
    shown = sorted(places, key=lambda place: (not place.startswith("spec"), -places[place], place))[:_SHOWN_FIELDS]
    rest = sum(count for place, count in places.items() if place not in shown)
    return ", ".join([*sorted(shown), *([f"{rest} more"] if rest else [])])


def _turned(obj: Obj, conditions: Iterable[Obj]) -> Iterator[Sign]:
    for one in conditions:
        at = _time(one.get("lastTransitionTime"))
        if at is not None:
            yield Sign(
                at=at,
                evidence=Evidence.CONDITION,
                by=_managers(obj, str(one["type"])),
                came=f"{one['type']}={one.get('status')}",
                message=masked_text(" ".join(filter(None, (str(one.get(key) or "") for key in ("reason", "message"))))),
            )


def _managers(obj: Obj, condition: str) -> tuple[str, ...]:
    wanted = f'"type":"{condition}"'
    found = {
        str(entry.get("manager") or "")
        for entry in entries(obj)
        for path in fields_set(entry.get("fieldsV1") or {})
        if len(path) > 2 and path[:2] == ("f:status", "f:conditions") and wanted in path[2]
    }
    return tuple(sorted(found - {""}))


def _said(events: Iterable[Obj]) -> Iterator[Sign]:
    for event in events:
        series = event.get("series") or {}
        # events.k8s.io writes a series and eventTime, the core API lastTimestamp; either may be empty.
        times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
        at = next(filter(None, map(_time, (*times, event["metadata"].get("creationTimestamp")))), None)
        if at is None:
            continue
        source = event.get("reportingComponent") or (event.get("source") or {}).get("component")
        count = int(series.get("count") or event.get("count") or 1)
        yield Sign(
            at=at,
            evidence=Evidence.EVENT,
            by=tuple(filter(None, [str(source or "")])),
            came=str(event.get("reason") or ""),
            message=masked_text(str(event.get("message") or "").strip()),
            count=count,
            first=_time(event.get("firstTimestamp")) or _time(event.get("eventTime")) if count > 1 else None,
            warning=event.get("type") == "Warning",
        )


def _time(text: object) -> float | None:
    try:
        return parse_rfc3339(str(text)) if text else None
    except ValueError:
        return None


def unrecorded(found: InferredState, word: str, flags: tuple[str, ...]) -> Account:
    """NEVER RAN, with the last writers, conditions and events of the object."""
    target = f"{word}/{found.key.name}"
    return Account(
        finding=Finding.NEVER_RAN,
        resource=found.resource,
        key=found.key,
        uid=found.uid,
        controller="",
        run="",
        context=found.context,
        now=found.at,
        since=None,
        attempts=0,
        why=tuple(_facts(found)),
        next=(Trigger(text="unknown: no controller for it is recorded"),),
        tries=(
            Try(risk=Risk.READ, command=str(ctrl("trace", target, *flags))),
            Try(risk=Risk.READ, command=str(command("kubectl", "describe", target, *flags))),
            Try(risk=Risk.READ, command=str(ctrl("list"))),
        ),
        evidence=tuple(map(_evidence, found.signs[::-1])),
        notes=found.lacking,
    )


def _facts(found: InferredState) -> Iterator[Fact]:
    yield Fact(text=f"no run of a controller for {found.resource} is recorded", source=FactSource.INFERRED, at=found.at)
    for sign in found.signs[::-1]:
        if sign.by and sign.evidence is Evidence.FIELDS and "status" in (sign.subresource, sign.wrote[:6]):
            text = f"{' or '.join(sign.by)} probably manages it: it was the last to write the status"
            yield Fact(text=text, source=FactSource.INFERRED, at=sign.at)
            break
    if found.deleting:
        yield Fact(text="its deletion was requested, and it still exists", source=FactSource.LIVE, at=found.at)
    if found.observed is not None and found.observed != found.generation:
        text = f"status.observedGeneration is {found.observed} of {found.generation}: its controller lags behind"
        yield Fact(text=text, source=FactSource.INFERRED, at=found.at)
    for name, status, since in found.standing:
        yield Fact(text=f"it reports {name}={status}", source=FactSource.LIVE, at=since)


def _evidence(sign: Sign) -> Fact:
    by = " or ".join(sign.by) or "<unknown>"
    what = f"{sign.verb} of {sign.wrote}" if sign.wrote else " ".join(filter(None, (sign.came, sign.message)))
    times = f" x{sign.count}" if sign.count > 1 else ""
    return Fact(text=f"{sign.evidence}: {what}{times} by {by}", source=FactSource.INFERRED, at=sign.at)
