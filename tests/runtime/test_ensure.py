from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kubectl_ctrl.errors import ControllerError, Forbidden, Invalid
from kubectl_ctrl.model.managed_fields import own_entry
from kubectl_ctrl.model.objects import Obj, name_of, uid_of, version_of
from kubectl_ctrl.model.owners import controlled_by, with_owner
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS
from kubectl_ctrl.runtime.builder import controller
from kubectl_ctrl.runtime.contract import How
from kubectl_ctrl.testing.faults import Match
from tests.objects import present
from tests.runtime.doors import Doors, doors
from tests.runtime.toy import CONFIGMAPS, TOYS, do_nothing
from tests.runtime.world import World, crd, toy

SPEC = controller("toy", do_nothing).for_(TOYS).owns(DEPLOYMENTS).owns(CONFIGMAPS).reads(HPAS)
MANAGER = SPEC.field_manager


def deployment(name: str = "bear", *, replicas: int | None = 1, image: str = "toy:1", **container: Any) -> Obj:
    labels = {"toy": "bear"}
    spec: Obj = {
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "toy", "image": image, **container}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"metadata": {"name": name}, "spec": spec}


def container_of(obj: Obj | None) -> Obj:
    assert obj is not None
    found: Obj = obj["spec"]["template"]["spec"]["containers"][0]
    return found


class Nursery:
    """A Toy and what is ensured for it."""

    def __init__(self, world: World, made: Doors, owner: Obj) -> None:
        self.world = world
        self.doors = made
        self.owner = owner

    async def ensure(self, child: Obj, **options: Any) -> tuple[How, list[str]]:
        """In an attempt of its own: how, and the calls that it took."""
        attempt = self.doors.next()
        ensured = await attempt.write.ensure(child, owner=self.owner, resource=DEPLOYMENTS, **options)
        return ensured.how, attempt.calls

    @property
    def live(self) -> Obj:
        return present(self.world.server.get(DEPLOYMENTS, "bear"))

    def changes(self, **spec: Any) -> Obj:
        return self.world.server.change(DEPLOYMENTS, "bear", {"spec": spec}, manager="somebody")


@asynccontextmanager
async def nursery(world: World) -> AsyncIterator[Nursery]:
    owner = world.server.create(toy("bear"))
    async with doors(world, SPEC) as made:
        yield Nursery(world, made, owner)


@pytest.fixture
async def home() -> AsyncIterator[Nursery]:
    async with nursery(World()) as home:
        yield home


# --- created ---


async def test_an_absent_child_is_posted_with_its_owner_and_manager(home: Nursery) -> None:
    assert await home.ensure(deployment()) == (How.CREATED, ["create deployments/bear 201"])
    assert controlled_by(home.live, uid_of(home.owner))
    assert own_entry(home.live, MANAGER, "Update") is not None


async def test_what_was_written_is_read_at_once_however_late_the_watch_is(home: Nursery) -> None:
    home.world.server.hang_watches()
    await home.ensure(deployment())
    assert [name_of(one) for one in await home.doors.next().read.children(home.owner, DEPLOYMENTS)] == ["bear"]
    assert await home.ensure(deployment()) == (How.UNCHANGED, [])
    await home.ensure(deployment(replicas=3))
    assert present(home.doors.cached(home.live))["spec"]["replicas"] == 3


async def test_f57_a_child_may_not_live_in_another_namespace_than_its_owner(home: Nursery) -> None:
    child = deployment()
    child["metadata"]["namespace"] = "kube-system"
    attempt = home.doors.next()
    with pytest.raises(ControllerError, match="one namespace"):
        await attempt.write.ensure(child, owner=home.owner, resource=DEPLOYMENTS)
    assert attempt.calls == []


@pytest.mark.parametrize(
    "child", [{"spec": {}}, {"kind": "Pod", "metadata": {"name": "bear"}}], ids=["no name", "kind"]
)
async def test_a_child_that_cannot_be_one_is_refused_before_any_call(child: Obj, home: Nursery) -> None:
    attempt = home.doors.next()
    with pytest.raises(ControllerError, match="as a child for deployments"):
        await attempt.write.ensure(child, owner=home.owner, resource=DEPLOYMENTS)
    assert attempt.calls == []


async def test_a_live_object_can_be_given_back_as_desired(home: Nursery) -> None:
    await home.ensure(deployment())
    desired = {**home.live, "spec": {**home.live["spec"], "replicas": 2}}
    how, _ = await home.ensure(desired)
    assert (how, home.live["spec"]["replicas"]) == (How.APPLIED, 2)


# --- kept ---


