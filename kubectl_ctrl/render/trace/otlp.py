"""A recording as OpenTelemetry traces, in the JSON lines that a collector's otlpjsonfile receiver reads.

Each attempt is a trace, because it may have many causes: these are span links, as in messaging. Its calls are child
spans. Each attempt has a line of its own, because a collector cuts lines longer than 1 MiB. Ids are hashes of the
recording's ids, so that two exports have the same spans.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.record import RecordedAttempt, RecordedCall, RecordedCause, RecordedRun, Story
from kubectl_ctrl.render.attempts import cause_text, difference_text
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.render.trace.links import Link, links

_INTERNAL, _CLIENT = 1, 3  # SpanKind
_OK, _ERROR = 1, 2  # StatusCode
_SCHEMA = "https://opentelemetry.io/schemas/1.26.0"

Fields = dict[str, Any]


def lines(story: Story) -> Iterator[str]:
    cluster = story.cluster.key if story.cluster else ""
    runs = {run.id: run for run in story.runs}
    caused: dict[str, list[Link]] = {}
    for link in links(story.attempts):
        caused.setdefault(link.target, []).append(link)
    for attempt in story.attempts:
        spans = _spans(attempt, cluster, caused.get(attempt.id, []))
        scope = {"scope": {"name": "kubectl-ctrl"}, "spans": spans}
        resource = {"attributes": _attributes(_resource(attempt, cluster, runs.get(attempt.run)))}
        line = {"resource": resource, "scopeSpans": [scope], "schemaUrl": _SCHEMA}
        yield json.dumps({"resourceSpans": [line]}, separators=(",", ":")) + "\n"


def _resource(attempt: RecordedAttempt, cluster: str, run: RecordedRun | None) -> Fields:
    fields = {
        "service.name": attempt.controller,
        "service.namespace": "kubectl-ctrl",
        "service.instance.id": attempt.run,
        "k8s.cluster.uid": cluster,
    }
    if run is None:
        return fields
    return fields | {
        "service.version": run.program,
        "host.name": run.host,
        "process.pid": run.pid,
        "k8s.cluster.name": run.context,
    }


def _spans(attempt: RecordedAttempt, cluster: str, caused: list[Link]) -> list[Fields]:
    trace, root = trace_id(cluster, attempt.id), span_id(cluster, attempt.id)
    status: Fields = {}
    if attempt.verdict and attempt.verdict.failed:
        status = {"code": _ERROR, "message": _text(attempt.verdict.message)}
    elif attempt.verdict and attempt.verdict.outcome is not Outcome.DROPPED:
        status = {"code": _OK}
    span = {
        "traceId": trace,
        "spanId": root,
        "name": f"reconcile {_text(attempt.controller)}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanos(attempt.started),
        "endTimeUnixNano": _nanos(attempt.end),
        "attributes": _attributes(_fields(attempt)),
        "events": [_event(cause) for cause in attempt.causes],
        "links": [_link(link, cluster) for link in caused],
        "status": status,
    }
    return [span, *(_call(made, cluster, trace, root) for made in (*attempt.calls, *attempt.background))]


def _fields(attempt: RecordedAttempt) -> Fields:
    verdict = attempt.verdict
    return {
        "k8s.namespace.name": attempt.request.namespace,
        "kubectl_ctrl.object.name": attempt.request.name,
        "kubectl_ctrl.object.uid": attempt.uid,
        "kubectl_ctrl.attempt": attempt.id,
        "kubectl_ctrl.try": attempt.try_no,
        "kubectl_ctrl.waited_seconds": round(attempt.waited, 6),
        "kubectl_ctrl.causes": attempt.causes_total,
        "kubectl_ctrl.echoes": attempt.echoes,
        "kubectl_ctrl.skipped": list(attempt.skipped),
        "kubectl_ctrl.outcome": attempt.outcome,
        "kubectl_ctrl.delay_seconds": verdict.delay if verdict else 0.0,
        "error.type": verdict.error_id if verdict else "",
        "code.location": verdict.where if verdict else "",
    }


def _event(cause: RecordedCause) -> Fields:
    fields = {
        "kubectl_ctrl.cause": cause_text(cause, Style(), None),
        "kubectl_ctrl.cause.kind": cause.kind.value,
        "kubectl_ctrl.cause.resource": cause.resource.full_name if cause.resource else "",
        "kubectl_ctrl.cause.object": str(cause.key) if cause.key else "",
        "kubectl_ctrl.cause.uid": cause.uid,
        "kubectl_ctrl.cause.version": cause.new_version,
        "kubectl_ctrl.cause.attempt": cause.attempt,
        "kubectl_ctrl.cause.writers": list(cause.writers),
    }
    return {"timeUnixNano": _nanos(cause.at), "name": "cause", "attributes": _attributes(fields)}


def _link(link: Link, cluster: str) -> Fields:
    """To its cause: the call that wrote the version that triggered it, or the attempt that requested it."""
    fields = {"kubectl_ctrl.link": link.kind, "kubectl_ctrl.attempt": link.source, "kubectl_ctrl.call": link.call}
    return {
        "traceId": trace_id(cluster, link.source),
        "spanId": span_id(cluster, link.call or link.source),
        "attributes": _attributes(fields),
    }


def _call(made: RecordedCall, cluster: str, trace: str, parent: str) -> Fields:
    call = made.call
    kind = call.resource.kind if call.resource else ""
    fields = {
        "kubectl_ctrl.call": call.id,
        "kubectl_ctrl.verb": call.verb,
        "kubectl_ctrl.resource": call.resource.full_name if call.resource else "",
        "k8s.namespace.name": call.namespace,
        "kubectl_ctrl.object.name": call.name,
        "kubectl_ctrl.object.uid": call.uid,
        "kubectl_ctrl.object.version": call.new_version,
        "kubectl_ctrl.subresource": call.subresource,
        "kubectl_ctrl.dry_run": call.dry_run,
        "kubectl_ctrl.changes": [difference_text(one, Style()) for one in made.changes.shown],
        "http.response.status_code": call.code,
        "http.request.resend_count": call.sends - 1,
        "error.type": call.reason if call.error else "",
    }
    return {
        "traceId": trace,
        "spanId": span_id(cluster, call.id),
        "parentSpanId": parent,
        "name": " ".join(part for part in (call.verb, kind, call.subresource) if part),
        "kind": _CLIENT,
        "startTimeUnixNano": _nanos(call.started),
        "endTimeUnixNano": _nanos(call.started + call.took),
        "attributes": _attributes(fields),
        "status": {"code": _ERROR, "message": _text(call.error)} if call.error else {},
    }


def trace_id(cluster: str, attempt: str) -> str:
    return _hashed("trace", cluster, attempt)[:32]


def span_id(cluster: str, name: str) -> str:
    """The id of an attempt or a call."""
    return _hashed("span", cluster, name)[:16]


def _hashed(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()


def _nanos(at: float) -> str:
    """A string, as protobuf's JSON has 64-bit numbers. A float holds wall time to a fraction of a microsecond only."""
    return str(round(at * 1_000_000) * 1000)


def _attributes(fields: Mapping[str, Any]) -> list[Fields]:
    """Without empty values; zero and false are values."""
    return [{"key": key, "value": _value(value)} for key, value in fields.items() if value not in (None, "", [])]


def _value(value: Any) -> Fields:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": _text(str(value))}


def _text(text: str) -> str:
    """Protobuf's strings are UTF-8, which has no lone surrogates."""
    return text.encode("utf-8", "replace").decode()
