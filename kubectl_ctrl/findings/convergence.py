"""NOT CONVERGED, WAITING and CONVERGED: how the last attempt ended, and what the object itself says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kubectl_ctrl.findings.account import Fact, Finding, Gap, Qualifier, Risk, Try
from kubectl_ctrl.findings.case import Case, Found, failed, short, tail
from kubectl_ctrl.findings.gap import rollout
from kubectl_ctrl.findings.unseen import aside
from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import Made, Recorded, Source
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.rbac.usage import REFUSED
from kubectl_ctrl.value import Value

# Conditions that are bad news when they are True; of all others it is False.
_BAD_WHEN_TRUE = frozenset({"ReplicaFailure", "Failed", "Degraded", "Stalled", "DiskPressure", "MemoryPressure"})
_LONG = 3.0
# What a reconciler may wait for: a right, a quota, an admission rule; an object that is not right.
_REFUSED = (403, 422)
_NUMBER = re.compile(r"[0-9]+")


def not_converged(case: Case, qualifier: Qualifier | None) -> Found | None:
    last = case.ended
    if last is None:
        return None
    if failed(last):
        return _failed(case, last)
    return _not_ready(case, last)


def _failed(case: Case, last: Recorded) -> Found:
    failing = [last]
    for one in case.attempts[::-1]:
        if one.id == last.id or not one.over:
            continue
        if not failed(one):
            break
        failing.append(one)
    call = next((made for made in last.calls[::-1] if made.call.error and _ended(made, last.verdict)), None)
    facts = list(_failure(last, call))
    if len(failing) > 1:
        facts.append(Fact(text=f"{len(failing)} attempts in a row failed, the first {case.short(failing[-1].id)}"))
    running = case.last
    if running is not None and running is not last:
        facts.append(Fact(text=f"{short(running.id)} is running now", at=running.started))
    return Found(
        finding=Finding.NOT_CONVERGED,
        since=failing[-1].started,
        why=tuple(facts),
        tries=_tries(case, last, call),
        about=last,
        evidence=tuple(_call_evidence(call)),
        where=last.verdict.where if last.verdict else "",
        call=call,
    )


def _ended(made: Made, verdict: Verdict | None) -> bool:
    """Whether the attempt may have ended by that call's error, as against one of the reconciler's own making."""
    return verdict is None or verdict.error_id.startswith("CTRL-") or made.call.error in verdict.message


def _failure(last: Recorded, call: Made | None) -> Iterator[Fact]:
    at = last.end
    if last.verdict is None:
        sent = [made for made in last.calls if made.call.code is None]
        unknown = f"; the results of {len(sent)} calls are unknown" if sent else ""
        yield Fact(
            text=f"reconcile {short(last.id)} was interrupted: its process stopped during it{unknown}", at=last.started
        )
        return
    verdict = last.verdict
    if verdict.outcome is Outcome.DROPPED:
        yield Fact(text=f"reconcile {short(last.id)} did not finish: {verdict.message}", at=at)
        return
    denied = REFUSED.search(f"{verdict.message} {call.call.error if call else ''}")
    # A denied call says all that its long message does.
    message = _call_text(call) if call is not None and denied is not None else verdict.message
    yield Fact(text=f"reconcile {short(last.id)} failed: {message}", at=at)
    if denied:
        group = f"{denied['group']}/" if denied["group"] else ""
        where = f" in {denied['namespace']}" if denied["namespace"] else ""
        yield Fact(text=f"{denied['user']} cannot {denied['verb']} {group}{denied['resource']}{where}", at=at)
    if verdict.outcome is Outcome.TERMINAL:
        until = "its next scheduled run or a change" if verdict.delay else "a change"
        yield Fact(text=f"terminal: no retry until {until}", at=at)


def _call_evidence(call: Made | None) -> Iterator[Fact]:
    if call is not None:
        error = f": {call.call.error}" if call.call.error else ""
        yield Fact(text=f"call {call.call.id}: {_call_text(call)}{error}", at=call.call.started)


def _call_text(made: Made) -> str:
    call = made.call
    sub = f"/{call.subresource}" if call.subresource else ""
    answer = f"{call.code} {call.reason}".strip() if call.code is not None else "no answer"
    return f"{call.verb} {_place(call.resource, call.name)}{sub}: {answer}"


def _place(resource: Resource | None, name: str) -> str:
    return f"{resource.kind}/{name}" if resource is not None else name


def _tries(case: Case, last: Recorded, call: Made | None) -> tuple[Try, ...]:
    verdict = last.verdict
    said = f"{verdict.message if verdict else ''} {call.call.error if call else ''}"
    if case.controller is not None and REFUSED.search(said):
        missing = case.ctrl(Risk.READ, "rbac", case.controller.word, "--missing", "--output=yaml")
        return (
            missing,
            Try(risk=Risk.WRITE, command=f"{missing.command} | kubectl apply -f -"),
        )
    look = case.ctrl(Risk.READ, "trace", case.target, f"--id={last.id}")
    if verdict is None or verdict.outcome is Outcome.DROPPED:
        return (look, case.revived()) if case.controller is not None else (look,)
    if verdict.outcome is Outcome.TERMINAL:
        return (look, case.kubectl(Risk.WRITE, "edit", case.target))
    return (look, case.kubectl(Risk.READ, "describe", case.target))


class _Said(Value):
    """What the object says of itself."""

    conditions: tuple[Obj, ...]
    source: Source
    at: float


def _said(case: Case) -> _Said | None:
    """The newest conditions: of the live object, else of the last status written, else of the last one read."""
    body = case.body
    if body is not None and body.source is Source.LIVE and body.obj is not None:
        return _Said(_conditions(body.obj.get("status")), Source.LIVE, body.at)
    for one in case.attempts[::-1]:
        for wish in one.wishes[::-1]:
            if wish.verb == "status" and (wish.resource, wish.key) == (case.resource, case.key) and wish.how:
                try:
                    return _Said(_conditions(json.loads(wish.body or "{}")), Source.RECORDED, one.started)
                except ValueError:
                    continue
    if body is not None and body.obj is not None:
        return _Said(_conditions(body.obj.get("status")), body.source, body.at)
    return None


def _conditions(status: object) -> tuple[Obj, ...]:
    found = status.get("conditions") if isinstance(status, dict) else None
    return tuple(one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def ready(case: Case) -> Fact | None:
    """Its Ready condition, in words."""
    said = _said(case)
    for one in said.conditions if said else ():
        if one.get("type") == "Ready" and said is not None:
            return Fact(text=f"it reports {_condition(one)}", source=said.source, at=said.at)
    return None


def _condition(one: Obj) -> str:
    parts = (f"{one.get('type')}={one.get('status')}", str(one.get("reason") or ""))
    message = str(one.get("message") or "")
    return " ".join(filter(None, parts)) + (f": {message}" if message else "")


def says_unready(case: Case) -> Fact | None:
    """Its last attempt ended well, plans nothing more, and it says that it is not ready: nobody waits for anything."""
    last = case.last
    if last is None or last.verdict is None or last.verdict.outcome is not Outcome.DONE:
        return None
    fact = ready(case)
    return fact if fact is not None and fact.text.startswith("it reports Ready=False") else None


def _not_ready(case: Case, last: Recorded) -> Found | None:
    fact = says_unready(case)
    if fact is None or case.last is not last or last.verdict is None:
        return None
    since = next((one.started for one in tail(case.attempts, Outcome.DONE)), last.started)
    why = (
        fact,
        Fact(
            text=f"reconcile {short(last.id)} succeeded and scheduled nothing: only a change triggers it again",
            at=last.end,
        ),
    )
    tries = (
        case.ctrl(Risk.READ, "trace", case.target, f"--id={last.id}"),
        case.kubectl(Risk.WRITE, "edit", case.target),
    )
    return Found(finding=Finding.NOT_CONVERGED, since=since, why=why, tries=tries, about=last, where=last.verdict.where)


def waiting(case: Case, qualifier: Qualifier | None) -> Found | None:
    last = case.last
    if last is None:
        return None
    tries = (case.ctrl(Risk.READ, "trace", case.target, "--last=5"),)
    if last.verdict is None:
        why = Fact(text=f"reconcile {short(last.id)} is running", at=last.started)
        return Found(finding=Finding.WAITING, since=last.started, why=(why,), tries=tries, about=last)
    entry = case.entry
    if entry is not None and entry.state in ("ready", "running") and case.moment and case.moment.state.at > last.end:
        why = Fact(text=f"a newer change is queued ({entry.state}) with {entry.causes} causes", at=entry.since)
        queue = case.ctrl(Risk.READ, "queue", last.controller)
        return Found(finding=Finding.WAITING, since=entry.since, why=(why,), tries=(queue, *tries), about=last)
    if last.verdict.outcome is Outcome.AGAIN:
        passes = tail(case.attempts, Outcome.AGAIN)
        why = Fact(
            text=f"{short(last.id)} requested another pass immediately, {len(passes)} in a row so far", at=last.end
        )
        return Found(finding=Finding.WAITING, since=passes[0].started, why=(why,), tries=tries, about=last)
    if last.verdict.outcome is Outcome.WAITING:
        return _waits(case, last, last.verdict, qualifier)
    return None


def _waits(case: Case, last: Recorded, verdict: Verdict, qualifier: Qualifier | None) -> Found:
    since = tail(case.attempts, Outcome.WAITING)[0].started
    facts = [Fact(text=f"{short(last.id)} waits for {verdict.message}", at=last.end)]
    refused = [made for made in last.calls if made.call.code in _REFUSED and made.call.error]
    facts += [Fact(text=f"{made.call.id}: {made.call.error}", at=made.call.started) for made in refused[:1]]
    facts += _blockers(case)
    past = _episodes(case, verdict.message)
    if past:
        from statistics import median

        usual = median(past)
        times = "one earlier wait" if len(past) == 1 else f"median of {len(past)} earlier waits"
        longer = "; this one is taking longer" if case.now - since > max(_LONG * usual, 1.0) else ""
        facts.append(Fact(text=f"it usually takes {format_duration(usual)} ({times}){longer}"))
    gaps = tuple(_rollouts(case))
    tries: list[Try] = []
    for one in gaps[:1]:
        place = f"{one.resource.full_name}/{one.key.name}"
        tries.append(case.kubectl(Risk.READ, "describe", place))
    tries.append(case.ctrl(Risk.READ, "trace", case.target, "--last=5"))
    if qualifier is not None and case.controller is not None:
        tries.append(case.revived())
    return Found(
        finding=Finding.WAITING,
        since=since,
        why=tuple(facts),
        tries=tuple(tries),
        about=last,
        gap=gaps or None,
        where=verdict.where,
    )


def _episodes(case: Case, what: str) -> list[float]:
    """How long each wait for the same before took that came to a good end."""
    found: list[float] = []
    began: float | None = None
    for one in case.attempts:
        outcome = one.verdict.outcome if one.verdict else None
        if outcome is Outcome.WAITING and one.verdict is not None and _alike(one.verdict.message, what):
            began = one.started if began is None else began
        elif outcome in (Outcome.DONE, Outcome.AFTER) and began is not None:
            found.append(one.started - began)
            began = None
    return found


def _alike(one: str, other: str) -> bool:
    """`rollout 1/3` and `rollout 2/5` are the same thing to wait for."""
    return _NUMBER.sub("0", one) == _NUMBER.sub("0", other)


def _touched(case: Case) -> Iterator[tuple[Resource, Key]]:
    """The objects beside itself whose newest state is known."""
    own = (case.resource, case.key)
    for place in case.bodies:
        if place != own:
            yield place


def _blockers(case: Case) -> Iterator[Fact]:
    """What the objects that it looks at say is wrong with them."""
    for resource, key in _touched(case):
        body = case.bodies[resource, key]
        for one in _conditions((body.obj or {}).get("status")):
            bad = "True" if one.get("type") in _BAD_WHEN_TRUE else "False"
            if one.get("status") == bad:
                yield Fact(text=f"{resource.kind}/{key.name} reports {_condition(one)}", source=body.source, at=body.at)


def _rollouts(case: Case) -> Iterator[Gap]:
    for resource, key in _touched(case):
        yield from rollout(case, resource, key, case.bodies[resource, key])


def converged(case: Case, qualifier: Qualifier | None) -> Found:
    last = case.ended or case.last
    settled = tail(case.attempts, Outcome.DONE, Outcome.AFTER)
    wrote = next((one for one in case.attempts[::-1] if any(made.call.granted for made in one.writes)), None)
    facts = list(_kept(case, last, wrote))
    if (says := ready(case)) is not None:
        facts.append(says)
    facts += aside(case)
    since = settled[0].started if settled else None
    if wrote is not None and since is not None:
        since = max(since, wrote.end) if wrote in settled else since
    return Found(
        finding=Finding.CONVERGED,
        since=since,
        why=tuple(facts),
        tries=(
            case.ctrl(Risk.READ, "trace", case.target),
            *((case.revived(),) if qualifier and case.controller else ()),
        ),
        about=wrote if wrote in settled else last,  # how it came to be so; what looked at it since changed nothing
        gap=(),
    )


def _kept(case: Case, last: Recorded | None, wrote: Recorded | None) -> Iterator[Fact]:
    if last is None:
        return
    kept = dict.fromkeys(_place(wish.resource, wish.key.name) for wish in last.wishes if wish.verb == "ensure")
    keeps = f"; it maintains {', '.join(list(kept)[:4])}" if kept else ""
    if wrote is last:
        yield Fact(text=f"reconcile {short(last.id)} succeeded{keeps}", at=last.end)
    else:
        yield Fact(text=f"reconcile {short(last.id)} found nothing to change{keeps}", at=last.end)
    if wrote is not None:
        made = next(made for made in wrote.writes[::-1] if made.call.granted)
        call = made.call
        sub = f"/{call.subresource}" if call.subresource else ""
        yield Fact(
            text=f"last write: {call.verb} {_place(call.resource, call.name)}{sub} {call.code}"
            f" by {case.short(call.id)}",
            at=call.started,
        )
    else:
        yield Fact(text="no write is recorded")