async def test_nothing_is_sent_for_a_child_that_is_as_desired(home: Nursery) -> None:
    await home.ensure(deployment())
    attempt = home.doors.next()
    await attempt.write.ensure(deployment(), owner=home.owner, resource=DEPLOYMENTS)
    assert attempt.attempt.skipped == ("apply deployments.apps default/bear: nothing would change",)
    assert attempt.calls == []


async def test_a_change_is_applied_and_our_post_becomes_an_apply_before_the_first_one(home: Nursery) -> None:
    await home.ensure(deployment())
    how, calls = await home.ensure(deployment(replicas=3))
    assert (how, calls) == (How.APPLIED, ["patch deployments/bear 200", "apply deployments/bear 200"])
    assert own_entry(home.live, MANAGER, "Update") is None
    assert own_entry(home.live, MANAGER, "Apply") is not None
    how, calls = await home.ensure(deployment(replicas=4))
    assert (how, calls) == (How.APPLIED, ["apply deployments/bear 200"])
    assert home.live["spec"]["replicas"] == 4


async def test_a_field_that_is_no_longer_desired_goes_away_also_one_of_our_post(home: Nursery) -> None:
    await home.ensure(deployment(workingDir="/toys", command=["play"]))
    await home.ensure(deployment(workingDir="/toys"))
    assert "command" not in container_of(home.live)
    await home.ensure(deployment())
    assert "workingDir" not in container_of(home.live)
    assert (await home.ensure(deployment())) == (How.UNCHANGED, [])


async def test_a_field_that_was_dropped_while_the_controller_was_away_goes_as_well(home: Nursery) -> None:
    await home.ensure(deployment(workingDir="/toys"))
    home.doors.forget()
    how, _ = await home.ensure(deployment())
    assert how is How.APPLIED
    assert "workingDir" not in container_of(home.live)


async def test_a_dry_run_over_our_post_that_is_refused_tells_nothing(
    home: Nursery,
) -> None:  # it would have two ports of one name
    await home.ensure(deployment(ports=[{"name": "web", "containerPort": 80, "protocol": "TCP"}]))
    tried = Match(verb="patch", when=lambda request: ("dryRun", "All") in request.query)
    refused = home.world.server.faults.fail(tried, 422, message="Duplicate value", times=None)
    await home.ensure(deployment(ports=[{"name": "web", "containerPort": 81, "protocol": "TCP"}]))
    assert [port["containerPort"] for port in container_of(home.live)["ports"]] == [81]
    assert refused.hits == 1
    with pytest.raises(Invalid, match="Duplicate value"):  # once we apply, a dry run tells
        await home.ensure(deployment(workingDir="/toys"))


async def test_a_restarted_controller_at_rest_writes_nothing_and_asks_once(home: Nursery) -> None:
    await home.ensure(deployment(resources={"limits": {"cpu": "1000m"}}))
    assert container_of(home.live)["resources"]["limits"]["cpu"] == "1"
    home.doors.forget()
    how, calls = await home.ensure(deployment(resources={"limits": {"cpu": "1000m"}}))
    assert (how, calls) == (How.UNCHANGED, ["apply? deployments/bear 200", "patch? deployments/bear 200"])
    assert await home.ensure(deployment(resources={"limits": {"cpu": "1000m"}})) == (How.UNCHANGED, [])


async def test_after_an_apply_a_restarted_controller_at_rest_writes_nothing_either(home: Nursery) -> None:
    await home.ensure(deployment())
    await home.ensure(deployment(replicas=2))
    before = version_of(home.live)
    home.doors.forget()
    assert await home.ensure(deployment(replicas=2)) == (How.UNCHANGED, [])
    assert version_of(home.live) == before


async def test_a_normal_form_of_the_server_is_no_difference(home: Nursery) -> None:
    await home.ensure(deployment())
    cpu = {"limits": {"cpu": "1000m"}}
    await home.ensure(deployment(resources=cpu))
    assert container_of(home.live)["resources"]["limits"]["cpu"] == "1"
    assert await home.ensure(deployment(resources=cpu)) == (How.UNCHANGED, [])
    home.doors.forget()
    assert await home.ensure(deployment(resources=cpu)) == (How.UNCHANGED, ["apply? deployments/bear 200"])


async def test_drift_at_our_fields_is_repaired_and_foreign_fields_stay(home: Nursery) -> None:
    await home.ensure(deployment(replicas=2))
    home.world.server.change(
        DEPLOYMENTS,
        "bear",
        {"metadata": {"labels": {"theirs": "yes"}}, "spec": {"replicas": 7, "paused": True}},
        manager="somebody",
    )
    await home.world.rest()
    how, _ = await home.ensure(deployment(replicas=2))
    assert how is How.APPLIED
    assert (home.live["spec"]["replicas"], home.live["spec"]["paused"]) == (2, True)
    assert home.live["metadata"]["labels"] == {"theirs": "yes"}


