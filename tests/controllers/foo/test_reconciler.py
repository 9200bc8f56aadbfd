"""Foo against a server in memory: the original's four cases, what it left untested, and its known faults mended."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.controllers import foo as package
from kubectl_ctrl.controllers.foo.reconciler import CONTROLLER, FOOS
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, EVENTS, HPAS
from kubectl_ctrl.model.summary import Reason
from kubectl_ctrl.runtime.events import EventRecorder
from kubectl_ctrl.runtime.services import Services
from kubectl_ctrl.testing.loop import run_virtual
from tests.runtime.world import Running, World

CRD: Obj = yaml.safe_load((Path(package.__file__).parent / "crd.yaml").read_text())


def original_crd(*, status: bool) -> Obj:
    """The sample controller's own CRD: availableReplicas alone, with or without the status subresource."""
    made: Obj = yaml.safe_load((Path(package.__file__).parent / "crd.yaml").read_text())
    version = made["spec"]["versions"][0]
    properties = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for name in ("conditions", "observedGeneration", "replicas", "selector"):
        del properties[name]
    del version["additionalPrinterColumns"]
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"]["default"]
    del version["subresources"]["scale"]
    if not status:
        del version["subresources"]
    return made


def foo(name: str = "test", *, deployment: str | None = None, replicas: int | None = 1) -> Obj:
    spec: Obj = {"deploymentName": f"{name}-deployment" if deployment is None else deployment}
    if replicas is not None:
        spec["replicas"] = replicas
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": FOOS.api_version, "kind": "Foo", "metadata": meta, "spec": spec}


def foreign(name: str) -> Obj:
    labels = {"foreign": "yes"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}},
        },
    }


class FooWorld(World):
    """A cluster with the CRD, a Deployment controller, and foo running with events."""

    def __init__(self, crd: Obj | None = None) -> None:
        super().__init__(installed=False)
        self.server.create(crd or CRD)
        self.server.play_deployments()

    def services(self) -> Services:
        def recorder(name: str, client: Client, tell: Callable[[Any], None]) -> EventRecorder:
            return EventRecorder(client, name, clock=self.clock, rng=self.rng, tell=tell)

        return Services(recorder=recorder)

    @asynccontextmanager
    async def foo_running(self) -> AsyncIterator[Running]:
        async with self.running(CONTROLLER, services=self.services()) as running:
            await self.rest(5)
            yield running

    def status(self, name: str = "test") -> Obj:
        obj = self.server.get(FOOS, name)
        assert obj is not None
        return obj.get("status") or {}

    def condition(self, kind: str = "Ready", name: str = "test") -> tuple[str, str]:
        obj = self.server.get(FOOS, name)
        assert obj is not None
        found = find(obj, kind) or {}
        return found.get("status", ""), found.get("reason", "")

    def deployment(self, name: str = "test-deployment") -> Obj | None:
        return self.server.get(DEPLOYMENTS, name)

    def events(self) -> list[tuple[str, str, str]]:
        return sorted((event["type"], event["reason"], event["message"]) for event in self.server.objects(EVENTS))

    def written(self) -> list[tuple[str, str, str]]:
        """What foo wrote: (verb, resource with subresource, name), events apart."""
        return [
            (write.verb, "/".join(part for part in (write.resource.plural, write.subresource) if part), write.key.name)
            for write in self.writes()
            if write.resource != EVENTS
        ]


def scenario(body: Callable[[FooWorld], Coroutine[Any, Any, None]], crd: Obj | None = None) -> None:
    async def main() -> None:
        await body(FooWorld(crd))

    run_virtual(main)


# --- the original's four cases ---


