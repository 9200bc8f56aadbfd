"""One attempt as JSON: `kubectl-ctrl.attempt/v1`, as `run --log json` and `trace -o jsonl` print it.

docs/schemas/attempt.v1.json describes every field. A version may get new fields; none changes or is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from kubectl_ctrl.model.attempt import ObjectRead, RaisedError, WriteRequest
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.masking import MASK
from kubectl_ctrl.model.record import Changes, FactSource, RecordedAttempt, RecordedCall, RecordedCause, RecordedCluster

SCHEMA = "kubectl-ctrl.attempt/v1"

# A read may find thousands of objects; so many are named.
_MOST_FOUND = 100


def attempt_json(
    attempt: RecordedAttempt, zone: tzinfo = UTC, source: FactSource = FactSource.RECORDED
) -> dict[str, Any]:
    verdict: dict[str, Any] = {"outcome": attempt.outcome}
    if attempt.verdict is not None:
        verdict |= {
            "delaySeconds": attempt.verdict.delay,
            "message": attempt.verdict.message,
            "errorId": attempt.verdict.error_id,
            "where": attempt.verdict.where,
        }
    # Most attempts have none of these.
    details = {
        "reads": [_read_json(read) for read in attempt.reads],
        "wishes": [_wish_json(wish) for wish in attempt.wishes],
        "events": [
            {"type": one.type, "reason": one.reason, "message": one.message, "object": str(one.about)}
            for one in attempt.intents
        ],
        "background": [call_json(made, zone) for made in attempt.background],
        "heard": [
            {"uid": echo.uid, "version": echo.version, "afterSeconds": seconds(echo.after)} for echo in attempt.heard
        ],
        "traceback": attempt.traceback,
    }
    return {
        "schema": SCHEMA,
        "time": stamp(attempt.started, zone),
        "attempt": attempt.id,
        "controller": attempt.controller,
        "namespace": attempt.request.namespace,
        "name": attempt.request.name,
        "uid": attempt.uid,
        "source": source.value,
        "causes": [cause_json(cause, zone) for cause in attempt.causes],
        "causesTotal": attempt.causes_total,
        "queuedAt": stamp(attempt.queued_at, zone),
        "waitedSeconds": seconds(attempt.waited),
        "tookSeconds": seconds(attempt.took),
        "try": attempt.try_no,
        "calls": [call_json(made, zone) for made in attempt.calls],
        "skipped": list(attempt.skipped),
        "echoes": attempt.echoes,
        **verdict,
        **nonempty(details),
    }


def cluster_fields(cluster: RecordedCluster) -> dict[str, Any]:
    return {
        "contexts": list(cluster.contexts),
        "servers": [server for server, _ in cluster.servers],
        "lastSeen": stamp(cluster.seen),
        "name": cluster.name or None,
        "provider": cluster.provider or None,
        "deleted": time_json(cluster.ended),
    }


def stamp(at: float, zone: tzinfo = UTC) -> str:
    """RFC 3339 with microseconds: calls within a millisecond keep their order."""
    return datetime.fromtimestamp(at, zone).isoformat(timespec="microseconds")


def time_json(at: float | None) -> str | None:
    return None if at is None else stamp(at)


def seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def changes_json(changes: Changes) -> list[dict[str, Any]]:
    return [difference_json(difference) for difference in changes.shown]


def difference_json(difference: Difference) -> dict[str, Any]:
    return {"path": difference.path, **sides_json(old=difference.old, new=difference.new)}


def sides_json(**sides: Any) -> dict[str, Any]:
    """The value of each side: left out if absent (null is a value), masked if hidden."""
    return {name: MASK if value is HIDDEN else value for name, value in sides.items() if value is not ABSENT}


def nonempty(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts without empty ones."""
    return {name: value for name, value in facts.items() if value}


def cause_json(cause: RecordedCause, zone: tzinfo) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": cause.kind.value, "time": stamp(cause.at, zone)}
    if cause.resource is not None and cause.key is not None:
        shown |= {"resource": cause.resource.full_name, "object": str(cause.key), "uid": cause.uid}
        shown["objectKind"] = cause.resource.kind
    if cause.kind is CauseKind.MODIFIED:
        shown["changed"] = [difference.path for difference in cause.changes.shown]
        shown["changedTotal"] = cause.changes.total
        shown["changes"] = changes_json(cause.changes)
    if cause.kind in (CauseKind.ADDED, CauseKind.MODIFIED):
        shown["writers"] = list(cause.writers)
    return shown | nonempty(
        {
            "oldVersion": cause.old_version,
            "newVersion": cause.new_version,
            "attempt": cause.attempt,
            "count": cause.count,
            "detail": cause.detail,
            "relisted": cause.relisted,
        }
    )


def call_json(made: RecordedCall, zone: tzinfo) -> dict[str, Any]:
    call = made.call
    shown = {
        "id": call.id,
        "verb": call.verb,
        "resource": call.resource.full_name if call.resource else "",
        "kind": call.resource.kind if call.resource else "",
        "namespace": call.namespace,
        "name": call.name,
        "subresource": call.subresource,
        "time": stamp(call.started, zone),
        "code": call.code,
        "tookSeconds": seconds(call.took),
        "sends": call.sends,
        "dryRun": call.dry_run,
        "error": call.error,
    }
    facts = {
        "reason": call.reason,
        "uid": call.uid,
        "oldVersion": call.old_version,
        "newVersion": call.new_version,
        "changes": changes_json(made.changes),
        "changesTotal": made.changes.total,
    }
    return shown | nonempty(facts)


def _read_json(read: ObjectRead) -> dict[str, Any]:
    return {
        "verb": read.verb,
        "resource": read.resource.full_name,
        "kind": read.resource.kind,
        "query": read.query,
        "found": [{"uid": uid, "version": version} for uid, version in read.found[:_MOST_FOUND]],
        "foundTotal": len(read.found),
        **_raised_json(read.raised),
    }


def _wish_json(wish: WriteRequest) -> dict[str, Any]:
    """A requested change, without its object, which may be a Secret."""
    shown = {
        "verb": wish.verb,
        "resource": wish.resource.full_name,
        "kind": wish.resource.kind,
        "object": str(wish.key),
    }
    return shown | nonempty(
        {
            "options": dict(wish.options),
            "how": wish.how,
            "uid": wish.uid,
            "version": wish.version,
            "calls": list(wish.calls),
            **_raised_json(wish.raised),
        }
    )


def _raised_json(raised: RaisedError | None) -> dict[str, Any]:
    return {} if raised is None else nonempty({"error": raised.error, "message": raised.message, "code": raised.code})
