"""One attempt for machines: `kubectl-ctrl.attempt/v1`, as `run --log json` and `trace -o jsonl` print it.

docs/schemas/attempt.v1.json describes every field. Fields are added to a version, and never change or go.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from kubectl_ctrl.model.attempt import Intent, Raised, Read, Wish
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference
from kubectl_ctrl.model.masking import MASK
from kubectl_ctrl.model.record import Changes, Made, Recorded, Source, Why

SCHEMA = "kubectl-ctrl.attempt/v1"

# A read may have found thousands; so many are named.
_MOST_FOUND = 100


def attempt_json(attempt: Recorded, zone: tzinfo = UTC, source: Source = Source.RECORDED) -> dict[str, Any]:
    """The schema's name says which version of it this is."""
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
        **_verdict_json(attempt),
        **_details(attempt, zone),
    }


def stamp(at: float, zone: tzinfo = UTC) -> str:
    """RFC 3339, to the microsecond: what a call did within a millisecond keeps its order."""
    return datetime.fromtimestamp(at, zone).isoformat(timespec="microseconds")


def time_json(at: float | None) -> str | None:
    """A time that may not be known."""
    return None if at is None else stamp(at)


def seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def changes_json(changes: Changes) -> list[dict[str, Any]]:
    return [difference_json(difference) for difference in changes.shown]


def difference_json(difference: Difference) -> dict[str, Any]:
    return {"path": difference.path, **sides_json(old=difference.old, new=difference.new)}


def sides_json(**sides: Any) -> dict[str, Any]:
    """What stands on each side; one that has nothing there has no value (null is one), a hidden one says so."""
    return {name: MASK if value is HIDDEN else value for name, value in sides.items() if value is not ABSENT}


def said(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Only the facts that say something."""
    return {name: value for name, value in facts.items() if value}


def _verdict_json(attempt: Recorded) -> dict[str, Any]:
    verdict = attempt.verdict
    if verdict is None:
        return {"outcome": attempt.outcome}
    return {
        "outcome": verdict.outcome.value,
        "delaySeconds": verdict.delay,
        "message": verdict.message,
        "errorId": verdict.error_id,
        "where": verdict.where,
    }


def _details(attempt: Recorded, zone: tzinfo) -> dict[str, Any]:
    """What most attempts have nothing of."""
    return said(
        {
            "reads": [_read_json(read) for read in attempt.reads],
            "wishes": [_wish_json(wish) for wish in attempt.wishes],
            "events": [_event_json(intent) for intent in attempt.intents],
            "background": [call_json(made, zone) for made in attempt.background],
            "heard": [
                {"uid": echo.uid, "version": echo.version, "afterSeconds": seconds(echo.after)}
                for echo in attempt.heard
            ],
            "traceback": attempt.traceback,
        }
    )


def cause_json(cause: Why, zone: tzinfo) -> dict[str, Any]:
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
    return shown | said(
        {
            "oldVersion": cause.old_version,
            "newVersion": cause.new_version,
            "attempt": cause.attempt,
            "count": cause.count,
            "detail": cause.detail,
            "relisted": cause.relisted,
        }
    )


def call_json(made: Made, zone: tzinfo) -> dict[str, Any]:
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
    return shown | said(facts)


def _read_json(read: Read) -> dict[str, Any]:
    return {
        "verb": read.verb,
        "resource": read.resource.full_name,
        "kind": read.resource.kind,
        "query": read.query,
        "found": [{"uid": uid, "version": version} for uid, version in read.found[:_MOST_FOUND]],
        "foundTotal": len(read.found),
        **_raised_json(read.raised),
    }


def _wish_json(wish: Wish) -> dict[str, Any]:
    """What was asked of the writing door, without what was given: of a Secret that is nobody's business."""
    asked = {
        "verb": wish.verb,
        "resource": wish.resource.full_name,
        "kind": wish.resource.kind,
        "object": str(wish.key),
    }
    return asked | said(
        {
            "options": dict(wish.options),
            "how": wish.how,
            "uid": wish.uid,
            "version": wish.version,
            "calls": list(wish.calls),
            **_raised_json(wish.raised),
        }
    )


def _raised_json(raised: Raised | None) -> dict[str, Any]:
    return {} if raised is None else said({"error": raised.error, "message": raised.message, "code": raised.code})


def _event_json(intent: Intent) -> dict[str, Any]:
    return {
        "type": intent.type,
        "reason": intent.reason,
        "message": intent.message,
        "object": str(intent.about),
    }
