"""GONE and BLOCKED DELETION."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.findings.account import Fact, Finding, Qualifier, Risk, Try
from kubectl_ctrl.findings.case import Body, Case, Found, short
from kubectl_ctrl.model.attempt import Read
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.managed_fields import entries, fields_set
from kubectl_ctrl.model.record import Recorded, Source, Why

# Finalizers of Kubernetes itself, and what each waits for.
_KUBERNETES = {
    "foregroundDeletion": "the garbage collector removes it once all dependents are deleted",
    "orphan": "the garbage collector removes it once all dependents are orphaned",
    "kubernetes": "the namespace controller removes it once the namespace is empty",
    "kubernetes.io/pvc-protection": "it stays while a Pod uses the claim",
    "kubernetes.io/pv-protection": "it stays while a claim is bound to the volume",
}


def gone(case: Case, qualifier: Qualifier | None) -> Found | None:
    body = case.body
    if body is not None and body.source is Source.LIVE:
        return _gone_live(case, body) if body.obj is None else None
    last = case.last
    if last is None:
        return None
    deleted = _deleted(case)
    if deleted is None and not _missed(case, last):
        return None
    if deleted is None:
        why = Fact(text=f"{short(last.id)} did not find it", at=last.started)
    else:
        why = Fact(text="it was deleted", at=deleted.at)
    return _gone(case, why, last)


def _gone_live(case: Case, body: Body) -> Found:
    why = Fact(text="the cluster has no such object", source=Source.LIVE, at=body.at)
    return _gone(case, why, case.last)


def _gone(case: Case, why: Fact, last: Recorded | None) -> Found:
    asked = [cause for one in case.attempts for cause in one.causes if _asks_deletion(cause)]
    deleted = _deleted(case)
    facts = [
        why,
        *(Fact(text="its deletion was requested; the requester is not recorded", at=one.at) for one in asked[-1:]),
    ]
    facts += _deleters(case)
    evidence = Fact(
        text=f"last seen as version {deleted.old_version or deleted.new_version} (uid {deleted.uid})"
        if deleted
        else "",
        at=deleted.at if deleted else None,
    )
    return Found(
        finding=Finding.GONE,
        since=deleted.at if deleted else why.at,
        why=tuple(facts),
        tries=(case.ctrl(Risk.READ, "trace", case.target, "--last=5"),),
        about=last,
        evidence=(evidence,) if deleted else (),
        gap=(),
    )


def _deleted(case: Case) -> Why | None:
    """Its deletion, where that is the last that was heard of it and no attempt found it since.

    What went with it wakes the controller once more: the word of it is then in an attempt before the last.
    """
    for one in reversed(case.attempts):
        own = [cause for cause in one.causes if (cause.resource, cause.key) == (case.resource, case.key)]
        if own:
            newest = own[-1]
            return newest if newest.kind is CauseKind.DELETED and case.uid in ("", newest.uid) else None
        if any(look.found for look in _looks(case, one)[-1:]):
            return None
    return None


def _missed(case: Case, last: Recorded) -> bool:
    looks = _looks(case, last)
    return bool(looks) and not looks[-1].found and last.verdict is not None


def _looks(case: Case, attempt: Recorded) -> list[Read]:
    place = (case.resource, str(case.key))
    return [read for read in attempt.reads if read.verb in ("get", "live") and (read.resource, read.query) == place]


def _asks_deletion(cause: Why) -> bool:
    return any(one.path == "metadata.deletionTimestamp" for one in cause.changes.shown)


def _deleters(case: Case) -> Iterator[Fact]:
    for one in (*case.attempts, *case.others.values()):
        for made in one.writes:
            if made.call.verb == "delete" and made.call.uid == case.uid != "":
                yield Fact(text=f"{one.controller} {case.short(made.call.id)} deleted it", at=made.call.started)


def blocked(case: Case, qualifier: Qualifier | None) -> Found | None:
    body = case.body
    meta = body.obj["metadata"] if body is not None and body.obj is not None else {}
    finalizers = [str(one) for one in meta.get("finalizers") or ()]
    if body is None or not meta.get("deletionTimestamp") or not finalizers:
        return None
    since = parse_rfc3339(meta["deletionTimestamp"])
    facts: list[Fact] = []
    for name in finalizers:
        text, source = _holder(case, body, name, qualifier)
        facts.append(Fact(text=f"finalizer {name}: {text}", source=source, at=body.at))
    last = case.ended
    if last is not None and last.verdict is not None and last.verdict.message:
        facts.append(
            Fact(text=f"{case_name(case)} {short(last.id)} ended with {last.verdict.outcome}: {last.verdict.message}")
        )
    evidence = Fact(
        text=f"metadata.deletionTimestamp {meta['deletionTimestamp']}, metadata.finalizers {', '.join(finalizers)}"
        f" in version {meta.get('resourceVersion')}",
        source=body.source,
        at=body.at,
    )
    return Found(
        finding=Finding.BLOCKED_DELETION,
        since=since,
        why=tuple(facts),
        tries=tuple(_tries(case, finalizers, qualifier)),
        about=last,
        evidence=(evidence,),
        gap=(),
        where=last.verdict.where if last is not None and last.verdict is not None else "",
    )


def case_name(case: Case) -> str:
    return case.controller.name if case.controller else "the controller"


def _holder(case: Case, body: Body, name: str, qualifier: Qualifier | None) -> tuple[str, Source]:
    """Who is to take it away, and whether they can."""
    if name in _KUBERNETES:
        return _KUBERNETES[name], Source.RECORDED
    manager = _manager(case, body, name)
    ours = case.controller
    if ours is not None and (manager == ours.manager or _added_by_us(case, name)):
        state = f"it is {qualifier.standing.value}" if qualifier else "it is active and has not removed it"
        return f"belongs to {ours.name}, this controller; {state}", Source.RECORDED
    if not manager:
        return "its owner is not recorded; it is not this controller", Source.RECORDED
    seen = _last_seen(body, manager)
    text = f"belongs to {manager}, not to this controller; whether {manager} is running is unknown"
    return text + (f", it last wrote this object at {seen}" if seen else ""), Source.RECORDED


def _manager(case: Case, body: Body, name: str) -> str:
    """Who put the finalizer there: by the object's own notes, else by the change in which it appeared."""
    path = ("f:metadata", "f:finalizers", f"v:{json.dumps(name)}")
    for entry in entries(body.obj) if body.obj is not None else ():
        if path in fields_set(entry.get("fieldsV1") or {}):
            return str(entry.get("manager") or "")
    for one in case.attempts:
        for cause in one.causes:
            for change in cause.changes.shown:
                added = isinstance(change.new, list) and name in change.new
                if change.path == "metadata.finalizers" and added and len(cause.writers) == 1:
                    return cause.writers[0]
    created = next((cause for one in case.attempts for cause in one.causes if cause.kind is CauseKind.ADDED), None)
    return created.writers[0] if created is not None and len(created.writers) == 1 else ""


def _added_by_us(case: Case, name: str) -> bool:
    wishes = (wish for one in case.attempts for wish in one.wishes)
    return any(wish.verb == "add_finalizer" and name in wish.body for wish in wishes)


def _last_seen(body: Body, manager: str) -> str:
    times = [
        str(one.get("time") or "") for one in entries(body.obj or {"metadata": {}}) if one.get("manager") == manager
    ]
    return max(times, default="")


def _tries(case: Case, finalizers: list[str], qualifier: Qualifier | None) -> Iterator[Try]:
    yield case.kubectl(Risk.READ, "get", case.target, "--output=yaml", "--show-managed-fields")
    if qualifier is not None and case.controller is not None:
        yield case.revived()
    patch = [
        {"op": "test", "path": "/metadata/finalizers/0", "value": finalizers[0]},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    yield case.kubectl(Risk.DESTROY, "patch", case.target, "--type=json", f"--patch={json.dumps(patch)}")
