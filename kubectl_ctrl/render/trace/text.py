"""`trace` as text: a header, a row for each attempt with its details below, and the next steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from textwrap import wrap

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import RecordedAttempt, RecordedObject, RecordedRun, Story
from kubectl_ctrl.render.attempts import outcome_text, why
from kubectl_ctrl.render.style import Style, moment_text, painted
from kubectl_ctrl.render.trace.details import below, same_message
from kubectl_ctrl.render.trace.rows import Columns, TraceOptions, columns, header, row
from kubectl_ctrl.story.scene import Scene
from kubectl_ctrl.text import counted, cut, escaped, table
from kubectl_ctrl.value import Value

_TELLING = ("Ready", "Available", "Progressing")
_LABEL = 6  # columns of `NEXT` and `HINT`
_LEAST = 24
_FEW = 6
_LEAST_REST = 30  # columns of WHY and OUTCOME together
_ENDLESS = 1_000_000


def trace_lines(story: Story, scene: Scene, showing: TraceOptions, style: Style) -> Iterator[str]:
    rows = Rows(
        runs=scene.runs or story.runs,
        over=scene.over,
        widths=columns(story.attempts, showing, style),
        showing=showing,
        style=style,
    )
    yield from head_lines(story, scene, style)
    yield ""
    yield rows.header
    yield from rows.lines(story.attempts)
    if echoes := _echoes(story.attempts):
        yield from _labelled("", echoes, style)
    if scene.triggers or scene.hint:
        yield ""
    if scene.triggers:
        yield from _labelled("NEXT", style.dot.join(scene.triggers), style)
    if scene.hint:
        yield from _labelled("HINT", scene.hint, style)


class Rows(Value, kw_only=True):
    """The rows of attempts, one after the other, from a recording or as they happen."""

    runs: Sequence[RecordedRun]
    over: Mapping[str, str]
    widths: Columns
    showing: TraceOptions
    style: Style

    @property
    def header(self) -> str:
        return painted(header(self.widths, self.style), "1", self.style)

    def lines(self, attempts: Iterable[RecordedAttempt], run: str = "") -> Iterator[str]:
        """With a line before each run if there are several; `run` is the run of the row before these."""
        whole: dict[Request, RecordedAttempt] = {}  # the last attempt of each object whose error was shown in full
        for attempt in attempts:
            if attempt.run != run and (run or len(self.runs) > 1) and self.style.width is not None:
                yield from self.separator(attempt.run)
                whole.clear()
            run = attempt.run
            yield from row(attempt, self.widths, self.showing, self.style)
            before = whole.get(attempt.request)
            yield from below(attempt, self.showing, self.style, before)
            if before is None or not same_message(attempt, before, self.style):
                whole[attempt.request] = attempt

    def separator(self, name: str) -> Iterator[str]:
        run = next((run for run in self.runs if run.id == name), None)
        text = f"run {name}"
        if run is not None:
            who = ", ".join(played.name for played in run.controllers)
            over = [self.over[name]] if name in self.over else []
            lost = [f"{run.gaps} rows lost"] if run.gaps else []
            since = f"since {moment_text(run.began, self.showing.now, self.style)}"
            text = ", ".join([f"{text}: {who}", f"pid {run.pid} on {run.host}", since, *over, *lost])
        yield from self.between(text)

    def between(self, text: str) -> Iterator[str]:
        """A line between rows."""
        rule = ("─" if self.style.unicode else "-") * 2
        room = _ENDLESS if self.style.width is None else self.style.width
        for line in wrap(f"{rule} {escaped(text)}", room, subsequent_indent="   ", break_on_hyphens=False):
            yield painted(line, "2", self.style)


# Above the rows.


def head_lines(story: Story, scene: Scene, style: Style) -> Iterator[str]:
    yield from _joined(_about(story, scene, style), style)
    yield from _joined(_recorded(story, scene, style), style)
    plain = []
    if scene.related:
        plain.append("These reconciles are of other objects, which this one triggered or which wrote it.")
    for lived in story.older:
        until, count = moment_text(lived.last, story.at, style), counted(lived.attempts, "reconcile")
        plain.append(f"an earlier object with this name: {count} until {until} (--uid {lived.uid})")
    if scene.hidden:
        plain.append(f"{counted(scene.hidden, 'older reconcile')} not shown (--last 0 shows all)")
    for text in plain:
        yield from wrap(text, style.width or _ENDLESS, subsequent_indent="  ", break_on_hyphens=False)


def _about(story: Story, scene: Scene, style: Style) -> list[str]:
    kind = story.resource.kind if story.resource else ""
    parts = [f"{kind} {escaped(str(story.key))}" if story.key else kind]
    if story.cluster:
        parts.append(escaped(story.cluster.contexts[0] if story.cluster.contexts else story.cluster.key))
    parts += _object_facts(scene, story.at, style)
    if scene.gone is not None:
        parts.append(f"deleted {moment_text(scene.gone, story.at, style)}")
    elif scene.object is not None and not scene.live:
        parts.append(f"as of {moment_text(scene.seen, story.at, style)}")
    return parts


def _object_facts(scene: Scene, now: float, style: Style) -> Iterator[str]:
    """The generation and the most important condition when the object was last seen."""
    if scene.object is None:
        return
    metadata, status = scene.object.get("metadata") or {}, scene.object.get("status") or {}
    if "generation" in metadata:
        observed = f" observed {status['observedGeneration']}" if "observedGeneration" in status else ""
        yield escaped(f"generation {metadata['generation']}{observed}")
    if metadata.get("deletionTimestamp"):
        since = metadata["deletionTimestamp"]
        with suppress(ValueError, TypeError):
            since = moment_text(parse_rfc3339(since), now, style)
        yield escaped(f"being deleted since {since}")
    names = [*_TELLING, *(one.get("type") for one in status.get("conditions") or () if isinstance(one, dict))]
    condition = next((found for name in names if (found := find(scene.object, str(name)))), None)
    if condition is not None:
        reason = f" ({condition['reason']})" if condition.get("reason") and condition.get("status") != "True" else ""
        lasted = ""
        with suppress(ValueError):
            age = (now if scene.live else scene.seen) - parse_rfc3339(str(condition.get("lastTransitionTime")))
            lasted = f" for {format_duration(max(round(age), 0))}"
        yield escaped(f"{condition.get('type')}={condition.get('status')}{reason}{lasted}")


def _recorded(story: Story, scene: Scene, style: Style) -> list[str]:
    counts = scene.totals
    parts = [f"recorded {_by(story, scene, style)}".rstrip()]
    reads = [] if counts.reads is None else [counted(counts.reads, "read")]
    parts += [counted(counts.attempts, "reconcile"), ", ".join([*reads, counted(counts.writes, "write")])]
    parts.append(counted(counts.errors, "error"))
    if counts.interrupted:
        parts.append(f"{counts.interrupted} interrupted")
    return [*parts, counted(sum(run.gaps for run in story.runs), "gap")]


def _by(story: Story, scene: Scene, style: Style) -> str:
    runs = scene.runs or story.runs
    if not runs:
        return ""
    run = runs[0]
    names = list(dict.fromkeys(one.controller for one in story.attempts)) or [one.name for one in run.controllers]
    where = escaped(f"{', '.join(names)}@{run.host}")
    who = f"{where} (run {run.id}, pid {run.pid})"
    over = f", {scene.over[run.id]}" if run.id in scene.over else ""
    if len(runs) > 1:
        return f"by {len(runs)} runs since {moment_text(scene.totals.first, story.at, style)}, last {who}{over}"
    return f"by {who} since {moment_text(run.began, story.at, style)}{over}"


def _joined(parts: Iterable[str], style: Style) -> Iterator[str]:
    """As many parts on a line as fit; a longer part is wrapped."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}{style.dot}{part}" if lines[-1] else part
        if style.width is not None and lines[-1] and len(longer) > style.width:
            lines.append(f"  {part}")
        else:
            lines[-1] = longer
    for line in lines:
        yield from wrap(
            line, style.width or _ENDLESS, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
        )


