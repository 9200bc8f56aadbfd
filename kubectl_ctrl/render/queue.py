"""What waits, runs and backs off in the queues of controllers, as text and for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any

from kubectl_ctrl.model.attempt import Depth, State, Waiting
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.life import Life, Sighting
from kubectl_ctrl.render.attempt_json import stamp, time_json
from kubectl_ctrl.render.style import Style, moment_text, painted, timestamp
from kubectl_ctrl.text import counted, cut, escaped, table
from kubectl_ctrl.value import Value

SCHEMA = "kubectl-ctrl.queue/v1"

_COLORS = {
    "running": "32",
    "backoff": "31",
    "interrupted": "31",
    Life.SILENT: "33",
    Life.STOPPED: "33",
    Life.GONE: "31",
}
# So wide a terminal has room for a time and how far it is away.
_ROOMY = 100
_ENDLESS = 1_000_000
# A name keeps so much even on the narrowest terminal.
_LEAST = 16


class Look(Value, kw_only=True):
    """What is looked at, when, and how much of it is to be shown."""

    sightings: Sequence[Sighting]
    now: float
    wide: bool = False


def queue_lines(look: Look, style: Style) -> list[str]:
    """A block for each controller: how it stands, what its queue holds, and where most of it waits."""
    lines: list[str] = []
    for sighting in look.sightings:
        lines += ["", *_block(sighting, look, style)] if lines else _block(sighting, look, style)
    return lines


def _block(sighting: Sighting, look: Look, style: Style) -> list[str]:
    lines = [painted(line, _COLORS.get(sighting.life, ""), style) for line in _head(sighting, look.now, style)]
    state = sighting.state
    if sighting.gaps:
        lines.append(f"  {counted(sighting.gaps, 'row')} of its recording were lost, so this may be out of date")
    if state is None or sighting.life is Life.ENDED:
        return lines
    # Of one that is gone its last word is told: what was so then, and for how long it had been so.
    gone = sighting.life is Life.GONE
    now = state.at if gone else look.now
    lines += _standing(state, now, style)
    shared = None if style.full_times else sighting.namespace or None  # what the first line says already
    lines += _rows([_cells(entry, shared, now, gone, style) for entry in state.entries], look.wide, style)
    lines += _untold(state)
    return lines + _crowds(state, now, look.wide, style)


# How it stands.


def _head(sighting: Sighting, now: float, style: Style) -> list[str]:
    """Who it is and whether it lives; on two lines where one is too short."""
    place = f"namespace {sighting.namespace}" if sighting.namespace else "all namespaces"
    who = escaped(f"{sighting.controller}: run {sighting.run}, process {sighting.pid}, {place}")
    life = _life(sighting, now, style)
    line = f"{who}, {life}"
    return [line] if style.width is None or len(line) <= style.width else [f"{who},", f"  {life}"]


def _life(sighting: Sighting, now: float, style: Style) -> str:
    ago = format_duration(max(now - sighting.seen, 0.0))
    at = moment_text(sighting.seen, now, style)
    if not sighting.recorded:
        since = moment_text(sighting.began, now, style)
        return f"since {since}; it runs with --record off, so its queue is unknown"
    match sighting.life:
        case Life.RUNNING:
            return f"last seen {ago} ago"
        case Life.SILENT:
            return f"last seen {at}; process {sighting.pid} is running, but has reported nothing for {ago}"
        case Life.STOPPED:
            return f"last seen {at}; process {sighting.pid} is stopped; kill -CONT {sighting.pid} resumes it"
        case Life.GONE:
            return f"last seen {at}; process {sighting.pid} is gone"
        case Life.ENDED:
            return f"ended {at}"
    return f"last seen {at} on {escaped(sighting.host)}, whose processes are not visible from here"


def _standing(state: State, now: float, style: Style) -> list[str]:
    depth, facts = state.depth, []
    facts.append("leading" if state.leading else "not leading")
    facts.append("synced" if state.synced else "not synced")
    if state.workers:
        facts.append(f"{depth.running} of {state.workers} workers busy")
    waits = ", ".join(
        f"{count} {what}"
        for count, what in ((depth.ready, "ready"), (depth.backoff, "backing off"), (depth.timers, "on a timer"))
        if count
    )
    oldest = min((crowd.since for crowd in state.crowds), default=None)
    if oldest is not None:
        waits += f", the oldest for {format_duration(max(now - oldest, 0.0))}"
    lines = [f"  {', '.join(facts)}; {waits or 'the queue is empty'}"]
    if style.width is not None and len(lines[0]) > style.width:
        lines = [f"  {', '.join(facts)};", f"  {waits or 'the queue is empty'}"]
    return lines + wrap(escaped(state.message), style.width or _ENDLESS, initial_indent="  ", subsequent_indent="  ")


# What the queue holds.


def _rows(rows: list[list[str]], wide: bool, style: Style) -> list[str]:
    """The table; names give way where the terminal is too narrow for the rest."""
    if not rows:
        return []
    header = ["OBJECT", "STATE", "SINCE", "NEXT", "STEP", "ATTEMPT", "CAUSES"]
    shown = [row if wide else row[:-1] for row in (header, *rows)]
    if style.width is not None:
        beside = sum(3 + max(map(len, column)) for column in list(zip(*shown, strict=True))[1:])
        room = max(style.width - beside, _LEAST)
        shown = [[cut(row[0], room, mark=style.mark), *row[1:]] for row in shown]
    lines = table(shown[1:], header=shown[0]).split("\n")
    return [
        lines[0],
        *(painted(line, _COLORS.get(row[1], ""), style) for line, row in zip(lines[1:], rows, strict=True)),
    ]


def _cells(entry: Waiting, shared: str | None, now: float, gone: bool, style: Style) -> list[str]:
    return [
        escaped(entry.request.name if entry.request.namespace == shared else str(entry.request)),
        "interrupted" if gone and entry.state == "running" else entry.state,
        _for(entry.since, now, style),
        "" if entry.due is None else _next(entry.due, now, gone, style),
        str(entry.failures or ""),
        entry.attempt,
        str(entry.causes or ""),
    ]


def _next(due: float, now: float, gone: bool, style: Style) -> str:
    if style.full_times or gone:
        return moment_text(due, now, style)
    if due <= now:
        return "now"
    left = f"in {format_duration(due - now)}"
    return left if style.width is not None and style.width < _ROOMY else f"{moment_text(due, now, style)}, {left}"


def _untold(state: State) -> list[str]:
    """How many there are beyond those that were told."""
    told = [entry.state for entry in state.entries]
    ready = state.depth.ready - told.count("ready")
    # Any of those that are ready or run may have a timer beside it, which is counted too.
    later = state.depth.backoff + state.depth.timers - len(told)
    beyond = [f"{ready} more ready"] if ready > 0 else []
    beyond += [f"at least {later} more delayed"] if later > 0 else []
    return [f"and {' and '.join(beyond)}"] if beyond else []


def _crowds(state: State, now: float, wide: bool, style: Style) -> list[str]:
    """Where it waits; nothing where all of it waits in one namespace, which the rows show."""
    if state.namespaces < 2:
        return []
    rows = [
        [one.namespace or "-", str(one.ready), _for(one.since, now, style)]
        for one in (state.crowds if wide else state.crowds[:5])
    ]
    rest = state.namespaces - len(rows)
    more = [f"and {counted(rest, 'more namespace')}"] if rest else []
    return ["", *table(rows, header=["NAMESPACE", "READY", "OLDEST"]).split("\n"), *more]


def _for(since: float, now: float, style: Style) -> str:
    return timestamp(since, style) if style.full_times else format_duration(max(now - since, 0.0))


# For machines.


def queue_json(look: Look) -> dict[str, Any]:
    """The schema's name says which version of it this is."""
    return {"schema": SCHEMA, "time": stamp(look.now), "controllers": [_fields(one) for one in look.sightings]}


