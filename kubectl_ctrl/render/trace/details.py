"""The lines below a row of `trace`: further causes, calls with their changes, reads, events, whole diffs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from kubectl_ctrl.model.attempt import Call, Intent, ObjectRead
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import RecordedAttempt, RecordedCall, RecordedCause
from kubectl_ctrl.render.attempts import answer_text, cause_text, label_text, outcome_color
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.render.trace.rows import TraceOptions, changed_text, interval, message_below, that_matter
from kubectl_ctrl.render.trace.unified_diff import call_diff, cause_diff
from kubectl_ctrl.text import counted, cut, escaped
from kubectl_ctrl.value import Struct, field

# So many further causes get a line each without --calls.
_FEW = 2
_LEAST = 40
_MARGIN = 6
_HANG = 2
_ROOMY_LABEL = 44
# An error takes no more of a terminal than so many lines.
_MOST_LINES = 3


class _Item(Struct):
    """One thing below a row: a line, and lines that belong to it."""

    text: str
    hang: int = _HANG  # the indent of continuation lines
    color: str = ""
    more: list[str] = field(default_factory=list)  # whole lines, painted already
    whole: str = ""  # the flag that shows the full text; "": never shortened


def below(
    attempt: RecordedAttempt, showing: TraceOptions, style: Style, before: RecordedAttempt | None = None
) -> Iterator[str]:
    """The lines below its row, joined to it at the left; an error that `before` shows in full is not repeated."""
    items = [*_causes(attempt, showing, style), *_deeds(attempt, showing, style)]
    if message := message_below(attempt, style):
        text = escaped(message)
        if before is not None and same_message(attempt, before, style):
            text = f"the same error as #{before.number}"
        items.append(_Item(text, color=outcome_color(attempt), whole=f"--id {attempt.id}"))
    for at, item in enumerate(items):
        yield from _drawn(item, at == len(items) - 1, style)


def same_message(attempt: RecordedAttempt, before: RecordedAttempt, style: Style) -> bool:
    message = message_below(attempt, style)
    return bool(message) and message_below(before, style) == message


def _drawn(item: _Item, last: bool, style: Style) -> Iterator[str]:
    tee, corner, bar = ("├", "└", "│") if style.unicode else ("|-", "`-", "|")
    mark, down = corner if last else tee, " " if last else bar
    room = None if style.width is None else max(style.width - _MARGIN - len(mark) - 1, _LEAST)
    lines = _folded(item.text, room, item.hang)
    first, *rest = _shortened(lines, item.whole, room, style) if item.whole else lines
    yield f"{'':{_MARGIN}}{mark} {painted(first, item.color, style)}"
    lead = f"{'':{_MARGIN}}{down.ljust(len(mark))} "
    yield from (f"{lead}{painted(line, item.color, style)}" for line in rest)
    yield from (f"{lead}{line}".rstrip() for line in item.more)


def _shortened(lines: list[str], whole: str, room: int | None, style: Style) -> list[str]:
    if room is None or len(lines) <= _MOST_LINES:
        return lines
    tail = f"{style.mark} (full text with {whole})"
    return [*lines[: _MOST_LINES - 1], lines[_MOST_LINES - 1][: room - len(tail)] + tail]


def _folded(text: str, room: int | None, hang: int) -> list[str]:
    if room is None or len(text) <= room:
        return [text]
    if _HANG < hang < len(text) and room - hang < _LEAST:
        # No room beside the head: the rest begins on a line of its own.
        rest = wrap(text[hang:], room - 4, break_on_hyphens=False)
        return [text[:hang].rstrip(), *(f"    {line}" for line in rest)]
    # replace_whitespace=False keeps the columns of the first line.
    return wrap(text, room, subsequent_indent=" " * hang, break_on_hyphens=False, replace_whitespace=False)


# Further causes.


def _causes(attempt: RecordedAttempt, showing: TraceOptions, style: Style) -> Iterator[_Item]:
    if showing.diff and attempt.causes and (more := cause_diff(attempt.causes[0], showing, style)):
        yield _Item(f"triggered by {_named(attempt.causes[0])}", more=more)
    rest = attempt.causes[1:]
    if style.width is None and not showing.diff:
        return  # the row shows them all
    if showing.calls or showing.diff or len(rest) <= _FEW:
        for cause in rest:
            diff = cause_diff(cause, showing, style) if showing.diff else []
            yield _Item(f"merged: {timestamp(cause.at, style)} {_cause(cause, attempt, style)}", more=diff, color="2")
        if lost := attempt.causes_total - len(attempt.causes):
            yield _Item(f"merged: {lost} more, counted but not recorded", color="2")
        return
    yield _Item(_merged(rest, attempt, style), color="2")


def _merged(rest: Sequence[RecordedCause], attempt: RecordedAttempt, style: Style) -> str:
    """`merged: 4 more 10:04:06-10:04:09: Deployment/web modified x4; the last: status.replicas 4->5 by kcm`."""
    times = "×" if style.unicode else "x"  # noqa: RUF001
    kinds = Counter(_named(cause) for cause in rest)
    what = ", ".join(f"{name} {times}{count}" if count > 1 else name for name, count in kinds.items())
    lost = attempt.causes_total - len(attempt.causes)
    unkept = f", {lost} of them not recorded" if lost > 0 else ""
    when = interval(rest[0].at, rest[-1].at, style)
    last = _cause(rest[-1], attempt, style)
    return f"merged: {attempt.causes_total - 1} more {when}{unkept}: {what}; the last: {last}; --calls shows all"


def _cause(cause: RecordedCause, attempt: RecordedAttempt, style: Style) -> str:
    return cause_text(cause, style, style.primaries.get(attempt.controller))


def _named(cause: RecordedCause) -> str:
    """`Deployment/web modified`, `timer`."""
    if cause.resource is None or cause.key is None:
        return cause.kind.value
    return f"{cause.resource.kind}/{escaped(cause.key.name)} {cause.kind.value}"


# What it did.


def _deeds(attempt: RecordedAttempt, showing: TraceOptions, style: Style) -> Iterator[_Item]:
    """Every write and whatever failed; with --calls all calls, between the reads as they were made."""
    if style.width is None and not (showing.calls or showing.diff):
        return  # the row shows them
    made = _in_order(attempt) if showing.calls else that_matter(attempt)
    calls = [one.call for one in made if isinstance(one, RecordedCall)]
    label = max((len(label_text(call)) for call in calls), default=0)
    label = label if style.width is None else min(label, _ROOMY_LABEL)
    code = max((len(answer_text(call)) for call in calls), default=0)
    for one in made:
        if isinstance(one, ObjectRead):
            yield _Item(read_text(one))
        else:
            yield _call(one, attempt, (label, code), showing, style)
    if showing.calls:
        yield from (_Item(f"skipped: {escaped(what)}", color="2") for what in attempt.skipped)
        yield from (_Item(intent_text(intent)) for intent in attempt.intents)
        if attempt.echoes:
            yield _Item(f"{counted(attempt.echoes, 'echo', 'echoes')} seen while it ran, not queued", color="2")


def _in_order(attempt: RecordedAttempt) -> list[RecordedCall | ObjectRead]:
    """Calls and cache reads in order: each read knows how many writes had been requested before it."""
    asked = [set(wish.calls) for wish in attempt.wishes]
    reads = [read for read in attempt.reads if not (read.verb == "live" and attempt.calls)]
    order: list[RecordedCall | ObjectRead] = []
    before = 0
    for made in attempt.calls:
        before = next((at for at, ids in enumerate(asked) if made.call.id in ids), before)
        while reads and reads[0].wishes <= before:
            order.append(reads.pop(0))
        order.append(made)
    return [*order, *reads, *attempt.background]


def _call(
    made: RecordedCall, attempt: RecordedAttempt, widths: tuple[int, int], showing: TraceOptions, style: Style
) -> _Item:
    call, (label, code) = made.call, widths
    shown = cut(label_text(call), label, mark=style.mark).ljust(label)
    took = format_duration(call.took) if call.code is not None or call.took else "-"
    head = f"{shown}  {answer_text(call):>{code}}  {took:>5}"
    # An error that the outcome of the row shows is not repeated.
    repeated = attempt.verdict is not None and attempt.verdict.message == call.error
    facts = [changed_text(made, style), "" if repeated else escaped(call.error)]
    if call.sends > 1:
        facts.append(f"sent {call.sends} times")
    if showing.calls:
        facts += [f"audit {call.id}", _echo(call, attempt)]
    text = f"{head}  {'; '.join(filter(None, facts))}".rstrip()
    more = call_diff(made, showing, style) if showing.diff and call.write else []
    color = "31" if call.error or (call.code is None and call.write) else ""
    return _Item(text, hang=len(head) + 2, color=color, more=more, whole=f"--id {attempt.id}" if call.error else "")


def _echo(call: Call, attempt: RecordedAttempt) -> str:
    for echo in attempt.heard:
        if (echo.uid, echo.version) == (call.uid, call.new_version):
            return f"echo seen after {format_duration(echo.after)}, not queued"
    return ""


def read_text(read: ObjectRead) -> str:
    kind = read.resource.kind
    if read.raised is not None:
        return f"read {kind} {escaped(read.query)} ({read.verb}): {escaped(read.raised.message)}"
    if read.verb == "get":
        found = f"version {escaped(read.found[0][1])}" if read.found else "not found"
    else:
        found = counted(len(read.found), "object")
    source = "live" if read.verb == "live" else "cache"
    return f"{'list' if read.verb == 'list' else 'get'} {kind} {escaped(read.query)}  ({source}): {found}"


def intent_text(intent: Intent) -> str:
    return f"event {escaped(intent.type)} {escaped(intent.reason)}: {escaped(intent.message)}"