# Below the rows.


def _echoes(attempts: Sequence[RecordedAttempt]) -> str:
    # Each run numbers its attempts from 1, so a number can occur twice.
    counts = [(one.number, one.echoes + len(one.heard)) for one in attempts if one.echoes or one.heard]
    numbers = list(dict.fromkeys(number for number, _ in counts))
    if not numbers:
        return ""
    where = ", ".join(f"#{number}" for number in numbers)
    if len(numbers) > _FEW:
        where = f"{counted(len(numbers), 'reconcile')}, #{numbers[0]} to #{numbers[-1]}"
    return f"{counted(sum(count for _, count in counts), 'echo', 'echoes')} of own writes in {where}: ignored"


def _labelled(label: str, text: str, style: Style) -> Iterator[str]:
    room = None if style.width is None else max(style.width - _LABEL, _LEAST)
    lines = [text] if room is None or len(text) <= room else wrap(text, room, break_on_hyphens=False)
    for at, line in enumerate(lines):
        yield f"{label if at == 0 else '':{_LABEL}}{line}".rstrip()


# All objects of a type.


def subject_lines(
    subjects: Sequence[RecordedObject], *, now: float, namespaces: bool, wide: bool, style: Style
) -> list[str]:
    """A table of objects: the number of reconciles of each, and the last one."""
    several = len({subject.controller for subject in subjects}) > 1
    rows = []
    for subject in subjects:
        last = subject.last
        ago = format_duration(max(round(now - last.started), 0)) + " ago"
        primary = style.primaries.get(last.controller) or subject.resource
        cells = [escaped(subject.key.namespace) or "-"] * namespaces + [escaped(subject.key.name)]
        cells += [escaped(subject.controller)] * several + [f"{subject.attempts}", f"{subject.failures}"]
        cells.append(moment_text(last.started, now, style) if style.full_times else ago)
        cells += [last.id, subject.uid or "-"] * wide
        rows.append([*cells, why(last.causes, last.causes_total, style, primary), outcome_text(last)])
    names = ["NAMESPACE"] * namespaces + ["NAME"] + ["CONTROLLER"] * several
    titles = [*names, "RECONCILES", "FAILED", "LAST", *["ATTEMPT", "UID"] * wide, "WHY", "OUTCOME"]
    heads = [""] * len(rows)
    if style.width is not None and not wide:
        rows, heads = _headed(rows, titles, style.width)
        rows = _narrowed(rows, titles, style.width, style.mark)
    first, *rest = table(rows, header=titles).split("\n")
    lines = [painted(first, "1", style)]
    for subject, head, line in zip(subjects, heads, rest, strict=True):
        color = "31" if subject.last.interrupted or subject.last.failed else ""
        lines += [painted(part, color, style) for part in (head, line) if part]
    return lines


