"""The state of an object or a reconcile in labelled lines: verdict, causes, gap, next step, commands to try."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any

from kubectl_ctrl.findings.account import (
    Account,
    AttemptAccount,
    ChainStep,
    Fact,
    FightTurn,
    Finding,
    Gap,
    Inactivity,
    Risk,
    Trigger,
    Try,
)
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCall, RecordedCause
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.render.attempts import UNKNOWN, call_text, cause_text, difference_text, outcome_text, value_text
from kubectl_ctrl.render.style import Style, painted, timestamp
from kubectl_ctrl.render.trace.details import read_text
from kubectl_ctrl.text import counted, cut, escaped

_LABEL = 10
_LEAST = 30
_EVIDENCE = 3
# A chain longer than this shows its two ends.
_LONG_CHAIN = 7
_ENDS = 3
_VALUE = 32
# Errors under these labels may be long: a terminal shows so many lines of each.
_LINES = {**dict.fromkeys(("WHY", "RAN", "SAW", "OUTCOME", "FAILING", "NOT READY"), 4), "EVIDENCE": 8}
_WHOLE = "(full text with -o json)"
_COLORS = {
    Finding.GONE: "2",
    Finding.BLOCKED_DELETION: "31",
    Finding.NOT_SEEN: "33",
    Finding.NEVER_RAN: "33",
    Finding.LOOPING: "31",
    Finding.FIGHTING: "31",
    Finding.NOT_CONVERGED: "31",
    Finding.WAITING: "33",
    Finding.CONVERGED: "32",
}
_RISKS = {Risk.READ: "2", Risk.WRITE: "33", Risk.DESTROY: "31"}


def account_lines(account: Account, style: Style, *, all_evidence: bool = False) -> list[str]:
    """The state of one object: the verdict first, then each part under its label."""
    short = None if all_evidence else _EVIDENCE
    parts: list[tuple[str, Iterable[str]]] = [
        ("AS OF", _as_of(account, style)),
        ("WHY", (fact_text(fact, style) for fact in account.why)),
        ("EDITED", _edited(account, style)),
        ("STARTED", _started(account, account.latest, style)),
        ("CHAIN", _chain(account.chain, account.latest, style)),
        ("TURNS", _turns(account.turns, style)),
        ("GAP", _gaps(account.gap)),
        ("WHERE", _where(account.where, account.call)),
        ("NEXT", _next(account.next, account.now)),
        ("EVIDENCE", _evidence(account.evidence, short, style)),
        ("NOTE", account.notes),
    ]
    title = f"state of {escaped(f'{account.resource.kind} {account.key}')}"
    head = _beside(_verdict(account, style), title, f"({account.source})", _COLORS[account.finding], style)
    lines = [*head, *_by(account, style), ""]
    for label, texts in parts:
        lines += labelled(label, texts, style)
    return lines + commands(account.tries, style)


def _verdict(account: Account, style: Style) -> str:
    """`WAITING for 12s`, `CONVERGED as of 10:03:12 (for 12s then); controller dead`, `GONE since 10:03:12`."""
    name, since, qualifier = account.finding.value, account.since, account.qualifier
    if account.finding is Finding.GONE:
        return name if since is None else f"{name} since {timestamp(since, style)}"
    if qualifier is None:
        return name if since is None else f"{name} for {format_duration(max(account.now - since, 0.0))}"
    lasted = ""
    if since is not None and since <= qualifier.since:
        lasted = f" (for {format_duration(qualifier.since - since)} then)"
    return f"{name} as of {timestamp(qualifier.since, style)}{lasted}; controller {qualifier.state}"


def _beside(verdict: str, title: str, right: str, color: str, style: Style) -> list[str]:
    """The verdict and its title, and the source at the right; on several lines if one is too short."""
    text = f"{verdict} {style.dash} {title}"
    if style.width is None:
        return [f"{painted(verdict, color, style)} {style.dash} {title} {right}"]
    if len(text) + len(right) < style.width:
        return [f"{painted(verdict, color, style)} {style.dash} {title}{right:>{style.width - len(text)}}"]
    if len(verdict) + len(right) < style.width:
        return [f"{painted(verdict, color, style)}{right:>{style.width - len(verdict)}}", title]
    return [*(painted(line, color, style) for line in _folded(verdict, style.width)), right, title]


def _by(account: Account, style: Style) -> Iterator[str]:
    if account.controller:
        who = f"by {account.controller}, run {account.run}" if account.run else f"by {account.controller}"
        where = f", context {account.context}" if account.context else ""
        reconciles = counted(account.attempts, "reconcile")
        number = f"last {reconciles} read" if account.cut else f"{reconciles} recorded"
        text = f"{who}{where}; {number}"
        yield painted(cut(escaped(text), style.width, mark=style.mark), "2", style)


def _as_of(account: Account, style: Style) -> Iterator[str]:
    """Since when no controller maintains it."""
    if account.qualifier is not None:
        one = account.qualifier
        verb = "has" if one.state is Inactivity.ENDED else "is"
        yield f"{timestamp(one.since, style)}: {account.controller} {verb} {one.state.value}: {one.text}"


def fact_text(fact: Fact, style: Style) -> str:
    """A fact, with its source unless that is the recording."""
    cause = f": {cause_text(fact.cause, style, None)}" if fact.cause is not None else ""
    text = f"{escaped(fact.text)}{cause}"
    return text if fact.source is FactSource.RECORDED else f"{text} ({fact.source})"


def _edited(account: Account, style: Style) -> Iterator[str]:
    """The last edit of the spec, if it is not in the chain."""
    step = account.edited
    if step is not None and step.cause is not None:
        cause = cause_text(step.cause, style, None)
        before = format_duration(max(account.chain[0].attempt.started - step.cause.at, 0.0))
        number = _number(step.attempt, account.latest)
        yield f"{timestamp(step.cause.at, style)}  {cause}  ({number}, {before} before the chain)"


def _started(account: Account, run: str, style: Style) -> Iterator[str]:
    """The first change, its time and writer, and the attempt that it triggered."""
    chain = account.chain
    if not chain:
        return
    first = chain[0]
    if first.cause is None:
        yield f"{_number(first.attempt, run)} has no recorded cause"
        return
    merged = first.attempt.causes_total - 1
    more = f"; {counted(merged, 'more event')} merged" if merged > 0 else ""
    absent = "was not read" if account.cut else "is not recorded"
    unknown = f"; {first.cause.attempt} {absent}" if first.cause.attempt else ""
    cause = cause_text(first.cause, style, None)
    yield f"{timestamp(first.cause.at, style)}  {cause}  ({_number(first.attempt, run)}{more}{unknown})"


def _chain(chain: Sequence[ChainStep], run: str, style: Style) -> Iterator[str]:
    """`kubectl-edit → #10 403 → retry 1s → #11 403`."""
    links = [_link(step, chain[at - 1] if at else None, run, style) for at, step in enumerate(chain)]
    if len(links) > _LONG_CHAIN:
        links = [*links[:_ENDS], f"... {len(links) - 2 * _ENDS} more ...", *links[-_ENDS:]]
    if links:
        yield f" {style.arrow} ".join(links)


def _link(step: ChainStep, before: ChainStep | None, run: str, style: Style) -> str:
    mark = "~" if step.link is FactSource.INFERRED else ""
    delay = before.attempt.verdict.delay if before is not None and before.attempt.verdict is not None else 0.0
    led = _led(step.cause, before is None)
    if step.cause is not None and step.cause.kind in (CauseKind.RETRY, CauseKind.TIMER) and delay:
        led += f" {format_duration(delay)}"
    return f"{mark}{led} {style.arrow} {_number(step.attempt, run)} {_brief(step.attempt)}"


def _number(attempt: RecordedAttempt, run: str) -> str:
    """`#12`; the whole id if the attempt is of another run, whose numbers start at 1 again."""
    return f"#{attempt.number}" if attempt.run == run else attempt.id


def _led(cause: RecordedCause | None, first: bool) -> str:
    if cause is None:
        return UNKNOWN
    if cause.kind in (CauseKind.ADDED, CauseKind.MODIFIED) and first:
        return " or ".join(map(escaped, cause.writers)) or UNKNOWN
    if cause.kind in (CauseKind.ADDED, CauseKind.MODIFIED, CauseKind.DELETED) and cause.resource and cause.key:
        return f"{cause.resource.kind}/{escaped(cause.key.name)} {cause.kind}"
    return cause.kind.value


def _brief(attempt: RecordedAttempt) -> str:
    verdict = attempt.verdict
    if verdict is None:
        return outcome_text(attempt)
    codes = [made.call.code for made in attempt.calls if made.call.error]
    match verdict.outcome:
        case Outcome.RETRY | Outcome.TERMINAL:
            return str(codes[-1]) if codes and codes[-1] is not None else "failed"
        case Outcome.DROPPED:
            return "canceled"
        case Outcome.AFTER:
            return "done"
    return verdict.outcome.value


def _turns(turns: Sequence[FightTurn], style: Style) -> Iterator[str]:
    width = max((len(turn.who) for turn in turns), default=0)
    for turn in turns:
        call = f"  {turn.attempt}" if turn.attempt else ""
        yield f"{timestamp(turn.at, style)}  {escaped(turn.who).ljust(width)}  {_value(turn.value)}{call}"


def _gaps(gaps: Sequence[Gap]) -> Iterator[str]:
    for gap in gaps:
        place = escaped(f"{gap.resource.kind}/{gap.key.name}")
        path = f"  {escaped(gap.path)}" if gap.path else ""
        owner = f"  field owner {' or '.join(map(escaped, gap.owners))}" if gap.owners else ""
        how = "" if gap.source is FactSource.RECORDED else f"  ({gap.source})"
        yield f"{place}{path}  want {_value(gap.want)}  live {_value(gap.live)}{owner}{how}"


def _value(value: Any) -> str:
    return cut(value_text(value, "<none>"), _VALUE)


def _where(where: str, call: RecordedCall | None) -> Iterator[str]:
    parts = [where] if where else []
    if call is not None:
        parts.append(f"{call_text(call.call)}, audit-id {call.call.id}")
    if parts:
        yield ", ".join(parts)


def _next(coming: Sequence[Trigger], now: float) -> Iterator[str]:
    texts = []
    for one in coming:
        if one.at is None:
            texts.append(one.text)
        elif one.at >= now:
            texts.append(f"{one.text} in {format_duration(one.at - now)}")
        else:
            texts.append(f"{one.text}, due {format_duration(now - one.at)} ago")
    if texts:
        yield escaped("; ".join(texts))


def _evidence(facts: Sequence[Fact], most: int | None, style: Style) -> Iterator[str]:
    shown = facts if most is None else facts[:most]
    for fact in shown:
        at = f"{timestamp(fact.at, style)}  " if fact.at is not None else ""
        yield f"{at}{fact_text(fact, style)}"
    if len(facts) > len(shown):
        yield f"{len(facts) - len(shown)} more with --all-evidence"


def labelled(label: str, texts: Iterable[str], style: Style) -> list[str]:
    """Lines under one label, folded to the terminal's width."""
    lines: list[str] = []
    for text in texts:
        safe = escaped(text)  # data from a cluster must not control a terminal
        plain = safe if style.unicode else safe.replace("→", "->").replace("—", "-")
        room = None if style.width is None else max(style.width - _LABEL, _LEAST)
        folded = [plain] if room is None or len(plain) <= room else _folded(plain, room)
        most = _LINES.get(label, len(folded))
        if room is not None and len(folded) > most:
            tail = f"{style.mark} {_WHOLE}"
            folded = [*folded[: most - 1], folded[most - 1][: room - len(tail)] + tail]
        lines += folded
    return [
        (painted(label, "1", style) + " " * (_LABEL - len(label)) if at == 0 else " " * _LABEL) + line
        for at, line in enumerate(lines)
    ]


