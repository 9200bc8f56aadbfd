"""What stands in the record about questions at the writing door and about reads that failed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_ctrl.errors import CallSite, Conflict, ControllerError, Forbidden, Invalid, StatusCause, TooManyRequests
from kubectl_ctrl.model.attempt import WriteRequest
from kubectl_ctrl.model.objects import Key, Obj, uid_of, version_of
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import SECRETS
from kubectl_ctrl.model.selectors import Selector
from kubectl_ctrl.runtime import questions
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import settle
from tests.objects import present
from tests.runtime.doors import Doors, Try, doors
from tests.runtime.toy import BOXES, CONFIGMAPS, TOYS, do_nothing
from tests.runtime.world import World, toy

SPEC = controller("toy", do_nothing).for_(TOYS).owns(CONFIGMAPS)


@pytest.fixture
async def world() -> World:
    return World()


@pytest.fixture
async def its(world: World) -> AsyncIterator[Doors]:
    async with doors(world, SPEC) as its:
        yield its


def settings(name: str = "settings", **data: Any) -> Obj:
    return {"metadata": {"name": name}, "data": data}


def wished(attempt: Try) -> tuple[WriteRequest, ...]:
    return attempt.attempt.wishes


def short(wish: WriteRequest) -> tuple[str, str, str, int]:
    """What was asked, of what, how it was answered, and with how many calls."""
    return wish.verb, f"{wish.resource.plural} {wish.key}", wish.how, len(wish.calls)


async def test_every_question_stands_there_in_order_with_its_answer_and_its_calls(world: World, its: Doors) -> None:
    bear = world.server.create(toy("bear"))
    await world.rest()
    attempt = its.next()
    write = attempt.write
    bear = await write.add_finalizer(bear, "toys.example.com/hold")
    made = await write.ensure(settings(a="1"), owner=bear, resource=CONFIGMAPS, leave_out=iter(["data.b"]))
    await write.ensure(settings(a="1"), owner=bear, resource=CONFIGMAPS)
    bear = await write.status(bear, {"ready": True})
    assert await write.patch(made.obj, {"data": {"a": "1"}}) is made.obj
    loose = await write.create(settings("loose"), resource=CONFIGMAPS)
    await write.delete(loose, any_version=True)
    bear = await write.remove_finalizer(bear, "toys.example.com/hold")
    assert [short(wish) for wish in wished(attempt)] == [
        ("add_finalizer", "toys default/bear", "answered", 1),
        ("ensure", "configmaps default/settings", "created", 1),
        ("ensure", "configmaps default/settings", "unchanged", 0),
        ("status", "toys default/bear", "answered", 1),
        ("patch", "configmaps default/settings", "given", 0),
        ("create", "configmaps default/loose", "answered", 1),
        ("delete", "configmaps default/loose", "done", 1),
        ("remove_finalizer", "toys default/bear", "answered", 1),
    ]
    first, ensured = wished(attempt)[:2]
    assert dict(first.options)["name"] == "toys.example.com/hold"
    assert dict(ensured.options) == {"owner": uid_of(bear), "leave_out": "data.b"}
    assert json.loads(ensured.body) == settings(a="1")
    assert (ensured.uid, ensured.version) == (uid_of(made.obj), version_of(made.obj))
    assert ensured.answer is made.obj
    assert [call.id for call in attempt.attempt.calls] == [call for wish in wished(attempt) for call in wish.calls]


async def test_what_was_asked_is_kept_as_it_was_then(world: World, its: Doors) -> None:
    attempt = its.next()
    given = settings(a="1")
    await attempt.write.create(given, resource=CONFIGMAPS)
    given["data"]["a"] = "2"
    assert json.loads(wished(attempt)[0].body)["data"] == {"a": "1"}


async def test_questions_asked_at_the_same_time_stand_in_the_order_of_asking_each_with_its_own_calls(
    world: World, its: Doors
) -> None:
    attempt = its.next()
    world.server.faults.hang(Match(verb="create"))
    slow = asyncio.create_task(attempt.write.create(settings("slow"), resource=CONFIGMAPS))
    await settle()
    await attempt.write.create(settings("quick"), resource=CONFIGMAPS)
    slow.cancel()
    await asyncio.wait([slow])
    assert [short(wish) for wish in wished(attempt)] == [
        ("create", "configmaps default/slow", "", 1),
        ("create", "configmaps default/quick", "answered", 1),
    ]
    ids = {call.name: call.id for call in attempt.attempt.calls}
    assert [wish.calls for wish in wished(attempt)] == [(ids["slow"],), (ids["quick"],)]
    assert wished(attempt)[0].raised is None  # it was cut: nobody knows what would have come


async def test_an_error_is_kept_with_all_that_a_reconciler_can_see_of_it(world: World, its: Doors) -> None:
    old = world.server.create(settings() | {"apiVersion": "v1", "kind": "ConfigMap"})
    world.server.change(CONFIGMAPS, "settings", {"data": {"a": "2"}})
    attempt = its.next()
    with pytest.raises(Conflict) as caught:
        await attempt.write.patch(old, {"data": {"a": "3"}})
    raised = present(wished(attempt)[0].raised)
    assert (raised.error, raised.code, raised.reason) == ("Conflict", 409, caught.value.reason)
    assert (raised.verb, raised.target) == (caught.value.site.verb, caught.value.site.target)
    assert raised.message == str(caught.value)


def test_causes_and_the_wait_that_a_server_asks_for_are_kept() -> None:
    causes = (StatusCause(reason="FieldValueInvalid", message="must be a name", field="metadata.name"),)
    invalid = Invalid("No.", site=CallSite("create", "toys bear"), code=422, causes=causes, next_step="Ask again.")
    assert (questions.raised(invalid).causes, questions.raised(invalid).next_step) == (causes, "Ask again.")
    busy = TooManyRequests("Busy.", site=CallSite("create", "toys bear"), code=429, retry_after=3.0)
    assert questions.raised(busy).retry_after == 3.0


async def test_a_question_that_the_door_refuses_stands_there_too(world: World, its: Doors) -> None:
    attempt = its.next()
    with pytest.raises(ControllerError):
        await attempt.write.add_finalizer(world.server.create(toy("bear")), "nodomain")
    with pytest.raises(KeyError):
        await attempt.write.create({"data": {}}, resource=CONFIGMAPS)
    assert [(wish.verb, wish.raised.error if wish.raised else "") for wish in wished(attempt)] == [
        ("add_finalizer", "ControllerError"),
        ("create", "KeyError"),
    ]


async def test_a_read_that_failed_is_noted_with_its_error(world: World, its: Doors) -> None:
    attempt = its.next()
    world.server.faults.fail(Match(verb="get"), 403)
    with pytest.raises(Forbidden):
        await attempt.read.live(SECRETS, "key")
    with pytest.raises(ControllerError):
        await attempt.read.get(SECRETS, "key")
    with pytest.raises(ControllerError):
        await attempt.read.indexed(TOYS, "colour", "red")
    found = [(read.verb, read.query, read.raised.error if read.raised else "") for read in attempt.attempt.reads]
    assert found == [
        ("live", "default/key", "Forbidden"),
        ("get", "default/key", "ControllerError"),
        ("list", "index colour=red", "ControllerError"),
    ]


async def test_after_its_end_an_attempt_asks_for_nothing_that_would_be_recorded(world: World, its: Doors) -> None:
    attempt = its.next()
    attempt.notes.close()
    with pytest.raises(ControllerError, match="has ended"):
        await attempt.write.create(settings(), resource=CONFIGMAPS)
    with pytest.raises(ControllerError, match="has ended"):
        await attempt.read.live(TOYS, "bear")
    assert (attempt.attempt.wishes, attempt.attempt.reads) == ((), ())


# --- words


def test_lists_have_the_same_words_however_their_labels_were_given() -> None:
    given: Iterator[Any] = iter(("a=b,c=d", {"a": "b", "c": "d"}, Selector.parse("a=b,c=d")))
    assert {questions.listing("default", labels) for labels in given} == {"default a=b,c=d"}
    assert questions.listing("", None) == "all"


def test_a_cluster_scoped_object_has_no_namespace_whatever_was_said() -> None:
    question = questions.create({"metadata": {"name": "box", "namespace": "x"}}, BOXES, "default")
    assert question.key == Key("", "box")
    assert questions.place(BOXES, "x", "default") == ""


@pytest.mark.parametrize("child", [{}, {"metadata": None}, {"metadata": []}, None, 3])
def test_no_question_is_refused_for_its_words(child: Any) -> None:
    assert questions.ensure(child, child, TOYS, ()).key == Key("", "")


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), {1: "a"}, {1, 2}, 2**70, object()])
def test_what_json_cannot_hold_is_kept_in_some_words(value: Any) -> None:
    json.loads(questions.as_json({"spec": value}))


def test_a_body_without_an_end_is_kept_by_its_type() -> None:
    endless: dict[str, Any] = {}
    endless["spec"] = endless
    assert questions.as_json(endless) == '"<dict>"'


def test_an_owner_is_told_by_its_uid_and_not_by_its_name() -> None:
    owner = toy("bear") | {"metadata": {"name": "bear", "namespace": "default", "uid": "u"}}
    child = settings() | {"metadata": {"name": "settings", "ownerReferences": [owner_reference(owner)]}}
    question = questions.ensure(child, owner, CONFIGMAPS, ("spec.a", "spec.b"))
    assert question.options == (("owner", "u"), ("leave_out", "spec.a,spec.b"))
    assert question.key == Key("default", "settings")
