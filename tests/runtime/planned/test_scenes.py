"""Plans in full: files, rounds, what is refused, and what a plan cannot know."""

from __future__ import annotations

import re

import pytest

from kubectl_ctrl.cli import bundled
from kubectl_ctrl.controllers.memcached.reconciler import MEMCACHEDS
from kubectl_ctrl.controllers.scaler.annotations import DEFAULT_PREFIX
from kubectl_ctrl.errors import CtrlError, Forbidden, NotInstalled, TerminalError, TimedOut
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Key, Obj, uid_of, version_of
from kubectl_ctrl.model.plan import Effect
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, REPLICASETS, SECRETS
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.planned.planning import Planner, PlanOptions
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Stage
from tests.runtime.planned.truth import BEAR, plan_client, planned, then_done
from tests.runtime.toy import BOXES, CONFIGMAPS, TOYS
from tests.runtime.world import World, crd, toy

_PLAYERS = {name: bundled.load(name) for name in ("memcached", "podcount", "scaler", "foo")}


def memcached(size: int) -> Obj:
    meta = {"name": "bear", "namespace": "default"}
    return {"apiVersion": MEMCACHEDS.api_version, "kind": "Memcached", "metadata": meta, "spec": {"size": size}}


def workload(**annotations: str) -> Obj:
    labels = {"app": "bear"}
    said = {f"{DEFAULT_PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
    meta = {"name": "bear", "namespace": "default", "annotations": said}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def deny(world: World, verb: str, plural: str) -> None:
    """As the authorizer says it."""
    said = (
        f'{plural} is forbidden: User "me" cannot {verb} resource "{plural}" in API group "" in the namespace "default"'
    )
    world.server.faults.fail(Match(verb=verb, plural=plural), 403, reason="Forbidden", message=said, times=None)


# The other bundled controllers.


def test_memcached_is_planned_from_its_creation_to_its_rest() -> None:
    async def play() -> None:
        stage, spec = Stage(), _PLAYERS["memcached"]
        stage.install(bundled.folder("memcached") / "crd.yaml")
        stage.server.create(memcached(1))
        await then_done(stage, spec, await planned(stage, spec))
        stage.server.change(MEMCACHEDS, "bear", {"spec": {"size": 4}})
        told = await planned(stage, spec)
        assert told.writes[:2] == ["patch deployments default/bear", "apply deployments default/bear"]
        await then_done(stage, spec, told)
        assert (await planned(stage, spec)).plan.changed == ()

    run_virtual(play)


def test_podcount_patches_of_what_it_keeps_the_metadata_alone() -> None:
    async def play() -> None:
        stage, spec = Stage(), _PLAYERS["podcount"]
        stage.server.play_deployments(pods=True)
        stage.server.create(workload())
        await stage.rest(10)
        (found,) = stage.server.objects(REPLICASETS)
        told = await planned(stage, spec, Key("default", found["metadata"]["name"]))
        (fate,) = told.plan.fates
        assert fate.after is not None
        assert fate.after["metadata"]["labels"]["pod-count"] == "3"
        assert fate.after["spec"]["replicas"] == 3
        await then_done(stage, spec, told)

    run_virtual(play)


@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "beside an autoscaler"])
def test_the_scaler_patches_workload_and_autoscaler(scaled: bool) -> None:
    async def play() -> None:
        stage, spec = Stage(), _PLAYERS["scaler"]
        stage.server.create(workload(force_down="true"))
        if scaled:
            ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "bear"}
            hpa = {"scaleTargetRef": ref, "minReplicas": 2, "maxReplicas": 5}
            meta = {"name": "auto", "namespace": "default"}
            stage.server.create({"apiVersion": HPAS.api_version, "kind": HPAS.kind, "metadata": meta, "spec": hpa})
        told = await planned(stage, spec)
        assert told.plan.changed
        await then_done(stage, spec, told)

    run_virtual(play)


# Files: objects that exist in the plan alone, or are changed in it alone.


def test_an_object_of_a_file_is_there_in_the_plan_alone() -> None:
    async def play() -> None:
        stage, spec = Stage(), _PLAYERS["memcached"]
        stage.install(bundled.folder("memcached") / "crd.yaml")
        told = await planned(stage, spec, given=[(MEMCACHEDS.ref("bear", "default"), memcached(2))])
        (given,) = told.plan.given
        assert (given.effect, given.before) == (Effect.CREATED, None)
        made, status = told.plan.fates
        assert (made.resource, made.effect, made.checked) == (DEPLOYMENTS, Effect.CREATED, True)
        assert (status.resource, status.effect, status.checked) == (MEMCACHEDS, Effect.CHANGED, False)
        assert made.after is not None
        assert status.after is not None
        owner = made.after["metadata"]["ownerReferences"][0]["uid"]
        assert owner == uid_of(status.after)
        assert re.fullmatch(r"planned-\d+", owner)
        assert status.after["status"]["conditions"]
        await stage.run(spec, once=True, namespace="default")
        assert stage.server.objects(DEPLOYMENTS) == []

    run_virtual(play)