def _folded(text: str, room: int) -> list[str]:
    return wrap(text, room, subsequent_indent="  ", break_long_words=True, break_on_hyphens=False)


def commands(tries: Sequence[Try], style: Style) -> list[str]:
    """Never folded or cut: users copy them."""
    width = max((len(one.risk) for one in tries), default=0) + 2
    lines = []
    for at, one in enumerate(tries):
        label = painted("TRY", "1", style) + " " * (_LABEL - 3) if at == 0 else " " * _LABEL
        tag = painted(f"[{one.risk}]", _RISKS[one.risk], style) + " " * (width - len(one.risk) - 2)
        lines.append(f"{label}{tag}  {escaped(one.command)}")
    return lines


def single_lines(single: AttemptAccount, style: Style, *, all_evidence: bool = False) -> list[str]:
    """One reconcile: its causes, reads and writes, its outcome, and the reconciles that it caused."""
    attempt = single.attempt
    verdict = attempt.verdict
    failing = verdict is None or verdict.failed or verdict.outcome is Outcome.DROPPED
    kind = f"{single.resource.kind} " if single.resource else ""
    title = f"reconcile {attempt.id} of {escaped(f'{kind}{attempt.request}')}"
    if verdict is None:
        brief = outcome_text(attempt).upper()
    else:
        names = {Outcome.RETRY: "FAILED", Outcome.TERMINAL: "FAILED", Outcome.DROPPED: "CANCELED"}
        brief = names.get(verdict.outcome, verdict.outcome.value.upper())
    began = f"{timestamp(attempt.started, style)}, waited {format_duration(max(attempt.waited, 0.0))}"
    tries = f", try {attempt.try_no}" if attempt.try_no > 1 else ""
    lines = [
        *_beside(brief, title, "(recorded)", "31" if failing else "32", style),
        painted(cut(f"by {attempt.controller}, {began}{tries}", style.width, mark=style.mark), "2", style),
        "",
    ]
    parts: list[tuple[str, Iterable[str]]] = [
        ("RAN", _causes(attempt, single.resource, style)),
        ("CHAIN", _chain(single.chain, single.attempt.run, style)),
        ("SAW", map(read_text, attempt.reads)),
        ("DID", _did(attempt, style)),
        ("OUTCOME", (outcome_text(attempt),)),
        ("WHERE", _where(verdict.where if verdict else "", None)),
        ("CAUSED", [fact_text(fact, style) for fact in single.caused] or ["nothing recorded"]),
        ("EVIDENCE", _evidence(single.evidence, None if all_evidence else _EVIDENCE, style)),
    ]
    for label, texts in parts:
        lines += labelled(label, texts, style)
    return lines + commands(single.tries, style)


