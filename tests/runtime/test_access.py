from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from kubectl_ctrl.errors import AlreadyExists, Conflict, ControllerError, NotFound
from kubectl_ctrl.model.objects import Key, Obj, name_of, uid_of, version_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.testing.faults import Match
from tests.objects import present
from tests.runtime.doors import Doors, Said, doors
from tests.runtime.toy import CONFIGMAPS, TOYS, do_nothing
from tests.runtime.world import World, toy


def colours(obj: Obj) -> Iterable[str]:
    colour = obj["spec"].get("colour")
    return (colour,) if colour else ()


SPEC = controller("toy", do_nothing).for_(TOYS).owns(CONFIGMAPS).index(TOYS, "colour", colours)


@pytest.fixture
async def world() -> World:
    return World({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "attic"}})


@pytest.fixture
async def its(world: World) -> AsyncIterator[Doors]:
    async with doors(world, SPEC) as its:
        yield its


def settings(name: str = "settings", **labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


def names(found: Iterable[Obj]) -> list[str]:
    return [name_of(obj) for obj in found]


# --- reading ---


async def test_reads_are_of_the_requests_namespace_unless_another_is_named(world: World, its: Doors) -> None:
    world.server.create(toy("bear"))
    world.server.create(toy("robot", "attic"))
    await world.rest()
    read = its.next().read
    assert names(await read.list(TOYS)) == ["bear"]
    assert names(await read.list(TOYS, namespace="attic")) == ["robot"]
    assert names(await read.list(TOYS, namespace="")) == ["robot", "bear"]
    assert await read.get(TOYS, "robot") is None
    assert await read.get(TOYS, "robot", "attic") is not None


async def test_lists_are_narrowed_by_labels_in_any_form(world: World, its: Doors) -> None:
    world.server.create(settings("one", kind="big"))
    world.server.create(settings("two", kind="small"))
    await world.rest()
    read = its.next().read
    assert names(await read.list(CONFIGMAPS, labels="kind in (big)")) == ["one"]
    assert names(await read.list(CONFIGMAPS, labels={"kind": "small"})) == ["two"]
    assert names(await read.list(CONFIGMAPS, labels={})) == ["one", "two"]


async def test_declared_indexes_can_be_asked_and_others_are_named(world: World, its: Doors) -> None:
    world.server.create(toy("bear", colour="brown"))
    world.server.create(toy("robot", colour="grey"))
    await world.rest()
    read = its.next().read
    assert names(await read.indexed(TOYS, "colour", "grey")) == ["robot"]
    with pytest.raises(ControllerError, match="no index 'size' of toys"):
        await read.indexed(TOYS, "size", "big")


async def test_only_what_was_declared_can_be_read_from_the_cache(world: World, its: Doors) -> None:
    with pytest.raises(ControllerError, match="has no cache of secrets") as caught:
        await its.next().read.get(SECRETS, "token")
    assert "ctx.read.live()" in caught.value.next_step


async def test_a_live_read_is_a_call_and_sees_what_the_cache_does_not(world: World, its: Doors) -> None:
    world.server.hang_watches()
    world.server.create(settings())
    attempt = its.next()
    assert await attempt.read.get(CONFIGMAPS, "settings") is None
    assert await attempt.read.live(CONFIGMAPS, "settings") is not None
    assert await attempt.read.live(SECRETS, "nobody") is None
    assert attempt.calls == ["get configmaps/settings 200", "get secrets/nobody 404"]


async def test_every_read_notes_what_was_asked_and_which_versions_answered(world: World, its: Doors) -> None:
    bear = world.server.create(toy("bear", colour="brown"))
    await world.rest()
    attempt = its.next()
    await attempt.read.get(TOYS, "bear")
    await attempt.read.get(TOYS, "nobody")
    await attempt.read.list(TOYS, labels="a=b")
    await attempt.read.list(TOYS, namespace="")
    await attempt.read.indexed(TOYS, "colour", "brown")
    await attempt.read.children(bear, CONFIGMAPS)
    await attempt.read.live(TOYS, "bear")
    its_version = ((uid_of(bear), version_of(bear)),)
    assert [(read.verb, read.query, read.found) for read in attempt.attempt.reads] == [
        ("get", "default/bear", its_version),
        ("get", "default/nobody", ()),
        ("list", "default a=b", ()),
        ("list", "all", its_version),
        ("list", "index colour=brown", its_version),
        ("list", f"controlled by {uid_of(bear)}", ()),
        ("live", "default/bear", its_version),
    ]


# --- writing ---


async def test_create_puts_the_object_into_the_requests_namespace_and_shows_it_at_once(
    world: World, its: Doors
) -> None:
    world.server.hang_watches()
    attempt = its.next(Key("attic", "bear"))
    made = await attempt.write.create(settings())
    assert made["metadata"]["namespace"] == "attic"
    assert names(await attempt.read.list(CONFIGMAPS)) == ["settings"]
    with pytest.raises(AlreadyExists):
        await attempt.write.create(settings())


async def test_a_patch_hits_the_version_that_was_read_or_nothing(world: World, its: Doors) -> None:
    old = world.server.create(settings())
    attempt = its.next()
    new = await attempt.write.patch(old, {"data": {"a": "2"}})
    assert new["data"] == {"a": "2"}
    with pytest.raises(Conflict):
        await attempt.write.patch(old, {"data": {"a": "3"}})
    assert version_of(present(await attempt.read.get(CONFIGMAPS, "settings"))) == version_of(new)


async def test_a_patch_never_hits_a_successor(world: World, its: Doors) -> None:
    old = world.server.create(settings())
    world.server.delete(CONFIGMAPS, "settings")
    successor = world.server.create(settings())
    stale = {**old, "metadata": {**old["metadata"], "resourceVersion": version_of(successor)}}
    with pytest.raises(NotFound):
        await its.next().write.patch(stale, {"data": {"a": "2"}})
    assert world.server.get(CONFIGMAPS, "settings") == successor


async def test_a_patch_that_would_change_nothing_is_not_sent(world: World, its: Doors) -> None:
    old = world.server.create(settings(kind="big"))
    attempt = its.next()
    same = {"metadata": {"labels": {"kind": "big", "none": None}}, "data": {"a": "1"}}
    assert await attempt.write.patch(old, same) is old
    assert attempt.calls == []
    assert attempt.attempt.skipped == ("patch configmaps default/settings: nothing would change",)


async def test_a_subresource_can_be_patched(world: World, its: Doors) -> None:
    bear = world.server.create(toy("bear"))
    await its.next().write.patch(bear, {"status": {"seen": 4}}, subresource="status")
    assert present(world.server.get(TOYS, "bear"))["status"] == {"seen": 4}


async def test_a_delete_hides_the_object_from_reads_at_once(world: World, its: Doors) -> None:
    old = world.server.create(settings())
    await world.rest()
    world.server.hang_watches()
    attempt = its.next()
    await attempt.write.delete(old)
    assert world.server.get(CONFIGMAPS, "settings") is None
    assert await attempt.read.get(CONFIGMAPS, "settings") is None


@pytest.mark.parametrize("any_version", [False, True])
async def test_a_delete_of_what_only_a_live_read_knows_hides_what_had_the_name_before(
    any_version: bool, world: World, its: Doors
) -> None:
    world.server.create(settings())
    await world.rest()
    world.server.hang_watches()
    world.server.delete(CONFIGMAPS, "settings")
    world.server.create(settings())
    attempt = its.next()
    successor = present(await attempt.read.live(CONFIGMAPS, "settings"))
    await attempt.write.delete(successor, any_version=any_version)
    assert await attempt.read.get(CONFIGMAPS, "settings") is None


async def test_a_delete_of_what_stays_for_its_finalizers_shows_it_as_deleting(world: World, its: Doors) -> None:
    old = settings()
    old["metadata"]["finalizers"] = ["a.example.com/x"]
    old = world.server.create(old)
    await world.rest()
    world.server.hang_watches()
    attempt = its.next()
    await attempt.write.delete(old)
    found = present(await attempt.read.get(CONFIGMAPS, "settings"))
    assert found["metadata"]["deletionTimestamp"]
    await attempt.write.delete(found)
    assert attempt.calls == ["delete configmaps/settings 200"]
    assert attempt.attempt.skipped == ("delete configmaps default/settings: it is being deleted",)


async def test_a_delete_on_a_stale_view_is_refused_unless_any_version_will_do(world: World, its: Doors) -> None:
    old = world.server.create(settings())
    world.server.change(CONFIGMAPS, "settings", {"data": {"a": "2"}})
    with pytest.raises(Conflict):
        await its.next().write.delete(old)
    assert world.server.get(CONFIGMAPS, "settings") is not None
    await its.next().write.delete(old, any_version=True)
    assert world.server.get(CONFIGMAPS, "settings") is None


async def test_a_delete_of_what_is_gone_is_done_and_a_successor_is_left_alone(world: World, its: Doors) -> None:
    old = world.server.create(settings())
    await world.rest()
    world.server.hang_watches()
    world.server.delete(CONFIGMAPS, "settings")
    await its.next().write.delete(old)
    successor = world.server.create(settings())
    attempt = its.next()
    await attempt.write.delete(old, any_version=True)
    assert world.server.get(CONFIGMAPS, "settings") == successor
    assert await attempt.read.get(CONFIGMAPS, "settings") is None


async def test_finalizers_are_added_and_removed_once_beside_those_of_others(world: World, its: Doors) -> None:
    obj = world.server.create(toy("bear"))
    obj = world.server.change(TOYS, "bear", {"metadata": {"finalizers": ["theirs.example.com/x"]}})
    attempt = its.next()
    held = await attempt.write.add_finalizer(obj, "toys.example.com/hold")
    assert held["metadata"]["finalizers"] == ["theirs.example.com/x", "toys.example.com/hold"]
    assert await attempt.write.add_finalizer(held, "toys.example.com/hold") is held
    free = await attempt.write.remove_finalizer(held, "toys.example.com/hold")
    assert free["metadata"]["finalizers"] == ["theirs.example.com/x"]
    assert await attempt.write.remove_finalizer(free, "toys.example.com/hold") is free
    assert attempt.calls == ["patch toys/bear 200"] * 2


@pytest.mark.parametrize("name", ["hold", "example/hold", "example.com/", "/hold", ""])
async def test_m22_a_finalizer_without_a_domain_is_refused_before_any_call(name: str, world: World, its: Doors) -> None:
    obj = world.server.create(toy("bear"))
    attempt = its.next()
    with pytest.raises(ControllerError, match=f"Finalizer {name!r} has no domain"):
        await attempt.write.add_finalizer(obj, name)
    assert attempt.calls == []


async def test_the_last_finalizer_lets_a_deleted_object_go_and_reads_show_it_gone(world: World, its: Doors) -> None:
    world.server.create(toy("bear"))
    obj = world.server.change(TOYS, "bear", {"metadata": {"finalizers": ["toys.example.com/hold"]}})
    world.server.delete(TOYS, "bear")
    await world.rest()
    world.server.hang_watches()
    attempt = its.next()
    doomed = present(await attempt.read.get(TOYS, "bear"))
    await attempt.write.remove_finalizer(doomed, "toys.example.com/hold")
    assert world.server.get(TOYS, "bear") is None
    assert await attempt.read.get(TOYS, "bear") is None
    assert uid_of(obj) == uid_of(doomed)


async def test_finalizers_are_not_touched_on_a_stale_view(world: World, its: Doors) -> None:
    old = world.server.create(toy("bear"))
    world.server.change(TOYS, "bear", {"metadata": {"finalizers": ["theirs.example.com/x"]}})
    with pytest.raises(Conflict):
        await its.next().write.add_finalizer(old, "toys.example.com/hold")
    assert present(world.server.get(TOYS, "bear"))["metadata"]["finalizers"] == ["theirs.example.com/x"]


async def test_an_event_is_intended_and_handed_to_the_recorder(world: World, its: Doors) -> None:
    bear = world.server.create(toy("bear"))
    attempt = its.next()
    attempt.write.event(bear, type="Warning", reason="Torn", message="An ear is off.")
    said = Said(about="bear", type="Warning", reason="Torn", message="An ear is off.", attempt="r000-1")
    assert its.listener.said == [said]
    [intent] = attempt.attempt.intents
    assert (intent.about, intent.reason) == (Key("default", "bear"), "Torn")


async def test_calls_carry_the_object_that_was_known_before_even_when_the_answer_was_lost(
    world: World, its: Doors
) -> None:
    bear = world.server.create(toy("bear"))
    await world.rest()
    world.server.faults.lose(Match(verb="patch", plural="toys"), after_commit=True)
    attempt = its.next()
    held = await attempt.write.add_finalizer(bear, "toys.example.com/hold")
    written = await attempt.write.status(held, {"ready": True})
    await attempt.write.delete(written)
    writes = attempt.attempt.writes
    assert [call.verb for call in writes] == ["patch", "apply", "delete"]
    known = [version_of(obj) for obj in (bear, held, written)]
    assert [version_of(call.before or {"metadata": {}}) for call in writes] == known
    assert [call.old_version for call in writes] == known


async def test_calls_carry_the_attempt_in_their_audit_id_and_are_noted(world: World, its: Doors) -> None:
    attempt = its.next()
    made = await attempt.write.create(settings())
    await attempt.write.delete(made)
    sent = [request.audit_id for request in world.server.requests if request.audit_id.startswith("r000-1.")]
    assert sent == [call.id for call in attempt.attempt.calls] == ["r000-1.1", "r000-1.2"]
    assert [call.write for call in attempt.attempt.calls] == [True, True]


# --- the doors of an attempt that is over ---


def every_door(attempt: Any, obj: Obj) -> list[Callable[[], Awaitable[object]]]:
    read, write = attempt.read, attempt.write
    return [
        lambda: read.get(TOYS, "bear"),
        lambda: read.list(TOYS),
        lambda: read.children(obj, CONFIGMAPS),
        lambda: read.indexed(TOYS, "colour", "brown"),
        lambda: read.live(TOYS, "bear"),
        lambda: write.ensure(settings(), owner=obj, resource=CONFIGMAPS),
        lambda: write.status(obj, {}),
        lambda: write.create(settings()),
        lambda: write.patch(obj, {"spec": {"a": 1}}),
        lambda: write.delete(obj),
        lambda: write.add_finalizer(obj, "x"),
        lambda: write.remove_finalizer(obj, "x"),
    ]


async def test_nothing_passes_the_doors_of_an_attempt_that_is_over(world: World, its: Doors) -> None:
    bear = world.server.create(toy("bear"))
    attempt = its.next()
    attempt.notes.close()
    before = len(world.server.requests)
    for door in every_door(attempt, bear):
        with pytest.raises(ControllerError, match="has ended"):
            await door()
    with pytest.raises(ControllerError, match="has ended"):
        attempt.write.event(bear, reason="Late", message="Too late.")
    assert (len(world.server.requests), its.listener.said) == (before, [])


# --- what the answers of writes leave for echoes ---


async def test_a_write_that_changed_nothing_is_not_waited_for(world: World, its: Doors) -> None:
    bear = world.server.create(toy("bear"))
    attempt = its.next()
    same = await attempt.write.patch(bear, {"metadata": {"generation": 99}})  # which is the server's to say
    assert (attempt.calls, version_of(same)) == (["patch toys/bear 200"], version_of(bear))
    assert len(its.echoes) == 0
    await attempt.write.patch(bear, {"spec": {"colour": "brown"}})
    assert len(its.echoes) == 1


async def test_only_an_answer_to_the_write_itself_proves_its_version(world: World, its: Doors) -> None:
    made = await its.next().write.create(settings("one"))
    world.server.faults.lose(Match(verb="create"))
    found = await its.next().write.create(settings("two"))
    certain = {written.uid: written.certain for written in its.echoes._written.values()}
    assert certain == {uid_of(made): True, uid_of(found): False}


async def test_a_resource_without_cache_can_be_written(world: World, its: Doors) -> None:
    made = await its.next().write.create({"metadata": {"name": "token"}, "stringData": {"a": "b"}}, resource=SECRETS)
    await its.next().write.delete(made, resource=SECRETS)
    assert world.server.objects(SECRETS) == []
    assert DEPLOYMENTS not in SPEC.resources


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        ({"apiVersion": "v1", "kind": "Secret"}, "writes a Secret (v1), which it does not declare"),
        ({"apiVersion": "v2", "kind": "ConfigMap"}, "writes a ConfigMap (v2), which it does not declare"),
        ({"kind": "ConfigMap"}, "got an object without apiVersion and kind to write"),
        (
            {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"},
            "got a PartialObjectMetadata to write, which does not carry the kind of its object",
        ),
    ],
)
async def test_a_write_whose_resource_cannot_be_told_is_refused_with_the_declared_ones(
    obj: Obj, problem: str, world: World, its: Doors
) -> None:
    attempt = its.next()
    with pytest.raises(ControllerError) as caught:
        await attempt.write.create({**obj, "metadata": {"name": "one"}})
    declared = "Declared: Toy (toys.example.com/v1), ConfigMap (v1)."
    assert caught.value.message == f"Controller 'toy' {problem}. {declared}"
    assert str(caught.value.next_step).startswith("Pass resource=... to the write, or declare the resource with")
    assert attempt.calls == []


async def test_the_record_of_a_call_keeps_what_was_sent_whatever_the_reconciler_does_to_it(
    world: World, its: Doors
) -> None:
    attempt, wanted = its.next(), settings()
    await attempt.write.create(wanted)
    wanted["data"]["a"] = "changed"
    [call] = attempt.attempt.calls
    assert isinstance(call.sent, dict)
    assert call.sent["data"] == {"a": "1"}