def test_a_file_changes_in_the_plan_what_is_there() -> None:
    async def play() -> None:
        stage, spec = Stage(), _PLAYERS["memcached"]
        stage.install(bundled.folder("memcached") / "crd.yaml")
        stage.server.create(memcached(1))
        await stage.run(spec, once=True, namespace="default")
        told = await planned(stage, spec, given=[(MEMCACHEDS.ref("bear", "default"), memcached(5))])
        assert [fate.effect for fate in told.plan.given] == [Effect.CHANGED]
        deployment = next(fate for fate in told.plan.fates if fate.resource == DEPLOYMENTS)
        assert deployment.after is not None
        assert deployment.after["spec"]["replicas"] == 5
        # And that is what comes when the file is really applied.
        stage.server.apply(memcached(5), manager="kubectl", force=True)
        done = await planned(stage, spec)
        assert done.writes == told.writes
        await then_done(stage, spec, done)

    run_virtual(play)


# Rounds.


def test_rounds_end_when_nothing_more_would_be_written() -> None:
    async def grow(ctx: Context, request: Request) -> Result | None:
        bear = await ctx.read.get(TOYS, request.name)
        assert bear is not None
        size = bear["spec"]["size"]
        if size < 4:
            await ctx.write.patch(bear, TOYS, {"spec": {"size": size + 1}})
        return Result(60)

    async def play() -> None:
        world, spec = World(), controller("toy", grow).for_(TOYS)
        world.server.create(toy("bear", size=1))
        one = await planned(world, spec)
        assert (one.plan.rounds, len(one.writes)) == (1, 1)
        told = await planned(world, spec, to_fixpoint=True)
        assert (told.plan.rounds, len(told.writes), told.plan.settled) == (4, 3, True)
        (fate,) = told.plan.fates
        assert fate.before is not None
        assert fate.after is not None
        assert (fate.before["spec"]["size"], fate.after["spec"]["size"]) == (1, 4)

    run_virtual(play)


def test_one_that_never_settles_is_told_after_ten_rounds() -> None:
    async def flap(ctx: Context, request: Request) -> Result | None:
        bear = await ctx.read.get(TOYS, request.name)
        assert bear is not None
        await ctx.write.status(bear, TOYS, {"ready": not (bear.get("status") or {}).get("ready", False)})
        return None

    async def play() -> None:
        world, spec = World(), controller("toy", flap).for_(TOYS)
        world.server.create(toy("bear"))
        told = await planned(world, spec, to_fixpoint=True)
        assert (told.plan.rounds, told.plan.settled) == (10, False)
        assert told.writes == ["apply toys default/bear status"] * 10

    run_virtual(play)


def test_again_is_another_round_and_a_schedule_is_none() -> None:
    passes: list[float] = []

    async def twice(ctx: Context, request: Request) -> Result | None:
        passes.append(ctx.now())
        return Result(again=True) if len(passes) < 3 else Result(30)

    async def play() -> None:
        world, spec = World(), controller("toy", twice).for_(TOYS)
        world.server.create(toy("bear"))
        told = await planned(world, spec, to_fixpoint=True)
        assert (told.plan.rounds, told.plan.settled, told.plan.changed) == (3, True, ())
        assert told.plan.last[0].attempt.verdict.outcome is Outcome.AFTER

    run_virtual(play)


# What is refused.


def test_a_write_that_the_server_refuses_is_refused_in_the_plan() -> None:
    async def keep(ctx: Context, request: Request) -> Result | None:
        bear = await ctx.read.get(TOYS, request.name)
        assert bear is not None
        await ctx.write.ensure({"metadata": {"name": "box"}}, owner=bear, resource=CONFIGMAPS)
        return None

    async def play() -> None:
        world, spec = World(), controller("toy", keep).for_(TOYS).owns(CONFIGMAPS)
        world.server.create(toy("bear"))
        deny(world, "create", "configmaps")
        told = await planned(world, spec)
        assert isinstance(told.plan.error, Forbidden)
        assert 'verbs ["create"]' in told.plan.error.next_step
        (fate,) = told.plan.fates
        assert fate.effect is Effect.UNCHANGED
        assert fate.note.startswith("ensure refused: The server forbids create configmaps")
        await then_done(world, spec, told)

    run_virtual(play)


