from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS, STATEFULSETS
from kubectl_ctrl.sandbox.controllers.resources import CLAIMS, CONTROLLER_REVISIONS
from kubectl_ctrl.sandbox.controllers.statefulsets import StatefulSets
from kubectl_ctrl.testing.server import ScriptedServer
from tests.objects import present
from tests.sandbox.callers import owned_by
from tests.sandbox.workloads import (
    all_ready,
    counts,
    end,
    make_ready,
    messages,
    names,
    new_image,
    pod,
    start,
    status_of,
    workload,
)

_REVISION = "controller-revision-hash"
_CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.fixture(autouse=True)
async def controlled(server: ScriptedServer) -> None:
    start(server, StatefulSets)


def make(server: ScriptedServer, **spec: Any) -> Obj:
    return server.create(workload("StatefulSet", "web", **{"serviceName": "web", "replicas": 3, **spec}))


def status(server: ScriptedServer) -> Obj:
    return status_of(server, STATEFULSETS, "web")


def images(server: ScriptedServer) -> list[str]:
    return [one["spec"]["containers"][0]["image"] for one in server.objects(PODS)]


async def test_each_pod_waits_for_the_one_before_it(server: ScriptedServer) -> None:
    make(server)
    assert names(server) == ["web-0"]
    make_ready(server, "web-0")
    assert names(server) == ["web-0", "web-1"]
    assert counts(status(server)) == {
        "replicas": 2,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "collisionCount": 0,
    }
    all_ready(server)
    assert names(server) == ["web-0", "web-1", "web-2"]
    assert messages(server)[-1] == "Create Pod web-2 in StatefulSet web successful"


async def test_a_pod_knows_its_place(server: ScriptedServer) -> None:
    made = make(server)
    (found,) = server.objects(PODS)
    (revision,) = server.objects(CONTROLLER_REVISIONS)
    name = revision["metadata"]["name"]
    assert found["metadata"]["labels"] == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "0",
        _REVISION: name,
        "statefulset.kubernetes.io/pod-name": "web-0",
    }
    assert (found["spec"]["hostname"], found["spec"]["subdomain"]) == ("web-0", "web")
    assert found["metadata"]["ownerReferences"] == [owned_by(made)]
    assert (revision["revision"], revision["metadata"]["ownerReferences"]) == (1, [owned_by(made)])
    assert name == f"web-{revision['metadata']['labels']['controller.kubernetes.io/hash']}"


async def test_parallel_pods_come_and_go_at_once(server: ScriptedServer) -> None:
    make(server, podManagementPolicy="Parallel", ordinals={"start": 5})
    assert names(server) == ["web-5", "web-6", "web-7"]
    server.change(STATEFULSETS, "web", {"spec": {"replicas": 1}})
    assert names(server) == ["web-5"]


async def test_the_last_pods_go_first_and_only_if_the_others_are_well(server: ScriptedServer) -> None:
    make(server)
    all_ready(server)
    make_ready(server, "web-0", ready=False)
    server.change(STATEFULSETS, "web", {"spec": {"replicas": 1}})
    assert names(server) == ["web-0", "web-1", "web-2"]
    make_ready(server, "web-0")
    assert names(server) == ["web-0"]
    assert messages(server)[-2:] == [
        "Delete Pod web-2 in StatefulSet web successful",
        "Delete Pod web-1 in StatefulSet web successful",
    ]


async def test_an_update_goes_from_the_last_to_the_first(server: ScriptedServer) -> None:
    make(server)
    all_ready(server)
    old = status(server)["currentRevision"]
    server.change(STATEFULSETS, "web", new_image("nginx:2"))
    assert images(server) == ["nginx:1", "nginx:1", "nginx:2"]
    assert status(server)["currentRevision"] == old != status(server)["updateRevision"]
    make_ready(server, "web-2")
    assert images(server) == ["nginx:1", "nginx:2", "nginx:2"]
    all_ready(server)
    assert images(server) == ["nginx:2"] * 3
    assert status(server)["currentRevision"] == status(server)["updateRevision"] != old
    assert status(server)["updatedReplicas"] == status(server)["currentReplicas"] == 3


