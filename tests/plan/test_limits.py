"""Errors that end a plan, and changes that are not part of it."""

from __future__ import annotations

import asyncio
import re

import pytest

from kubectl_ctrl.errors import CtrlError, Forbidden, NotInstalled, Refused, TerminalError, TimedOut
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Key, uid_of, version_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS
from kubectl_ctrl.plan.steps import PlannedEffect
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present
from tests.plan.truth import plan_client, planned, play_of, then_done
from tests.runtime.toy import BOXES, CONFIGMAPS, TOYS
from tests.runtime.world import World, crd, toy

_PLAYERS = {name: bundled.load(name) for name in ("podcount", "foo")}


def deny(world: World, verb: str, plural: str) -> None:
    """The message of the authorizer."""
    said = (
        f'{plural} is forbidden: User "me" cannot {verb} resource "{plural}" in API group "" in the namespace "default"'
    )
    world.server.faults.fail(Match(verb=verb, plural=plural), 403, reason="Forbidden", message=said, times=None)


# Refusals.


async def test_a_write_that_the_server_rejects_is_rejected_in_the_plan() -> None:
    async def keep(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.ensure({"metadata": {"name": "box"}}, owner=bear, resource=CONFIGMAPS)

    world, spec = World(), controller("toy", keep).for_(TOYS).owns(CONFIGMAPS)
    world.server.create(toy("bear"))
    deny(world, "create", "configmaps")
    told = await planned(world, spec)
    assert isinstance(told.plan.error, Forbidden)
    assert 'verbs ["create"]' in told.plan.error.next_step
    (fate,) = told.plan.fates
    assert fate.effect is PlannedEffect.UNCHANGED
    assert fate.note.startswith("ensure refused: The server forbids create configmaps")
    await then_done(world, spec, told)


async def test_a_forbidden_list_ends_the_plan_and_names_the_rule() -> None:
    world, spec = World(), _PLAYERS["podcount"]
    deny(world, "list", "pods")
    with pytest.raises(Forbidden) as caught:
        await planned(world, spec)
    assert 'resources ["pods"], verbs ["list"]' in caught.value.next_step


async def test_an_unserved_type_must_be_installed_first() -> None:
    with pytest.raises(NotInstalled) as caught:
        await planned(Stage(), _PLAYERS["foo"])
    assert caught.value.next_step == "kubectl ctrl install foo"


async def keeps_a_box(ctx: Context, request: Request) -> Result | None:
    """A reconciler that catches every error, and writes in every round."""
    bear = present(await ctx.read.get(TOYS, request.name))
    seen = (bear.get("status") or {}).get("seen") or 0
    await ctx.write.status(bear, {"seen": seen + 1})
    try:
        await ctx.write.ensure({"metadata": {"name": "box"}}, owner=bear, resource=CONFIGMAPS)
    except CtrlError as error:
        return Result(waiting_for=error.message)
    return None


async def test_a_webhook_without_dry_run_is_named_even_if_the_reconciler_catches_the_error() -> None:
    world, spec = World(), controller("toy", keeps_a_box).for_(TOYS).owns(CONFIGMAPS)
    world.server.create(toy("bear"))
    said = 'admission webhook "boxes.example.com" does not support dry run'
    refusing = Match(verb="create", plural="configmaps")
    world.server.faults.fail(refusing, 400, reason="BadRequest", message=said)
    told = await planned(world, spec, to_fixpoint=True)
    assert told.plan.rounds == 1
    assert told.plan.error is not None
    assert "'boxes.example.com' does not support dry run" in told.plan.error.message
    assert "create configmaps default/box" in told.plan.error.message


async def test_an_error_of_the_reconciler_has_its_place() -> None:
    async def broken(ctx: Context, request: Request) -> None:
        raise ValueError("a bad day")

    async def gives_up(ctx: Context, request: Request) -> None:
        raise TerminalError("It cannot be.")

    async def hangs(ctx: Context, request: Request) -> None:
        await world_clock[0].sleep(3600)

    world_clock = []
    world = World()
    world_clock.append(world.clock)
    world.server.create(toy("bear"))
    found = [
        (await planned(world, controller("toy", body).for_(TOYS))).plan.error for body in (broken, gives_up, hangs)
    ]
    assert found[0] is not None
    assert found[0].message == "The reconciler raised ValueError: a bad day."
    assert re.fullmatch(r"plan/test_limits.py:\d+", found[0].tried)
    assert isinstance(found[1], TerminalError)
    assert isinstance(found[2], TimedOut)


async def test_a_foreign_change_during_the_plan_is_not_part_of_it() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        bear = await ctx.write.status(bear, {"ready": True})
        world_of[0].server.change(TOYS, "bear", {"spec": {"theirs": True}})
        live = present(await ctx.read.live(TOYS, request.name))
        assert (live["spec"], live["status"]) == ({"theirs": True}, {"ready": True})
        await ctx.write.patch(live, {"spec": {"ours": True}})

    world_of = []
    world = World()
    world_of.append(world)
    world.server.create(toy("bear"))
    plan = await play_of(world, controller("toy", body).for_(TOYS))
    status, patch = plan.passes[0].steps
    assert status.after is not None
    assert status.after["spec"] == {}
    assert patch.before is not None
    assert patch.after is not None
    assert (patch.before["spec"], patch.after["spec"]) == ({"theirs": True}, {"theirs": True, "ours": True})


async def test_a_cluster_scoped_object_is_planned_too() -> None:
    async def body(ctx: Context, request: Request) -> None:
        box = present(await ctx.read.get(BOXES, request.name))
        await ctx.write.status(box, {"ready": True})

    world = World()
    world.install(crd(BOXES))
    meta = {"name": "bear"}
    world.server.create({"apiVersion": BOXES.api_version, "kind": "Box", "metadata": meta, "spec": {}})
    spec = controller("box", body).for_(BOXES)
    told = await planned(world, spec, Key("", "bear"))
    assert told.writes == ["apply boxes bear status"]
    await then_done(world, spec, told)


async def test_a_secret_with_string_data_keeps_its_data() -> None:
    """Its stringData becomes data; fields handed over before the first apply are not dropped ones."""

    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        child = {"metadata": {"name": "kept"}, "stringData": {"size": str(bear["spec"]["size"]), "same": "x"}}
        await ctx.write.ensure(child, owner=bear, resource=SECRETS)

    world, spec = World(), controller("toy", body).for_(TOYS).owns(SECRETS)
    world.server.create(toy("bear", size=1))
    await world.run(spec, once=True, namespace="default")
    world.server.change(TOYS, "bear", {"spec": {"size": 2}})
    told = await planned(world, spec)
    (fate,) = told.plan.fates
    assert fate.after is not None
    assert fate.after["data"] == {"size": "Mg==", "same": "eA=="}
    seen = [one for one in told.plan.secrets if isinstance(one, dict)]
    assert {one["data"]["size"] for one in seen if "data" in one} == {"MQ==", "Mg=="}
    assert {"size": "2", "same": "x"} in [one.get("stringData") for one in seen]  # as the reconciler wrote it


async def test_a_conflict_of_ports_that_only_a_handover_solves_is_planned() -> None:
    stage = Stage()
    stage.install(crd())
    stage.server.create(toy("bear", port=80))

    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        labels = {"app": "bear"}
        ports = [{"containerPort": bear["spec"]["port"], "name": "http"}]
        pod = {"containers": [{"name": "c", "image": "c:1", "ports": ports}]}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        await ctx.write.ensure({"metadata": {"name": "web"}, "spec": spec}, owner=bear, resource=DEPLOYMENTS)

    spec = controller("toy", body).for_(TOYS).owns(DEPLOYMENTS)
    await stage.run(spec, once=True, namespace="default")
    stage.server.change(TOYS, "bear", {"spec": {"port": 8080}})
    await then_done(stage, spec, await planned(stage, spec))


async def test_a_scale_is_planned_as_a_change_of_the_count() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(DEPLOYMENTS, request.name))
        await ctx.write.patch(bear, {"spec": {"replicas": 5}}, subresource="scale")
        assert present(await ctx.read.live(DEPLOYMENTS, request.name))["spec"]["replicas"] == 5

    stage = Stage()
    labels = {"app": "bear"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
    meta = {"name": "bear", "namespace": "default"}
    count = {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod}
    stage.server.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": count})
    spec = controller("toy", body).for_(DEPLOYMENTS)
    told = await planned(stage, spec)
    assert told.writes == ["patch deployments default/bear scale"]
    await then_done(stage, spec, told)


async def test_the_effect_of_a_write_to_another_subresource_is_unknown() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.patch(bear, {"spec": {"replicas": 5}}, subresource="scale")

    world, made = World(installed=False), crd()
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.seen"}
    made["spec"]["versions"][0]["subresources"]["scale"] = paths
    world.install(made)
    world.server.create(toy("bear", size=3))
    told = await planned(world, controller("toy", body).for_(TOYS))
    assert told.plan.error is None
    assert told.writes == ["patch toys default/bear scale"]
    (fate,) = told.plan.fates
    assert (fate.effect, fate.note) == (PlannedEffect.CHANGED, "patch of its scale")


async def test_planned_versions_never_reach_the_server() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        bear = await ctx.write.add_finalizer(bear, "example.com/keep")
        bear = await ctx.write.remove_finalizer(bear, "example.com/keep")
        bear = await ctx.write.patch(bear, {"spec": {"size": 2}})
        assert version_of(bear).startswith("planned-")
        await ctx.write.delete(bear)

    world, spec = World(), controller("toy", body).for_(TOYS)
    world.server.create(toy("bear"))
    plan = await play_of(world, spec)
    assert plan.error is None
    calls = [call for call in plan.passes[0].attempt.calls if call.verb != "get"]
    assert [call.verb for call in calls] == ["patch", "patch", "patch", "delete"]
    assert all(call.dry_run for call in calls)
    assert "planned-" not in repr([(call.sent, call.old_version) for call in calls])


async def test_an_apply_replaces_the_earlier_apply_of_its_manager() -> None:
    rounds: list[int] = []

    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        rounds.append(1)
        data = {"a": "1"} if len(rounds) > 1 else {"a": "1", "b": "2"}
        await ctx.write.ensure({"metadata": {"name": "box"}, "data": data}, owner=bear, resource=CONFIGMAPS)

    world, spec = World(), controller("toy", body).for_(TOYS).owns(CONFIGMAPS)
    world.server.create(toy("bear"))
    rounds.append(1)
    for _ in range(2):  # created, and then applied: the box has "a" alone, from an apply
        await world.run(spec, once=True, namespace="default")
        world.server.change(CONFIGMAPS, "box", {"data": {"a": "0"}})
    rounds.clear()
    told = await planned(world, spec, to_fixpoint=True)
    assert told.writes == ["apply configmaps default/box"] * 2
    (fate,) = told.plan.fates
    assert fate.after is not None
    assert fate.after["data"] == {"a": "1"}


async def test_an_object_replaced_during_the_plan_is_a_new_one() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.status(bear, {"ready": True})
        world_of[0].server.delete(TOYS, "bear")
        world_of[0].server.create(toy("bear"))
        live = present(await ctx.read.live(TOYS, request.name))
        assert uid_of(live) != uid_of(bear)
        assert "ready" not in (live.get("status") or {})

    world_of: list[World] = []
    world_of.append(World())
    world_of[0].server.create(toy("bear"))
    assert (await play_of(world_of[0], controller("toy", body).for_(TOYS))).error is None


async def test_after_a_change_between_read_and_dry_run_the_object_is_read_again() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.status(bear, {"ready": True})

    world = World(toy("bear", size=1))
    world.server.faults.delay(Match(verb="patch", plural="toys"), before=2.0)

    async def somebody_else() -> None:
        await world.clock.sleep(1.0)
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})

    changing = asyncio.create_task(somebody_else())
    plan = await play_of(world, controller("toy", body).for_(TOYS))
    await changing
    (step,) = plan.passes[0].steps
    assert step.before is not None
    assert step.after is not None
    assert (step.before["spec"], step.after["spec"]) == ({"size": 2}, {"size": 2})