def test_creates_deployment() -> None:
    async def body(world: FooWorld) -> None:
        created = world.server.create(foo())
        async with world.foo_running():
            found = world.deployment()
            assert found is not None
            owner = found["metadata"]["ownerReferences"]
            assert owner == [
                {
                    "apiVersion": "samplecontroller.k8s.io/v1alpha1",
                    "kind": "Foo",
                    "name": "test",
                    "uid": created["metadata"]["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ]
            labels = {"app": "nginx", "controller": "test"}
            assert found["spec"]["replicas"] == 1
            assert found["spec"]["selector"] == {"matchLabels": labels}
            assert found["spec"]["template"]["metadata"]["labels"] == labels
            (container,) = found["spec"]["template"]["spec"]["containers"]
            assert (container["name"], container["image"]) == ("nginx", "nginx:latest")
            assert world.status()["availableReplicas"] == 1
            assert world.events() == [("Normal", "Synced", "Foo synced successfully")]

    scenario(body)


def test_does_nothing_when_nothing_is_to_be_done() -> None:
    """The original writes the status all the same; here a restart at rest writes nothing at all."""

    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        async with world.foo_running():
            pass
        world.server.writes.clear()
        async with world.foo_running():
            await world.rest(3600)
        assert world.written() == []
        assert len(world.events()) == 1

    scenario(body)


def test_updates_deployment() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        async with world.foo_running():
            world.server.change(FOOS, "test", {"spec": {"replicas": 2}})
            await world.rest(5)
            found = world.deployment()
            assert found is not None
            assert found["spec"]["replicas"] == 2
            assert world.status()["availableReplicas"] == 2
            assert world.status()["observedGeneration"] == 2

    scenario(body)


def test_not_controlled_by_us() -> None:
    async def body(world: FooWorld) -> None:
        before = world.server.create(foreign("test-deployment"))
        await world.rest()
        world.server.create(foo())
        async with world.foo_running():
            await world.rest(600)
            found = world.deployment()
            assert found is not None
            assert found["spec"] == before["spec"]
            assert "ownerReferences" not in found["metadata"]
            text = 'Resource "test-deployment" already exists and is not managed by Foo'
            assert world.events() == [("Warning", "ErrResourceExists", text)]
            assert world.condition() == ("False", "ErrResourceExists")
            world.server.change(DEPLOYMENTS, "test-deployment", {"metadata": {"labels": {"touched": "yes"}}})
            await world.rest(600)
            assert len(world.attempts) == 2
            assert [event["count"] for event in world.server.objects(EVENTS)] == [1], "it is said once"
            assert world.written() == [("apply", "foos/status", "test")]

    scenario(body)


# --- what the original left untested ---


def test_an_empty_name_is_said_in_a_condition_and_not_retried() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo(deployment=""))
        async with world.foo_running():
            await world.rest(600)
            assert world.condition() == ("False", "DeploymentNameMissing")
            assert len(world.attempts) == 1
            world.server.change(FOOS, "test", {"spec": {"deploymentName": "now"}})
            await world.rest(5)
            assert world.condition() == ("True", "Available")

    scenario(body)


def test_a_foo_that_is_gone_is_no_error() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        async with world.foo_running():
            world.server.delete(FOOS, "test")
            await world.rest(60)
            assert world.server.objects(DEPLOYMENTS) == []
            assert {attempt.verdict.outcome for attempt in world.attempts} <= {Outcome.DONE, Outcome.WAITING}

    scenario(body)


def test_replicas_left_out_mean_one_and_removing_them_too() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo(replicas=None))
        async with world.foo_running():
            assert world.status()["availableReplicas"] == 1
            for replicas, available in ((3, 3), (None, 1)):
                world.server.change(FOOS, "test", {"spec": {"replicas": replicas}})
                await world.rest(5)
                assert world.status()["availableReplicas"] == available

    scenario(body)


def test_conflicts_of_the_status_are_nobodys_problem() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        async with world.foo_running():
            for at in range(5):
                world.server.change(FOOS, "test", {"metadata": {"labels": {"turn": str(at)}}})
                world.server.change(FOOS, "test", {"spec": {"replicas": at + 1}})
                await world.rest(2)
            assert world.status()["availableReplicas"] == 5
            assert all(attempt.verdict.outcome is not Outcome.RETRY for attempt in world.attempts)

    scenario(body)


# --- its known faults, mended ---


def test_a_renamed_deployment_is_replaced_once_the_new_one_is_there() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo(deployment="old"))
        async with world.foo_running():
            world.server.writes.clear()
            world.server.change(FOOS, "test", {"spec": {"deploymentName": "new"}})
            await world.rest(10)
            assert [obj["metadata"]["name"] for obj in world.server.objects(DEPLOYMENTS)] == ["new"]
            written = world.written()
            assert written.index(("create", "deployments", "new")) < written.index(("delete", "deployments", "old"))
            assert ("Normal", "Deleted", 'Deleted deployment "old"') in world.events()

    scenario(body)


def test_drift_is_repaired_and_what_others_added_stays() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        async with world.foo_running():
            drift = {
                "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "kept"}},
                "spec": {"replicas": 7, "template": {"spec": {"containers": [{"name": "nginx", "image": "evil:1"}]}}},
            }
            world.server.change(DEPLOYMENTS, "test-deployment", drift)
            await world.rest(10)
            found = world.deployment()
            assert found is not None
            assert found["spec"]["replicas"] == 1
            assert [one["image"] for one in found["spec"]["template"]["spec"]["containers"]] == ["nginx:latest"]
            assert found["metadata"]["labels"] == {"team": "blue"}
            assert found["metadata"]["annotations"]["note"] == "kept"

    scenario(body)


def test_the_end_of_a_foreign_deployment_wakes_the_foo() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foreign("test-deployment"))
        world.server.create(foo())
        async with world.foo_running():
            assert world.condition() == ("False", "ErrResourceExists")
            world.server.delete(DEPLOYMENTS, "test-deployment")
            await world.rest(5)
            assert world.condition() == ("True", "Available")

    scenario(body)