def _fields(sighting: Sighting) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "controller": sighting.controller,
        "run": sighting.run,
        "pid": sighting.pid,
        "host": sighting.host,
        "context": sighting.context,
        "namespace": sighting.namespace,
        "since": stamp(sighting.began),
        "life": sighting.life.value,
        "recorded": sighting.recorded,
        "lastSeen": stamp(sighting.seen),
        "lostRows": sighting.gaps,
    }
    state = sighting.state
    if state is None:
        return fields
    return fields | {
        "asOf": stamp(state.at),
        "leading": state.leading,
        "synced": state.synced,
        "message": state.message,
        "workers": {"total": state.workers, "busy": state.depth.running},
        "depth": _depth(state.depth),
        "namespaces": state.namespaces,
        "fullest": [
            {"namespace": one.namespace, "ready": one.ready, "since": stamp(one.since)} for one in state.crowds
        ],
        "entries": list(_entries(state.entries)),
    }


def _depth(depth: Depth) -> dict[str, int]:
    return {"ready": depth.ready, "running": depth.running, "backoff": depth.backoff, "timers": depth.timers}


def _entries(entries: Iterable[Waiting]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield {
            "namespace": entry.request.namespace,
            "name": entry.request.name,
            "state": str(entry.state),
            "since": stamp(entry.since),
            "due": time_json(entry.due),
            "failures": entry.failures,
            "causes": entry.causes,
            "attempt": entry.attempt,
        }
