"""The fixture `sandbox`: a controller is tested by a plain function, on a whole cluster and in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kubectl_ctrl import CONFIGMAPS, DEPLOYMENTS, PODS, Context, NotInstalled, Obj, Request, Result, controller
from kubectl_ctrl.runtime.summary import Reason
from kubectl_ctrl.testing.faults import WRITES, Match
from kubectl_ctrl.testing.loop import LeakedTasks
from kubectl_ctrl.testing.sandbox import Sandbox
from tests.sandbox.callers import FOOS, configmap, deployment, foo_crd


async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Each Deployment gets a ConfigMap with the number of its ready pods."""
    found = await ctx.read.get(DEPLOYMENTS, request.name)
    if found is None:
        return None
    ready = (found.get("status") or {}).get("readyReplicas", 0)
    counted: Obj = {"metadata": {"name": request.name}, "data": {"ready": str(ready)}}
    await ctx.write.ensure(counted, owner=found, resource=CONFIGMAPS)
    return None


COUNTER = controller("counter", reconcile).for_(DEPLOYMENTS).owns(CONFIGMAPS)


def count(sandbox: Sandbox) -> str | None:
    found = sandbox.server.get(CONFIGMAPS, "web")
    return found["data"]["ready"] if found else None


def test_a_controller_sees_pods_become_ready_as_time_passes(sandbox: Sandbox) -> None:
    sandbox.start(COUNTER)
    slow = deployment("web", replicas=2)
    slow["spec"]["template"]["metadata"]["annotations"] = {"sandbox.kubectl-ctrl.dev/start-seconds": "30"}
    sandbox.server.create(slow)
    sandbox.wait(29)
    assert count(sandbox) == "0"
    sandbox.wait(2)
    assert count(sandbox) == "2"
    before = len(list(sandbox.writes()))
    sandbox.wait(24 * 3600)
    assert len(list(sandbox.writes())) == before


def test_each_test_has_a_new_cluster_without_writes(sandbox: Sandbox) -> None:
    assert sandbox.server.get(CONFIGMAPS, "web") is None
    assert [one["metadata"]["name"] for one in sandbox.server.objects(CONFIGMAPS, "default")] == ["kube-root-ca.crt"]
    assert sandbox.server.writes == []


def test_faults_of_requests_and_of_the_server(sandbox: Sandbox) -> None:
    fault = sandbox.server.faults.fail(Match(verb="create", plural="configmaps"), 500, times=3)
    sandbox.start(COUNTER)
    sandbox.server.create(deployment("web"))
    sandbox.wait(60)
    assert (fault.hits, count(sandbox)) == (3, "1")
    sandbox.server.down()
    sandbox.server.change(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
    sandbox.wait(60)
    assert count(sandbox) == "1"
    sandbox.server.up()
    sandbox.wait(60)
    assert count(sandbox) == "3"
    sandbox.server.faults.fail(WRITES, 500, times=None)


def test_controllers_stop_and_start_again(sandbox: Sandbox) -> None:
    sandbox.start(COUNTER)
    sandbox.stop()
    sandbox.server.create(deployment("web"))
    sandbox.wait(60)
    assert count(sandbox) is None
    sandbox.start(COUNTER)
    assert count(sandbox) == "1"


def test_a_coroutine_runs_beside_the_controllers(sandbox: Sandbox) -> None:
    sandbox.start(COUNTER)
    placed = deployment("web")
    placed["metadata"]["namespace"] = "default"

    async def main() -> tuple[Obj, Reason]:
        created = await sandbox.client().create(DEPLOYMENTS, placed)
        summary = await sandbox.run(COUNTER, once=True)
        return created, summary.reason

    created, reason = sandbox.play(main())
    assert (created["metadata"]["name"], reason, count(sandbox)) == ("web", Reason.ONCE, "1")


def test_a_run_that_cannot_start_fails_the_test(sandbox: Sandbox) -> None:
    with pytest.raises(NotInstalled, match=r"foos\.example\.com"):
        sandbox.start(controller("late", reconcile).for_(FOOS), once=True)
    sandbox.install(foo_crd())
    sandbox.start(controller("late", reconcile).for_(FOOS), once=True)


async def test_a_coroutine_test_is_told_what_to_use(sandbox: Sandbox) -> None:
    with pytest.raises(RuntimeError, match="so its test is a plain function: remove `async`"):
        sandbox.wait(5)


def test_the_same_seed_gives_the_same_run() -> None:
    def run(seed: int) -> list[Any]:
        with Sandbox(seed=seed) as sandbox:
            sandbox.install(foo_crd(), deployment("web", replicas=2))
            sandbox.start(COUNTER)
            sandbox.wait(5)
            return [sandbox.server.objects(PODS), [attempt.start for attempt in sandbox.attempts]]

    assert run(1) == run(1)


def test_a_task_that_still_runs_at_the_end_is_an_error() -> None:
    async def leak() -> None:
        leaks.append(asyncio.create_task(asyncio.Event().wait()))

    leaks: list[asyncio.Task[Any]] = []
    sandbox = Sandbox(whole=False)
    sandbox.install(configmap("a"))
    sandbox.play(leak())
    with pytest.raises(LeakedTasks), sandbox:
        pass