def test_what_may_not_be_listed_ends_the_plan_with_the_rule() -> None:
    async def play() -> None:
        world, spec = World(), _PLAYERS["podcount"]
        deny(world, "list", "pods")
        with pytest.raises(Forbidden) as caught:
            await planned(world, spec)
        assert 'resources ["pods"], verbs ["list"]' in caught.value.next_step

    run_virtual(play)


def test_a_type_that_is_not_served_has_to_be_installed_first() -> None:
    async def play() -> None:
        with pytest.raises(NotInstalled) as caught:
            await planned(Stage(), _PLAYERS["foo"])
        assert caught.value.next_step == "kubectl ctrl install foo"

    run_virtual(play)


async def keeps_a_box(ctx: Context, request: Request) -> Result | None:
    """A reconciler that takes every refusal for an answer."""
    bear = await ctx.read.get(TOYS, request.name)
    assert bear is not None
    try:
        await ctx.write.ensure({"metadata": {"name": "box"}}, owner=bear, resource=CONFIGMAPS)
    except CtrlError as error:
        return Result(waiting_for=error.message)
    return None


def test_a_webhook_that_takes_no_dry_run_is_named_whatever_the_reconciler_makes_of_it() -> None:
    async def play() -> None:
        world, spec = World(), controller("toy", keeps_a_box).for_(TOYS).owns(CONFIGMAPS)
        world.server.create(toy("bear"))
        said = 'admission webhook "boxes.example.com" does not support dry run'
        refusing = Match(verb="create", plural="configmaps")
        world.server.faults.fail(refusing, 400, reason="BadRequest", message=said)
        told = await planned(world, spec, to_fixpoint=True)
        assert told.plan.rounds == 1
        assert told.plan.error is not None
        assert "'boxes.example.com' takes no dry run" in told.plan.error.message
        assert "create configmaps default/box" in told.plan.error.message

    run_virtual(play)


def test_an_error_of_the_reconciler_says_where_it_was_raised() -> None:
    async def broken(ctx: Context, request: Request) -> Result | None:
        raise ValueError("a bad day")

    async def gives_up(ctx: Context, request: Request) -> Result | None:
        raise TerminalError("It cannot be.")

    async def hangs(ctx: Context, request: Request) -> Result | None:
        await world_clock[0].sleep(3600)
        return None

    world_clock = []

    async def play() -> None:
        world = World()
        world_clock.append(world.clock)
        world.server.create(toy("bear"))
        found = [
            (await planned(world, controller("toy", body).for_(TOYS))).plan.error for body in (broken, gives_up, hangs)
        ]
        assert found[0] is not None
        assert found[0].message == "The reconciler raised ValueError: a bad day."
        assert re.fullmatch(r"planned/test_scenes.py:\d+", found[0].tried)
        assert isinstance(found[1], TerminalError)
        assert isinstance(found[2], TimedOut)

    run_virtual(play)


def test_somebody_elses_change_during_the_plan_is_not_taken_for_its_own() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        bear = await ctx.read.get(TOYS, request.name)
        assert bear is not None
        bear = await ctx.write.status(bear, TOYS, {"ready": True})
        world_of[0].server.change(TOYS, "bear", {"spec": {"theirs": True}})
        live = await ctx.read.live(TOYS, request.name)
        assert live is not None
        assert (live["spec"], live["status"]) == ({"theirs": True}, {"ready": True})
        await ctx.write.patch(live, TOYS, {"spec": {"ours": True}})
        return None

    world_of = []

    async def play() -> None:
        world = World()
        world_of.append(world)
        world.server.create(toy("bear"))
        client = plan_client(world)
        options = PlanOptions(namespace="default")
        spec = controller("toy", body).for_(TOYS)
        plan = await Planner(spec, client, clock=world.clock, rng=world.rng, options=options).plan([BEAR])
        status, patch = plan.passes[0].steps
        assert status.after is not None
        assert status.after["spec"] == {}
        assert patch.before is not None
        assert patch.after is not None
        assert (patch.before["spec"], patch.after["spec"]) == ({"theirs": True}, {"theirs": True, "ours": True})

    run_virtual(play)


