"""What an object itself tells of those who work on it, where nobody recorded them: events, managedFields, conditions.

All of it is what stands there, and none of it a reconcile: a manager's entry has the time of its last write alone,
a condition that of its last turn, and events are kept for an hour or so and are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.findings.account import Account, Coming, Fact, Finding, Risk, Try
from kubectl_ctrl.model.managed_fields import entries, fields_set
from kubectl_ctrl.model.masking import masked_text
from kubectl_ctrl.model.objects import Key, Obj, generation_of, is_deleting, uid_of
from kubectl_ctrl.model.record import Source
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.model.suggestions import command, ctrl
from kubectl_ctrl.value import Value

_SHOWN_FIELDS = 3


class Evidence(StrEnum):
    """Where a sign was read."""

    FIELDS = "managedFields"
    EVENT = "event"
    CONDITION = "condition"


class Sign(Value, kw_only=True):
    """One thing that was written or said about an object, and when."""

    at: float  # wall time; of several the last
    evidence: Evidence
    by: tuple[str, ...] = ()  # one is proven, several are candidates, none is unknown
    wrote: str = ""  # FIELDS: the fields that this manager owns since then
    verb: str = ""  # FIELDS: update or apply
    subresource: str = ""
    came: str = ""  # EVENT, CONDITION: what was said
    message: str = ""
    count: int = 1
    first: float | None = None  # of several
    warning: bool = False


class Inferred(Value, kw_only=True):
    """An object that nothing is recorded of, as it is now, with all the signs on it."""

    resource: Resource
    key: Key
    uid: str
    context: str
    at: float  # wall time of the look
    generation: int = 0
    observed: int | None = None
    standing: tuple[tuple[str, str, float | None], ...] = ()  # (type, status, since) of its conditions
    deleting: bool = False
    signs: tuple[Sign, ...] = ()  # oldest first
    lacking: tuple[str, ...] = ()  # what could not be looked at, as sentences


def infer(
    resource: Resource, key: Key, obj: Obj, events: Iterable[Obj], *, context: str, at: float, lacking: Sequence[str]
) -> Inferred:
    """Everything that the object and the events about it tell."""
    status = obj.get("status") or {}
    conditions = [one for one in status.get("conditions") or () if one.get("type")]
    found = [*_written(obj), *_turned(obj, conditions), *_said(events)]
    observed = status.get("observedGeneration")
    return Inferred(
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


# Times are whole seconds. Within one, who wrote comes before what is said of it, and a spec before its status.
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
    """`spec.replicas, spec.template`: the first places, no deeper than two, and how many fields lie in the rest."""
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
                by=_owners(obj, str(one["type"])),
                came=f"{one['type']}={one.get('status')}",
                message=masked_text(" ".join(filter(None, (str(one.get(key) or "") for key in ("reason", "message"))))),
            )


def _owners(obj: Obj, condition: str) -> tuple[str, ...]:
    """The managers that own the condition."""
    wanted = f'"type":"{condition}"'
    return tuple(
        sorted(
            {
                str(entry.get("manager") or "")
                for entry in entries(obj)
                for path in fields_set(entry.get("fieldsV1") or {})
                if len(path) > 2 and path[:2] == ("f:status", "f:conditions") and wanted in path[2]
            }
            - {""}
        )
    )


def _said(events: Iterable[Obj]) -> Iterator[Sign]:
    for event in events:
        series = event.get("series") or {}
        last = (
            _time(series.get("lastObservedTime")) or _time(event.get("lastTimestamp")) or _time(event.get("eventTime"))
        )
        at = last or _time(event["metadata"].get("creationTimestamp"))
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


def unrecorded(found: Inferred, word: str, flags: tuple[str, ...]) -> Account:
    """NEVER RAN, as far as anybody here knows; and who wrote it last, and what was said about it."""
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
        why=tuple(_why(found)),
        next=(Coming(text="unknown: no controller for it is recorded"),),
        tries=(
            Try(risk=Risk.READ, command=str(ctrl("trace", target, *flags))),
            Try(risk=Risk.READ, command=str(command("kubectl", "describe", target, *flags))),
            Try(risk=Risk.READ, command=str(ctrl("list"))),
        ),
        evidence=tuple(map(_evidence, found.signs[::-1])),
        notes=found.lacking,
    )


def _why(found: Inferred) -> Iterator[Fact]:
    yield Fact(text=f"no run of a controller for {found.resource} is recorded", source=Source.INFERRED, at=found.at)
    keeper = next((sign for sign in found.signs[::-1] if _keeps(sign)), None)
    if keeper is not None:
        by = " or ".join(keeper.by)
        yield Fact(
            text=f"{by} probably manages it: it was the last to write the status", source=Source.INFERRED, at=keeper.at
        )
    if found.deleting:
        yield Fact(text="its deletion was requested, and it still exists", source=Source.LIVE, at=found.at)
    if found.observed is not None and found.observed != found.generation:
        text = f"status.observedGeneration is {found.observed} of {found.generation}: its controller lags behind"
        yield Fact(text=text, source=Source.INFERRED, at=found.at)
    for name, status, since in found.standing:
        yield Fact(text=f"it reports {name}={status}", source=Source.LIVE, at=since)


def _keeps(sign: Sign) -> bool:
    return bool(sign.by) and sign.evidence is Evidence.FIELDS and "status" in (sign.subresource, sign.wrote[:6])


def _evidence(sign: Sign) -> Fact:
    by = " or ".join(sign.by) or "<unknown>"
    what = f"{sign.verb} of {sign.wrote}" if sign.wrote else " ".join(filter(None, (sign.came, sign.message)))
    times = f" x{sign.count}" if sign.count > 1 else ""
    return Fact(text=f"{sign.evidence}: {what}{times} by {by}", source=Source.INFERRED, at=sign.at)
