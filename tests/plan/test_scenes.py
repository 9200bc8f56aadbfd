"""Complete plans: of every bundled controller, of files, and over several rounds."""

from __future__ import annotations

import json
import re

import pytest

from kubectl_ctrl.controllers.memcached.reconciler import MEMCACHEDS
from kubectl_ctrl.controllers.scaler.annotations import DEFAULT_PREFIX
from kubectl_ctrl.loader import bundled
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.masking import LAST_APPLIED
from kubectl_ctrl.model.objects import Key, Obj, uid_of
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, REPLICASETS
from kubectl_ctrl.plan.steps import PlannedEffect
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present
from tests.plan.truth import planned, then_done
from tests.runtime.toy import TOYS
from tests.runtime.world import World, toy

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


# The other bundled controllers.


async def test_memcached_is_planned_from_its_creation_until_it_settles() -> None:
    stage, spec = Stage(), _PLAYERS["memcached"]
    stage.install(bundled.folder("memcached") / "crd.yaml")
    stage.server.create(memcached(1))
    await then_done(stage, spec, await planned(stage, spec))
    stage.server.change(MEMCACHEDS, "bear", {"spec": {"size": 4}})
    told = await planned(stage, spec)
    assert told.writes[:2] == ["patch deployments default/bear", "apply deployments default/bear"]
    await then_done(stage, spec, told)
    assert (await planned(stage, spec)).plan.changed == ()


async def test_podcount_patches_objects_cached_as_metadata() -> None:
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


@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "beside an autoscaler"])
async def test_the_scaler_patches_workload_and_autoscaler(scaled: bool) -> None:
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


# Files: objects that exist in the plan alone, or are changed in it alone.


async def test_an_object_of_a_file_exists_in_the_plan_alone() -> None:
    stage, spec = Stage(), _PLAYERS["memcached"]
    stage.install(bundled.folder("memcached") / "crd.yaml")
    told = await planned(stage, spec, given=[(MEMCACHEDS.ref("bear", "default"), memcached(2))])
    (given,) = told.plan.given
    assert (given.effect, given.before) == (PlannedEffect.CREATED, None)
    made, status = told.plan.fates
    assert (made.resource, made.effect, made.checked) == (DEPLOYMENTS, PlannedEffect.CREATED, True)
    assert (status.resource, status.effect, status.checked) == (MEMCACHEDS, PlannedEffect.CHANGED, False)
    assert made.after is not None
    assert status.after is not None
    owner = made.after["metadata"]["ownerReferences"][0]["uid"]
    assert owner == uid_of(status.after)
    assert re.fullmatch(r"planned-\d+", owner)
    assert status.after["status"]["conditions"]
    await stage.run(spec, once=True, namespace="default")
    assert stage.server.objects(DEPLOYMENTS) == []


async def test_a_file_changes_an_existing_object_in_the_plan() -> None:
    stage, spec = Stage(), _PLAYERS["memcached"]
    stage.install(bundled.folder("memcached") / "crd.yaml")
    stage.server.create(memcached(1))
    await stage.run(spec, once=True, namespace="default")
    told = await planned(stage, spec, given=[(MEMCACHEDS.ref("bear", "default"), memcached(5))])
    assert [fate.effect for fate in told.plan.given] == [PlannedEffect.CHANGED]
    deployment = next(fate for fate in told.plan.fates if fate.resource == DEPLOYMENTS)
    assert deployment.after is not None
    assert deployment.after["spec"]["replicas"] == 5
    # Applying the file has the same result.
    stage.server.apply(memcached(5), manager="kubectl", force=True)
    done = await planned(stage, spec)
    assert done.writes == told.writes
    await then_done(stage, spec, done)


async def test_fields_of_the_last_apply_that_the_file_lacks_are_removed() -> None:
    async def body(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        assert bear["spec"] == {"size": 2, "theirs": 1, "deep": {"theirs": 1}}
        assert bear["metadata"]["labels"] == {"theirs": "1"}

    world, spec = World(), controller("toy", body).for_(TOYS)
    before = toy("bear", size=1, color="brown", deep={"a": 1})
    before["metadata"] |= {"annotations": {}, "labels": {"mine": "1"}}
    made = toy("bear", size=1, color="brown", theirs=1, deep={"a": 1, "theirs": 1})
    made["metadata"]["labels"] = {"mine": "1", "theirs": "1"}
    made["metadata"]["annotations"] = {LAST_APPLIED: json.dumps(before), "theirs": "1"}
    world.server.create(made)
    given = [(TOYS.ref("bear", "default"), toy("bear", size=2))]
    told = await planned(world, spec, given=given)
    assert told.plan.error is None
    (fate,) = told.plan.given
    assert fate.after is not None
    assert fate.after["metadata"]["annotations"]["theirs"] == "1"


# Rounds.


async def test_rounds_end_if_nothing_more_would_be_written() -> None:
    async def grow(ctx: Context, request: Request) -> Result | None:
        bear = present(await ctx.read.get(TOYS, request.name))
        size = bear["spec"]["size"]
        if size < 4:
            await ctx.write.patch(bear, {"spec": {"size": size + 1}})
        return Result(60)

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


async def test_a_controller_that_never_settles_is_reported_after_ten_rounds() -> None:
    async def flap(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        await ctx.write.status(bear, {"ready": not (bear.get("status") or {}).get("ready", False)})

    world, spec = World(), controller("toy", flap).for_(TOYS)
    world.server.create(toy("bear"))
    told = await planned(world, spec, to_fixpoint=True)
    assert (told.plan.rounds, told.plan.settled) == (10, False)
    assert told.writes == ["apply toys default/bear status"] * 10


async def test_another_pass_is_another_round_and_a_schedule_is_none() -> None:
    passes: list[float] = []

    async def twice(ctx: Context, request: Request) -> Result | None:
        passes.append(ctx.now())
        return Result(again=True) if len(passes) < 3 else Result(30)

    world, spec = World(), controller("toy", twice).for_(TOYS)
    world.server.create(toy("bear"))
    told = await planned(world, spec, to_fixpoint=True)
    assert (told.plan.rounds, told.plan.settled, told.plan.changed) == (3, True, ())
    assert told.plan.last[0].attempt.verdict.outcome is Outcome.AFTER