def test_an_object_without_a_namespace_is_planned_too() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        box = await ctx.read.get(BOXES, request.name)
        assert box is not None
        await ctx.write.status(box, BOXES, {"ready": True})
        return None

    async def play() -> None:
        world = World()
        world.install(crd(BOXES))
        meta = {"name": "bear"}
        world.server.create({"apiVersion": BOXES.api_version, "kind": "Box", "metadata": meta, "spec": {}})
        spec = controller("box", body).for_(BOXES)
        told = await planned(world, spec, Key("", "bear"))
        assert told.writes == ["apply boxes bear status"]
        await then_done(world, spec, told)

    run_virtual(play)


def test_a_secret_given_as_text_keeps_its_data() -> None:
    """Its stringData becomes data; what is handed over before the first apply must not be taken for dropped."""

    async def body(ctx: Context, request: Request) -> Result | None:
        bear = await ctx.read.get(TOYS, request.name)
        assert bear is not None
        child = {"metadata": {"name": "kept"}, "stringData": {"size": str(bear["spec"]["size"]), "same": "x"}}
        await ctx.write.ensure(child, owner=bear, resource=SECRETS)
        return None

    async def play() -> None:
        world, spec = World(), controller("toy", body).for_(TOYS).owns(SECRETS)
        world.server.create(toy("bear", size=1))
        await world.run(spec, once=True, namespace="default")
        world.server.change(TOYS, "bear", {"spec": {"size": 2}})
        told = await planned(world, spec)
        (fate,) = told.plan.fates
        assert fate.after is not None
        assert fate.after["data"] == {"size": "Mg==", "same": "eA=="}

    run_virtual(play)


def test_a_conflict_of_ports_that_only_a_hand_over_solves_is_planned() -> None:
    async def play() -> None:
        stage = Stage()
        stage.install(crd())
        stage.server.create(toy("bear", port=80))

        async def body(ctx: Context, request: Request) -> Result | None:
            bear = await ctx.read.get(TOYS, request.name)
            assert bear is not None
            labels = {"app": "bear"}
            ports = [{"containerPort": bear["spec"]["port"], "name": "http"}]
            pod = {"containers": [{"name": "c", "image": "c:1", "ports": ports}]}
            spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
            await ctx.write.ensure({"metadata": {"name": "web"}, "spec": spec}, owner=bear, resource=DEPLOYMENTS)
            return None

        spec = controller("toy", body).for_(TOYS).owns(DEPLOYMENTS)
        await stage.run(spec, once=True, namespace="default")
        stage.server.change(TOYS, "bear", {"spec": {"port": 8080}})
        await then_done(stage, spec, await planned(stage, spec))

    run_virtual(play)


def test_a_scale_is_planned_as_a_change_of_the_count() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        bear = await ctx.read.get(DEPLOYMENTS, request.name)
        assert bear is not None
        await ctx.write.patch(bear, DEPLOYMENTS, {"spec": {"replicas": 5}}, subresource="scale")
        live = await ctx.read.live(DEPLOYMENTS, request.name)
        assert live is not None
        assert live["spec"]["replicas"] == 5
        return None

    async def play() -> None:
        stage = Stage()
        stage.server.create(workload())
        spec = controller("toy", body).for_(DEPLOYMENTS)
        told = await planned(stage, spec)
        assert told.writes == ["patch deployments default/bear scale"]
        await then_done(stage, spec, told)

    run_virtual(play)


def test_versions_of_the_plan_never_reach_the_server() -> None:
    async def body(ctx: Context, request: Request) -> Result | None:
        bear = await ctx.read.get(TOYS, request.name)
        assert bear is not None
        bear = await ctx.write.add_finalizer(bear, TOYS, "example.com/keep")
        bear = await ctx.write.remove_finalizer(bear, TOYS, "example.com/keep")
        bear = await ctx.write.patch(bear, TOYS, {"spec": {"size": 2}})
        assert version_of(bear).startswith("planned-")
        await ctx.write.delete(bear, TOYS)
        return None

    async def play() -> None:
        world, spec = World(), controller("toy", body).for_(TOYS)
        world.server.create(toy("bear"))
        client = plan_client(world)
        options = PlanOptions(namespace="default")
        plan = await Planner(spec, client, clock=world.clock, rng=world.rng, options=options).plan([BEAR])
        assert plan.error is None
        calls = [call for call in plan.passes[0].attempt.calls if call.verb != "get"]
        assert [call.verb for call in calls] == ["patch", "patch", "patch", "delete"]
        assert all(call.dry_run for call in calls)
        assert "planned-" not in repr([(call.sent, call.old_version) for call in calls])

    run_virtual(play)
