"""`ctx.write.conditions`, on a CRD whose list of conditions is a map by type."""

from __future__ import annotations

from pathlib import Path

from kubectl_ctrl import Condition, Context, Obj, Request, controller, find_condition
from kubectl_ctrl.controllers import foo
from kubectl_ctrl.controllers.foo.reconciler import FOOS
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.replay.execution import replay
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.replay import case_of
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present

CRD = Path(foo.__file__).parent / "crd.yaml"
AT = Key("default", "web")
THEIRS = {
    "type": "Audited",
    "status": "True",
    "reason": "Seen",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


async def reconcile(ctx: Context, request: Request) -> None:
    """Ready with more than one replica; a second condition with one, and a count beside them."""
    found = await ctx.read.get(FOOS, request.name)
    if found is None:
        return
    replicas = found["spec"]["replicas"]
    if replicas > 1:
        await ctx.write.conditions(found, Condition("Ready", "True", reason="Up"), replicas=replicas)
    else:
        stopped = (Condition("Ready", "False", reason="Down"), Condition("Stopped", "True", reason="Asked"))
        await ctx.write.conditions(found, *stopped)


CONTROLLER = controller("conditions", reconcile).for_(FOOS)


def made(replicas: int) -> Obj:
    spec = {"deploymentName": "web", "replicas": replicas}
    return {"apiVersion": FOOS.api_version, "kind": FOOS.kind, "metadata": {"name": "web"}, "spec": spec}


def held(stage: Stage) -> Obj:
    return present(stage.server.get(FOOS, AT.name))


async def test_times_move_with_the_status_and_what_is_left_out_goes_away() -> None:
    stage = Stage()
    stage.install(CRD)
    stage.server.create(made(2))
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        first = find_condition(held(stage), "Ready") or {}
        assert (first["status"], first["observedGeneration"], held(stage)["status"]["replicas"]) == ("True", 1, 2)
        stage.server.change(FOOS, AT.name, {"spec": {"replicas": 3}})
        await stage.rest(5)
        second = find_condition(held(stage), "Ready") or {}
        assert second == {**first, "observedGeneration": 2}
        stage.server.change(FOOS, AT.name, {"spec": {"replicas": 1}})
        await stage.rest(5)
        third = find_condition(held(stage), "Ready") or {}
        assert third["lastTransitionTime"] > second["lastTransitionTime"]
        assert find_condition(held(stage), "Stopped") is not None
        assert "replicas" not in held(stage)["status"]
        stage.server.change(FOOS, AT.name, {"spec": {"replicas": 2}})
        await stage.rest(5)
        assert find_condition(held(stage), "Stopped") is None


async def test_the_resource_can_be_named() -> None:
    async def named(ctx: Context, request: Request) -> None:
        if found := await ctx.read.get(FOOS, request.name):
            bare = {"metadata": found["metadata"], "status": found.get("status", {})}
            await ctx.write.conditions(bare, Condition("Ready", "True", reason="Up"), resource=FOOS, replicas=2)

    stage = Stage()
    stage.install(CRD)
    stage.server.create(made(2))
    spec = controller("named", named).for_(FOOS)
    async with stage.running(spec):
        await stage.rest(5)
    status = held(stage)["status"]
    assert ([one["type"] for one in status["conditions"]], status["replicas"]) == (["Ready"], 2)
    assert (await replay(case_of(stage.attempts[0], spec), spec, clock=FakeClock())).same


async def test_conditions_of_others_stay_theirs_and_nothing_is_written_at_rest() -> None:
    stage = Stage()
    stage.install(CRD)
    stage.server.create(made(2))
    stage.server.change(FOOS, AT.name, {"status": {"conditions": [THEIRS]}}, subresource="status")
    async with stage.running(CONTROLLER):
        await stage.rest(5)
        conditions = held(stage)["status"]["conditions"]
        assert [one["type"] for one in conditions] == ["Audited", "Ready"]
        [applied] = [one for one in held(stage)["metadata"]["managedFields"] if one["operation"] == "Apply"]
        assert "Audited" not in str(applied["fieldsV1"])
        before = len(list(stage.writes()))
        stage.server.change(FOOS, AT.name, {"metadata": {"labels": {"a": "b"}}})
        await stage.rest(60)
        assert len(list(stage.writes())) == before


async def test_they_replay_with_the_recorded_time() -> None:
    stage = Stage()
    stage.install(CRD)
    stage.server.create(made(2))
    async with stage.running(CONTROLLER):
        await stage.rest(5)
    assert (await replay(case_of(stage.attempts[0], CONTROLLER), CONTROLLER, clock=FakeClock())).same
