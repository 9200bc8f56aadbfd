"""The stage does what its docstrings teach, with what the facade gives and nothing else."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kubectl_ctrl import CONFIGMAPS, PODS, Context, Obj, Request, Resource, Result, controller
from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import AttemptStarted, Outcome
from kubectl_ctrl.runtime.summary import Reason
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.stage import Stage
from tests.objects import present

HATS = Resource("example.com", "v1", "hats", "Hat")
MANIFESTS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: hats, kind: Hat}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
---
apiVersion: example.com/v1
kind: Hat
metadata: {name: bowler}
"""


async def reconcile(ctx: Context, request: Request) -> Result | None:
    hat = await ctx.read.get(HATS, request.name)
    if hat is None:
        return None
    await ctx.write.ensure({"metadata": {"name": request.name}}, owner=hat, resource=CONFIGMAPS)
    ctx.write.event(hat, reason="Boxed", message=f"at {ctx.now():.0f}")
    return Result(after=60 + ctx.random.random())


HATTER = controller("hatter", reconcile).for_(HATS).owns(CONFIGMAPS)


def pod(name: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }


async def test_a_play_from_installing_to_looking(tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(MANIFESTS)
    stage = Stage()
    stage.install(tmp_path / "crd.yaml", pod("beside"))
    assert stage.server.get(PODS, "beside") is not None
    async with stage.running(HATTER, namespace="default") as running:
        await stage.rest(30)
        assert [write.verb for write in stage.writes() if write.resource == CONFIGMAPS] == ["create"]
        assert [(kind, reason) for kind, reason, _ in stage.events()] == [("Normal", "Boxed")]
        assert [attempt.verdict.outcome for attempt in stage.attempts] == [Outcome.AFTER]
        assert len(stage.told(AttemptStarted)) == 1
        await stage.rest(3600)
        assert len(stage.attempts) > 55
        assert repr(running).startswith("Running(Manager(")
    summary = await running.stopped()
    assert summary.reason is Reason.STOPPED
    assert repr(stage).startswith(f"Stage(attempts={len(stage.attempts)}, ScriptedServer(up, ")


async def test_a_reconciler_that_changes_a_cached_object_in_place_fails_at_that_line() -> None:
    async def careless(ctx: Context, request: Request) -> None:
        found = present(await ctx.read.get(CONFIGMAPS, request.name))
        found["metadata"].setdefault("labels", {})["seen"] = "yes"
        await ctx.write.patch(found, {"metadata": {"labels": found["metadata"]["labels"]}})

    stage = Stage()
    stage.install({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bowler"}})
    async with stage.running(controller("careless", careless).for_(CONFIGMAPS)):
        await stage.rest(3600)
    verdicts = [attempt.verdict for attempt in stage.attempts]
    line = careless.__code__.co_firstlineno + 2
    assert [(one.outcome, one.error_id) for one in verdicts] == [(Outcome.TERMINAL, "CTRL-CONTROLLER")]
    assert verdicts[0].where == f"testing/test_stage.py:{line}"
    assert verdicts[0].message.startswith(f"testing/test_stage.py:{line} changes an object of the cache in place.")


async def test_a_reconciler_that_changes_a_copy_writes_it() -> None:
    async def careful(ctx: Context, request: Request) -> None:
        found = present(copy.deepcopy(await ctx.read.get(CONFIGMAPS, request.name)))
        found["metadata"].setdefault("labels", {})["seen"] = "yes"
        await ctx.write.patch(found, {"metadata": {"labels": {"seen": "yes"}}})

    stage = Stage()
    stage.install({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bowler"}})
    async with stage.running(controller("careful", careful).for_(CONFIGMAPS)):
        await stage.rest(3600)
    assert stage.attempts[0].verdict.outcome is Outcome.DONE


async def test_a_run_that_ends_by_itself_says_how_it_went(tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(MANIFESTS)
    stage = Stage()
    stage.install(tmp_path / "crd.yaml")
    summary = await stage.run(HATTER, until_idle=True)
    assert (summary.reason, summary.failed) == (Reason.IDLE, ())


@pytest.mark.parametrize("seeds", [(1, 1), (1, 2)])
def test_the_same_seed_makes_the_same_play(tmp_path: Path, seeds: tuple[int, int]) -> None:
    (tmp_path / "crd.yaml").write_text(MANIFESTS)
    times: list[list[float]] = []

    async def play(seed: int) -> None:
        stage = Stage(seed=seed)
        stage.install(tmp_path / "crd.yaml")
        async with stage.running(HATTER):
            await stage.rest(600)
        times.append([attempt.start.started for attempt in stage.attempts])

    for seed in seeds:
        run_virtual(play(seed))
    assert (times[0] == times[1]) is (seeds[0] == seeds[1])


async def test_what_cannot_be_run_is_told_as_a_run_would() -> None:
    with pytest.raises(ControllerError, match="Two controllers are named 'hatter'"):
        async with Stage().running(HATTER, HATTER):
            pass
