"""Memcached against a server in memory: the tutorial, the truth of the status, and the original's limits mended."""

from __future__ import annotations

import pytest
import yaml

from kubectl_ctrl.controllers.memcached.reconciler import MEMCACHEDS
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import Obj, labels_of
from kubectl_ctrl.model.owners import controlled_by, owner_reference
from kubectl_ctrl.model.resources import CRDS, DEPLOYMENTS, PODS
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.testing.faults import Match
from tests.controllers.memcached.caching import (
    FOLDER,
    HEALTHY,
    TEST,
    Caching,
    crd,
    memcached,
    schema_of,
)

# --- the original's own tests, and the tutorial ---


async def test_the_example_becomes_a_deployment_as_in_the_tutorial(stage: Caching) -> None:
    stage.install(FOLDER / "example.yaml")
    async with stage.controlled():
        made = stage.server.get(MEMCACHEDS, "memcached-sample")
        found = stage.deployment("memcached-sample")
        assert made is not None
        assert controlled_by(found, made["metadata"]["uid"])
        labels = {"app": "memcached", "memcached_cr": "memcached-sample"}
        assert found["spec"]["selector"] == {"matchLabels": labels}
        assert labels_of(found["spec"]["template"]) == labels
        (container,) = found["spec"]["template"]["spec"]["containers"]
        assert container["name"] == "memcached"
        assert container["image"] == "memcached:1.4.36-alpine"
        assert container["command"] == ["memcached", "-m", "64", "-o", "modern", "-v"]
        assert container["ports"] == [{"name": "memcached", "containerPort": 11211, "protocol": "TCP"}]
        assert container["imagePullPolicy"] == "IfNotPresent"
        assert stage.status("memcached-sample")["nodes"] == stage.pods()
        assert len(stage.pods()) == found["spec"]["replicas"] == 3