async def test_objects_that_exist_in_the_plan_alone_are_read_from_the_plan() -> None:
    async def body(ctx: Context, request: Request) -> None:
        live = present(await ctx.read.live(TOYS, request.name))
        assert live["spec"] == {"size": 2}
        live = await ctx.write.patch(live, {"spec": {"color": "brown"}})
        live = await ctx.write.add_finalizer(live, "example.com/keep")
        await ctx.write.status(live, {"ready": True})
        assert (await ctx.read.get(TOYS, request.name)) == (await ctx.read.live(TOYS, request.name))

    world = World()
    given = [(TOYS.ref("bear", "default"), toy("bear", size=2))]
    told = await planned(world, controller("toy", body).for_(TOYS), given=given)
    assert told.plan.error is None
    assert [step.checked for step in told.steps] == [True, True, False]
    (fate,) = told.plan.fates
    assert fate.after is not None
    assert fate.after["spec"] == {"size": 2, "color": "brown"}
    assert fate.after["metadata"]["finalizers"] == ["example.com/keep"]
    assert fate.after["status"] == {"ready": True}


async def test_the_client_of_a_plan_can_send_nothing_that_changes_anything() -> None:
    world = World()
    made = world.server.create(toy("bear"))
    world.server.writes.clear()
    await plan_client(world).replace(TOYS.ref("bear", "default"), {**made, "spec": {"size": 2}})
    with pytest.raises(Refused, match="would have changed the cluster"):
        await plan_client(world).raw("POST", "/api/v1/namespaces/default/configmaps", body=toy("bear"))
    assert world.server.writes == []


def test_a_write_without_effect_is_sent_and_is_no_change() -> None:
    """Only the server can normalize a quantity, so another form of it is sent."""

    async def body(ctx: Context, request: Request) -> None:
        web = present(await ctx.read.get(DEPLOYMENTS, "web"))
        containers = [{"name": "c", "image": "c:1", "resources": {"limits": {"cpu": "1000m"}}}]
        patch = {"spec": {"template": {"spec": {"containers": containers}}}}
        after = await ctx.write.patch(web, patch)
        assert version_of(after) == version_of(web)

    async def play() -> None:
        stage, labels = Stage(), {"app": "web"}
        containers = [{"name": "c", "image": "c:1", "resources": {"limits": {"cpu": "1"}}}]
        pod = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        meta = {"name": "web", "namespace": "default"}
        spec = {"selector": {"matchLabels": labels}, "template": pod}
        made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
        stage.server.create(made, manager="kubectl-ctrl-toy")
        told = await planned(stage, controller("toy", body).for_(DEPLOYMENTS), Key("default", "web"))
        assert told.writes == ["patch deployments default/web"]
        assert told.plan.changed == ()

    run_virtual(play)
