"""Writes whose answers were lost: each is found out about, repeated, or reported as unknown, and never done twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kubectl_ctrl.client.call_record import FOUND_BY_READING
from kubectl_ctrl.client.options import DeleteOptions, PatchKind, WriteOptions
from kubectl_ctrl.errors import (
    AlreadyExists,
    BadAnswer,
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    Replaced,
    ServerError,
)
from kubectl_ctrl.model.objects import Obj, uid_of, version_of
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.server import ScriptedServer
from tests.client.rig import CONFIGMAPS, Rig, answer, configmap, on_answers
from tests.objects import present

REF = CONFIGMAPS.ref("one", "default")
ME = WriteOptions(manager="me", force=True)

CREATE = Match(verb="create", plural="configmaps")
PATCH = Match(verb="patch", plural="configmaps")
UPDATE = Match(verb="update", plural="configmaps")
DELETE = Match(verb="delete", plural="configmaps")
GET = Match(verb="get", plural="configmaps")
ALL = Match(plural="configmaps")


def write_log(server: ScriptedServer) -> list[str]:
    return [write.verb for write in server.writes]


def requests(server: ScriptedServer) -> list[str]:
    """What reached the server, in the words of its verbs, also where it only remembers the method."""
    words = {"post": "create", "put": "update"}
    return [words.get(handled.verb, handled.verb) for handled in server.requests]


def an_owner(server: ScriptedServer) -> str:
    """The UID of an object that may own others; what belongs to nobody is collected."""
    uid = uid_of(server.create(configmap("owner")))
    server.writes.clear()
    return uid


async def test_a_create_whose_answer_was_lost_is_found(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(CREATE)
    made = await rig.client.create(CONFIGMAPS, configmap(owner=an_owner(server), a="1"))
    assert made == server.get(CONFIGMAPS, "one")
    assert write_log(server) == ["create"]
    assert rig.told == ["get 200 1", "create None 1"]
    create = rig.calls[-1]
    assert (create.reason, create.error) == (FOUND_BY_READING, "")
    assert (create.uid, create.new_version) == (uid_of(made), version_of(made))


async def test_a_create_that_never_arrived_is_sent_again(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(CREATE, after_commit=False)
    assert await rig.client.create(CONFIGMAPS, configmap(a="1")) == server.get(CONFIGMAPS, "one")
    assert write_log(server) == ["create"]
    assert rig.told == ["get 404 1", "create 201 2"]


async def test_a_create_that_arrives_late_after_all_is_found_by_its_name(rig: Rig, server: ScriptedServer) -> None:
    made: list[Obj] = []
    obj = configmap(owner=an_owner(server), a="1")

    def late(_request: object) -> bool:
        if not made:
            made.append(server.create(obj))
        return True

    server.faults.lose(CREATE, after_commit=False)
    server.faults.delay(Match(verb="create", plural="configmaps", when=late))
    found = await rig.client.create(CONFIGMAPS, obj)
    assert [found] == made
    assert rig.told == ["get 404 1", "get 200 1", "create None 2"]


@pytest.mark.parametrize("same_owner", [True, False])
async def test_a_namesake_with_other_content_or_owner_is_not_taken_for_ours(
    same_owner: bool, rig: Rig, server: ScriptedServer
) -> None:
    owner = an_owner(server)
    before = server.create(configmap(owner=owner, a="2") if same_owner else configmap(a="1"))
    server.faults.lose(CREATE, after_commit=False)
    with pytest.raises(AlreadyExists, match="a read shows that an object of that name exists") as caught:
        await rig.client.create(CONFIGMAPS, configmap(owner=owner, a="1"))
    assert caught.value.code == 409
    assert server.get(CONFIGMAPS, "one") == before


async def test_a_generated_name_is_ours_to_look_up(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(CREATE)
    obj = configmap(a="1")
    obj["metadata"] = {"generateName": "one-", "namespace": "default"}
    made = await rig.client.create(CONFIGMAPS, obj)
    assert server.objects(CONFIGMAPS) == [made]
    assert "name" not in obj["metadata"]


async def test_a_create_waits_for_a_server_that_restarts(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(CREATE)
    refused = [server.faults.fail(GET, 503, times=3), server.faults.lose(GET, times=3)]
    assert await rig.client.create(CONFIGMAPS, configmap(a="1")) == server.get(CONFIGMAPS, "one")
    assert [fault.hits for fault in refused] == [3, 3]
    assert write_log(server) == ["create"]


@pytest.mark.parametrize("outage", ["lost", "failing", "hanging", "shedding"])
async def test_a_create_that_cannot_be_looked_up_is_unknown_within_the_deadline(
    outage: str, rig: Rig, server: ScriptedServer
) -> None:
    server.faults.lose(CREATE)
    match outage:
        case "lost":
            server.faults.lose(GET, times=None)
        case "failing":
            server.faults.fail(GET, 500, times=None)
        case "hanging":
            server.faults.hang(GET, times=None)
        case _:
            server.faults.fail(GET, 429, times=None, retry_after=1)
    began = rig.clock.elapsed()
    with pytest.raises(OutcomeUnknown, match="It is unknown whether create configmaps default/one took effect"):
        await rig.client.create(CONFIGMAPS, configmap(a="1"))
    assert rig.clock.elapsed() - began <= 30.0
    assert write_log(server) == ["create"]
    assert len(server.requests) < 40
    assert rig.calls[-1].code is None
    assert rig.calls[-1].error.startswith("It is unknown whether create")


async def test_a_create_that_may_not_be_read_is_unknown_at_once(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(CREATE)
    server.faults.fail(GET, 403, reason="Forbidden", message="no")
    with pytest.raises(OutcomeUnknown, match="The server forbids get") as caught:
        await rig.client.create(CONFIGMAPS, configmap(a="1"))
    assert isinstance(caught.value.__cause__, Forbidden)
    assert requests(server) == ["create", "get"]


async def test_a_hanging_create_leaves_time_to_look(rig: Rig, server: ScriptedServer) -> None:
    server.faults.hang(CREATE, after_commit=True)
    began = rig.clock.elapsed()
    assert await rig.client.create(CONFIGMAPS, configmap(a="1")) == server.get(CONFIGMAPS, "one")
    assert rig.clock.elapsed() - began == 22.5


@pytest.mark.parametrize(("code", "reason"), [(504, "Timeout"), (502, ""), (500, "ServerTimeout")])
async def test_a_create_that_timed_out_somewhere_is_found(
    code: int, reason: str, rig: Rig, server: ScriptedServer
) -> None:
    server.faults.fail(CREATE, code, reason=reason, after_commit=True)
    assert await rig.client.create(CONFIGMAPS, configmap(a="1")) == server.get(CONFIGMAPS, "one")
    assert requests(server) == ["create", "get"]


async def test_a_create_that_timed_out_and_is_not_there_fails_with_the_timeout(
    rig: Rig, server: ScriptedServer
) -> None:
    server.faults.fail(CREATE, 504, reason="Timeout")
    with pytest.raises(ServerError, match="504"):
        await rig.client.create(CONFIGMAPS, configmap(a="1"))
    assert requests(server) == ["create", "get"]


async def test_a_shed_create_that_had_been_done_is_recognised_as_ours(rig: Rig, server: ScriptedServer) -> None:
    server.faults.fail(CREATE, 503, retry_after=1, after_commit=True)
    made = await rig.client.create(CONFIGMAPS, configmap(owner=an_owner(server), a="1"))
    assert made == server.get(CONFIGMAPS, "one")
    assert requests(server) == ["create", "create", "get"]


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"kind":"Config'])
async def test_garbage_after_a_create_is_a_lost_answer(body: bytes) -> None:
    found = configmap(a="1")
    found["metadata"]["uid"] = "u"
    rig, _canned = on_answers(answer(body, 201), answer(found))
    made = await rig.client.create(CONFIGMAPS, configmap(a="1"))
    assert uid_of(made) == "u"


async def test_garbage_everywhere_is_reported_as_such() -> None:
    rig, canned = on_answers(*[answer(b"<html>login", 200)] * 3)
    with pytest.raises(OutcomeUnknown, match="<html>login"):
        await rig.client.create(CONFIGMAPS, configmap(a="1"))
    with pytest.raises(BadAnswer, match="<html>login"):
        await rig.client.get(REF)
    assert not canned.answers


async def test_a_lost_apply_is_repeated(rig: Rig, server: ScriptedServer) -> None:
    server.faults.lose(PATCH)
    server.faults.lose(PATCH, after_commit=False)
    made = await rig.client.patch(REF, configmap(a="1"), PatchKind.APPLY, ME)
    assert made == server.get(CONFIGMAPS, "one")
    assert rig.told == ["apply 200 3"]


async def test_an_apply_that_is_lost_all_the_time_is_unknown(rig: Rig, server: ScriptedServer) -> None:
    fault = server.faults.lose(PATCH, times=None)
    began = rig.clock.elapsed()
    with pytest.raises(OutcomeUnknown):
        await rig.client.patch(REF, configmap(a="1"), PatchKind.APPLY, ME)
    assert rig.clock.elapsed() - began <= 30.0
    assert 5 <= fault.hits <= 10


async def test_an_apply_for_a_replaced_object_says_that_it_is_gone(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    wanted = configmap(a="1")
    wanted["metadata"]["uid"] = "00000000-0000-0000-0000-00000000dead"
    with pytest.raises(Replaced) as caught:
        await rig.client.patch(REF, wanted, PatchKind.APPLY, ME)
    assert isinstance(caught.value, NotFound)
    assert server.get(CONFIGMAPS, "one") == before
    server.delete(CONFIGMAPS, "one")
    with pytest.raises(Replaced):
        await rig.client.patch(REF, wanted, PatchKind.APPLY, ME)
    assert server.objects(CONFIGMAPS) == []


def versioned(obj: Obj, **data: str) -> Obj:
    return {"metadata": {"resourceVersion": version_of(obj)}, "data": data}


async def test_a_lost_patch_of_a_version_is_found_or_sent_again(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(PATCH)
    after = await rig.client.patch(REF, versioned(before, a="1"), PatchKind.MERGE)
    assert after == server.get(CONFIGMAPS, "one")
    assert rig.told == ["get 200 1", "patch None 1"]
    assert rig.calls[-1].old_version == version_of(before)
    server.faults.lose(PATCH, after_commit=False)
    last = await rig.client.patch(REF, versioned(after, a="2"), PatchKind.MERGE)
    assert last["data"] == {"a": "2"}
    assert rig.told[2:] == ["get 200 1", "patch 200 2"]


async def test_a_lost_patch_that_met_a_foreign_change_is_a_conflict(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(PATCH, after_commit=False)
    server.change(CONFIGMAPS, "one", {"data": {"a": "foreign"}})
    with pytest.raises(Conflict, match="into something else"):
        await rig.client.patch(REF, versioned(before, a="1"), PatchKind.MERGE)
    assert present(server.get(CONFIGMAPS, "one"))["data"] == {"a": "foreign"}


async def test_a_lost_patch_of_something_deleted_meanwhile_is_not_found(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(PATCH, after_commit=False)
    server.delete(CONFIGMAPS, "one")
    with pytest.raises(NotFound, match="does not exist"):
        await rig.client.patch(REF, versioned(before, a="1"), PatchKind.MERGE)


async def test_a_lost_json_patch_that_cannot_be_judged_is_unknown(rig: Rig, server: ScriptedServer) -> None:
    obj = configmap(a="0")
    obj["metadata"]["finalizers"] = ["example.com/a"]
    before = server.create(obj)
    server.faults.lose(PATCH)
    change: list[Obj] = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version_of(before)},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/b"},
    ]
    with pytest.raises(OutcomeUnknown):
        await rig.client.patch(REF, change, PatchKind.JSON)


async def test_a_shed_patch_that_had_been_done_is_no_conflict(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.fail(PATCH, 503, retry_after=1, after_commit=True)
    after = await rig.client.patch(REF, versioned(before, a="1"), PatchKind.MERGE)
    assert after["data"] == {"a": "1"}
    assert requests(server) == ["patch", "patch", "get"]


async def test_a_lost_replacement_is_found_sent_again_or_a_conflict(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(UPDATE)
    after = await rig.client.replace(REF, {**before, "data": {"a": "1"}})
    assert after == server.get(CONFIGMAPS, "one")
    assert rig.told == ["get 200 1", "update None 1"]
    server.faults.lose(UPDATE, after_commit=False)
    after = await rig.client.replace(REF, {**after, "data": {"a": "2"}})
    assert rig.told[2:] == ["get 200 1", "update 200 2"]
    server.faults.lose(UPDATE, after_commit=False)
    server.change(CONFIGMAPS, "one", {"data": {"b": "foreign"}})
    with pytest.raises(Conflict):
        await rig.client.replace(REF, {**after, "data": {"a": "3"}})


async def test_a_lost_delete_of_a_uid_is_repeated_and_404_is_done(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(DELETE)
    gone = await rig.client.delete(REF, DeleteOptions(uid=uid_of(before)))
    assert gone["status"] == "Success"
    assert server.objects(CONFIGMAPS) == []
    assert rig.told == ["delete 404 2"]
    assert rig.calls[0].error == ""


async def test_a_lost_delete_never_hits_the_next_object_of_that_name(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    again: list[Obj] = []

    def recreated(_request: object) -> bool:
        if not again:
            again.append(server.create(configmap(a="next")))
        return True

    server.faults.lose(DELETE)
    server.faults.delay(Match(verb="delete", when=recreated))
    await rig.client.delete(REF, DeleteOptions(uid=uid_of(before)))
    assert [server.get(CONFIGMAPS, "one")] == again


async def test_a_lost_delete_that_never_arrived_is_done_by_the_second(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(DELETE, after_commit=False)
    await rig.client.delete(REF, DeleteOptions(uid=uid_of(before)))
    assert server.objects(CONFIGMAPS) == []


async def test_a_lost_delete_of_one_version_is_settled_by_reading(rig: Rig, server: ScriptedServer) -> None:
    obj = configmap(a="0")
    obj["metadata"]["finalizers"] = ["example.com/a"]
    before = server.create(obj)
    options = DeleteOptions(uid=uid_of(before), version=version_of(before))
    server.faults.lose(DELETE)
    going = await rig.client.delete(REF, options)
    assert going["metadata"]["deletionTimestamp"]
    assert requests(server) == ["delete", "delete", "get"]


async def test_a_lost_delete_of_a_version_that_has_passed_is_a_conflict(rig: Rig, server: ScriptedServer) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(DELETE, after_commit=False)
    server.change(CONFIGMAPS, "one", {"data": {"a": "foreign"}})
    with pytest.raises(Conflict):
        await rig.client.delete(REF, DeleteOptions(uid=uid_of(before), version=version_of(before)))
    assert len(server.objects(CONFIGMAPS)) == 1


async def test_a_first_delete_of_what_is_not_there_is_not_found(rig: Rig, server: ScriptedServer) -> None:
    with pytest.raises(NotFound):
        await rig.client.delete(REF, DeleteOptions(uid="u"))


async def patch_any(rig: Rig) -> None:
    await rig.client.patch(REF, {"data": {"a": "1"}}, PatchKind.MERGE)


async def replace_any(rig: Rig) -> None:
    await rig.client.replace(REF, configmap(a="1"))


async def delete_any(rig: Rig) -> None:
    await rig.client.delete(REF)


async def post_anything(rig: Rig) -> None:
    await rig.client.raw("POST", "/api/v1/namespaces/default/configmaps", body=configmap("two"))


@pytest.mark.parametrize("act", [patch_any, replace_any, delete_any, post_anything])
async def test_other_lost_writes_are_unknown_and_never_repeated(
    act: Callable[[Rig], Awaitable[object]], rig: Rig, server: ScriptedServer
) -> None:
    server.create(configmap(a="0"))
    fault = server.faults.lose(ALL, times=None)
    with pytest.raises(OutcomeUnknown) as caught:
        await act(rig)
    assert fault.hits == 1
    assert caught.value.next_step


@pytest.mark.parametrize("act", [patch_any, replace_any, delete_any])
async def test_a_dry_run_may_be_repeated_whatever_it_is(
    act: Callable[[Rig], Awaitable[object]], rig: Rig, server: ScriptedServer
) -> None:
    before = server.create(configmap(a="0"))
    server.faults.lose(ALL, times=2)
    options = WriteOptions(dry_run=True)
    if act is patch_any:
        await rig.client.patch(REF, {"data": {"a": "1"}}, PatchKind.MERGE, options)
    elif act is replace_any:
        await rig.client.replace(REF, {**before, "data": {}}, options)
    else:
        await rig.client.delete(REF, DeleteOptions(dry_run=True))
    assert server.get(CONFIGMAPS, "one") == before
    assert rig.calls[0].sends == 3
    assert not rig.calls[0].write
