"""The queues of controllers: ready, running and delayed objects, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from kubectl_ctrl.model.attempt import ControllerState, WaitingRequest
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
# From this width on, NEXT has both the time and the delay.
_ROOMY = 100
_ENDLESS = 1_000_000
# A name has at least so many columns.
_LEAST = 16


class QueueSnapshot(Value, kw_only=True):
    """The queues of all controllers at one time."""

    sightings: Sequence[Sighting]
    now: float
    wide: bool = False


def queue_lines(snapshot: QueueSnapshot, style: Style) -> list[str]:
    """A block for each controller: its state, its queue, and its fullest namespaces."""
    lines: list[str] = []
    for sighting in snapshot.sightings:
        lines += ["", *_block(sighting, snapshot, style)] if lines else _block(sighting, snapshot, style)
    return lines


def _block(sighting: Sighting, snapshot: QueueSnapshot, style: Style) -> list[str]:
    lines = [painted(line, _COLORS.get(sighting.life, ""), style) for line in _head(sighting, snapshot.now, style)]
    state = sighting.state
    if sighting.gaps:
        lines.append(f"  its recording lost {counted(sighting.gaps, 'row')}, so this may be out of date")
    if state is None or sighting.life is Life.ENDED:
        return lines
    # Of a run that is gone, ages are as of its last report.
    gone = sighting.life is Life.GONE
    now = state.at if gone else snapshot.now
    lines += _state(state, now, style)
    shared = None if style.full_times else sighting.namespace or None  # the first line has it
    lines += _rows([_cells(entry, shared, now, gone, style) for entry in state.entries], snapshot.wide, style)
    lines += _beyond(state)
    return lines + _crowds(state, now, snapshot.wide, style)


# The state of a run.


def _head(sighting: Sighting, now: float, style: Style) -> list[str]:
    """The run and its liveness, on two lines if one is too short."""
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


def _state(state: ControllerState, now: float, style: Style) -> list[str]:
    depth = state.depth
    facts = ["leading" if state.leading else "not leading", "synced" if state.synced else "not synced"]
    facts += [f"{depth.running} of {state.workers} workers busy"] if state.workers else []
    waits = ", ".join(
        f"{count} {what}"
        for count, what in ((depth.ready, "ready"), (depth.backoff, "backing off"), (depth.timers, "on a timer"))
        if count
    )
    oldest = min((crowd.since for crowd in state.crowds), default=None)
    if oldest is not None:
        waits += f", the oldest for {format_duration(max(now - oldest, 0.0))}"
    waits = waits or "the queue is empty"
    lines = [f"  {', '.join(facts)}; {waits}"]
    if style.width is not None and len(lines[0]) > style.width:
        lines = [f"  {', '.join(facts)};", f"  {waits}"]
    return lines + wrap(escaped(state.message), style.width or _ENDLESS, initial_indent="  ", subsequent_indent="  ")


# The objects in the queue.


def _rows(rows: list[list[str]], wide: bool, style: Style) -> list[str]:
    """The table; names are cut if the terminal is too narrow."""
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


def _cells(entry: WaitingRequest, shared: str | None, now: float, gone: bool, style: Style) -> list[str]:
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


def _beyond(state: ControllerState) -> list[str]:
    """The number of objects without a row."""
    ready = state.depth.ready - sum(entry.state == "ready" for entry in state.entries)
    # At least: a ready or running object may also have a timer, which the depth counts.
    later = state.depth.backoff + state.depth.timers - len(state.entries)
    beyond = [f"{ready} more ready"] if ready > 0 else []
    beyond += [f"at least {later} more delayed"] if later > 0 else []
    return [f"and {' and '.join(beyond)}"] if beyond else []


def _crowds(state: ControllerState, now: float, wide: bool, style: Style) -> list[str]:
    """The fullest namespaces, if there are several."""
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


def queue_json(snapshot: QueueSnapshot) -> dict[str, Any]:
    return {"schema": SCHEMA, "time": stamp(snapshot.now), "controllers": list(map(_fields, snapshot.sightings))}


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
    depth = state.depth
    return fields | {
        "asOf": stamp(state.at),
        "leading": state.leading,
        "synced": state.synced,
        "message": state.message,
        "workers": {"total": state.workers, "busy": depth.running},
        "depth": {
            "ready": depth.ready,
            "running": depth.running,
            "backoff": depth.backoff,
            "timers": depth.timers,
        },
        "namespaces": state.namespaces,
        "fullest": [
            {"namespace": one.namespace, "ready": one.ready, "since": stamp(one.since)} for one in state.crowds
        ],
        "entries": [
            {
                "namespace": entry.request.namespace,
                "name": entry.request.name,
                "state": str(entry.state),
                "since": stamp(entry.since),
                "due": time_json(entry.due),
                "failures": entry.failures,
                "causes": entry.causes,
                "attempt": entry.attempt,
            }
            for entry in state.entries
        ],
    }
