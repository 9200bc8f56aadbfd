"""A trace as one HTML page: a timeline with zoom, filter and details, and the same rows as a table. It uses no network.

page/ has its HTML, CSS and scripts. The texts about attempts are made here, by the functions that the terminal's
layouts use; the table has them as text, and the details are beside it as JSON.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import Branch, Changes, RecordedAttempt, RecordedCall, RecordedCause, RecordedRun, Story
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempt_json import changes_json, nonempty, stamp
from kubectl_ctrl.render.attempts import call_text, cause_text, outcome_text, what, why
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.trace.links import links
from kubectl_ctrl.render.trace.tracks import grouped, laid, micros, span_of
from kubectl_ctrl.text import counted, escaped

_STYLE = Style(unicode=True)
# In the order in which they are joined; each uses only earlier ones.
_SCRIPTS = ("time.js", "story.js", "draw.js", "details.js", "main.js")
# Rows are in groups, because a browser skips groups that are not visible.
_GROUP = 40

Fields = dict[str, Any]


def document(story: Story) -> Iterator[str]:
    script = '"use strict";\n' + "".join(map(_file, _SCRIPTS))
    parts = {"title": _title(story), "style": _file("page.css"), "script": script}
    digests = {name: hashlib.sha256(parts[name].encode()).digest() for name in ("style", "script")}
    hashes = {name: f"'sha256-{base64.b64encode(digest).decode()}'" for name, digest in digests.items()}
    # Nothing but this style and this script may run or load, even if text from the cluster were to escape its element.
    parts["policy"] = (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "base-uri 'none'; form-action 'none'"
    )
    streams = {"facts": _facts, "rows": _rows, "data": _data}
    for piece in _file("page.html").split("<!--@"):
        name, mark, rest = piece.partition("-->")
        if not mark or name not in parts | streams:
            yield piece
            continue
        if name in parts:
            yield parts[name] if name in ("style", "script") else _safe(parts[name])
        else:
            yield from streams[name](story)
        yield rest


def _file(name: str) -> str:
    return (files("kubectl_ctrl.render") / "page" / name).read_text(encoding="utf-8")


def _safe(text: str) -> str:
    """Text without markup and without characters that hide or reorder the text beside it."""
    return html.escape(escaped(text))


# The facts above the timeline.


def _title(story: Story) -> str:
    kind = story.resource.kind if story.resource else "objects"
    return f"{kind} {story.key}" if story.key else f"all {kind}"


def _facts(story: Story) -> Iterator[str]:
    for name, value in _named_facts(story):
        yield f"<div><dt>{name}</dt><dd>{_safe(value)}</dd></div>\n"
    if story.tree:
        yield f'<div class="tree"><dt>owns</dt><dd>{_tree(story.tree.branches)}</dd></div>\n'


def _named_facts(story: Story) -> Iterator[tuple[str, str]]:
    if story.cluster:
        yield "cluster", ", ".join(story.cluster.contexts) or story.cluster.key
    wrote = sum(any(not made.call.error for made in attempt.writes) for attempt in story.attempts)
    failed = sum(attempt.failed for attempt in story.attempts)
    yield "attempts", f"{len(story.attempts)}, of which {wrote} wrote and {failed} failed"
    for run in story.runs[:3]:
        yield "run", _run(run)
    if len(story.runs) > 3:
        yield "more runs", str(len(story.runs) - 3)
    for lived in story.older[:1]:
        others = f", and {len(story.older) - 1} earlier" if len(story.older) > 1 else ""
        yield "an earlier object with this name", f"{lived.uid}, {lived.attempts} attempts{others}"
    for moment in story.moments:
        for entry in moment.state.entries:
            if entry.request == story.key:
                due = f", due {_clock(entry.due)}" if entry.due else ""
                yield "in the queue", f"{entry.state}{due}, as of {_clock(moment.state.at)} UTC"
    yield story.source.value, f"as of {datetime.fromtimestamp(story.at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _run(run: RecordedRun) -> str:
    names = ", ".join(played.name for played in run.controllers)
    state = f"ended {_clock(run.ended)}" if run.ended else f"last seen {_clock(run.seen or run.began)}"
    gaps = f"; {counted(run.gaps, 'row')} lost" if run.gaps else ""
    return f"{run.id}: {names} on {run.host} (pid {run.pid}), began {_clock(run.began)}, {state} UTC{gaps}"


def _tree(branches: tuple[Branch, ...]) -> str:
    items = ""
    for branch in branches:
        ready = f"Ready={branch.ready}" if branch.ready else ""
        facts = (f"{branch.resource.kind}/{branch.key.name}", ready, branch.reason, f"({branch.source.value})")
        items += f"<li>{_safe(' '.join(filter(None, facts)))}{_tree(branch.branches)}</li>"
    return f"<ul>{items}</ul>" if branches else ""


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}"


# The table.


def _rows(story: Story) -> Iterator[str]:
    primaries, days = _primaries(story), _days(story)
    for place, attempt in enumerate(story.attempts):
        if place % _GROUP == 0:
            yield '</tbody>\n<tbody role="rowgroup">\n' if place else '<tbody role="rowgroup">\n'
        yield _row(place, attempt, primaries.get(attempt.controller), days=days)
    if story.attempts:
        yield "</tbody>\n"


def _row(place: int, attempt: RecordedAttempt, primary: Resource | None, *, days: bool) -> str:
    start = stamp(attempt.started)
    outcome = outcome_text(attempt)
    if attempt.verdict:
        outcome = outcome.partition(" ")[2]  # the duration has a column
    cells = (
        ("at", f'<time datetime="{start}">{start[5:23].replace("T", " ") if days else start[11:23]}</time>'),
        ("who", f"{_safe(str(attempt.request))} <small>{_safe(attempt.controller)}</small>"),
        ("wait", format_duration(attempt.waited)),
        ("took", "" if attempt.took is None else format_duration(attempt.took)),
        ("why", _safe(why(attempt.causes, attempt.causes_total, _STYLE, primary))),
        ("did", _safe(what(attempt))),
        (f"out {attempt.outcome}", _safe(outcome)),
    )
    rest = "".join(f'<td role="cell" class="{name}">{text}</td>' for name, text in cells)
    number = f'<th role="rowheader" scope="row"><a href="#{_safe(attempt.id)}">{_safe(attempt.id)}</a></th>'
    return f'<tr role="row" data-i="{place}">{number}{rest}</tr>\n'


def _days(story: Story) -> bool:
    """Whether the attempts span several days, so that their times need a date."""
    return len({stamp(one.started)[:10] for one in (*story.attempts[:1], *story.attempts[-1:])}) > 1


def _primaries(story: Story) -> Mapping[str, Resource]:
    return {played.name: played.primaries[0] for run in story.runs for played in run.controllers if played.primaries}


# The details.


def _data(story: Story) -> Iterator[str]:
    base = min((micros(one.started - one.waited) for one in story.attempts), default=micros(story.at))
    lanes, names = _lanes(story)
    head = {
        "base": base,
        "lanes": names,
        "single": len({one.request for one in story.attempts}) <= 1,
        "days": _days(story),
        "title": escaped(_title(story)),
    }
    yield _json(head)[:-1] + ',"attempts":[\n'
    primaries = _primaries(story)
    for place, attempt in enumerate(story.attempts):
        lane, span = lanes[attempt.id]
        shown = _attempt(attempt, base, primaries.get(attempt.controller)) | {"lane": lane}
        shown |= {"start": span[0] - base, "end": span[1] - base}
        yield (",\n" if place else "") + _json(shown)
    places = {attempt.id: place for place, attempt in enumerate(story.attempts)}
    arrows = [
        [link.kind, places[link.source], places[link.target], link.cause, link.call] for link in links(story.attempts)
    ]
    yield '\n],"links":' + _json(arrows) + "}"


def _json(value: Any) -> str:
    """JSON that is inert within a script element: ASCII, without the characters of tags and entities."""
    text = json.dumps(_shown(value), separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _shown(value: Any) -> Any:
    """The value with every string escaped."""
    match value:
        case dict():
            return {escaped(str(key)): _shown(item) for key, item in value.items()}
        case list():
            return [_shown(item) for item in value]
        case str():
            return escaped(value)
    return value


def _lanes(story: Story) -> tuple[dict[str, tuple[int, tuple[int, int]]], list[str]]:
    """The lane and the span of each attempt, and the names of the lanes."""
    found: dict[str, tuple[int, tuple[int, int]]] = {}
    names: list[str] = []
    groups = grouped(story.attempts)
    several = len({run for run, _ in groups}) > 1
    for (run, controller), attempts in groups.items():
        placed = laid([span_of(attempt) for attempt in attempts])
        found |= {one.id: (len(names) + lane, span) for one, (lane, span) in zip(attempts, placed, strict=True)}
        count = max(lane for lane, _ in placed) + 1
        head = f"{run} {controller}" if several else controller
        names += [f"{head} {lane + 1}" if count > 1 else head for lane in range(count)]
    return found, names


def _attempt(attempt: RecordedAttempt, base: int, primary: Resource | None) -> Fields:
    verdict = attempt.verdict
    shown = {
        "id": attempt.id,
        "object": str(attempt.request),
        "controller": attempt.controller,
        "outcome": attempt.outcome,
        "ready": min(micros(attempt.started - attempt.waited), micros(attempt.started)) - base,
        "causes": [_cause(cause, base, primary) for cause in attempt.causes],
    }
    reads = [f"{read.verb} {read.resource.kind} {read.query}: {len(read.found)} found" for read in attempt.reads]
    return shown | nonempty(
        {
            "more": attempt.causes_total - len(attempt.causes),
            "try": attempt.try_no if attempt.try_no > 1 else 0,
            "calls": [_call(made, base) for made in attempt.calls],
            "background": [_call(made, base) for made in attempt.background],
            "reads": reads,
            "skipped": list(attempt.skipped),
            "events": [f"{one.type} {one.reason}: {one.message}" for one in attempt.intents],
            "echoes": attempt.echoes + len(attempt.heard),
            "errorId": verdict.error_id if verdict else "",
            "where": verdict.where if verdict else "",
            "traceback": attempt.traceback.splitlines(),
        }
    )


def _cause(cause: RecordedCause, base: int, primary: Resource | None) -> Fields:
    shown = {"text": cause_text(cause, _STYLE, primary), "kind": cause.kind.value, "at": micros(cause.at) - base}
    return shown | nonempty(
        {
            "object": f"{cause.resource.kind} {cause.key}" if cause.resource and cause.key else "",
            "version": cause.new_version,
            "attempt": cause.attempt,
            **_changes(cause.changes),
        }
    )


def _call(made: RecordedCall, base: int) -> Fields:
    call = made.call
    begin, end = micros(call.started) - base, micros(call.started + call.took) - base
    shown = {"id": call.id, "text": call_text(call), "start": begin, "end": end, "write": call.write}
    error = call.error or call.reason if call.code is None or call.code >= 400 else ""
    return shown | nonempty(
        {
            "failed": bool(call.error),
            "error": error,
            "version": call.new_version,
            "sends": call.sends if call.sends > 1 else 0,
            **_changes(made.changes),
        }
    )


def _changes(changes: Changes) -> Fields:
    return {"changes": changes_json(changes), "unshown": changes.total - len(changes.shown)}
