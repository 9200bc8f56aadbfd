"""GONE and BLOCKED DELETION."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.findings.account import Fact, Finding, Inactivity, Risk, Try
from kubectl_ctrl.findings.case import Body, Case, CaseFinding, short
from kubectl_ctrl.model.attempt import ObjectRead
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.managed_fields import entries, fields_set
from kubectl_ctrl.model.record import FactSource, RecordedAttempt, RecordedCause

# Finalizers of Kubernetes itself, and the condition for their removal.
_KUBERNETES = {
    "foregroundDeletion": "the garbage collector removes it once all dependents are deleted",
    "orphan": "the garbage collector removes it once all dependents are orphaned",
    "kubernetes": "the namespace controller removes it once the namespace is empty",
    "kubernetes.io/pvc-protection": "it stays while a Pod uses the claim",
    "kubernetes.io/pv-protection": "it stays while a claim is bound to the volume",
}


def gone(case: Case) -> CaseFinding | None:
    body, last, deleted = case.body, case.last, _deletion(case)
    if body is not None and body.source is FactSource.LIVE:
        if body.obj is not None:
            return None
        why = Fact(text="the cluster has no such object", source=FactSource.LIVE, at=body.at)
    elif last is None:
        return None
    elif deleted is not None:
        why = Fact(text="it was deleted", at=deleted.at)
    elif last.verdict is not None and (reads := _reads(case, last)) and not reads[-1].found:
        why = Fact(text=f"{short(last.id)} did not find it", at=last.started)
    else:
        return None
    requested = [
        cause.at
        for one in case.attempts
        for cause in one.causes
        if any(change.path == "metadata.deletionTimestamp" for change in cause.changes.shown)
    ]
    deleters = [
        Fact(text=f"{one.controller} {case.short(made.call.id)} deleted it", at=made.call.started)
        for one in (*case.attempts, *case.others.values())
        for made in one.writes
        if made.call.verb == "delete" and made.call.uid == case.uid != ""
    ]
    evidence: tuple[Fact, ...] = ()
    if deleted is not None:
        seen = f"last seen as version {deleted.old_version or deleted.new_version} (uid {deleted.uid})"
        evidence = (Fact(text=seen, at=deleted.at),)
    return CaseFinding(
        finding=Finding.GONE,
        since=deleted.at if deleted else why.at,
        why=(
            why,
            *(Fact(text="its deletion was requested; the requester is not recorded", at=at) for at in requested[-1:]),
            *deleters,
        ),
        tries=(case.ctrl(Risk.READ, "trace", case.target, "--last=5"),),
        about=last,
        evidence=evidence,
        gap=(),
    )


def _deletion(case: Case) -> RecordedCause | None:
    """The event of its deletion, unless a later event or read shows the object.

    Deleted children trigger the controller once more, so the event may belong to an attempt before the last.
    """
    for one in reversed(case.attempts):
        own = [cause for cause in one.causes if (cause.resource, cause.key) == (case.resource, case.key)]
        if own:
            newest = own[-1]
            return newest if newest.kind is CauseKind.DELETED and case.uid in ("", newest.uid) else None
        if any(read.found for read in _reads(case, one)[-1:]):
            return None
    return None


def _reads(case: Case, attempt: RecordedAttempt) -> list[ObjectRead]:
    place = (case.resource, str(case.key))
    return [read for read in attempt.reads if read.verb in ("get", "live") and (read.resource, read.query) == place]


def blocked(case: Case) -> CaseFinding | None:
    body = case.body
    meta = body.obj["metadata"] if body is not None and body.obj is not None else {}
    finalizers = [str(one) for one in meta.get("finalizers") or ()]
    if body is None or not meta.get("deletionTimestamp") or not finalizers:
        return None
    facts = [
        Fact(text=f"finalizer {name}: {_holder(case, body, name)}", source=FactSource.RECORDED, at=body.at)
        for name in finalizers
    ]
    last = case.ended
    if last is not None and last.verdict is not None and last.verdict.message:
        name = case.controller.name if case.controller else "the controller"
        facts.append(Fact(text=f"{name} {short(last.id)} ended with {last.verdict.outcome}: {last.verdict.message}"))
    evidence = Fact(
        text=f"metadata.deletionTimestamp {meta['deletionTimestamp']}, metadata.finalizers {', '.join(finalizers)}"
        f" in version {meta.get('resourceVersion')}",
        source=body.source,
        at=body.at,
    )
    return CaseFinding(
        finding=Finding.BLOCKED_DELETION,
        since=parse_rfc3339(meta["deletionTimestamp"]),
        why=tuple(facts),
        tries=tuple(_tries(case, finalizers)),
        about=last,
        evidence=(evidence,),
        gap=(),
        where=last.verdict.where if last is not None and last.verdict is not None else "",
    )


def _holder(case: Case, body: Body, name: str) -> str:
    """The owner of a finalizer, and its state if known."""
    if name in _KUBERNETES:
        return _KUBERNETES[name]
    manager, controller, qualifier = _manager(case, body, name), case.controller, case.qualifier
    added = any(wish.verb == "add_finalizer" and name in wish.body for one in case.attempts for wish in one.wishes)
    if controller is not None and (manager == controller.manager or added):
        verb = "has" if qualifier and qualifier.state is Inactivity.ENDED else "is"
        state = f"it {verb} {qualifier.state.value}" if qualifier else "it is active and has not removed it"
        return f"belongs to {controller.name}, this controller; {state}"
    if not manager:
        return "its owner is not recorded; it is not this controller"
    writes = [one for one in entries(body.obj or {"metadata": {}}) if one.get("manager") == manager]
    seen = max((str(one.get("time") or "") for one in writes), default="")
    text = f"belongs to {manager}, not to this controller; whether {manager} is running is unknown"
    return text + (f", it last wrote this object at {seen}" if seen else "")


def _manager(case: Case, body: Body, name: str) -> str:
    """The manager that added the finalizer, by managedFields or else by the recorded change that added it."""
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


def _tries(case: Case, finalizers: list[str]) -> Iterator[Try]:
    yield case.kubectl(Risk.READ, "get", case.target, "--output=yaml", "--show-managed-fields")
    if case.qualifier is not None and case.controller is not None:
        yield case.resume()
    # `test` makes the patch fail if another client changed the list meanwhile: no other finalizer is removed.
    patch = [
        {"op": "test", "path": "/metadata/finalizers/0", "value": finalizers[0]},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]
    yield case.kubectl(Risk.DESTROY, "patch", case.target, "--type=json", f"--patch={json.dumps(patch)}")