def _headed(rows: list[list[str]], titles: list[str], width: int) -> tuple[list[list[str]], list[str]]:
    """Users copy names, so a name is never cut: one that leaves no room for the rest gets a line of its own."""
    at = titles.index("NAME")
    others = sum(
        max(len(line[place]) for line in (titles, *rows)) + 3 for place in range(len(titles) - 2) if place != at
    )
    room = max(width - others - 3 - _LEAST_REST, _LEAST)
    heads = ["   ".join(line[: at + 1]) if len(line[at]) > room else "" for line in rows]
    headed = [[""] * (at + 1) + line[at + 1 :] if head else line for line, head in zip(rows, heads, strict=True)]
    return headed, heads


def _narrowed(rows: list[list[str]], titles: list[str], width: int, mark: str) -> list[list[str]]:
    """WHY and OUTCOME share the rest of the width and are cut to it."""
    fixed = sum(max(len(line[at]) for line in (titles, *rows)) + 3 for at in range(len(titles) - 2))
    room = max(width - fixed - 3, _LEAST)
    longest = max(len(line[-1]) for line in (titles, *rows))
    outcome = min(longest, max(room // 2, 12))
    return [[*line[:-2], cut(line[-2], room - outcome, mark=mark), cut(line[-1], outcome, mark=mark)] for line in rows]