def _causes(attempt: RecordedAttempt, resource: Resource | None, style: Style) -> Iterator[str]:
    for cause in attempt.causes:
        yield f"{timestamp(cause.at, style)}  {cause_text(cause, style, resource)}"
    if (left := attempt.causes_total - len(attempt.causes)) > 0:
        yield f"{left} more, counted but not recorded"


def _did(attempt: RecordedAttempt, style: Style) -> Iterator[str]:
    for made in attempt.calls:
        call, changes = made.call, made.changes
        shown = ", ".join(difference_text(one, style) for one in changes.shown[:4])
        more = f", {changes.total - 4} more" if changes.total > 4 else ""
        result = f"  {shown}{more}" if shown else f"  {escaped(call.error)}" if call.error else ""
        yield f"{call.id}  {call_text(call)}  {format_duration(call.took)}{result}"
    for skipped in attempt.skipped:
        yield f"skipped: {escaped(skipped)}"
    for intent in attempt.intents:
        yield f"event {intent.type} {escaped(intent.reason)}: {escaped(intent.message)}"
    if attempt.echoes or attempt.heard:
        yield f"{counted(attempt.echoes + len(attempt.heard), 'echo', 'echoes')} of its own writes ignored"
    if not (attempt.calls or attempt.skipped or attempt.intents):
        yield "no API calls"
