"""Read as a collector reads it: by the messages of OpenTelemetry's own protocol definition."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from kubectl_ctrl.model.record import Story
from kubectl_ctrl.render.trace.formats import export
from kubectl_ctrl.render.trace.links import links
from kubectl_ctrl.value import replace
from tests.render.stories import hostile, story

# OTLP's JSON has these as hex, where protobuf's own has all bytes as base64.
IDS = {"traceId": 32, "spanId": 16, "parentSpanId": 16}


def as_protobuf(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _id(key, item) if key in IDS else as_protobuf(item) for key, item in value.items()}
    return [as_protobuf(item) for item in value] if isinstance(value, list) else value


def _id(key: str, text: str) -> str:
    assert re.fullmatch(f"[0-9a-f]{{{IDS[key]}}}", text)
    assert set(text) != {"0"}
    return base64.b64encode(bytes.fromhex(text)).decode()


def parsed_line(line: str) -> TracesData:
    return json_format.ParseDict(as_protobuf(json.loads(line)), TracesData())


def parsed(shown: Story) -> list[TracesData]:
    return list(map(parsed_line, "".join(export("otlp", shown)).splitlines()))


def spans_of(data: TracesData) -> list[Span]:
    return [span for resource in data.resource_spans for scope in resource.scope_spans for span in scope.spans]


def spans(shown: Story) -> list[Span]:
    return [span for data in parsed(shown) for span in spans_of(data)]


def attributes(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in span.attributes}


@pytest.mark.parametrize("shown", [story(60), hostile()])
def test_a_line_for_each_attempt_that_no_collector_cuts(shown: Story) -> None:
    lines = list(export("otlp", shown))
    assert len(lines) == len(shown.attempts)
    assert all(line.endswith("\n") and line.count("\n") == 1 and len(line) < 1 << 20 for line in lines)


@pytest.mark.parametrize("shown", [story(60), hostile()])
def test_the_real_protocol_reads_it_to_the_last_field(shown: Story) -> None:
    for line, data in zip(export("otlp", shown), parsed(shown), strict=True):
        # Numbers that are 64 bits wide come back as strings only if they were strings.
        back = json_format.MessageToDict(data, use_integers_for_enums=True)
        assert _without_empty(back) == _without_empty(as_protobuf(json.loads(line)))


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(item) for key, item in value.items() if item not in ([], {})}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def test_calls_are_children_within_the_trace_of_their_attempt() -> None:
    shown = story(60)
    found = spans(shown)
    roots = {span.trace_id: span for span in found if not span.parent_span_id}
    calls = [span for span in found if span.parent_span_id]
    assert len(roots) == 60
    assert len(calls) == sum(len(attempt.calls) for attempt in shown.attempts)
    for span in calls:
        parent = roots[span.trace_id]
        assert span.parent_span_id == parent.span_id
        assert parent.start_time_unix_nano <= span.start_time_unix_nano < span.end_time_unix_nano
        assert span.end_time_unix_nano <= parent.end_time_unix_nano
        assert (parent.kind, span.kind) == (Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_CLIENT)


def test_ids_are_unique_and_links_lead_to_spans_that_exist() -> None:
    shown = story(600, objects=8)
    found = spans(shown)
    names = {(span.trace_id, span.span_id): attributes(span) for span in found}
    assert len(names) == len({span.span_id for span in found}) == len(found)
    seen = [
        (attributes(span)["kubectl_ctrl.attempt"], names[link.trace_id, link.span_id])
        for span in found
        for link in span.links
    ]
    wanted = [(link.target, link.call or link.source) for link in links(shown.attempts)]
    assert [(id_, one.get("kubectl_ctrl.call") or one["kubectl_ctrl.attempt"]) for id_, one in seen] == wanted


def test_the_same_recording_gives_the_same_spans() -> None:
    shown = story(30)
    assert list(export("otlp", shown)) == list(export("otlp", replace(shown, at=shown.at + 60)))
    assert shown.cluster
    other = replace(shown, cluster=replace(shown.cluster, key="another"))
    assert {span.trace_id for span in spans(shown)}.isdisjoint({span.trace_id for span in spans(other)})


def test_failures_are_errors_and_causes_are_events() -> None:
    shown = story(60)
    for attempt, span in zip(shown.attempts, (one for one in spans(shown) if not one.parent_span_id), strict=True):
        assert attempt.verdict
        failed = attempt.verdict.outcome.value in {"retry", "terminal"}
        assert span.status.code == (Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_OK)
        assert len(span.events) == len(attempt.causes)
        assert attributes(span)["kubectl_ctrl.outcome"] == attempt.verdict.outcome.value


def test_an_interrupted_attempt_has_no_status_and_ends_where_it_was_last_seen() -> None:
    root, call = spans(hostile())[-2:]
    assert (root.status.code, attributes(root)["kubectl_ctrl.outcome"]) == (Status.STATUS_CODE_UNSET, "interrupted")
    assert root.end_time_unix_nano == call.end_time_unix_nano
