"""What holds for Memcached under faults and odd inputs; the numbers are those of docs/faults.md."""

from __future__ import annotations

import pytest

from kubectl_ctrl.controllers.memcached.reconciler import CONTROLLER, MEMCACHEDS
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.objects import labels_of
from kubectl_ctrl.model.owners import controlled_by, owner_reference
from kubectl_ctrl.model.resources import DEPLOYMENTS, EVENTS, HPAS, NAMESPACES, PODS
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.answers import Refusal
from kubectl_ctrl.testing.faults import Match
from tests.controllers.memcached.caching import (
    HEALTHY,
    TEST,
    Caching,
    deployment,
    memcached,
)
from tests.objects import autoscaler, present

CREATE = Match(verb="create", plural="deployments")


async def test_f02_dead_between_the_deployment_and_the_status(stage: Caching) -> None:
    stage.server.create(memcached())
    lost = stage.server.faults.hang(Match(verb="patch", plural="memcacheds"), times=None)
    async with stage.controlled():
        assert stage.status() == {}
    lost.stop()
    uid = stage.deployment()["metadata"]["uid"]
    stage.server.writes.clear()
    async with stage.controlled():
        assert stage.conditions() == HEALTHY
        assert stage.status()["nodes"] == stage.pods()
        assert stage.deployment()["metadata"]["uid"] == uid
        assert "deployments" not in [what for _, what, _ in stage.written()]


async def test_f08_the_name_is_taken(stage: Caching) -> None:
    """Not touched, told once, and looked at again when it changes or goes."""
    before = stage.server.create(deployment(replicas=2))
    async with stage.controlled(memcached()):
        await stage.rest(600)
        assert stage.deployment()["spec"] == before["spec"]
        assert "ownerReferences" not in stage.deployment()["metadata"]
        text = 'Resource "test" already exists and is not managed by Memcached'
        assert stage.events() == [("Warning", "ErrResourceExists", text)]
        assert stage.conditions() == [("False", "ErrResourceExists")] * 2 + [("True", "ErrResourceExists")]
        assert stage.status()["nodes"] == []
        assert stage.written() == [("apply", "memcacheds/status", TEST)]
        attempts = len(stage.attempts)
        stage.server.change(DEPLOYMENTS, TEST, {"metadata": {"labels": {"touched": "yes"}}})
        await stage.rest(600)
        assert len(stage.attempts) == attempts + 1, "its change is a reason to look"
        assert stage.written() == [("apply", "memcacheds/status", TEST)]
        stage.change(size=4)
        await stage.rest(600)
        assert stage.status()["observedGeneration"] == 2
        told = [event for event in stage.server.objects(EVENTS) if event["reason"] == "ErrResourceExists"]
        assert [event["count"] for event in told] == [1], "it is said once"
        stage.server.delete(DEPLOYMENTS, TEST)
        await stage.rest(5)
        assert stage.conditions() == HEALTHY


async def test_f08_somebody_was_faster(stage: Caching) -> None:
    """The cache has none, the server has one by now, and only that can tell whose it is."""
    stage.server.create(memcached())
    stage.server.faults.delay(CREATE, before=5)
    async with stage.running(CONTROLLER):
        await stage.rest(1)
        before = stage.server.create(deployment(replicas=2))
        await stage.rest(60)
        assert stage.deployment()["spec"] == before["spec"]
        assert stage.condition() == ("False", "ErrResourceExists")
        asked = [request.verb for request in stage.server.requests if "/deployments/" in request.path]
        assert asked == ["get"]


async def test_f08_one_that_another_controller_has_and_that_names_us_as_well(stage: Caching) -> None:
    ours = stage.server.create(memcached())
    theirs = {**ours, "kind": "Other", "metadata": {"name": "other", "uid": "4a1d7b8e-0000-4000-8000-000000000000"}}
    taken = deployment(owner=owner_reference(theirs))
    taken["metadata"]["ownerReferences"].append(owner_reference(ours, controller=False))
    stage.server.collecting = False
    async with stage.controlled(taken):
        assert stage.condition() == ("False", "ErrResourceExists")
        assert [verb for verb, what, _ in stage.written() if what == "deployments"] == []


