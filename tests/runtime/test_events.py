"""Events as the classic recorder sends them."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.errors import CallSite, NotLeading
from kubectl_ctrl.model.attempt import BackgroundCall
from kubectl_ctrl.model.resources import EVENTS
from kubectl_ctrl.runtime.events import EventRecorder
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer

FOO = {
    "apiVersion": "samplecontroller.k8s.io/v1alpha1",
    "kind": "Foo",
    "metadata": {"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
}


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.server = ScriptedServer(self.clock)
        self.told: list[BackgroundCall] = []
        client = Client(self.server, clock=self.clock, rng=random.Random(1), user_agent="kubectl-ctrl/test (foo)")
        self.recorder = EventRecorder(
            client, "foo-controller", clock=self.clock, rng=random.Random(2), tell=self.told.append
        )

    def say(self, message: str, *, about: Any = FOO, attempt: str = "r1-1") -> None:
        self.recorder.record(about, type="Normal", reason="Synced", message=message, attempt=attempt)

    @property
    def events(self) -> list[dict[str, Any]]:
        return sorted(
            self.server.objects(EVENTS), key=lambda event: (event["metadata"]["creationTimestamp"], event["message"])
        )


@asynccontextmanager
async def sending(recorder: EventRecorder) -> AsyncIterator[None]:
    task = asyncio.ensure_future(recorder.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    async with sending(world.recorder):
        yield world


async def test_one_event_says_about_what_and_from_whom(world: World) -> None:
    world.say("Foo synced successfully")
    await world.recorder.flush()
    (event,) = world.events
    assert event["metadata"]["namespace"] == "default"
    assert event["metadata"]["name"].startswith("web.")
    assert event["involvedObject"] == {
        "apiVersion": "samplecontroller.k8s.io/v1alpha1",
        "kind": "Foo",
        "name": "web",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "7",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Synced", "Foo synced successfully")
    assert (event["count"], event["source"]) == (1, {"component": "foo-controller"})
    assert [(told.attempt, told.call.code) for told in world.told] == [("r1-1", 201)]
    assert world.told[0].call.id.startswith("r1-1e")


async def test_nothing_is_sent_through_a_closed_gate_and_what_waits_is_sent_once_it_opens(world: World) -> None:
    leading = False

    def gate() -> float | None:
        if not leading:
            raise NotLeading("The lease may have passed.", site=CallSite("lead", "lease"))
        return None

    client = Client(world.server, clock=world.clock, rng=random.Random(1), user_agent="test")
    gated = client.scoped(Scope(gate=gate))
    recorder = EventRecorder(gated, "foo", clock=world.clock, rng=random.Random(2), tell=world.told.append)
    async with sending(recorder):
        recorder.record(FOO, type="Normal", reason="Synced", message="hello", attempt="r1-1")
        await world.clock.sleep(60)
        assert world.server.requests == []
        leading = True
        await world.clock.sleep(30)
        assert [event["message"] for event in world.events] == ["hello"]


async def test_the_same_again_is_a_count(world: World) -> None:
    for _ in range(5):
        world.say("Foo synced successfully")
        await world.clock.sleep(10)
    (event,) = world.events
    assert event["count"] == 5
    assert event["firstTimestamp"] < event["lastTimestamp"]
    ids = [told.call.id for told in world.told]
    assert len(set(ids)) == len(ids) == 5


async def test_an_event_that_the_server_forgot_begins_again(world: World) -> None:
    world.say("hello")
    await world.recorder.flush()
    world.server.delete(EVENTS, world.events[0]["metadata"]["name"], "default")
    world.say("hello")
    await world.recorder.flush()
    assert [event["count"] for event in world.events] == [1]


async def test_many_different_messages_become_one_combined_event(world: World) -> None:
    for at in range(15):
        world.say(f"message {at}")
    await world.recorder.flush()
    plain = [event for event in world.events if not event["message"].startswith("(combined")]
    (combined,) = [event for event in world.events if event["message"].startswith("(combined")]
    assert len(plain) == 9
    assert (combined["message"], combined["count"]) == ("(combined from similar events): message 14", 6)


async def test_one_object_cannot_flood_and_another_is_still_heard(world: World) -> None:
    for _ in range(100):
        world.say("again")
    other = {**FOO, "metadata": {**FOO["metadata"], "name": "other", "uid": "u2"}}  # type: ignore[dict-item]
    world.say("hello", about=other)
    await world.recorder.flush()
    assert sorted((event["involvedObject"]["name"], event["count"]) for event in world.events) == [
        ("other", 1),
        ("web", 25),
    ]
    assert world.recorder.dropped == 75
    await world.clock.sleep(301)
    world.say("again")
    await world.recorder.flush()
    assert max(event["count"] for event in world.events) == 26


async def test_a_cluster_scoped_subject_is_told_in_default(world: World) -> None:
    world.say("hello", about={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u9"}})
    await world.recorder.flush()
    assert world.events[0]["metadata"]["namespace"] == "default"
    assert "namespace" not in world.events[0]["involvedObject"]


async def test_a_message_is_cut_at_what_the_api_takes_between_characters(world: World) -> None:
    world.say("é" * 1000)
    await world.recorder.flush()
    message = world.events[0]["message"]
    assert message.endswith("é...")
    assert 1020 <= len(message.encode()) <= 1024


async def test_an_outage_delays_events_and_a_refusal_drops_them(world: World) -> None:
    world.server.down()
    world.say("during the outage")
    await world.clock.sleep(45)
    assert world.events == []
    world.server.up()
    await world.recorder.flush()
    assert [event["message"] for event in world.events] == ["during the outage"]
    world.server.faults.fail(Match(plural="events"), 403)
    world.say("not allowed")
    await world.recorder.flush()
    assert world.recorder.dropped == 1


async def test_the_queue_is_bounded_and_the_rest_is_counted(world: World) -> None:
    world.server.down()
    for at in range(1500):
        world.say(str(at))
    assert world.recorder.dropped >= 499
    assert "queued=1000" in repr(world.recorder)
