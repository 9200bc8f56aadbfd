"""NOT CONVERGED, WAITING and CONVERGED: the result of the last attempt, and the conditions of the object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kubectl_ctrl.findings.account import Fact, Finding, Risk, Try
from kubectl_ctrl.findings.case import Body, Case, CaseFinding, failed, short, tail
from kubectl_ctrl.findings.gap import rollout
from kubectl_ctrl.findings.unseen import later_change
from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCall
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.rbac.usage import REFUSED
from kubectl_ctrl.text import counted

# Conditions that report a problem when they are True; all others do when they are False.
_BAD_WHEN_TRUE = frozenset({"ReplicaFailure", "Failed", "Degraded", "Stalled", "DiskPressure", "MemoryPressure"})
# A wait takes longer than usual from this multiple of the median.
_LONG = 3.0
# Codes of a missing right, a quota or an admission rule, and of an invalid object: a reconciler may wait for their end.
_REFUSED = (403, 422)
_NUMBER = re.compile(r"[0-9]+")


def not_converged(case: Case) -> CaseFinding | None:
    last = case.ended
    if last is None:
        return None
    return _failed(case, last) if failed(last) else _not_ready(case, last)


def _failed(case: Case, last: RecordedAttempt) -> CaseFinding:
    failing = [last]
    for one in case.attempts[::-1]:
        if one.id == last.id or not one.over:
            continue
        if not failed(one):
            break
        failing.append(one)
    call = next((made for made in last.calls[::-1] if made.call.error and _is_reason(made, last.verdict)), None)
    facts = list(_failure(last, call))
    if len(failing) > 1:
        facts.append(Fact(text=f"{len(failing)} attempts in a row failed, the first {case.short(failing[-1].id)}"))
    running = case.last
    if running is not None and running is not last:
        facts.append(Fact(text=f"{short(running.id)} is running now", at=running.started))
    evidence: tuple[Fact, ...] = ()
    if call is not None:
        text = f"call {call.call.id}: {_call_text(call)}{f': {call.call.error}' if call.call.error else ''}"
        evidence = (Fact(text=text, at=call.call.started),)
    return CaseFinding(
        finding=Finding.NOT_CONVERGED,
        since=failing[-1].started,
        why=tuple(facts),
        tries=_tries(case, last, call),
        about=last,
        evidence=evidence,
        where=last.verdict.where if last.verdict else "",
        call=call,
    )


def _is_reason(made: RecordedCall, verdict: Verdict | None) -> bool:
    """The call's error may have ended the attempt: not if the reconciler raised an error of its own."""
    return verdict is None or verdict.error_id.startswith("CTRL-") or made.call.error in verdict.message


def _failure(last: RecordedAttempt, call: RecordedCall | None) -> Iterator[Fact]:
    verdict, at = last.verdict, last.end
    if verdict is None:
        sent = [made for made in last.calls if made.call.code is None]
        unknown = f"; {counted(len(sent), 'call')} without a response" if sent else ""
        text = f"reconcile {short(last.id)} was interrupted: its process stopped during it{unknown}"
        yield Fact(text=text, at=last.started)
        return
    if verdict.outcome is Outcome.DROPPED:
        yield Fact(text=f"reconcile {short(last.id)} did not finish: {verdict.message}", at=at)
        return
    denied = REFUSED.search(f"{verdict.message} {call.call.error if call else ''}")
    # The line after it repeats the long message of a denied call in short.
    message = _call_text(call) if call is not None and denied is not None else verdict.message
    yield Fact(text=f"reconcile {short(last.id)} failed: {message}", at=at)
    if denied:
        group = f"{denied['group']}/" if denied["group"] else ""
        where = f" in {denied['namespace']}" if denied["namespace"] else ""
        yield Fact(text=f"{denied['user']} cannot {denied['verb']} {group}{denied['resource']}{where}", at=at)
    if verdict.outcome is Outcome.TERMINAL:
        until = "its next scheduled run or a change" if verdict.delay else "a change"
        yield Fact(text=f"terminal: no retry until {until}", at=at)


def _call_text(made: RecordedCall) -> str:
    call = made.call
    answer = f"{call.code} {call.reason}".strip() if call.code is not None else "no answer"
    return f"{_request(made)}: {answer}"


def _request(made: RecordedCall) -> str:
    call = made.call
    return f"{call.verb} {_name(call.resource, call.name)}{f'/{call.subresource}' if call.subresource else ''}"


def _name(resource: Resource | None, name: str) -> str:
    return f"{resource.kind}/{name}" if resource is not None else name