async def test_f10_gone_before_the_deployment_is_created(stage: Caching) -> None:
    stage.server.create(memcached())
    stage.server.faults.delay(CREATE, before=5)
    async with stage.running(CONTROLLER):
        await stage.rest(1)
        stage.server.delete(MEMCACHEDS, TEST)
        await stage.rest(60)
        assert stage.server.objects(DEPLOYMENTS) + stage.server.objects(PODS) == []
        assert {attempt.verdict.outcome for attempt in stage.attempts} <= {Outcome.DONE, Outcome.RETRY}
        assert stage.attempts[-1].verdict.outcome is Outcome.DONE


async def test_f11_made_again_under_its_name_while_nobody_ran(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        pass
    old = stage.deployment()["metadata"]["uid"]
    stage.server.collecting = False
    stage.server.delete(MEMCACHEDS, TEST)
    new = stage.server.create(memcached(size=1))
    async with stage.controlled():
        assert stage.deployment()["metadata"]["uid"] == old
        assert stage.deployment()["spec"]["replicas"] == 3, "what the old one had is not taken over"
        assert stage.condition() == ("False", "WaitingForGarbageCollection")
        stage.server.collecting = True
        stage.server.settle()
        await stage.rest(5)
        assert controlled_by(stage.deployment(), new["metadata"]["uid"])
        assert stage.conditions() == HEALTHY


async def test_f12_its_own_writes_come_late_to_the_cache(stage: Caching) -> None:
    stage.server.watch_delay = 3.0
    async with stage.controlled(memcached()):
        for size in (1, 4):
            stage.change(size=size)
            await stage.rest(20)
            assert stage.conditions() == HEALTHY
            assert stage.status()["nodes"] == stage.pods()
        assert [verb for verb, what, _ in stage.written() if what == "deployments"].count("create") == 1
        await stage.assert_rests()


async def test_f12_a_dry_run_is_answered_from_a_newer_status(stage: Caching) -> None:
    """Whether an apply is needed is asked of the server, and somebody else was there first: it is read once more."""

    async with stage.controlled(memcached()):
        pass
    stage.server.change(MEMCACHEDS, TEST, {"metadata": {"managedFields": [{}]}})  # nobody owns anything any more
    stage.server.faults.delay(Match(verb="patch", plural="memcacheds"), before=5)
    stage.server.writes.clear()
    async with stage.running(CONTROLLER):
        await stage.rest(2)
        theirs = {"type": "Audited", "status": "True", "reason": "Looked", "message": ""}
        theirs["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        body = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind, "metadata": {"name": TEST}}
        stage.server.apply({**body, "status": {"conditions": [theirs]}}, manager="auditor", subresource="status")
        await stage.rest(600)
        asked = [request.verb for request in stage.server.requests if "/memcacheds/" in request.path]
        assert "get" in asked
        assert stage.written() == []
        assert stage.conditions() == HEALTHY
        assert stage.condition("Audited") == ("True", "Looked")


@pytest.mark.parametrize("propagation", ["Foreground", "Background", "Orphan"])
async def test_f14_nothing_comes_back_while_it_is_being_deleted(propagation: str, stage: Caching) -> None:
    obj = memcached()
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    async with stage.controlled(obj):
        stage.server.delete(MEMCACHEDS, TEST, propagation=propagation)
        if stage.server.get(DEPLOYMENTS, TEST):  # in the foreground it goes at once
            stage.server.delete(DEPLOYMENTS, TEST)
        await stage.assert_rests(600)
        assert stage.server.objects(DEPLOYMENTS) == []
        stage.server.change(MEMCACHEDS, TEST, {"metadata": {"finalizers": None}})
        await stage.rest(5)
        assert stage.server.objects(MEMCACHEDS) + stage.server.objects(DEPLOYMENTS) == []


async def test_f14_the_deletion_was_not_seen_yet(stage: Caching) -> None:
    obj = memcached()
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    async with stage.controlled(obj):
        stage.server.watch_delay = 10.0
        stage.server.delete(MEMCACHEDS, TEST)
        stage.server.change(MEMCACHEDS, TEST, {"metadata": {"finalizers": None}})
        assert stage.server.objects(DEPLOYMENTS) == []
        await stage.rest(60)
        assert stage.server.objects(DEPLOYMENTS) == [], "what was made for one that is gone is collected"


async def test_f29_the_namespace_is_being_deleted(stage: Caching) -> None:
    spec = {"metadata": {"name": "going", "finalizers": ["example.com/hold"]}}
    stage.server.create({"apiVersion": "v1", "kind": "Namespace", **spec})
    obj = memcached()
    obj["metadata"] |= {"namespace": "going", "finalizers": ["example.com/hold"]}
    stage.server.create(obj)
    stage.server.faults.answer(CREATE, answers.terminating(DEPLOYMENTS, TEST, "going").response(), times=None)
    async with stage.controlled():
        await stage.rest(3600)
        assert {attempt.verdict.outcome for attempt in stage.attempts} == {Outcome.WAITING}
        assert len(stage.attempts) == 1
        assert stage.written() == []
        assert len(stage.server.objects(NAMESPACES)) > 0


QUOTA = "exceeded quota: few, requested: count/deployments.apps=1, used: count/deployments.apps=2, limited: 2"
POLICY = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: never"


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (answers.forbidden(DEPLOYMENTS, TEST, QUOTA), "QuotaExceeded"),
        (Refusal(403, answers.status(403, "Forbidden", 'admission webhook "no" denied the request: never')), "Denied"),
        (Refusal(400, answers.status(400, "BadRequest", 'admission webhook "no" denied the request: never')), "Denied"),
        (Refusal(422, answers.status(422, "Invalid", POLICY, causes=[{"message": POLICY}])), "Denied"),
    ],
)
async def test_f30_a_quota_or_an_admission_rule_refuses(refusal: Refusal, reason: str, stage: Caching) -> None:
    """The server's words in a condition and one event, slow retries, and recovery by itself."""
    fault = stage.server.faults.answer(CREATE, refusal.response(), times=None)
    async with stage.controlled(memcached()):
        assert stage.condition("Degraded") == ("True", reason)
        assert str(refusal) in stage.told_by("Degraded")["message"]
        await stage.rest(600)
        assert 2 <= fault.hits <= 25
        assert stage.events() == [("Warning", reason, stage.told_by("Degraded")["message"])]
        fault.stop()
        await stage.rest(1200)
        assert stage.conditions() == HEALTHY


