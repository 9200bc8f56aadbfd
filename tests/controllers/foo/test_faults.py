"""What foo holds under faults and odd input; the names are the rows of docs/faults.md."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest

from kubectl_ctrl.controllers.foo.reconciler import FOOS
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.conditions import find
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, NAMESPACES
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.testing.faults import Match
from tests.controllers.foo.foos import FooWorld, foo, foreign, original_crd
from tests.objects import autoscaler, present


async def test_f08_the_end_of_a_foreign_deployment_wakes_the_foo(world: FooWorld) -> None:
    async with world.foo_running(foreign("test-deployment"), foo()):
        assert world.condition() == ("False", "ErrResourceExists")
        world.server.delete(DEPLOYMENTS, "test-deployment")
        await world.rest(5)
        assert world.condition() == ("True", "Available")


async def test_f11_a_foo_made_again_waits_for_the_collection_of_the_old_deployment(world: FooWorld) -> None:
    async with world.foo_running(foo()):
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


async def test_f14_nothing_is_made_for_a_foo_that_is_being_deleted(world: FooWorld) -> None:
    obj = foo()
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    async with world.foo_running(obj):
        world.server.delete(FOOS, "test")
        world.server.delete(DEPLOYMENTS, "test-deployment")
        await world.rest(60)
        assert world.server.objects(DEPLOYMENTS) == []
        world.server.change(FOOS, "test", {"metadata": {"finalizers": None}})
        await world.rest(5)
        assert world.server.objects(FOOS) == []


async def test_f31_drift_is_repaired_and_what_others_added_stays(world: FooWorld) -> None:
    async with world.foo_running(foo()):
        drift = {
            "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "kept"}},
            "spec": {"replicas": 7, "template": {"spec": {"containers": [{"name": "nginx", "image": "evil:1"}]}}},
        }
        world.server.change(DEPLOYMENTS, "test-deployment", drift)
        await world.rest(10)
        found = present(world.deployment())
        assert found["spec"]["replicas"] == 1
        assert [one["image"] for one in found["spec"]["template"]["spec"]["containers"]] == ["nginx:latest"]
        assert found["metadata"]["labels"] == {"team": "blue"}
        assert found["metadata"]["annotations"]["note"] == "kept"


async def test_f32_an_autoscaler_keeps_the_say_over_the_replicas(world: FooWorld) -> None:
    async with world.foo_running(foo(replicas=1)):
        world.server.create(autoscaler("test-deployment"))
        await world.rest(5)
        world.server.change(DEPLOYMENTS, "test-deployment", {"spec": {"replicas": 4}}, manager="hpa")
        await world.rest(60)
        found = present(world.deployment())
        assert found["spec"]["replicas"] == 4
        assert "'auto'" in (find(present(world.server.get(FOOS, "test")), "Ready") or {})["message"]
        asked = {read.query for attempt in world.attempts for read in attempt.reads if read.resource == HPAS}
        assert asked == {"index target=default/test-deployment"}, "not every autoscaler of the namespace is read"
        world.server.delete(HPAS, "auto")
        await world.rest(5)
        found = present(world.deployment())
        assert found["spec"]["replicas"] == 1


async def test_f33_a_renamed_deployment_is_replaced_once_the_new_one_is_there(world: FooWorld) -> None:
    async with world.foo_running(foo(deployment="old")):
        world.server.writes.clear()
        world.server.change(FOOS, "test", {"spec": {"deploymentName": "new"}})
        await world.rest(10)
        assert [obj["metadata"]["name"] for obj in world.server.objects(DEPLOYMENTS)] == ["new"]
        written = world.written()
        assert written.index(("create", "deployments", "new")) < written.index(("delete", "deployments", "old"))
        assert ("Normal", "Deleted", 'Deleted deployment "old"') in world.events()


async def test_m12_a_deployment_name_that_is_none_is_a_condition_and_ends_there(world: FooWorld) -> None:
    async with world.foo_running(foo(deployment="Not_A_Name")):
        await world.rest(600)
        assert world.condition() == ("False", "Invalid")
        assert world.attempts[0].verdict.outcome is Outcome.TERMINAL
        assert len(world.attempts) <= 2


async def test_m12_a_name_too_long_for_a_label_is_a_condition(world: FooWorld) -> None:
    name = "f" * 64
    async with world.foo_running(foo(name, deployment="fine")):
        await world.rest(600)
        assert world.condition(name=name) == ("False", "NameTooLong")
        assert len(world.attempts) == 1


@pytest.mark.parametrize("name", ["elsewhere/web", "../../elsewhere/deployments/web", "..%2Felsewhere"])
async def test_s02_a_name_that_leads_to_another_namespace_is_a_condition_and_is_not_requested(
    name: str, world: FooWorld
) -> None:
    async with world.foo_running(foo(deployment=name)):
        await world.rest(600)
        assert world.condition() == ("False", "Invalid")
        assert [one.path for one in world.server.requests if "elsewhere" in unquote(one.path)] == []


async def test_m16_an_empty_name_is_said_in_a_condition_and_not_retried(world: FooWorld) -> None:
    async with world.foo_running(foo(deployment="")):
        await world.rest(600)
        assert world.condition() == ("False", "DeploymentNameMissing")
        assert len(world.attempts) == 1
        world.server.change(FOOS, "test", {"spec": {"deploymentName": "now"}})
        await world.rest(5)
        assert world.condition() == ("True", "Available")


async def test_m16_two_foos_that_want_one_deployment_do_not_fight(world: FooWorld) -> None:
    async with world.foo_running(foo("test", deployment="same")):
        world.server.create(foo("other", deployment="same"))
        await world.rest(600)
        assert world.condition(name="test") == ("True", "Available")
        assert world.condition(name="other") == ("False", "ErrResourceExists")
        writes = len(world.written())
        await world.rest(3600)
        assert len(world.written()) == writes


async def test_f08_a_foreign_deployment_is_left_alone_and_named(world: FooWorld) -> None:
    other = foreign("test-deployment")
    keeper = world.server.create(foo("keeper", deployment=""))
    other["metadata"]["ownerReferences"] = [{**owner_reference(keeper), "kind": "Bar", "uid": "of-a-bar"}]
    world.server.collecting = False
    before = world.server.create(other)
    async with world.foo_running(foo()):
        await world.rest(3600)
        after = present(world.deployment())
        assert (after["spec"], after["metadata"]["ownerReferences"]) == (
            before["spec"],
            before["metadata"]["ownerReferences"],
        )
        assert world.condition() == ("False", "ErrResourceExists")
        assert [kind for kind, _, _ in world.events()] == ["Warning"]


async def test_f12_an_own_deployment_that_the_cache_does_not_show_yet_is_not_made_again(world: FooWorld) -> None:
    world.server.watch_delay = 20.0
    async with world.foo_running(foo()):
        world.server.change(FOOS, "test", {"spec": {"replicas": 2}})
        await world.rest(200)
        assert world.condition() == ("True", "Available")
        assert [verb for verb, resource, _ in world.written() if resource == "deployments"].count("create") == 1
        assert not [attempt for attempt in world.attempts if attempt.verdict.outcome is Outcome.RETRY]


async def test_f14_no_deployment_comes_back_when_the_deletion_of_the_foo_is_seen_late(world: FooWorld) -> None:
    async with world.foo_running(foo()):
        world.server.watch_delay = 10.0
        world.server.drop_watches(FOOS)
        await world.rest(30)
        world.server.watch_delay = 0.0
        world.server.writes.clear()
        world.server.delete(FOOS, "test", propagation="Foreground")
        await world.rest(60)
        assert world.server.objects(DEPLOYMENTS) == []
        assert world.written() == []


async def test_f29_the_namespace_is_being_deleted(world: FooWorld) -> None:
    world.server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    obj = foo()
    obj["metadata"] |= {"namespace": "going", "finalizers": ["example.com/hold"]}
    world.server.create(obj)
    world.server.collecting = False
    world.server.delete(NAMESPACES, "going")
    async with world.foo_running():
        await world.rest(3600)
        assert len(world.attempts) <= 2
        assert {attempt.verdict.outcome for attempt in world.attempts} == {Outcome.WAITING}
        assert world.events() == []


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (403, "QuotaExceeded", 'deployments.apps "x" is forbidden: exceeded quota: team, requested: count=1'),
        (403, "Denied", 'admission webhook "policy.example.com" denied the request: no latest tags'),
        (400, "Denied", 'admission webhook "policy.example.com" denied the request: no latest tags'),
    ],
)
async def test_f30_a_quota_or_an_admission_rule_refuses(code: int, reason: str, message: str, world: FooWorld) -> None:
    fault = world.server.faults.fail(
        Match(verb="create", plural="deployments"), code, reason="Forbidden", message=message, times=None
    )
    async with world.foo_running(foo()):
        await world.rest(300)
        assert world.condition() == ("False", reason)
        obj = present(world.server.get(FOOS, "test"))
        assert message in (find(obj, "Ready") or {})["message"]
        assert 3 <= fault.hits <= 15, "slowly"
        assert len([1 for verb, resource, _ in world.written() if resource == "foos/status"]) == 1
        fault.stop()
        await world.rest(120)
        assert world.condition() == ("True", "Available")


async def test_f33_a_name_changed_and_changed_back_leaves_one(world: FooWorld) -> None:
    async with world.foo_running(foo(deployment="a")):
        for name in ("b", "c", "a", "b", "a"):
            world.server.change(FOOS, "test", {"spec": {"deploymentName": name}})
            await world.rest(0.2)
        await world.rest(30)
        assert [obj["metadata"]["name"] for obj in world.server.objects(DEPLOYMENTS)] == ["a"]
        assert world.condition() == ("True", "Available")


async def test_f33_the_old_one_stays_while_the_new_name_is_taken_or_does_not_come_up(world: FooWorld) -> None:
    async with world.foo_running(foreign("taken"), foo(deployment="old")):
        world.server.change(FOOS, "test", {"spec": {"deploymentName": "taken"}})
        await world.rest(60)
        assert world.deployment("old")
        world.server.play_deployments(False)
        world.server.change(FOOS, "test", {"spec": {"deploymentName": "new"}})
        await world.rest(60)
        assert world.deployment("old")
        world.server.play_deployments()
        await world.rest(60)
        assert [obj["metadata"]["name"] for obj in world.server.objects(DEPLOYMENTS)] == ["new", "taken"]


async def test_f35_a_rollout_that_never_completes(world: FooWorld) -> None:
    world.server.play_deployments(False)
    async with world.foo_running(foo()):
        assert world.condition() == ("False", "RollingOut")
        stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "Slow."}
        world.server.change(DEPLOYMENTS, "test-deployment", {"status": {"conditions": [stuck]}}, subresource="status")
        await world.rest(5)
        assert world.condition() == ("False", "ProgressDeadlineExceeded")
        assert world.condition("Progressing") == ("False", "ProgressDeadlineExceeded")
        attempts, writes = len(world.attempts), len(world.written())
        await world.rest(9 * 3600)
        assert (len(world.attempts), len(world.written())) == (attempts, writes)


@pytest.mark.parametrize("replicas", [-1, 0, 11, 1.5, "3", 2**31])
@pytest.mark.parametrize("crd", ["ours", "original"])
async def test_m15_replicas_that_are_no_number_in_range_are_refused_by_the_server(replicas: Any, crd: str) -> None:
    world = FooWorld(original_crd(status=True) if crd == "original" else None)
    with pytest.raises(Refusal, match=r"spec\.replicas: Invalid value: .*(integer|or equal to)"):
        world.server.create(foo(replicas=replicas))


@pytest.mark.parametrize("crd", ["ours", "original"])
async def test_m15_replicas_that_are_null_mean_one(crd: str) -> None:
    world = FooWorld(original_crd(status=True) if crd == "original" else None)
    obj = foo()
    obj["spec"]["replicas"] = None
    async with world.foo_running(obj):
        assert present(world.deployment())["spec"]["replicas"] == 1


@pytest.mark.parametrize(("length", "reason"), [(242, "Available"), (243, "DeploymentNameTooLong")])
async def test_m16_a_deployment_name_that_leaves_no_room_for_the_hash_of_its_replicasets(
    length: int, reason: str, world: FooWorld
) -> None:
    async with world.foo_running(foo(deployment="d" * length)):
        await world.rest(600)
        assert world.condition()[1] == reason
        obj = present(world.server.get(FOOS, "test"))
        assert reason == "Available" or "243 characters" in (find(obj, "Ready") or {})["message"]


async def test_m20_a_live_selector_that_cannot_be_kept_is_told_in_the_servers_words(world: FooWorld) -> None:
    owner = world.server.create(foo())
    child = foreign("test-deployment")
    child["metadata"]["ownerReferences"] = [owner_reference(owner)]
    child["spec"]["selector"] = {"matchExpressions": [{"key": "foreign", "operator": "Exists"}]}
    async with world.foo_running(child):
        await world.rest(600)
        assert world.condition() == ("False", "Invalid")
        obj = present(world.server.get(FOOS, "test"))
        assert "field is immutable" in (find(obj, "Ready") or {})["message"]
        assert len(world.attempts) <= 2


async def test_m20_a_live_selector_of_an_older_controller_is_kept(world: FooWorld) -> None:
    owner = world.server.create(foo())
    child = foreign("test-deployment")
    child["metadata"]["ownerReferences"] = [owner_reference(owner)]
    async with world.foo_running(child):
        await world.rest(60)
        assert world.condition() == ("True", "Available")
        assert present(world.deployment())["spec"]["selector"] == {"matchLabels": {"foreign": "yes"}}
        assert world.status()["selector"] == "foreign=yes"


@pytest.mark.parametrize(
    "name", ["-dash", "a;b", "$(reboot)", "two\nlines", "\x1b[31mred", "\N{RIGHT-TO-LEFT OVERRIDE}abc", "../../x"]
)
async def test_m37_odd_names_stay_data(name: str, world: FooWorld) -> None:
    async with world.foo_running(foo(deployment=name)):
        await world.rest(600)
        assert world.condition() == ("False", "Invalid")
        assert len(world.attempts) <= 2
        sent = [one.path for one in world.server.requests if "deployments" in one.path and one.verb == "create"]
        assert set(sent) <= {"/apis/apps/v1/namespaces/default/deployments"}