async def test_what_others_change_elsewhere_makes_no_call(home: Nursery) -> None:
    await home.ensure(deployment(replicas=2))
    home.changes(paused=True)
    home.world.server.change(DEPLOYMENTS, "bear", {"status": {"replicas": 1}}, subresource="status")
    await home.world.rest()
    assert await home.ensure(deployment(replicas=2)) == (How.UNCHANGED, [])


async def test_finalizers_of_a_child_outlive_the_first_apply(home: Nursery) -> None:
    attempt = home.doors.next()
    made = await attempt.write.ensure(deployment(), owner=home.owner, resource=DEPLOYMENTS)
    await attempt.write.add_finalizer(made.obj, "toys.example.com/hold")
    await home.ensure(deployment(replicas=2))
    assert home.live["metadata"]["finalizers"] == ["toys.example.com/hold"]
    assert home.live["spec"]["replicas"] == 2


async def test_a_view_that_is_too_old_for_the_first_apply_is_renewed(home: Nursery) -> None:
    await home.ensure(deployment())
    home.world.server.hang_watches()
    home.world.server.change(DEPLOYMENTS, "bear", {"status": {"replicas": 1}}, subresource="status")
    how, calls = await home.ensure(deployment(replicas=2))
    assert (how, home.live["spec"]["replicas"]) == (How.APPLIED, 2)
    assert calls == [
        "patch deployments/bear 409",
        "get deployments/bear 200",
        "patch deployments/bear 200",
        "apply deployments/bear 200",
    ]


async def test_news_of_others_during_a_dry_run_are_not_taken_for_a_need(home: Nursery) -> None:
    cpu = {"limits": {"cpu": "1000m"}}
    await home.ensure(deployment(resources=cpu))
    await home.ensure(deployment(replicas=2, resources=cpu))
    home.doors.forget()
    home.world.server.hang_watches()
    home.changes(paused=True)
    how, calls = await home.ensure(deployment(replicas=2, resources=cpu))
    assert (how, calls) == (How.UNCHANGED, ["apply? deployments/bear 200", "get deployments/bear 200"])


# --- never taken from others ---


async def test_an_object_that_nobody_controls_is_foreign_and_not_touched(home: Nursery) -> None:
    home.world.server.create({**deployment(replicas=9), "apiVersion": "apps/v1", "kind": "Deployment"})
    await home.world.rest()
    before = version_of(home.live)
    assert await home.ensure(deployment()) == (How.FOREIGN, [])
    assert version_of(home.live) == before


async def test_a_foreign_object_that_the_cache_has_not_seen_is_not_touched_either(home: Nursery) -> None:
    home.world.server.hang_watches()
    home.world.server.create({**deployment(replicas=9), "apiVersion": "apps/v1", "kind": "Deployment"})
    before = version_of(home.live)
    how, calls = await home.ensure(deployment())
    assert (how, calls) == (How.FOREIGN, ["create deployments/bear 409", "get deployments/bear 200"])
    assert version_of(home.live) == before


async def test_the_child_of_an_owner_of_the_same_name_that_is_gone_is_foreign(home: Nursery) -> None:
    home.world.server.collecting = False
    await home.ensure(deployment())
    home.world.server.delete(TOYS, "bear")
    successor = home.world.server.create(toy("bear"))
    await home.world.rest()
    attempt = home.doors.next()
    ensured = await attempt.write.ensure(deployment(replicas=3), owner=successor, resource=DEPLOYMENTS)
    assert (ensured.how, attempt.calls) == (How.FOREIGN, [])


async def test_a_409_from_an_own_earlier_post_is_ours_after_all(home: Nursery) -> None:
    home.world.server.hang_watches()
    child = with_owner(
        {
            **deployment(),
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "bear", "namespace": "default"},
        },
        home.owner,
    )
    home.world.server.create(child, manager=MANAGER)
    how, calls = await home.ensure(deployment(replicas=3))
    assert (how, home.live["spec"]["replicas"]) == (How.APPLIED, 3)
    assert calls[:2] == ["create deployments/bear 409", "get deployments/bear 200"]


async def test_an_apply_never_creates_and_never_hits_a_successor(home: Nursery) -> None:
    await home.ensure(deployment())
    await home.ensure(deployment(replicas=2))
    home.world.server.hang_watches()
    home.world.server.delete(DEPLOYMENTS, "bear")
    home.world.server.create({**deployment(replicas=9), "apiVersion": "apps/v1", "kind": "Deployment"})
    before = version_of(home.live)
    how, _ = await home.ensure(deployment(replicas=3))
    assert (how, version_of(home.live)) == (How.FOREIGN, before)