async def test_f30_a_quota_refuses_the_pods() -> None:
    stage = Caching(playing=False)
    stage.server.create(memcached())
    words = 'pods "test-abc" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": words}
    async with stage.controlled():
        stage.progress(replicas=1, updatedReplicas=1, readyReplicas=1, conditions=[failure])
        await stage.rest(60)
        assert stage.conditions() == [("False", "RollingOut"), ("True", "RollingOut"), ("True", "FailedCreate")]
        assert stage.told_by("Degraded")["message"] == words
        assert stage.events() == [("Warning", "FailedCreate", words)]
        stage.progress(replicas=3, updatedReplicas=3, readyReplicas=3, conditions=[])
        await stage.rest(60)
        assert stage.conditions() == HEALTHY


async def test_f31_what_is_ours_is_restored_once_and_what_is_others_stays(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        stage.server.writes.clear()
        container = {"name": "memcached", "image": "evil:1", "command": ["sh"]}
        drift = {
            "metadata": {"labels": {"team": "blue"}, "annotations": {"note": "kept"}},
            "spec": {
                "replicas": 7,
                "minReadySeconds": 1,
                "template": {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [container]}},
            },
        }
        stage.server.change(DEPLOYMENTS, TEST, drift)
        await stage.rest(10)
        found = stage.deployment()
        assert found["spec"]["replicas"] == 3
        assert stage.container()["image"] == "memcached:1.4.36-alpine"
        assert stage.container()["command"][0] == "memcached"
        assert stage.container()["securityContext"]["runAsUser"] == 1001
        assert labels_of(found) == {"team": "blue"}
        assert found["metadata"]["annotations"]["note"] == "kept"
        assert found["spec"]["minReadySeconds"] == 1
        assert found["spec"]["template"]["metadata"]["annotations"] == {"a": "b"}
        assert [verb for verb, what, _ in stage.written() if what == "deployments"].count("apply") == 1
        assert stage.status()["nodes"] == stage.pods()


