"""A plan predicts a run: each scene is planned and then run, and the results are compared."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kubectl_ctrl.controllers.foo.reconciler import FOOS
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj, uid_of
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.plan.steps import PlannedEffect
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Stage
from tests.objects import autoscaler, present, workload
from tests.plan.truth import planned, then_done
from tests.runtime.toy import CONFIGMAPS, TOYS
from tests.runtime.world import World, toy

FOO, MEMCACHED, SCALER = (bundled.load(name) for name in ("foo", "memcached", "scaler"))


def foo(replicas: int = 3, deployment: str = "bear") -> Obj:
    meta = {"name": "bear", "namespace": "default"}
    spec = {"deploymentName": deployment, "replicas": replicas}
    return {"apiVersion": FOOS.api_version, "kind": "Foo", "metadata": meta, "spec": spec}


def deployment(name: str, **meta: Any) -> Obj:
    return workload(name, replicas=2, **meta)


def stage_for(name: str) -> Stage:
    stage = Stage()
    crd = bundled.folder(name) / "crd.yaml"
    if crd.exists():
        stage.install(crd)
    return stage


Scene = Callable[[Stage], Coroutine[Any, Any, None]]


async def new(stage: Stage) -> None:
    stage.server.create(foo())


async def scaled_by_hand(stage: Stage) -> None:
    """Its Deployment was just created by POST, and the spec changes: fields change owners before the first apply."""
    await grown_up(stage)
    stage.server.change(FOOS, "bear", {"spec": {"replicas": 5}})


async def grown_up(stage: Stage) -> None:
    stage.server.create(foo())
    await stage.run(FOO, once=True, namespace="default")


async def applied_before(stage: Stage) -> None:
    await scaled_by_hand(stage)
    await stage.run(FOO, once=True, namespace="default")
    stage.server.change(FOOS, "bear", {"spec": {"replicas": 7}})


async def renamed(stage: Stage) -> None:
    stage.server.play_deployments()
    await grown_up(stage)
    await stage.rest(30)
    stage.server.change(FOOS, "bear", {"spec": {"deploymentName": "cub"}})
    stage.server.play_deployments(False)


async def renamed_and_ready(stage: Stage) -> None:
    await renamed(stage)
    stage.server.play_deployments()
    await stage.run(FOO, once=True, namespace="default")
    await stage.rest(30)


async def taken(stage: Stage) -> None:
    stage.server.create(deployment("bear"))
    stage.server.create(foo())


async def scaled_by_an_autoscaler(stage: Stage) -> None:
    await grown_up(stage)
    stage.server.create(autoscaler("bear"))
    stage.server.change(FOOS, "bear", {"spec": {"replicas": 5}})


async def then_by_an_autoscaler(stage: Stage) -> None:
    await applied_before(stage)
    await stage.run(FOO, once=True, namespace="default")
    stage.server.create(autoscaler("bear"))


async def drifted(stage: Stage) -> None:
    await applied_before(stage)
    await stage.run(FOO, once=True, namespace="default")
    stage.server.change(DEPLOYMENTS, "bear", {"spec": {"replicas": 1, "paused": True}})


async def wrong(stage: Stage) -> None:
    stage.server.create(foo(deployment="No Name"))


async def at_rest(stage: Stage) -> None:
    await grown_up(stage)
    await stage.run(FOO, once=True, namespace="default")


FOO_SCENES = (
    new,
    scaled_by_hand,
    applied_before,
    renamed,
    renamed_and_ready,
    taken,
    scaled_by_an_autoscaler,
    then_by_an_autoscaler,
    drifted,
    wrong,
    at_rest,
)


@pytest.mark.parametrize("scene", FOO_SCENES, ids=lambda scene: scene.__name__)
async def test_foo_does_as_planned(scene: Scene) -> None:
    stage = stage_for("foo")
    await scene(stage)
    told = await planned(stage, FOO)
    if scene is at_rest:
        assert (told.writes, told.plan.changed) == ([], ())
    else:
        assert told.plan.changed
    await then_done(stage, FOO, told)


# Short controllers, for behaviour of no bundled one.


def box(**data: str) -> Obj:
    return {"metadata": {"name": "box"}, "data": data}


def toys(*bodies: Callable[[Context, Obj], Coroutine[Any, Any, Result | None]]) -> list[ControllerSpec]:
    """Versions of one controller; each finds the Toy."""

    def edition(body: Callable[[Context, Obj], Coroutine[Any, Any, Result | None]]) -> ControllerSpec:
        async def reconcile(ctx: Context, request: Request) -> Result | None:
            bear = await ctx.read.get(TOYS, request.name)
            return None if bear is None else await body(ctx, bear)

        return controller("toy", reconcile).for_(TOYS).owns(CONFIGMAPS)

    return [edition(body) for body in bodies]


def played(
    *editions: ControllerSpec, scene: Callable[[World], object] = lambda _: None, to_fixpoint: bool = False
) -> None:
    """Run all versions but the last, plan the last one, run it, and compare."""

    async def play() -> None:
        world = World(toy("bear", size=3))
        for edition in editions[:-1]:
            await world.run(edition, once=True, namespace="default")
        scene(world)
        told = await planned(world, editions[-1], to_fixpoint=to_fixpoint)
        await then_done(world, editions[-1], told)

    run_virtual(play)


async def keeps_ab(ctx: Context, bear: Obj) -> None:
    await ctx.write.ensure(box(a="1", b="2"), owner=bear, resource=CONFIGMAPS)


async def keeps_a(ctx: Context, bear: Obj) -> None:
    await ctx.write.ensure(box(a="7"), owner=bear, resource=CONFIGMAPS)


def test_a_field_dropped_right_after_the_creation_is_removed_in_the_plan() -> None:
    played(*toys(keeps_ab, keeps_a))


def test_a_field_dropped_from_an_apply_is_removed_in_the_plan() -> None:
    async def grew(ctx: Context, bear: Obj) -> None:
        await ctx.write.ensure(box(a="1", b="2", c="3"), owner=bear, resource=CONFIGMAPS)

    played(*toys(keeps_ab, grew, keeps_a))


def test_fields_of_other_managers_stay() -> None:
    played(
        *toys(keeps_ab, keeps_a), scene=lambda world: world.server.change(CONFIGMAPS, "box", {"data": {"z": "theirs"}})
    )


def test_writes_of_one_reconcile_see_each_other() -> None:
    async def body(ctx: Context, bear: Obj) -> Result | None:
        bear = await ctx.write.add_finalizer(bear, "example.com/keep")
        bear = await ctx.write.patch(bear, {"spec": {"size": 4}})
        bear = await ctx.write.patch(bear, {"spec": {"size": 3, "color": "brown"}})
        bear = await ctx.write.status(bear, {"ready": True})
        live = present(await ctx.read.live(TOYS, "bear"))
        assert (live["spec"], live["status"]) == ({"size": 3, "color": "brown"}, {"ready": True})
        await ctx.write.ensure(box(a=str(live["spec"]["size"])), owner=bear, resource=CONFIGMAPS)
        (child,) = await ctx.read.children(bear, CONFIGMAPS)
        child = await ctx.write.patch(child, {"data": {"b": "1"}})
        assert child["data"] == {"a": "3", "b": "1"}
        await ctx.write.delete(child)
        assert not await ctx.read.children(bear, CONFIGMAPS)
        assert await ctx.read.live(CONFIGMAPS, "box") is None
        return Result(30)

    played(*toys(body))


async def test_an_outdated_version_in_the_plan_is_a_conflict() -> None:
    async def body(ctx: Context, bear: Obj) -> None:
        await ctx.write.patch(bear, {"spec": {"size": 4}})
        await ctx.write.patch(bear, {"spec": {"size": 5}})

    world = World(toy("bear"))
    (spec,) = toys(body)
    told = await planned(world, spec)
    assert told.writes == ["patch toys default/bear"]
    assert told.plan.error is not None
    assert told.plan.last[0].attempt.verdict.outcome is Outcome.RETRY
    await then_done(world, spec, told)


def test_a_deleted_object_stays_for_its_finalizer() -> None:
    async def body(ctx: Context, bear: Obj) -> None:
        held = present(await ctx.read.get(CONFIGMAPS, "held"))
        await ctx.write.delete(held)

    def scene(world: World) -> None:
        meta = {"name": "held", "finalizers": ["example.com/hold"]}
        world.server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})

    played(*toys(body), scene=scene)


def test_removing_the_last_finalizer_completes_the_deletion() -> None:
    async def body(ctx: Context, bear: Obj) -> None:
        await ctx.write.remove_finalizer(bear, "example.com/keep")
        assert await ctx.read.get(TOYS, "bear") is None

    def scene(world: World) -> None:
        world.server.change(TOYS, "bear", {"metadata": {"finalizers": ["example.com/keep"]}})
        world.server.delete(TOYS, "bear")

    played(*toys(body), scene=scene)


async def test_a_child_deleted_and_created_again_is_not_checked_by_the_server() -> None:
    async def body(ctx: Context, bear: Obj) -> None:
        (child,) = await ctx.read.children(bear, CONFIGMAPS)
        await ctx.write.delete(child)
        made = await ctx.write.create(box(a="9"), resource=CONFIGMAPS)
        assert uid_of(made) != uid_of(child)

    world = World(toy("bear"))
    before, spec = toys(keeps_ab, body)
    await world.run(before, once=True, namespace="default")
    told = await planned(world, spec)
    assert told.writes == ["delete configmaps default/box", "create configmaps default/box"]
    assert [step.checked for step in told.steps] == [True, False]
    (fate,) = told.plan.fates
    assert (fate.effect, fate.checked) == (PlannedEffect.CHANGED, False)