def test_nothing_is_made_for_a_foo_that_is_being_deleted() -> None:
    async def body(world: FooWorld) -> None:
        obj = foo()
        obj["metadata"]["finalizers"] = ["example.com/hold"]
        world.server.create(obj)
        async with world.foo_running():
            world.server.delete(FOOS, "test")
            world.server.delete(DEPLOYMENTS, "test-deployment")
            await world.rest(60)
            assert world.server.objects(DEPLOYMENTS) == []
            world.server.change(FOOS, "test", {"metadata": {"finalizers": None}})
            await world.rest(5)
            assert world.server.objects(FOOS) == []

    scenario(body)


def test_a_foo_made_again_waits_for_the_collection_of_the_old_deployment() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        async with world.foo_running():
            world.server.collecting = False
            before = world.deployment()
            world.server.delete(FOOS, "test")
            world.server.create(foo())
            await world.rest(5)
            assert world.condition() == ("False", "WaitingForGarbageCollection")
            assert not any(kind == "Warning" for kind, _, _ in world.events())
            world.server.collecting = True
            world.server.settle()
            await world.rest(5)
            assert world.condition() == ("True", "Available")
            after = world.deployment()
            assert before is not None
            assert after is not None
            assert after["metadata"]["uid"] != before["metadata"]["uid"]

    scenario(body)


def test_a_name_too_long_for_a_label_is_a_condition() -> None:
    async def body(world: FooWorld) -> None:
        name = "f" * 64
        world.server.create(foo(name, deployment="fine"))
        async with world.foo_running():
            await world.rest(600)
            assert world.condition(name=name) == ("False", "NameTooLong")
            assert len(world.attempts) == 1

    scenario(body)


def test_what_the_server_refuses_is_a_condition_and_ends_there() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo(deployment="Not_A_Name"))
        async with world.foo_running():
            await world.rest(600)
            assert world.condition() == ("False", "Invalid")
            assert world.attempts[0].verdict.outcome is Outcome.TERMINAL
            assert len(world.attempts) <= 2

    scenario(body)


def test_an_autoscaler_keeps_the_say_over_the_replicas() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo(replicas=1))
        async with world.foo_running():
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "test-deployment"}
            world.server.create(
                {
                    "apiVersion": "autoscaling/v2",
                    "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": "auto", "namespace": "default"},
                    "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9},
                }
            )
            await world.rest(5)
            world.server.change(DEPLOYMENTS, "test-deployment", {"spec": {"replicas": 4}}, manager="hpa")
            await world.rest(60)
            found = world.deployment()
            assert found is not None
            assert found["spec"]["replicas"] == 4
            obj = world.server.get(FOOS, "test")
            assert obj is not None
            assert "'auto'" in (find(obj, "Ready") or {})["message"]
            world.server.delete(HPAS, "auto")
            await world.rest(5)
            found = world.deployment()
            assert found is not None
            assert found["spec"]["replicas"] == 1

    scenario(body)


@pytest.mark.parametrize("name", ["test", "other"])
def test_two_foos_that_want_one_deployment_do_not_fight(name: str) -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo("test", deployment="same"))
        async with world.foo_running():
            world.server.create(foo("other", deployment="same"))
            await world.rest(600)
            assert world.condition(name="test") == ("True", "Available")
            assert world.condition(name="other") == ("False", "ErrResourceExists")
            writes = len(world.written())
            await world.rest(3600)
            assert len(world.written()) == writes

    scenario(body)


# --- the original's own CRDs ---


def test_on_the_originals_crd_the_status_holds_what_it_knows_and_rests() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        async with world.foo_running():
            assert world.status() == {"availableReplicas": 1}
            assert world.events() == [("Normal", "Synced", "Foo synced successfully")]
            writes = len(world.written())
            await world.rest(7200)
            assert len(world.written()) == writes

    scenario(body, original_crd(status=True))


def test_on_a_crd_without_status_subresource_it_says_that_install_is_missing() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo())
        summary = await world.run(CONTROLLER, once=True)
        assert summary.reason is Reason.NOT_INSTALLED

    scenario(body, original_crd(status=False))


def test_its_scale_is_that_of_the_deployment() -> None:
    async def body(world: FooWorld) -> None:
        world.server.create(foo(replicas=None))
        async with world.foo_running():
            scales = FOOS.ref("test", "default").sub("scale")
            for wanted in (1, 4):
                scale = await world.client().get(scales)
                scale["spec"]["replicas"] = wanted
                await world.client().replace(scales, scale)
                await world.rest(5)
                scale = await world.client().get(scales)
                assert scale["spec"] == {"replicas": wanted}
                assert scale["status"] == {"replicas": wanted, "selector": "app=nginx,controller=test"}
                found = world.deployment()
                assert found is not None
                assert found["spec"]["replicas"] == wanted

    scenario(body)


def test_a_crd_that_comes_later_is_waited_for() -> None:
    async def body(world: FooWorld) -> None:
        world.server.delete(CRDS, "foos.samplecontroller.k8s.io")
        async with world.foo_running():
            await world.rest(120)
            world.server.create(CRD)
            world.server.create(foo())
            await world.rest(60)
            assert world.condition() == ("True", "Available")

    scenario(body)
