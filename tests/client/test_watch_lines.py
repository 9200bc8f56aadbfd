"""Streams that hold errors, garbage and floods, line by line."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubectl_ctrl.client.shapes import ExpectedType, InvalidItem
from kubectl_ctrl.client.watch import EndKind, EventKind, WatchEvent, event_of
from kubectl_ctrl.errors import (
    BadAnswer,
    CredentialsError,
)
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import SECRETS
from kubectl_ctrl.model.transport import HttpRequest, HttpStream, NoAnswer, TooSlow
from tests.cache.pods import line, pod
from tests.client.rig import CONFIGMAPS, Lines, answer, configmap, on_answers, status, to_the_end, told

EXPECTED = ExpectedType(kind="ConfigMap", api_version="v1", metadata_only=False, sensitive=False)


def frame(kind: str, obj: Any) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def good(name: str, version: str = "1") -> Obj:
    obj = configmap(name)
    obj["metadata"]["resourceVersion"] = version
    return obj


# --- from written answers


async def test_an_error_frame_ends_the_watch_after_what_came_before() -> None:
    expired = status(410, "Expired", "too old resource version: 1 (9)")
    shed = status(429, "TooManyRequests", "slow down", retryAfterSeconds=3)
    rig, canned = on_answers(
        answer(frame("ADDED", good("one")) + frame("ERROR", expired) + frame("ADDED", good("two"))),
        answer(frame("ERROR", shed)),
        answer(frame("ERROR", {"kind": "Pod", "metadata": {}})),
    )
    watch = rig.client.watch(CONFIGMAPS)
    assert await to_the_end(watch) == ["ADDED one"]
    assert watch.end is not None
    assert (watch.end.kind, watch.end.events) == (EndKind.EXPIRED, 1)
    assert "too old resource version: 1 (9)" in str(watch.end.error)
    assert canned.streams[0].closed == 1
    watch = rig.client.watch(CONFIGMAPS)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert (watch.end.kind, watch.end.retry_after) == (EndKind.REFUSED, 3.0)
    watch = rig.client.watch(CONFIGMAPS)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert watch.end.kind is EndKind.BROKEN
    assert isinstance(watch.end.error, BadAnswer)


async def test_garbage_between_good_lines_costs_nothing_else() -> None:
    lines = [
        frame("ADDED", good("one")),
        b"\n",
        b"not json\n",
        b"\xff\xfe\n",
        b"[" * 5_000 + b"\n",
        b"7\n",
        b'{"type":["ADDED"],"object":{}}\n',
        b'{"type":"ADDED"}\n',
        frame("ADDED", None),
        frame("ADDED", {"kind": "ConfigMap", "apiVersion": "v1"}),
        frame("ADDED", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}),
        frame("ADDED", {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "x"}}),
        frame("ADDED", {"kind": "ConfigMap", "apiVersion": "v2", "metadata": {"name": "x"}}),
        frame("ADDED", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": 7}}),
        frame("ADDED", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x", "namespace": 7}}),
        frame("ADDED", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x", "resourceVersion": 7}}),
        frame("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}}),
        frame("RENAMED", good("x")),
        frame("ERROR", "no"),
        frame("MODIFIED", good("two")),
        frame("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}),
    ]
    rig, _canned = on_answers(answer(b"".join(lines)))
    watch = rig.client.watch(CONFIGMAPS)
    items = [item async for batch in watch for item in batch]
    assert told(items)[0] == "ADDED one"
    assert told(items)[-2:] == ["MODIFIED two", "BOOKMARK"]
    bad = [item for item in items if isinstance(item, InvalidItem)]
    assert len(bad) == len(items) - 3 >= 17
    assert all(item.why.endswith(".") and item.why.isprintable() and item.excerpt.isprintable() for item in bad)
    assert watch.end is not None
    assert (watch.end.kind, watch.end.events, watch.poisoned) == (EndKind.CLOSED, 3, len(bad))


async def test_a_login_page_is_no_stream() -> None:
    rig, canned = on_answers(answer(b"<html>\n" * 100, content_type="text/html"))
    watch = rig.client.watch(CONFIGMAPS)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert watch.end.kind is EndKind.REFUSED
    assert isinstance(watch.end.error, BadAnswer)
    assert "text/html" in watch.end.error.message
    assert canned.streams[0].closed == 1


async def test_errors_of_our_own_end_it_and_foreign_ones_pass() -> None:
    rig, _canned = on_answers(CredentialsError("The plugin failed."), ZeroDivisionError())
    watch = rig.client.watch(CONFIGMAPS)
    assert await to_the_end(watch) == []
    assert watch.end is not None
    assert watch.end.kind is EndKind.REFUSED
    assert isinstance(watch.end.error, CredentialsError)
    with pytest.raises(ZeroDivisionError):
        await to_the_end(rig.client.watch(CONFIGMAPS))


class Endless(Lines):
    """A stream that breaks or falls silent after its lines."""

    fault: Exception = NoAnswer("Reset.", sent=True)

    async def batches(self) -> AsyncIterator[list[bytes]]:
        async for batch in super().batches():
            yield batch
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(NoAnswer("Reset.", sent=True), EndKind.BROKEN), (TooSlow("Silent.", sent=True), EndKind.SILENT)],
)
async def test_how_a_stream_breaks(fault: Exception, kind: EndKind) -> None:
    rig, canned = on_answers()

    async def open_(request: HttpRequest) -> HttpStream:
        stream = Endless(answer(frame("ADDED", good("one"))))
        stream.fault = fault
        canned.streams.append(stream)
        return stream

    canned.open = open_  # type: ignore[method-assign]
    watch = rig.client.watch(CONFIGMAPS)
    assert await to_the_end(watch) == ["ADDED one"]
    assert watch.end is not None
    assert watch.end.kind is kind
    assert canned.streams[0].closed == 1


async def test_a_flood_leaves_turns_to_others() -> None:
    rig, _canned = on_answers(answer(b"".join(frame("ADDED", good(f"m{number}")) for number in range(1_000))))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await rig.clock.sleep(0)

    busy = asyncio.create_task(others())
    batches = [len(batch) async for batch in rig.client.watch(CONFIGMAPS)]
    busy.cancel()
    assert sum(batches) == 1_000
    assert max(batches) <= 8
    assert turns >= 10


# --- lines


def test_a_whole_object_is_projected_when_metadata_was_asked_for() -> None:
    expected = ExpectedType(kind="Pod", api_version="v1", metadata_only=True, sensitive=False)
    obj = pod(1)
    event = event_of(line(obj), expected)
    assert event == WatchEvent(
        EventKind.MODIFIED,
        {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]},
    )


def test_a_partial_object_is_poison_where_a_whole_one_was_asked_for() -> None:
    obj = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x"}}
    assert isinstance(event_of(frame("ADDED", obj), EXPECTED), InvalidItem)


async def test_a_poisoned_secret_is_not_quoted() -> None:
    body = b'{"type":"ADDED","object":{"kind":"Secret","data":{"p":"hunter2"}}}\n'
    rig, _canned = on_answers(answer(body + b"hunter2\n" + frame("ADDED", {**good("x"), "data": {"p": "hunter2"}})))
    watch = rig.client.watch(SECRETS)
    items = [item async for batch in watch for item in batch]
    assert len(items) == 3
    for item in items:
        assert isinstance(item, InvalidItem)
        assert "hunter2" not in repr(item) + item.excerpt + item.why


def test_a_poisoned_line_shows_its_beginning() -> None:
    item = event_of(b'{"type":"ADDED","object":\x1b[31m' + b"x" * 10_000, EXPECTED)
    assert isinstance(item, InvalidItem)
    assert item.excerpt.startswith("""'{"type":"ADDED","object":""")
    assert len(item.excerpt) < 150
    assert "excerpt" not in repr(item)