def _tries(case: Case, last: RecordedAttempt, call: RecordedCall | None) -> tuple[Try, ...]:
    verdict = last.verdict
    errors = f"{verdict.message if verdict else ''} {call.call.error if call else ''}"
    if case.controller is not None and REFUSED.search(errors):
        missing = case.ctrl(Risk.READ, "rbac", case.controller.word, "--missing", "--output=yaml")
        return missing, Try(risk=Risk.WRITE, command=f"{missing.command} | kubectl apply -f -")
    trace = case.ctrl(Risk.READ, "trace", case.target, f"--id={last.id}")
    if verdict is None or verdict.outcome is Outcome.DROPPED:
        return (trace, case.resume()) if case.controller is not None else (trace,)
    if verdict.outcome is Outcome.TERMINAL:
        return trace, case.kubectl(Risk.WRITE, "edit", case.target)
    return trace, case.kubectl(Risk.READ, "describe", case.target)


def _own_conditions(case: Case) -> tuple[list[Obj], FactSource, float]:
    """The newest conditions of the object: of the live object, the last status written or the last one read."""
    body = case.body
    if body is not None and body.source is FactSource.LIVE and body.obj is not None:
        return _conditions(body.obj.get("status")), FactSource.LIVE, body.at
    for one in case.attempts[::-1]:
        for wish in one.wishes[::-1]:
            if wish.verb == "status" and (wish.resource, wish.key) == (case.resource, case.key) and wish.how:
                try:
                    return _conditions(json.loads(wish.body or "{}")), FactSource.RECORDED, one.started
                except ValueError:
                    continue
    if body is not None and body.obj is not None:
        return _conditions(body.obj.get("status")), body.source, body.at
    return [], FactSource.RECORDED, 0.0


