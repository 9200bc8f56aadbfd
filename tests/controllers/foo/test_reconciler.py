"""Foo against a server in memory: the original's four cases, what it left untested, and its known faults mended."""

from __future__ import annotations

from kubectl_ctrl.controllers.foo.reconciler import CONTROLLER, FOOS
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, EVENTS
from kubectl_ctrl.runtime.summary import Reason
from tests.controllers.foo.foos import CRD, FooWorld, foo, foreign, original_crd
from tests.objects import present

# --- the original's four cases ---


async def test_creates_deployment(world: FooWorld) -> None:
    created = world.server.create(foo())
    async with world.foo_running():
        found = present(world.deployment())
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


async def test_does_nothing_when_nothing_is_to_be_done(world: FooWorld) -> None:
    """The original writes the status all the same; here a restart at rest writes nothing at all."""
    async with world.foo_running(foo()):
        pass
    world.server.writes.clear()
    async with world.foo_running():
        await world.rest(3600)
    assert world.written() == []
    assert len(world.events()) == 1


async def test_updates_deployment(world: FooWorld) -> None:
    async with world.foo_running(foo()):
        world.server.change(FOOS, "test", {"spec": {"replicas": 2}})
        await world.rest(5)
        assert present(world.deployment())["spec"]["replicas"] == 2
        assert world.status()["availableReplicas"] == 2
        assert world.status()["observedGeneration"] == 2


async def test_not_controlled_by_us(world: FooWorld) -> None:
    before = world.server.create(foreign("test-deployment"))
    await world.rest()
    async with world.foo_running(foo()):
        await world.rest(600)
        found = present(world.deployment())
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


# --- what the original left untested ---


async def test_a_foo_that_is_gone_is_no_error(world: FooWorld) -> None:
    async with world.foo_running(foo()):
        world.server.delete(FOOS, "test")
        await world.rest(60)
        assert world.server.objects(DEPLOYMENTS) == []
        assert {attempt.verdict.outcome for attempt in world.attempts} <= {Outcome.DONE, Outcome.WAITING}


async def test_replicas_left_out_mean_one_and_removing_them_too(world: FooWorld) -> None:
    async with world.foo_running(foo(replicas=None)):
        assert world.status()["availableReplicas"] == 1
        for replicas, available in ((3, 3), (None, 1)):
            world.server.change(FOOS, "test", {"spec": {"replicas": replicas}})
            await world.rest(5)
            assert world.status()["availableReplicas"] == available


async def test_conflicts_of_the_status_are_nobodys_problem(world: FooWorld) -> None:
    async with world.foo_running(foo()):
        for at in range(5):
            world.server.change(FOOS, "test", {"metadata": {"labels": {"turn": str(at)}}})
            world.server.change(FOOS, "test", {"spec": {"replicas": at + 1}})
            await world.rest(2)
        assert world.status()["availableReplicas"] == 5
        assert all(attempt.verdict.outcome is not Outcome.RETRY for attempt in world.attempts)


# --- its known faults, mended ---


async def test_on_the_originals_crd_the_status_holds_what_it_knows_and_rests() -> None:
    world = FooWorld(original_crd(status=True))
    async with world.foo_running(foo()):
        assert world.status() == {"availableReplicas": 1}
        assert world.events() == [("Normal", "Synced", "Foo synced successfully")]
        writes = len(world.written())
        await world.rest(7200)
        assert len(world.written()) == writes


async def test_on_a_crd_without_status_subresource_it_says_that_install_is_missing() -> None:
    world = FooWorld(original_crd(status=False))
    world.server.create(foo())
    summary = await world.run(CONTROLLER, once=True)
    assert summary.reason is Reason.NOT_INSTALLED


async def test_its_scale_is_that_of_the_deployment(world: FooWorld) -> None:
    async with world.foo_running(foo(replicas=None)):
        scales = FOOS.ref("test", "default").sub("scale")
        for wanted in (1, 4):
            scale = await world.client().get(scales)
            scale["spec"]["replicas"] = wanted
            await world.client().replace(scales, scale)
            await world.rest(5)
            scale = await world.client().get(scales)
            assert scale["spec"] == {"replicas": wanted}
            assert scale["status"] == {"replicas": wanted, "selector": "app=nginx,controller=test"}
            assert present(world.deployment())["spec"]["replicas"] == wanted


async def test_a_crd_that_comes_later_is_waited_for(world: FooWorld) -> None:
    world.server.delete(CRDS, "foos.samplecontroller.k8s.io")
    async with world.foo_running():
        await world.rest(120)
        world.server.create(CRD)
        world.server.create(foo())
        await world.rest(60)
        assert world.condition() == ("True", "Available")
