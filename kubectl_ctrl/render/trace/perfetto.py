"""A story as Chrome trace events, which ui.perfetto.dev and chrome://tracing open.

A run is a process, a worker a thread. A recording has no names of workers: attempts are laid on the fewest tracks on
which none overlap, because viewers draw overlapping slices of one thread wrongly. Waits in the queue do overlap; they
are async events. Flow arrows lead from a cause to its effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kubectl_ctrl.model.record import RecordedAttempt, RecordedCall, RecordedRun, Story
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempt_json import nonempty
from kubectl_ctrl.render.attempts import call_text, difference_text, outcome_text, why
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.trace.links import Link, links
from kubectl_ctrl.render.trace.tracks import Span, grouped, laid, micros, span_of
from kubectl_ctrl.text import escaped
from kubectl_ctrl.value import Value

Event = dict[str, Any]

# Thread ids: workers from 1 on, and far above them the threads of concurrent calls.
_BESIDE = 1_000_000


class _Slice(Value, kw_only=True):
    """The place of an attempt in the picture."""

    number: int
    pid: int
    tid: int
    span: Span


def document(story: Story) -> Iterator[str]:
    yield '{"displayTimeUnit": "ms", "traceEvents": ['
    between = "\n"
    for event in _events(story):
        yield between + json.dumps(event)
        between = ",\n"
    yield "\n]}\n"


def _events(story: Story) -> Iterator[Event]:
    """Names first, then the attempts with their calls, then the arrows between them."""
    pids: dict[str, int] = {}
    drawn: dict[str, _Slice] = {}
    style = Style(unicode=True)
    runs = {run.id: run for run in story.runs}
    first = 1  # thread of the controller's first worker
    beside: dict[tuple[int, int], int] = {}
    for (run, controller), attempts in grouped(story.attempts).items():
        if run not in pids:
            pids[run] = len(pids) + 1
            yield from _process(pids[run], run, runs.get(run))
        lanes = laid([span_of(attempt) for attempt in attempts])
        workers = max(lane for lane, _ in lanes) + 1
        for lane in range(workers):
            yield _meta("thread_name", pids[run], first + lane, name=f"{escaped(controller)} worker {lane + 1}")
            yield _meta("thread_sort_index", pids[run], first + lane, sort_index=2 * (first + lane))
        played = runs[run].controllers if run in runs else ()
        primary = next((one.primaries[0] for one in played if one.name == controller and one.primaries), None)
        for attempt, (lane, span) in zip(attempts, lanes, strict=True):
            drawn[attempt.id] = slice_ = _Slice(number=len(drawn) + 1, pid=pids[run], tid=first + lane, span=span)
            yield from _attempt(attempt, slice_, style, primary)
            yield from _calls(attempt, slice_, style, beside)
        first += workers
    calls = {made.call.id: made for attempt in story.attempts for made in attempt.calls}
    for number, link in enumerate(links(story.attempts), 1):
        yield from _flow(number, link, drawn, calls)


def _process(pid: int, name: str, run: RecordedRun | None) -> Iterator[Event]:
    title = f"{name} {run.context} ({run.host}, pid {run.pid})" if run else name
    yield _meta("process_name", pid, 0, name=escaped(title))
    yield _meta("process_sort_index", pid, 0, sort_index=pid)


def _meta(what: str, pid: int, tid: int, **args: str | int) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args}


def _attempt(attempt: RecordedAttempt, slice_: _Slice, style: Style, primary: Resource | None) -> Iterator[Event]:
    begin, end = slice_.span
    at = {"pid": slice_.pid, "tid": slice_.tid}
    ready = min(micros(attempt.started - attempt.waited), begin)
    # Viewers read the id as a hexadecimal number.
    queued = {"cat": "queue", "name": "queued", "id": f"0x{slice_.number:x}", **at}
    names = {"attempt": attempt.id, "object": escaped(str(attempt.request))}
    if ready < begin:
        yield {"ph": "b", "ts": ready, **queued, "args": names}
        yield {"ph": "e", "ts": begin, **queued}
    where = escaped(attempt.verdict.where) if attempt.verdict else ""
    args = {
        **names,
        "why": why(attempt.causes, attempt.causes_total, style, primary),
        "outcome": outcome_text(attempt),
        "try": attempt.try_no,
        "echoes ignored": attempt.echoes,
        **nonempty({"skipped": ", ".join(map(escaped, attempt.skipped)), "where": where}),
    }
    name = f"{escaped(attempt.request.name)} {attempt.number}"
    # Viewers search by category, and some colour by it.
    category = f"reconcile,{attempt.outcome}"
    yield {"ph": "X", "cat": category, "name": name, "ts": begin, "dur": end - begin, **at, "args": args}


def _calls(
    attempt: RecordedAttempt, slice_: _Slice, style: Style, beside: dict[tuple[int, int], int]
) -> Iterator[Event]:
    """Calls are within their attempt's slice, concurrent ones on further threads."""
    lanes = laid([_within(made, slice_.span) for made in attempt.calls])
    for made, (lane, span) in zip(attempt.calls, lanes, strict=True):
        tid = slice_.tid
        if lane:
            # All attempts of a worker share its further threads.
            known = len(beside)
            tid = beside.setdefault((slice_.tid, lane), _BESIDE + known)
            if len(beside) > known:
                yield _meta("thread_name", slice_.pid, tid, name="concurrent calls")
                yield _meta("thread_sort_index", slice_.pid, tid, sort_index=2 * slice_.tid + 1)
        call = made.call
        args = {
            "call": call.id,
            "code": call.code if call.code is not None else "no response",
            **nonempty(
                {
                    "sends": call.sends if call.sends > 1 else 0,
                    "changed": ", ".join(difference_text(one, style) for one in made.changes.shown),
                    "version": call.new_version,
                    "error": escaped(call.error),
                }
            ),
        }
        begin, end = span
        head = {"ph": "X", "cat": "call", "name": call_text(call), "ts": begin, "dur": end - begin}
        yield head | {"pid": slice_.pid, "tid": tid, "args": args}


def _within(made: RecordedCall, span: Span) -> Span:
    """The span of a call within its attempt, also if rounding or a changed clock puts it outside."""
    begin = min(max(micros(made.call.started), span[0]), span[1] - 1)
    end = min(max(micros(made.call.started + made.call.took), begin + 1), span[1])
    return begin, end


def _flow(number: int, link: Link, drawn: dict[str, _Slice], calls: dict[str, RecordedCall]) -> Iterator[Event]:
    """An arrow from within the slice of the cause to the start of the effect."""
    source, target = drawn[link.source], drawn[link.target]
    made = calls.get(link.call)
    end = _within(made, source.span)[1] if made else source.span[1]
    leaves, arrives = min(end - 1, target.span[0]), target.span[0]
    if leaves < source.span[0]:
        return  # the clock was set back in between, and viewers do not draw arrows into the past
    shared = {"cat": "cause", "name": link.kind, "id": number}
    yield {"ph": "s", "ts": leaves, "pid": source.pid, "tid": source.tid, **shared}
    yield {"ph": "f", "bp": "e", "ts": arrives, "pid": target.pid, "tid": target.tid, **shared}