async def test_a_child_that_was_deleted_unseen_is_created_anew(home: Nursery) -> None:
    await home.ensure(deployment())
    await home.ensure(deployment(replicas=2))
    home.world.server.hang_watches()
    home.world.server.delete(DEPLOYMENTS, "bear")
    how, calls = await home.ensure(deployment(replicas=3))
    assert how is How.CREATED
    assert calls[-1] == "create deployments/bear 201"


async def test_a_child_that_is_being_deleted_is_left_to_go(home: Nursery) -> None:
    await home.ensure(deployment())
    home.world.server.change(DEPLOYMENTS, "bear", {"metadata": {"finalizers": ["a.example.com/x"]}})
    home.world.server.delete(DEPLOYMENTS, "bear")
    await home.world.rest()
    assert await home.ensure(deployment(replicas=3)) == (How.UNCHANGED, [])


# --- what somebody else decides from now on ---


async def test_a_field_left_out_keeps_its_value_and_is_no_longer_ours(home: Nursery) -> None:
    await home.ensure(deployment(replicas=3))
    how, _ = await home.ensure(deployment(replicas=3), leave_out=["spec.replicas"])
    assert (how, home.live["spec"]["replicas"]) == (How.APPLIED, 3)
    home.world.server.change(DEPLOYMENTS, "bear", {"spec": {"replicas": 5}}, subresource="scale", manager="hpa")
    await home.world.rest()
    assert await home.ensure(deployment(replicas=3), leave_out=["spec.replicas"]) == (How.UNCHANGED, [])
    assert home.live["spec"]["replicas"] == 5


async def test_a_field_left_out_after_an_apply_keeps_its_value_too(home: Nursery) -> None:
    await home.ensure(deployment(replicas=2))
    await home.ensure(deployment(replicas=3))
    home.doors.forget()
    how, _ = await home.ensure(deployment(replicas=3, image="toy:2"), leave_out=["spec.replicas"])
    assert (how, home.live["spec"]["replicas"]) == (How.APPLIED, 3)
    assert container_of(home.live)["image"] == "toy:2"
    assert "f:replicas" not in present(own_entry(home.live, MANAGER, "Apply"))["fieldsV1"]["f:spec"]


async def test_a_field_that_is_ours_again_is_taken_back(home: Nursery) -> None:
    await home.ensure(deployment(replicas=3))
    await home.ensure(deployment(replicas=3), leave_out=["spec.replicas"])
    home.world.server.change(DEPLOYMENTS, "bear", {"spec": {"replicas": 5}}, subresource="scale", manager="hpa")
    await home.world.rest()
    await home.ensure(deployment(replicas=3))
    assert home.live["spec"]["replicas"] == 3


# --- refusals ---


async def test_a_refused_child_is_the_reconcilers_to_hear_of(home: Nursery) -> None:
    home.world.server.faults.fail(Match(verb="create"), 403, reason="Forbidden", message="exceeded quota: small")
    with pytest.raises(Forbidden, match="exceeded quota"):
        await home.ensure(deployment())
    with pytest.raises(Invalid):
        await home.ensure({"metadata": {"name": "bear"}, "spec": {"replicas": -1}})


async def test_several_kinds_of_children_are_kept_apart(home: Nursery) -> None:
    attempt = home.doors.next()
    for text in ("one", "two"):
        await attempt.write.ensure(
            {"metadata": {"name": "bear"}, "data": {"text": text}}, owner=home.owner, resource=CONFIGMAPS
        )
    assert (await home.ensure(deployment()))[0] is How.CREATED
    assert present(home.world.server.get(CONFIGMAPS, "bear"))["data"] == {"text": "two"}


async def test_a_cluster_scoped_owner_has_children_where_they_are_put() -> None:
    from tests.runtime.toy import BOXES

    world = World(crd(BOXES))
    box = world.server.create({"apiVersion": BOXES.api_version, "kind": "Box", "metadata": {"name": "big"}})
    async with doors(world, controller("box", do_nothing).for_(BOXES).owns(CONFIGMAPS)) as made:
        child = {"metadata": {"name": "in-box", "namespace": "default"}, "data": {"a": "b"}}
        await made.next().write.ensure(child, owner=box, resource=CONFIGMAPS)
    stored = present(world.server.get(CONFIGMAPS, "in-box"))
    assert controlled_by(stored, uid_of(box))