def _conditions(status: object) -> list[Obj]:
    found = status.get("conditions") if isinstance(status, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _ready(case: Case) -> Fact | None:
    conditions, source, at = _own_conditions(case)
    ready = next((one for one in conditions if one.get("type") == "Ready"), None)
    return Fact(text=f"it reports {_condition(ready)}", source=source, at=at) if ready is not None else None


def _condition(one: Obj) -> str:
    parts = (f"{one.get('type')}={one.get('status')}", str(one.get("reason") or ""))
    message = str(one.get("message") or "")
    return " ".join(filter(None, parts)) + (f": {message}" if message else "")


def reports_unready(case: Case) -> Fact | None:
    """Ready=False although the last attempt succeeded and scheduled nothing: nobody waits for anything."""
    last = case.last
    if last is None or last.verdict is None or last.verdict.outcome is not Outcome.DONE:
        return None
    fact = _ready(case)
    return fact if fact is not None and fact.text.startswith("it reports Ready=False") else None


def _not_ready(case: Case, last: RecordedAttempt) -> CaseFinding | None:
    fact = reports_unready(case)
    if fact is None or case.last is not last or last.verdict is None:
        return None
    since = next((one.started for one in tail(case.attempts, Outcome.DONE)), last.started)
    done = f"reconcile {short(last.id)} succeeded and scheduled nothing: only a change triggers it again"
    tries = (
        case.ctrl(Risk.READ, "trace", case.target, f"--id={last.id}"),
        case.kubectl(Risk.WRITE, "edit", case.target),
    )
    return CaseFinding(
        finding=Finding.NOT_CONVERGED,
        since=since,
        why=(fact, Fact(text=done, at=last.end)),
        tries=tries,
        about=last,
        where=last.verdict.where,
    )


def waiting(case: Case) -> CaseFinding | None:
    last = case.last
    if last is None:
        return None
    tries: tuple[Try, ...] = (case.ctrl(Risk.READ, "trace", case.target, "--last=5"),)
    entry = case.entry
    if last.verdict is None:
        why, since = Fact(text=f"reconcile {short(last.id)} is running", at=last.started), last.started
    elif entry is not None and entry.state in ("ready", "running"):
        queued = f"a newer change is queued (ready) with {counted(entry.causes, 'cause')}"
        why = Fact(text="a reconcile is running" if entry.state == "running" else queued, at=entry.since)
        since, tries = entry.since, (case.ctrl(Risk.READ, "queue", last.controller), *tries)
    elif last.verdict.outcome is Outcome.AGAIN:
        passes = tail(case.attempts, Outcome.AGAIN)
        text = f"{short(last.id)} requested another pass immediately, {len(passes)} in a row so far"
        why, since = Fact(text=text, at=last.end), passes[0].started
    elif last.verdict.outcome is Outcome.WAITING:
        return _waits(case, last, last.verdict)
    else:
        return None
    return CaseFinding(finding=Finding.WAITING, since=since, why=(why,), tries=tries, about=last)


def _waits(case: Case, last: RecordedAttempt, verdict: Verdict) -> CaseFinding:
    since = tail(case.attempts, Outcome.WAITING)[0].started
    facts = [Fact(text=f"{short(last.id)} waits for {verdict.message}", at=last.end)]
    refused = [made for made in last.calls if made.call.code in _REFUSED and made.call.error]
    facts += [Fact(text=f"{made.call.id}: {made.call.error}", at=made.call.started) for made in refused[:1]]
    children = {place: body for place, body in case.bodies.items() if place != (case.resource, case.key)}
    facts += _problems(children)
    if past := _earlier_waits(case, verdict.message):
        from statistics import median

        usual = median(past)
        times = "one earlier wait" if len(past) == 1 else f"median of {len(past)} earlier waits"
        longer = "; this one is taking longer" if case.now - since > max(_LONG * usual, 1.0) else ""
        facts.append(Fact(text=f"it usually takes {format_duration(usual)} ({times}){longer}"))
    gaps = tuple(gap for place, body in children.items() for gap in rollout(case, *place, body))
    tries = [case.kubectl(Risk.READ, "describe", f"{one.resource.full_name}/{one.key.name}") for one in gaps[:1]]
    tries.append(case.ctrl(Risk.READ, "trace", case.target, "--last=5"))
    if case.qualifier is not None and case.controller is not None:
        tries.append(case.resume())
    return CaseFinding(
        finding=Finding.WAITING,
        since=since,
        why=tuple(facts),
        tries=tuple(tries),
        about=last,
        gap=gaps or None,
        where=verdict.where,
    )


def _problems(bodies: dict[tuple[Resource, Key], Body]) -> Iterator[Fact]:
    """The conditions of other objects that report a problem."""
    for (resource, key), body in bodies.items():
        for one in _conditions((body.obj or {}).get("status")):
            bad = "True" if one.get("type") in _BAD_WHEN_TRUE else "False"
            if one.get("status") == bad:
                yield Fact(text=f"{resource.kind}/{key.name} reports {_condition(one)}", source=body.source, at=body.at)


def _earlier_waits(case: Case, message: str) -> list[float]:
    """The durations of earlier waits for the same that succeeded; `rollout 1/3` and `rollout 2/5` are the same."""
    found: list[float] = []
    began: float | None = None
    for one in case.attempts:
        outcome = one.verdict.outcome if one.verdict else None
        if outcome is Outcome.WAITING and one.verdict is not None:
            if _NUMBER.sub("0", one.verdict.message) == _NUMBER.sub("0", message):
                began = one.started if began is None else began
        elif outcome in (Outcome.DONE, Outcome.AFTER) and began is not None:
            found.append(one.started - began)
            began = None
    return found


def converged(case: Case) -> CaseFinding:
    last = case.ended or case.last
    settled = tail(case.attempts, Outcome.DONE, Outcome.AFTER)
    wrote = next((one for one in case.attempts[::-1] if any(made.call.granted for made in one.writes)), None)
    facts = [] if last is None else [_result(last, wrote)]
    if wrote is not None:
        made = next(made for made in wrote.writes[::-1] if made.call.granted)
        text = f"last write: {_request(made)} {made.call.code} by {case.short(made.call.id)}"
        facts.append(Fact(text=text, at=made.call.started))
    elif last is not None:
        facts.append(Fact(text="no write is recorded"))
    if (ready := _ready(case)) is not None:
        facts.append(ready)
    if (change := later_change(case)) is not None:
        facts.append(change)
    since = settled[0].started if settled else None
    if wrote is not None and since is not None:
        since = max(since, wrote.end) if wrote in settled else since
    resume = (case.resume(),) if case.qualifier and case.controller else ()
    return CaseFinding(
        finding=Finding.CONVERGED,
        since=since,
        why=tuple(facts),
        tries=(case.ctrl(Risk.READ, "trace", case.target), *resume),
        about=wrote if wrote in settled else last,  # the attempt that wrote it; those since changed nothing
        gap=(),
    )


def _result(last: RecordedAttempt, wrote: RecordedAttempt | None) -> Fact:
    kept = dict.fromkeys(_name(wish.resource, wish.key.name) for wish in last.wishes if wish.verb == "ensure")
    keeps = f"; it maintains {', '.join(list(kept)[:4])}" if kept else ""
    result = "succeeded" if wrote is last else "found nothing to change"
    return Fact(text=f"reconcile {short(last.id)} {result}{keeps}", at=last.end)
