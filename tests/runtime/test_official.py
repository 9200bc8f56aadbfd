"""The official client in a reconciler: its typed models, over the run's own connection."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kubernetes.client import (
    ApiException,
    AppsV1Api,
    CoreV1Api,
    CustomObjectsApi,
    V1ConfigMap,
    V1DeleteOptions,
    V1ObjectMeta,
    V1Preconditions,
    VersionApi,
)

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import Attempt, Outcome
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.model.objects import Obj, uid_of
from kubectl_ctrl.model.resources import CONFIGMAPS, DEPLOYMENTS
from kubectl_ctrl.plan.dry_run import PlanClient
from kubectl_ctrl.plan.planner import Planner, PlanOptions
from kubectl_ctrl.plan.steps import Plan
from kubectl_ctrl.plan.world import World as PlanWorld
from kubectl_ctrl.runtime.builder import ControllerSpec, controller
from kubectl_ctrl.runtime.contract import Context
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.testing.replay import case_of, check, replayed
from tests.objects import present
from tests.runtime.toy import TOYS
from tests.runtime.world import World, toy

Work = Callable[[Any, Any], Any]


def deployment(name: str = "web", **labels: str) -> Obj:
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": pod}
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def spec_of(work: Work) -> ControllerSpec:
    """A controller of toys that does the work in a thread, with an API of each group."""

    async def reconcile(ctx: Context, request: Request) -> None:
        client = ctx.official()
        await ctx.in_thread(work, CoreV1Api(client), AppsV1Api(client))

    return controller("toy", reconcile).for_(TOYS).owns(CONFIGMAPS)


def attempt_of(
    work: Work, *objects: Obj, prepare: Callable[[World], None] = lambda world: None
) -> tuple[Attempt, World]:
    """The first attempt for the toy `bear`, in a world with these objects."""

    async def play() -> tuple[Attempt, World]:
        world = World()
        for obj in (toy("bear"), *objects):
            world.server.create(obj)
        prepare(world)
        async with world.running(spec_of(work)):
            await world.rest(1)
        return world.attempts[0], world

    return run_virtual(play)


def lines(attempt: Attempt) -> list[str]:
    return [f"{call.verb} {call.resource} {call.namespace}/{call.name} {call.code}" for call in attempt.calls]


def everything(core: Any, apps: Any) -> None:
    made: Any = core.create_namespaced_config_map(
        "default", V1ConfigMap(metadata=V1ObjectMeta(name="one", labels={"app": "toy"}), data={"size": "1"})
    )
    read = core.read_namespaced_config_map("one", "default")
    assert type(read) is V1ConfigMap
    assert read.metadata is not None
    assert read.metadata.uid == made.metadata.uid
    listed = core.list_namespaced_config_map("default", label_selector="app=toy")
    assert [item.metadata.name for item in listed.items] == ["one"]
    assert core.patch_namespaced_config_map("one", "default", {"data": {"size": "2"}}).data == {"size": "2"}
    typed = core.patch_namespaced_config_map("one", "default", V1ConfigMap(data={"color": "brown"}))
    assert typed.data == {"size": "2", "color": "brown"}
    typed.data = {"size": "3"}
    assert core.replace_namespaced_config_map("one", "default", typed).data == {"size": "3"}
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("one", "default", typed)
    assert (stale.value.status, stale.value.reason) == (409, "Conflict")
    body = json.loads(stale.value.body or "")
    assert (body["kind"], body["code"], body["reason"]) == ("Status", 409, "Conflict")
    assert (stale.value.headers or {})["content-type"] == "application/json"
    core.delete_namespaced_config_map("one", "default")
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("one", "default")
    assert (gone.value.status, gone.value.reason) == (404, "Not Found")


CALLS = [
    "create configmaps default/one 201",
    "get configmaps default/one 200",
    "list configmaps default/ 200",
    "patch configmaps default/one 200",
    "patch configmaps default/one 200",
    "update configmaps default/one 200",
    "update configmaps default/one 409",
    "delete configmaps default/one 200",
    "get configmaps default/one 404",
]


def test_each_call_is_one_of_the_attempt() -> None:
    attempt, world = attempt_of(everything)
    assert attempt.verdict.outcome is Outcome.DONE, attempt.traceback
    assert lines(attempt) == CALLS
    assert [call.id for call in attempt.calls] == [f"{attempt.id}.{n}" for n in range(1, len(CALLS) + 1)]
    assert {write.manager for write in world.writes() if write.verb != "delete"} == {"kubectl-ctrl-toy"}


def test_a_replay_answers_from_the_record() -> None:
    attempt, _ = attempt_of(everything)

    async def play() -> None:
        check(await replayed(case_of(attempt, spec_of(everything)), spec_of(everything)))

    asyncio.run(play())


def test_a_replay_shows_what_today_s_code_writes_otherwise() -> None:
    def work(size: str) -> Work:
        return lambda core, apps: core.patch_namespaced_config_map("box", "default", {"data": {"size": size}})

    box = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "box", "namespace": "default"}}
    attempt, _ = attempt_of(work("1"), box)

    async def play() -> list[Any]:
        found = await replayed(case_of(attempt, spec_of(work("1"))), spec_of(work("2")))
        return [(one.path, one.old, one.new) for finding in found.differing for one in finding.changes]

    assert asyncio.run(play()) == [("data.size", "1", "2")]


def test_own_writes_are_read_from_the_cache_and_trigger_nothing() -> None:
    seen: list[Any] = []

    async def reconcile(ctx: Context, request: Request) -> None:
        bear = present(await ctx.read.get(TOYS, request.name))
        core: Any = CoreV1Api(ctx.official())
        owner = {
            "apiVersion": "toys.example.com/v1",
            "kind": "Toy",
            "name": "bear",
            "uid": uid_of(bear),
            "controller": True,
        }
        if await ctx.read.get(CONFIGMAPS, "one") is None:
            obj = {"metadata": {"name": "one", "ownerReferences": [owner]}, "data": {}}
            await ctx.in_thread(lambda: core.create_namespaced_config_map("default", obj))
        seen.append(await ctx.read.get(CONFIGMAPS, "one"))

    async def play() -> int:
        world = World(toy("bear"))
        async with world.running(controller("toy", reconcile).for_(TOYS).owns(CONFIGMAPS)):
            await world.rest(30)
        return len(world.attempts)

    assert run_virtual(play) == 1
    assert seen[0]["metadata"]["name"] == "one"


async def plan_of(world: World, spec: ControllerSpec) -> Plan:
    client = PlanClient(world.server, clock=world.clock, rng=Random(1), user_agent="plan", world=PlanWorld())
    options = PlanOptions(namespace="default")
    return await Planner(spec, client, clock=world.clock, rng=Random(1), options=options).plan(
        [Request("default", "bear")]
    )


async def test_a_plan_writes_nothing_and_goes_on_with_what_it_would_have_written() -> None:
    def work(core: Any, apps: Any) -> None:
        web = apps.read_namespaced_deployment("web", "default")
        web.spec.replicas = 2
        web = apps.replace_namespaced_deployment("web", "default", web)
        assert web.spec.replicas == 2
        container = {"name": "web", "imagePullPolicy": "Always"}
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        apps.patch_namespaced_deployment("web", "default", body)
        (listed,) = apps.list_namespaced_deployment("default").items
        assert (listed.spec.replicas, listed.spec.template.spec.containers[0].image) == (2, "web:1")
        assert listed.spec.template.spec.containers[0].image_pull_policy == "Always"
        core.create_namespaced_config_map("default", V1ConfigMap(metadata=V1ObjectMeta(name="one")))
        made = core.read_namespaced_config_map("one", "default")
        made.data = {"size": "1"}
        assert core.replace_namespaced_config_map("one", "default", made).data == {"size": "1"}
        with pytest.raises(ApiException, match="409"):
            core.replace_namespaced_config_map("one", "default", made)
        assert [item.data for item in core.list_namespaced_config_map("default").items] == [{"size": "1"}]

    world = World(toy("bear"), deployment())
    world.server.writes.clear()
    plan = await plan_of(world, spec_of(work))
    assert plan.error is None
    assert [(str(fate.resource), fate.key.name, str(fate.effect)) for fate in plan.fates] == [
        ("deployments.apps", "web", "changed"),
        ("configmaps", "one", "created"),
    ]
    assert plan.fates[0].after is not None
    assert plan.fates[0].after["spec"]["replicas"] == 2
    assert world.server.writes == []


def test_a_conflict_that_is_not_caught_is_one_for_the_verdict_too() -> None:
    def work(core: Any, apps: Any) -> None:
        web = apps.read_namespaced_deployment("web", "default")
        web.metadata.resource_version = "1"
        apps.replace_namespaced_deployment("web", "default", web)

    attempt, _ = attempt_of(work, deployment())
    assert (attempt.verdict.outcome, attempt.verdict.error_id) == (Outcome.RETRY, "CTRL-API")
    assert attempt.verdict.message.startswith("The server reports a conflict for update deployments.apps default/web")


def test_on_the_event_loop_it_is_refused_with_what_to_write() -> None:
    async def reconcile(ctx: Context, request: Request) -> None:
        AppsV1Api(ctx.official()).read_namespaced_deployment("web", "default")

    async def play() -> Attempt:
        world = World(toy("bear"))
        async with world.running(controller("toy", reconcile).for_(TOYS)):
            await world.rest(1)
        return world.attempts[0]

    attempt = run_virtual(play)
    assert attempt.verdict.outcome is Outcome.TERMINAL
    assert "was called on the event loop" in attempt.verdict.message
    assert attempt.calls == ()


def _watch(core: CoreV1Api) -> object:
    return core.list_namespaced_config_map("default", watch=True)


def _log(core: CoreV1Api) -> object:
    return core.read_namespaced_pod_log("web", "default", follow=True)


def _collection(core: CoreV1Api) -> object:
    return core.delete_collection_namespaced_config_map("default")


def _timeout(core: CoreV1Api) -> object:
    return core.read_namespaced_config_map("one", "default", _request_timeout=1)


def _validation(core: CoreV1Api) -> object:
    return core.create_namespaced_config_map("default", V1ConfigMap(), field_validation="Strict")


def _version(core: CoreV1Api) -> object:
    return VersionApi(core.api_client).get_code()


@pytest.mark.parametrize("ask", [_watch, _log, _collection, _timeout, _validation, _version])
def test_what_is_not_supported_says_so_and_is_not_sent(ask: Callable[[CoreV1Api], object]) -> None:
    def work(core: Any, apps: Any) -> None:
        with pytest.raises(ControllerError, match="does not support"):
            ask(core)

    attempt, _ = attempt_of(work)
    assert attempt.verdict.outcome is Outcome.DONE, attempt.traceback
    assert attempt.calls == ()


def test_custom_objects_take_a_merge_patch() -> None:
    def work(core: Any, apps: Any) -> None:
        toys = CustomObjectsApi(core.api_client)
        toys.patch_namespaced_custom_object(
            "toys.example.com", "v1", "default", "toys", "bear", {"spec": {"size": 9}},
            _content_type="application/merge-patch+json",
        )  # fmt: skip

    attempt, world = attempt_of(work)
    assert attempt.verdict.outcome is Outcome.DONE, attempt.traceback
    assert (world.server.get(TOYS, "bear") or {})["spec"]["size"] == 9


def test_a_delete_with_the_uid_of_another_object_is_refused() -> None:
    def work(core: Any, apps: Any) -> None:
        options = V1DeleteOptions(preconditions=V1Preconditions(uid="other"), propagation_policy="Orphan")
        with pytest.raises(ApiException, match="409"):
            apps.delete_namespaced_deployment("web", "default", body=options)

    _, world = attempt_of(work, deployment())
    assert world.server.get(DEPLOYMENTS, "web")


def test_an_attempt_that_takes_too_long_cuts_the_call_and_those_after_it() -> None:
    ended: list[str] = []

    def work(core: Any, apps: Any) -> None:
        for name in ("one", "two"):
            try:
                core.read_namespaced_config_map(name, "default")
            except (CancelledError, ControllerError) as error:
                ended.append(f"{name}: {type(error).__name__}")

    async def play() -> Attempt:
        world = World(toy("bear"))
        world.server.faults.delay(Match(verb="get", plural="configmaps"), before=25.0, times=None)
        async with world.running(spec_of(work), attempt_timeout=10.0):
            await world.rest(15)
            return world.attempts[0]

    assert run_virtual(play).verdict.error_id == "AttemptTimeout"
    assert ended[:2] == ["one: CancelledError", "two: ControllerError"]


def test_without_the_package_the_error_has_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reconcile(ctx: Context, request: Request) -> None:
        ctx.official()

    for name in [name for name in sys.modules if name.partition(".")[0] == "kubernetes"]:
        monkeypatch.setitem(sys.modules, name, None)

    async def play() -> Attempt:
        world = World(toy("bear"))
        async with world.running(controller("toy", reconcile).for_(TOYS)):
            await world.rest(1)
        return world.attempts[0]

    verdict = run_virtual(play).verdict
    assert verdict.outcome is Outcome.TERMINAL
    assert "is not installed" in verdict.message


def test_the_example_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "official-client.md").read_text(encoding="utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"__name__": "limit"}
    exec(compile(code, "limit.py", "exec"), names)

    async def play() -> int:
        world = World()
        web = deployment()
        web["spec"]["replicas"] = 5
        web["metadata"]["annotations"] = {"example.com/most-replicas": "2"}
        world.server.create(web)
        async with world.running(names["CONTROLLER"]):
            await world.rest(5)
        assert all(one.verdict.outcome is Outcome.DONE for one in world.attempts)
        replicas: int = (world.server.get(DEPLOYMENTS, "web") or {})["spec"]["replicas"]
        return replicas

    assert run_virtual(play) == 2
