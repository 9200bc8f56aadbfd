"""`trace` as text: who is told of, a row for each attempt with what belongs to it below, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import Lived, Recorded, Run, Story, Subject
from kubectl_ctrl.render.attempts import outcome_text, why
from kubectl_ctrl.render.style import Style, moment_text, painted
from kubectl_ctrl.render.trace.details import below, says_the_same
from kubectl_ctrl.render.trace.rows import Columns, Showing, columns, header, row
from kubectl_ctrl.story.scene import Scene
from kubectl_ctrl.text import counted, cut, escaped, table
from kubectl_ctrl.value import Value

_TELLING = ("Ready", "Available", "Progressing")
_LABEL = 6  # `NEXT`, `HINT` and what separates them from their text
_LEAST = 24
_FEW = 6
_LEAST_TOLD = 30  # of WHY and OUTCOME together
_ENDLESS = 1_000_000


def trace_lines(story: Story, scene: Scene, showing: Showing, style: Style) -> Iterator[str]:
    """All of it."""
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
    yield from foot_lines(story, scene, style)


class Rows(Value, kw_only=True):
    """Shows attempts one after the other, as they are read or as they come."""

    runs: Sequence[Run]
    over: Mapping[str, str]
    widths: Columns
    showing: Showing
    style: Style

    @property
    def header(self) -> str:
        return painted(header(self.widths, self.style), "1", self.style)

    def lines(self, attempts: Iterable[Recorded], told: str = "") -> Iterator[str]:
        """With a line before each run where there is more than one; `told` is the run told of before."""
        whole: dict[Request, Recorded] = {}  # of each object the attempt whose error was told last, and not as the same
        for attempt in attempts:
            if attempt.run != told and (told or len(self.runs) > 1) and self.style.width is not None:
                yield from self.separator(attempt.run)
                whole.clear()
            told = attempt.run
            yield from row(attempt, self.widths, self.showing, self.style)
            before = whole.get(attempt.request)
            yield from below(attempt, self.showing, self.style, before)
            if before is None or not says_the_same(attempt, before, self.style):
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
        """A line that is no row's."""
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
    plain += [_older(lived, story, style) for lived in story.older]
    if scene.hidden:
        plain.append(f"{counted(scene.hidden, 'older reconcile')} not shown (--last 0 shows all)")
    for text in plain:
        yield from wrap(text, style.width or _ENDLESS, subsequent_indent="  ", break_on_hyphens=False)


def _about(story: Story, scene: Scene, style: Style) -> list[str]:
    kind = story.resource.kind if story.resource else ""
    parts = [f"{kind} {escaped(str(story.key))}" if story.key else kind]
    if story.cluster:
        parts.append(escaped(story.cluster.contexts[0] if story.cluster.contexts else story.cluster.key))
    parts += object_facts(scene, story.at, style)
    if scene.gone is not None:
        parts.append(f"deleted {moment_text(scene.gone, story.at, style)}")
    elif scene.object is not None and not scene.live:
        parts.append(f"as of {moment_text(scene.seen, story.at, style)}")
    return parts


def object_facts(scene: Scene, now: float, style: Style) -> Iterator[str]:
    """Generation and the most telling condition, as they were when the object was last seen."""
    if scene.object is None:
        return
    metadata, status = scene.object.get("metadata") or {}, scene.object.get("status") or {}
    if "generation" in metadata:
        observed = f" observed {status['observedGeneration']}" if "observedGeneration" in status else ""
        yield escaped(f"generation {metadata['generation']}{observed}")
    if metadata.get("deletionTimestamp"):
        yield escaped(f"being deleted since {_when(metadata['deletionTimestamp'], now, style)}")
    names = [*_TELLING, *(one.get("type") for one in status.get("conditions") or () if isinstance(one, dict))]
    condition = next((found for name in names if (found := find(scene.object, str(name)))), None)
    if condition is not None:
        reason = f" ({condition['reason']})" if condition.get("reason") and condition.get("status") != "True" else ""
        since = _age(condition.get("lastTransitionTime"), now if scene.live else scene.seen)
        yield escaped(f"{condition.get('type')}={condition.get('status')}{reason}{since}")


def _when(text: str, now: float, style: Style) -> str:
    try:
        return moment_text(parse_rfc3339(text), now, style)
    except (ValueError, TypeError):
        return text


def _age(text: object, now: float) -> str:
    try:
        return f" for {format_duration(max(round(now - parse_rfc3339(str(text))), 0))}"
    except ValueError:
        return ""


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


def _older(lived: Lived, story: Story, style: Style) -> str:
    until = moment_text(lived.last, story.at, style)
    return f"an earlier object with this name: {counted(lived.attempts, 'reconcile')} until {until} (--uid {lived.uid})"


def _joined(parts: Iterable[str], style: Style) -> Iterator[str]:
    """As many parts on a line as fit; what is longer than a line is broken between words."""
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