async def test_a_partition_keeps_the_first_pods_old(server: ScriptedServer) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    make(server, updateStrategy=strategy)
    all_ready(server)
    server.change(STATEFULSETS, "web", new_image("nginx:2"))
    all_ready(server)
    assert images(server) == ["nginx:1", "nginx:1", "nginx:2"]
    server.delete(PODS, "web-0")
    assert images(server) == ["nginx:1", "nginx:1", "nginx:2"]
    assert (status(server)["currentReplicas"], status(server)["updatedReplicas"]) == (2, 1)


async def test_on_delete_updates_only_new_pods(server: ScriptedServer) -> None:
    make(server, replicas=2, updateStrategy={"type": "OnDelete"})
    all_ready(server)
    server.change(STATEFULSETS, "web", new_image("nginx:2"))
    assert images(server) == ["nginx:1", "nginx:1"]
    server.delete(PODS, "web-1")
    assert images(server) == ["nginx:1", "nginx:2"]


async def test_a_former_template_gets_its_old_revision_with_a_new_number(server: ScriptedServer) -> None:
    make(server, replicas=1)
    for image in ("nginx:2", "nginx:1"):
        all_ready(server)
        server.change(STATEFULSETS, "web", new_image(image))
    all_ready(server)
    numbers = sorted(one["revision"] for one in server.objects(CONTROLLER_REVISIONS))
    assert numbers == [2, 3]


async def test_the_history_has_a_limit(server: ScriptedServer) -> None:
    make(server, replicas=1, revisionHistoryLimit=1)
    for number in range(2, 6):
        all_ready(server)
        server.change(STATEFULSETS, "web", new_image(f"nginx:{number}"))
    all_ready(server)
    assert sorted(one["revision"] for one in server.objects(CONTROLLER_REVISIONS)) == [4, 5]


async def test_pods_are_available_after_a_while(server: ScriptedServer) -> None:
    make(server, replicas=2, minReadySeconds=30)
    make_ready(server, "web-0")
    assert (names(server), status(server)["availableReplicas"]) == (["web-0"], 0)
    await server.clock.sleep(31)
    server.settle()
    assert (names(server), status(server)["availableReplicas"]) == (["web-0", "web-1"], 1)


async def test_a_pod_that_ended_is_replaced(server: ScriptedServer) -> None:
    make(server, replicas=1)
    before = present(server.get(PODS, "web-0"))["metadata"]["uid"]
    end(server, "web-0", how="Failed")
    after = present(server.get(PODS, "web-0"))
    assert (after["metadata"]["uid"] != before, after["status"]["phase"]) == (True, "Pending")


async def test_claims_stay_without_another_policy(server: ScriptedServer) -> None:
    make(server, replicas=1, volumeClaimTemplates=[_CLAIM])
    (claim,) = server.objects(CLAIMS)
    assert (claim["metadata"]["name"], claim["metadata"]["labels"]) == ("data-web-0", {"app": "web"})
    (volume,) = present(server.get(PODS, "web-0"))["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "data-web-0"
    assert messages(server)[0] == "Create Claim data-web-0 Pod web-0 in StatefulSet web success"
    server.delete(STATEFULSETS, "web")
    assert (names(server), names(server, CLAIMS)) == ([], ["data-web-0"])


async def test_claims_go_with_their_pod_or_their_set(server: ScriptedServer) -> None:
    policy = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    made = make(server, replicas=2, volumeClaimTemplates=[_CLAIM], persistentVolumeClaimRetentionPolicy=policy)
    all_ready(server)
    assert [one["metadata"]["ownerReferences"] for one in server.objects(CLAIMS)] == [[owned_by(made)]] * 2
    server.change(STATEFULSETS, "web", {"spec": {"replicas": 1}})
    assert names(server, CLAIMS) == ["data-web-0"]
    server.delete(STATEFULSETS, "web")
    assert names(server, CLAIMS) == []


async def test_only_pods_with_a_fitting_name_are_adopted(server: ScriptedServer) -> None:
    for name in ("web-0", "other-0"):
        server.create(pod(name, app="web"))
    made = make(server, replicas=1)
    owners = {one["metadata"]["name"]: one["metadata"].get("ownerReferences") for one in server.objects(PODS)}
    assert owners["web-0"] == [owned_by(made)]
    assert not owners["other-0"]