async def test_f31_a_deleted_deployment_comes_back(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        before = stage.deployment()["metadata"]["uid"]
        stage.server.delete(DEPLOYMENTS, TEST)
        await stage.rest(10)
        assert stage.deployment()["metadata"]["uid"] != before
        assert stage.status()["nodes"] == stage.pods()
        assert stage.conditions() == HEALTHY


async def test_f32_an_autoscaler_keeps_the_say_over_the_replicas(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        stage.server.create(autoscaler("test"))
        await stage.rest(5)
        assert stage.deployment()["spec"]["replicas"] == 3, "leaving it out must not reset it"
        assert "HorizontalPodAutoscaler 'auto'" in stage.told_by("Available")["message"]
        stage.server.change(DEPLOYMENTS, TEST, {"spec": {"replicas": 5}}, manager="hpa")
        stage.change(size=1)
        await stage.rest(60)
        assert stage.deployment()["spec"]["replicas"] == 5
        assert stage.conditions() == HEALTHY
        assert len(stage.status()["nodes"]) == 5
        await stage.assert_rests()
        stage.server.delete(HPAS, "auto")
        await stage.rest(5)
        assert stage.deployment()["spec"]["replicas"] == 1


async def test_f34_a_selector_that_is_there_is_kept_until_the_deployment_goes(stage: Caching) -> None:
    """Our Deployment with the labels of the operator's later versions; selectors cannot change."""
    owner = owner_reference(stage.server.create(memcached(size=2)))
    labels = {"app": "cache", "app.kubernetes.io/version": "1.4.36-alpine"}
    async with stage.controlled(deployment(labels=labels, owner=owner)):
        found = stage.deployment()
        assert found["spec"]["selector"] == {"matchLabels": labels}
        assert labels.items() <= labels_of(found["spec"]["template"]).items()
        assert stage.conditions() == [*HEALTHY[:2], ("False", "SelectorKept")]
        assert "memcached_cr=test" in stage.told_by("Degraded")["message"]
        assert stage.status()["nodes"] == stage.pods()
        assert len(stage.pods()) == 2
        assert all(attempt.verdict.outcome is not Outcome.TERMINAL for attempt in stage.attempts)
        await stage.assert_rests()
        stage.server.delete(DEPLOYMENTS, TEST)
        await stage.rest(5)
        assert stage.deployment()["spec"]["selector"]["matchLabels"]["memcached_cr"] == TEST
        assert stage.conditions() == HEALTHY


async def test_f34_a_selector_of_expressions_is_kept_as_well(stage: Caching) -> None:
    made = deployment(owner=owner_reference(stage.server.create(memcached())), labels={"tier": "cache"})
    made["spec"]["selector"] = {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["cache", "db"]}]}
    async with stage.controlled(made):
        assert stage.deployment()["spec"]["selector"] == made["spec"]["selector"]
        assert labels_of(stage.deployment()["spec"]["template"])["tier"] == "cache"
        assert stage.condition("Degraded") == ("False", "SelectorKept")
        await stage.assert_rests()


async def test_f35_a_rollout_that_never_completes() -> None:
    stage = Caching(playing=False)
    words = 'ReplicaSet "test-6cb4c5f4d" has timed out progressing.'
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": words}
    async with stage.controlled(memcached()):
        stage.progress(replicas=3, updatedReplicas=3, readyReplicas=1, conditions=[stuck])
        await stage.rest(5)
        reason = "ProgressDeadlineExceeded"
        assert stage.conditions() == [("False", reason), ("False", reason), ("True", reason)]
        assert stage.told_by("Progressing")["message"] == words
        assert stage.events() == [("Warning", reason, words)]
        attempts = len(stage.attempts)
        await stage.rest(7200)
        assert len(stage.attempts) == attempts


async def test_f55_the_newest_size_wins_and_the_generation_is_never_ahead(stage: Caching) -> None:
    stage.server.create(memcached())
    stage.server.faults.delay(Match(verb="create patch", plural="deployments"), before=2, times=None)
    async with stage.running(CONTROLLER):
        for size in range(1, 9):
            await stage.rest(1)
            stage.change(size=size)
            obj = present(stage.server.get(MEMCACHEDS, TEST))
            assert stage.status().get("observedGeneration", 0) <= obj["metadata"]["generation"]
        await stage.rest(30)
        assert stage.deployment()["spec"]["replicas"] == 8
        obj = present(stage.server.get(MEMCACHEDS, TEST))
        assert stage.status()["observedGeneration"] == obj["metadata"]["generation"]
        assert {one["observedGeneration"] for one in stage.status()["conditions"]} == {obj["metadata"]["generation"]}