def foot_lines(story: Story, scene: Scene, style: Style) -> Iterator[str]:
    if echoes := _echoes(story.attempts):
        yield from _labelled("", echoes, style)
    if scene.coming or scene.hint:
        yield ""
    if scene.coming:
        yield from _labelled("NEXT", style.dot.join(scene.coming), style)
    if scene.hint:
        yield from _labelled("HINT", scene.hint, style)


def _echoes(attempts: Sequence[Recorded]) -> str:
    counts = {one.number: one.echoes + len(one.heard) for one in attempts if one.echoes + len(one.heard)}
    total = sum(counts.values())
    if not total:
        return ""
    numbers = list(counts)
    where = ", ".join(f"#{number}" for number in numbers)
    if len(numbers) > _FEW:
        where = f"{counted(len(numbers), 'reconcile')}, #{numbers[0]} to #{numbers[-1]}"
    return f"{counted(total, 'echo', 'echoes')} of own writes in {where}: ignored"


def _labelled(label: str, text: str, style: Style) -> Iterator[str]:
    room = None if style.width is None else max(style.width - _LABEL, _LEAST)
    lines = [text] if room is None or len(text) <= room else wrap(text, room, break_on_hyphens=False)
    for at, line in enumerate(lines):
        yield f"{label if at == 0 else '':{_LABEL}}{line}".rstrip()


# All objects of a type.


class Listing(Value, kw_only=True):
    """Which columns a table of objects has."""

    now: float
    namespaces: bool
    wide: bool
    controllers: bool


def subject_lines(subjects: Sequence[Subject], *, now: float, namespaces: bool, wide: bool, style: Style) -> list[str]:
    """A table of objects: how often each was reconciled, and how the last time went."""
    several = len({subject.controller for subject in subjects}) > 1
    listing = Listing(now=now, namespaces=namespaces, wide=wide, controllers=several)
    rows = [_subject(subject, listing, style) for subject in subjects]
    names = ["NAMESPACE"] * namespaces + ["NAME"] + ["CONTROLLER"] * several
    titles = [*names, "RECONCILES", "FAILED", "LAST", *["ATTEMPT", "UID"] * wide, "WHY", "OUTCOME"]
    heads = [""] * len(rows)
    if style.width is not None and not wide:
        rows, heads = _headed(rows, titles, style.width)
        rows = _narrowed(rows, titles, style.width, style.mark)
    first, *rest = table(rows, header=titles).split("\n")
    lines = [painted(first, "1", style)]
    for subject, head, line in zip(subjects, heads, rest, strict=True):
        lines += [painted(part, _color(subject.last), style) for part in (head, line) if part]
    return lines


def _subject(subject: Subject, listing: Listing, style: Style) -> list[str]:
    last = subject.last
    ago = format_duration(max(round(listing.now - last.started), 0)) + " ago"
    cells = [escaped(subject.key.namespace) or "-"] * listing.namespaces + [escaped(subject.key.name)]
    cells += [escaped(subject.controller)] * listing.controllers
    cells += [f"{subject.attempts}", f"{subject.failures}"]
    cells.append(moment_text(last.started, listing.now, style) if style.full_times else ago)
    cells += [last.id, subject.uid or "-"] * listing.wide
    reason = why(last.causes, last.causes_total, style, style.primaries.get(last.controller) or subject.resource)
    return [*cells, reason, outcome_text(last)]


def _headed(rows: list[list[str]], titles: list[str], width: int) -> tuple[list[list[str]], list[str]]:
    """A name that would leave no room for the rest gets a line of its own: it is what one copies, so it stays whole."""
    at = titles.index("NAME")
    others = sum(
        max(len(line[place]) for line in (titles, *rows)) + 3 for place in range(len(titles) - 2) if place != at
    )
    room = max(width - others - 3 - _LEAST_TOLD, _LEAST)
    heads = ["   ".join(line[: at + 1]) if len(line[at]) > room else "" for line in rows]
    headed = [[""] * (at + 1) + line[at + 1 :] if head else line for line, head in zip(rows, heads, strict=True)]
    return headed, heads


def _narrowed(rows: list[list[str]], titles: list[str], width: int, mark: str) -> list[list[str]]:
    """The two last columns share what is left; of a long one the end gives way."""
    fixed = sum(max(len(line[at]) for line in (titles, *rows)) + 3 for at in range(len(titles) - 2))
    room = max(width - fixed - 3, _LEAST)
    longest = max(len(line[-1]) for line in (titles, *rows))
    outcome = min(longest, max(room // 2, 12))
    return [[*line[:-2], cut(line[-2], room - outcome, mark=mark), cut(line[-1], outcome, mark=mark)] for line in rows]


def _color(last: Recorded) -> str:
    return "31" if last.interrupted or last.failed else ""
