"""Memcached where others have a say: collectors, autoscalers, auditors, and pods that get on with it."""

from __future__ import annotations

from kubectl_ctrl.controllers.memcached.reconciler import CONTROLLER, MEMCACHEDS
from kubectl_ctrl.model.resources import DEPLOYMENTS, HPAS, PODS, REPLICASETS
from tests.controllers.memcached.caching import HEALTHY, TEST, Caching, memcached
from tests.objects import autoscaler


async def test_one_made_again_waits_for_the_collection_of_the_old_deployment(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        stage.server.collecting = False
        before = stage.deployment()["metadata"]["uid"]
        stage.server.delete(MEMCACHEDS, TEST)
        stage.server.create(memcached())
        await stage.rest(5)
        assert stage.condition() == ("False", "WaitingForGarbageCollection")
        assert stage.status()["nodes"] == []
        assert not any(kind == "Warning" for kind, _, _ in stage.events())
        stage.server.collecting = True
        stage.server.settle()
        await stage.rest(5)
        assert stage.conditions() == HEALTHY
        assert stage.deployment()["metadata"]["uid"] != before
        assert stage.status()["nodes"] == stage.pods()


async def test_a_deployment_that_is_being_deleted_is_waited_for_and_made_again(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        before = stage.deployment()["metadata"]["uid"]
        stage.server.change(DEPLOYMENTS, TEST, {"metadata": {"finalizers": ["example.com/hold"]}})
        stage.server.delete(DEPLOYMENTS, TEST)
        await stage.rest(60)
        assert stage.condition() == ("False", "WaitingForDeletion")
        stage.server.change(DEPLOYMENTS, TEST, {"metadata": {"finalizers": None}})
        await stage.rest(5)
        assert stage.conditions() == HEALTHY
        assert stage.deployment()["metadata"]["uid"] != before


async def test_only_an_autoscaler_of_its_own_deployment_counts(stage: Caching) -> None:
    stage.server.create(memcached())
    other = autoscaler("test", name="other")
    other["spec"]["scaleTargetRef"] |= {"kind": "StatefulSet"}
    async with stage.controlled(other, autoscaler("elsewhere", name="another")):
        stage.server.change(DEPLOYMENTS, TEST, {"spec": {"replicas": 9}})
        await stage.rest(5)
        assert stage.deployment()["spec"]["replicas"] == 3
        assert len(stage.server.objects(HPAS)) == 2


async def test_conditions_of_others_stay_theirs(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        theirs = {
            "type": "Audited",
            "status": "True",
            "reason": "Looked",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        name = {"name": TEST, "namespace": "default"}
        kind = {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind, "metadata": name}
        stage.server.apply({**kind, "status": {"conditions": [theirs]}}, manager="auditor", subresource="status")
        stage.change(size=1)
        await stage.rest(5)
        assert stage.conditions() == HEALTHY
        assert stage.condition("Audited") == ("True", "Looked")
        stage.server.apply({**kind, "status": {"conditions": []}}, manager="auditor", subresource="status")
        assert stage.told_by("Audited") == {}, "nobody else holds it"


async def test_pods_that_only_get_on_with_it_wake_nobody(stage: Caching) -> None:
    async with stage.controlled(memcached()):
        await stage.rest(60)
        attempts = len(stage.attempts)
        for name in stage.pods():
            stage.server.change(PODS, name, {"status": {"message": "still here"}}, subresource="status")
        for replicas in stage.server.objects(REPLICASETS):
            name = replicas["metadata"]["name"]
            stage.server.change(REPLICASETS, name, {"status": {"fullyLabeledReplicas": 3}}, subresource="status")
        await stage.rest(60)
        assert len(stage.attempts) == attempts


async def test_of_pods_and_replicasets_only_ours_are_watched_and_only_their_metadata(stage: Caching) -> None:
    async with stage.controlled():
        asked = {
            request.path.rpartition("/")[2]: dict(request.query)
            for request in stage.server.requests
            if request.verb == "watch"
        }
        assert asked["pods"]["labelSelector"] == asked["replicasets"]["labelSelector"] == "memcached_cr"
        assert "status.phase!=Failed" in asked["pods"]["fieldSelector"]
        assert all(CONTROLLER.view(resource).metadata_only for resource in (PODS, REPLICASETS))
