"""Who runs a controller, as far as rights reach; on a cluster in memory, on virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_ctrl.clock import rfc3339_micro
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.runs.instances import (
    FoundInstances,
    InstanceKind,
    asked_to_stop,
    lease_name,
    lease_scope,
    look,
    where,
)
from kubectl_ctrl.runs.runners import only_runner
from kubectl_ctrl.testing.faults import Match
from kubectl_ctrl.testing.stage import Stage
from kubectl_ctrl.value import replace
from tests.objects import workload
from tests.runs.test_runners import ME

ELSEWHERE = "laptop-b.12345678.1_77_r000"


def deployment(name: str, *, replicas: int = 1, controller: str = "foo") -> Obj:
    labels = {"managed-by": "kubectl-ctrl", "name": controller, "component": "controller"}
    return workload(
        name, replicas=replicas, labels={f"app.kubernetes.io/{key}": value for key, value in labels.items()}
    )


def lease(stage: Stage, name: str, *, age: float = 3.0, who: str = ELSEWHERE, **labels: str) -> Obj:
    at = rfc3339_micro(stage.clock.now() - age)
    spec = {"holderIdentity": who, "leaseDurationSeconds": 15, "renewTime": at}
    meta = {"name": name, "namespace": "default", "labels": {f"app.kubernetes.io/{k}": v for k, v in labels.items()}}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


async def seen(stage: Stage, folder: Path) -> FoundInstances:
    return await look(stage.client(), state_dir=folder, cluster="c", name="foo")


async def test_all_that_run_are_told(tmp_path: Path, stage: Stage) -> None:
    stage.install(
        deployment("kubectl-ctrl-foo"), deployment("asleep", replicas=0), deployment("other", controller="bar")
    )
    stage.install(lease(stage, "kubectl-ctrl-foo-team"), lease(stage, "kubectl-ctrl-foo-old", age=16))
    with only_runner(tmp_path, ME):
        found = await seen(stage, tmp_path)
    assert [(place.kind, place.text, place.short, place.scope) for place in found.places] == [
        (InstanceKind.PROCESS, "process 4121 on this machine (namespace default)", "pid 4121 (default)", "default"),
        (InstanceKind.DEPLOYMENT, "Deployment default/kubectl-ctrl-foo", "in default", None),
        (
            InstanceKind.LEASE,
            f"lease default/kubectl-ctrl-foo-team held by {ELSEWHERE} (renewed 3s ago)",
            "on laptop-b",
            "team",
        ),
    ]
    assert found.unseen == ()
    assert await where(stage.client(), state_dir=tmp_path, cluster="c", name="bar") != []


async def test_the_lease_of_a_process_of_here_is_not_told_twice(tmp_path: Path, stage: Stage) -> None:
    stage.install(lease(stage, "kubectl-ctrl-foo-default", who=ME.holder))
    with only_runner(tmp_path, replace(ME)):
        assert [place.kind for place in (await seen(stage, tmp_path)).places] == [InstanceKind.PROCESS]


@pytest.mark.parametrize("plural", ["deployments", "leases"])
async def test_what_may_not_be_looked_at_is_told_beside_the_rest(tmp_path: Path, plural: str, stage: Stage) -> None:
    stage.install(deployment("kubectl-ctrl-foo"), lease(stage, "kubectl-ctrl-foo"))
    stage.server.faults.fail(Match(verb="list", plural=plural), 403, times=9)
    found = await seen(stage, tmp_path)
    assert len(found.places) == 1
    assert found.unseen
    assert all("cannot be read with these credentials" in text for text in found.unseen)


def test_whose_lease_it_is_tells_its_label_where_the_name_could_mean_two() -> None:
    def scope(controller: str, **labels: str) -> str | None:
        named = {f"app.kubernetes.io/{key}": value for key, value in labels.items()}
        return lease_scope({"metadata": {"name": lease_name("foo-bar", ""), "labels": named}}, controller)

    assert scope("foo-bar") == ""
    assert scope("foo") == "bar"
    assert scope("foo", name="foo-bar") is None
    assert scope("foo-bar", name="foo") is None
    assert scope("ba") is None


async def test_only_a_process_can_be_asked_to_stop(tmp_path: Path, stage: Stage) -> None:
    stage.install(deployment("kubectl-ctrl-foo"))
    (place,) = (await seen(stage, tmp_path)).places
    assert not asked_to_stop(tmp_path, place)