async def test_it_resizes_up_and_down_and_to_nothing(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        for size in (2, 5, 0, 10):
            stage.change(size=size)
            await stage.rest(5)
            assert stage.deployment()["spec"]["replicas"] == size
            assert stage.status()["nodes"] == stage.pods()
            assert len(stage.pods()) == stage.status()["readyReplicas"] == size
            assert stage.conditions() == HEALTHY


async def test_the_pods_are_restricted_by_default(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        pod = stage.deployment()["spec"]["template"]["spec"]
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert stage.container()["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 1001,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }


async def test_a_restart_at_rest_writes_nothing(stage: Caching) -> None:
    async with stage.controlled(memcached(containerPort=11212, image="cache:1")):
        assert stage.conditions() == HEALTHY
    stage.server.writes.clear()
    async with stage.controlled():
        await stage.rest(3600)
    assert list(stage.writes()) == []


async def test_it_says_once_that_it_is_available(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        await stage.rest(600)
        assert stage.events() == [("Normal", "Available", "3 of 3 pods of the latest spec are ready.")]


# --- the original's limits ---


async def test_nodes_follow_the_pods_themselves_and_are_sorted(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        before = stage.status()["nodes"]
        assert before == sorted(before)
        deployment = stage.deployment()
        stage.server.delete(PODS, before[1])
        await stage.rest(5)
        assert stage.deployment()["spec"] == deployment["spec"], "the pods alone have changed"
        assert stage.status()["nodes"] == stage.pods() != before


async def test_nodes_leave_out_what_terminates_has_finished_or_only_looks_alike(stage: Caching) -> None:
    labels = {"app": "memcached", "memcached_cr": TEST}
    spec = {"containers": [{"name": "c", "image": "busybox:1"}]}
    for name, extra in (("alone", {}), ("stranger", {"ownerReferences": [_stranger()]})):
        meta = {"name": name, "labels": labels, **extra}
        stage.server.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    async with stage.controlled(memcached()):
        failed, going, _ = nodes = stage.status()["nodes"]
        assert not {"alone", "stranger"} & set(nodes)
        stage.server.change(PODS, failed, {"status": {"phase": "Failed"}}, subresource="status")
        stage.server.change(PODS, going, {"metadata": {"finalizers": ["example.com/hold"]}})
        stage.server.delete(PODS, going)
        await stage.rest(5)
        after = stage.status()["nodes"]
        assert len(after) == 3
        assert not {failed, going, "alone", "stranger"} & set(after)


async def test_nodes_of_several_replicasets_are_sorted_together_and_follow_what_begins_to_go() -> None:
    stage = Caching(playing=False)
    async with stage.controlled(memcached(size=2)):
        spec = {key: stage.deployment()["spec"][key] for key in ("selector", "template")}
        labels = labels_of(spec["template"])
        for replicas, name in (("first", "zz"), ("second", "aa")):
            meta: Obj = {
                "name": replicas,
                "labels": labels,
                "ownerReferences": [owner_reference(stage.deployment())],
            }
            parent = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}
            meta = {
                "name": name,
                "labels": labels,
                "ownerReferences": [owner_reference(stage.server.create(parent))],
            }
            meta["finalizers"] = ["example.com/hold"]
            stage.server.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec["template"]["spec"]})
        await stage.rest(5)
        assert stage.status()["nodes"] == ["aa", "zz"]
        stage.server.delete(PODS, "zz")
        await stage.rest(5)
        assert stage.status()["nodes"] == ["aa"]


def _stranger() -> Obj:
    meta = {"name": f"{TEST}-5d5d5d5d5d", "uid": "4a1d7b8e-0000-4000-8000-000000000000"}
    return owner_reference({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta})


async def test_no_pods_are_an_empty_list_and_not_nothing() -> None:
    required = crd()
    schema_of(required)["properties"]["status"]["required"] = ["nodes"]
    stage = Caching(required)
    async with stage.controlled(memcached(size=0)):
        assert stage.status()["nodes"] == []
        assert stage.conditions() == HEALTHY


async def test_two_in_one_namespace_do_not_mix(stage: Caching) -> None:
    async with stage.controlled(memcached("one", size=1), memcached("two", size=2)):
        one, two = (set(stage.status(name)["nodes"]) for name in ("one", "two"))
        assert (len(one), len(two)) == (1, 2)
        assert not one & two
        assert stage.deployment("one")["spec"]["selector"] != stage.deployment("two")["spec"]["selector"]


@pytest.mark.parametrize(
    "image",
    [
        "memcached",
        "registry.example.com:5000/memcached",
        "registry.example.com:5000/team/memcached:1.6",
        "m@sha256:" + "a" * 64,
    ],
)
async def test_any_image_will_do(image: str, stage: Caching) -> None:
    async with stage.controlled(memcached(image=image)):
        assert stage.container()["image"] == image
        assert stage.conditions() == HEALTHY


async def test_image_port_and_command_follow_the_spec(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        stage.change(image="cache:2", containerPort=11212)
        await stage.rest(5)
        assert stage.container()["image"] == "cache:2"
        assert stage.container()["command"][-2:] == ["-p", "11212"]
        assert stage.container()["ports"] == [{"name": "memcached", "containerPort": 11212, "protocol": "TCP"}]
        assert stage.status()["nodes"] == stage.pods()
        stage.change(image=None, containerPort=None)
        await stage.rest(5)
        assert stage.container()["image"] == "memcached:1.4.36-alpine"
        assert stage.container()["command"][-1] == "-v"
        assert [port["containerPort"] for port in stage.container()["ports"]] == [11211]


async def test_another_finalizer_that_holds_the_deletion_is_no_trouble(stage: Caching) -> None:
    obj = memcached()
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    async with stage.controlled(obj):
        stage.server.delete(MEMCACHEDS, TEST)
        await stage.assert_rests(600)
        assert {attempt.verdict.outcome for attempt in stage.attempts} <= {Outcome.DONE, Outcome.WAITING}


async def test_it_is_available_only_when_so_many_pods_of_the_latest_spec_are_ready() -> None:
    """What the Deployment's controller says, and what may be said of that: (replicas, updated, ready) -> so many."""
    stage = Caching(playing=False)
    async with stage.controlled(memcached()):
        assert stage.condition() == ("False", "RollingOut")
        stage.progress(conditions=[{"type": "ReplicaFailure", "status": "False", "reason": "Over", "message": ""}])
        await stage.rest(1)
        assert stage.condition("Degraded") == ("False", "AsExpected")
        for counts, known in (((3, 3, 2), 2), ((4, 1, 3), 0), ((4, 3, 3), 2), ((4, 3, 4), 3), ((3, 3, 3), 3)):
            stage.progress(**dict(zip(("replicas", "updatedReplicas", "readyReplicas"), counts, strict=True)))
            await stage.rest(1)
            assert stage.told_by("Available")["message"] == f"{known} of 3 pods of the latest spec are ready."
            assert stage.condition()[0] == ("True" if known == 3 else "False")
            assert stage.condition("Progressing")[0] == ("False" if counts == (3, 3, 3) else "True")
            assert stage.status()["readyReplicas"] == counts[2]
        stage.change(image="cache:2")
        await stage.rest(1)
        assert stage.condition() == ("False", "RollingOut")
        assert (
            stage.told_by("Available")["message"]
            == "The Deployment controller has not observed the latest spec of 3 pods yet."
        )


async def test_a_paused_deployment_is_said_to_be_so() -> None:
    stage = Caching(playing=False)
    async with stage.controlled(memcached()):
        stage.server.change(DEPLOYMENTS, TEST, {"spec": {"paused": True}})
        await stage.rest(5)
        assert stage.condition("Progressing") == ("False", "DeploymentPaused")
        assert stage.deployment()["spec"]["paused"] is True, "that is not ours to end"


async def test_a_name_too_long_for_a_label_is_a_condition(stage: Caching) -> None:
    fits, long = "m" * 63, "m" * 64
    async with stage.controlled(memcached(fits), memcached(long)):
        await stage.rest(600)
        assert stage.condition(name=fits) == ("True", "MinimumReplicasReady")
        assert stage.condition(name=long) == ("False", "NameTooLong")
        assert stage.condition("Degraded", long) == ("True", "NameTooLong")
        assert len([attempt for attempt in stage.attempts if attempt.start.request.name == long]) == 1


async def test_there_is_no_finalizer_so_that_it_can_go_when_nobody_runs(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        pass
    stage.server.delete(MEMCACHEDS, TEST)
    assert stage.server.objects(MEMCACHEDS) + stage.server.objects(DEPLOYMENTS) + stage.server.objects(PODS) == []


# --- other CRDs, and what the server says ---


async def test_on_the_tutorials_first_crd_the_nodes_are_kept_and_it_rests() -> None:
    older = crd()
    schema_of(older)["properties"]["status"] = {
        "type": "object",
        "required": ["nodes"],
        "properties": {"nodes": {"type": "array", "items": {"type": "string"}}},
    }
    stage = Caching(older)
    async with stage.controlled(memcached()):
        assert stage.status() == {"nodes": stage.pods()}
        for turn in range(3):
            stage.server.change(DEPLOYMENTS, TEST, {"metadata": {"labels": {"turn": str(turn)}}})
            await stage.rest(5)
        assert stage.events() == [], "nothing is kept that would tell whether it was said before"
        await stage.assert_rests(7200)


async def test_on_a_crd_that_does_not_ask_for_a_size_nothing_is_guessed() -> None:
    stage = Caching(crd(required=[]))
    bare = memcached()
    del bare["spec"]["size"]
    async with stage.controlled(bare):
        assert stage.condition() == ("False", "SizeMissing")
        assert stage.server.objects(DEPLOYMENTS) == []
        stage.change(size=1)
        await stage.rest(5)
        assert stage.conditions() == HEALTHY


async def test_a_crd_that_comes_later_is_waited_for(stage: Caching) -> None:
    stage.server.delete(CRDS, "memcacheds.cache.example.com")
    async with stage.controlled():
        await stage.rest(120)
        stage.install(FOLDER / "crd.yaml", FOLDER / "example.yaml")
        await stage.rest(60)
        assert stage.condition(name="memcached-sample") == ("True", "MinimumReplicasReady")


async def test_what_the_server_finds_invalid_is_a_condition_and_ends_there(stage: Caching) -> None:
    stage.server.create(memcached())
    words = "Invalid value: must not have leading or trailing whitespace"
    cause = {"reason": "FieldValueInvalid", "message": words, "field": "spec.template.spec.containers[0].image"}
    refused = answers.status(422, "Invalid", "Deployment.apps is invalid", causes=[cause])
    fault = stage.server.faults.answer(
        Match(verb="create", plural="deployments"), answers.answer(refused, 422), times=None
    )
    async with stage.controlled():
        await stage.rest(600)
        assert stage.condition("Degraded") == ("True", "Invalid")
        assert f"spec.template.spec.containers[0].image: {words}" in stage.told_by("Degraded")["message"]
        assert fault.hits == 1
        assert stage.attempts[0].verdict.outcome is Outcome.TERMINAL
        fault.stop()
        stage.change(image="good")
        await stage.rest(5)
        assert stage.conditions() == HEALTHY


def test_the_columns_say_what_people_look_for() -> None:
    made: Obj = yaml.safe_load((FOLDER / "crd.yaml").read_text())
    columns = made["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [one["name"] for one in columns if not one.get("priority")] == ["Size", "Ready", "Available", "Age"]
