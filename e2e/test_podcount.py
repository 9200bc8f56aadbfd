"""Podcount beside the real ReplicaSet and Deployment controllers: right counts, no writes at rest, no fights."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from e2e.ctrl import AssertRests, Ctrl, Started
from e2e.kube import COLLECTION_SECONDS, Audit, Kubectl, wait_until

LABEL = "pod-count"


def workload(kind: str, name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "c", "image": "busybox:1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def pod(name: str, labels: dict[str, str]) -> dict[str, Any]:
    containers = [{"name": "c", "image": "busybox:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": containers},
    }


def counted(kubectl: Kubectl, **wanted: int) -> Callable[[], bool]:
    """Every ReplicaSet's label equals the count of its own controller, and these apps have that many pods."""

    def check() -> bool:
        found: dict[str, int] = {}
        for item in kubectl.json("get", "replicasets")["items"]:
            label = item["metadata"].get("labels", {}).get(LABEL)
            assert label == str(item["status"]["replicas"]), item["metadata"]["name"]
            app = item["spec"]["selector"]["matchLabels"]["app"]
            found[app] = found.get(app, 0) + int(label)
        assert found == wanted
        return True

    return check


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    return ctrl.started("run", "podcount")


def label_the_example(kubectl: Kubectl, ctrl: Ctrl) -> None:
    """The flow that needs every right of the controller."""
    kubectl("apply", "--filename=-", stdin=ctrl("example", "podcount").checked().out)
    wait_until(
        lambda: kubectl.json("get", "rs", "podcount-sample")["metadata"].get("labels", {}).get(LABEL) == "3",
        deadline=60,
    )


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_the_example_is_labelled(kubectl: Kubectl, ctrl: Ctrl, assert_rests: AssertRests) -> None:
    label_the_example(kubectl, ctrl)
    assert_rests()


@pytest.mark.usefixtures("running")
def test_the_label_follows_scaling_up_and_down(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    kubectl.apply(workload("Deployment", "web", 3))
    wait_until(counted(kubectl, web=3), deadline=60)
    for replicas in (40, 2, 0):
        kubectl("scale", "deployment/web", f"--replicas={replicas}")
        wait_until(counted(kubectl, web=replicas), deadline=90)
    assert_rests()
    (name,) = [item["metadata"]["name"] for item in kubectl.json("get", "rs")["items"]]
    assert LABEL not in kubectl.json("get", "rs", name)["spec"]["template"]["metadata"]["labels"]


@pytest.mark.usefixtures("running")
def test_f43_a_hundred_pods_at_once_cost_few_writes(
    kubectl: Kubectl, audit: Audit, assert_rests: AssertRests, namespace: str
) -> None:
    began = time.monotonic()
    kubectl.apply(workload("Deployment", "web", 100))
    wait_until(counted(kubectl, web=100), deadline=120)
    kubectl("delete", "pods", "--all", "--wait=false")
    wait_until(lambda: not [one for one in kubectl.json("get", "pods")["items"] if _is_leaving(one)], deadline=120)
    wait_until(counted(kubectl, web=100), deadline=120)
    assert_rests()
    wait_until(counted(kubectl, web=100))
    # Two writes are at least two seconds apart, so on a slow machine there are more.
    most = max(40, (time.monotonic() - began) / 2)
    assert audit.count(namespace=namespace)["patch", "replicasets.apps"] <= most, "of some 500 pod events"


def one_of_two(kubectl: Kubectl, app: str) -> str:
    """A pod of the app, once there are two that nobody deletes."""
    found = kubectl.json("get", "pods", f"--selector=app={app}")["items"]
    left = [str(one["metadata"]["name"]) for one in found if not _is_leaving(one)]
    assert len(left) == 2, left
    return left[0]


def _is_leaving(obj: dict[str, Any]) -> bool:
    return "deletionTimestamp" in obj["metadata"]


@pytest.mark.usefixtures("running")
def test_only_pods_of_its_own_count(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    """A bare ReplicaSet beside pods that match its selector, belong to others, or have terminated."""
    kubectl.apply(workload("ReplicaSet", "bare", 2))
    wait_until(counted(kubectl, bare=2), deadline=60)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {
            "template": {
                "metadata": {"labels": {"role": "job"}},
                "spec": {"containers": [{"name": "c", "image": "busybox:1"}], "restartPolicy": "Never"},
            }
        },
    }
    kubectl.apply(job, pod("other", {"app": "other"}))
    name = kubectl("get", "pods", "--selector=app=bare", "--output=name").split()[0]
    # Without the label its own controller releases it, and creates another pod.
    kubectl("label", name, "app=released", "--overwrite")
    wait_until(lambda: len(kubectl("get", "pods", "--selector=app=bare", "--output=name").split()) == 2, deadline=60)
    wait_until(counted(kubectl, bare=2), deadline=60)
    # With the label again there is one too many: it is adopted, and one of them is deleted.
    kubectl("label", name, "app=bare", "--overwrite")
    wait_until(counted(kubectl, bare=2), deadline=60)
    left = wait_until(lambda: one_of_two(kubectl, "bare"), deadline=60)
    kubectl(
        "patch",
        f"pod/{left}",
        "--subresource=status",
        "--type=merge",
        "--patch",
        '{"status":{"phase":"Failed","reason":"Test"}}',
    )
    wait_until(counted(kubectl, bare=2), deadline=60)
    assert_rests()
    wait_until(counted(kubectl, bare=2), what="two, as before each of these steps")


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_f45_a_rollout_keeps_its_labels_without_a_fight(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    """The Deployment controller writes annotations and replicas of its ReplicaSets, and keeps this label."""
    kubectl.apply(workload("Deployment", "web", 3))
    wait_until(counted(kubectl, web=3), deadline=60)
    kubectl("set", "image", "deployment/web", "c=busybox:2")
    kubectl("rollout", "status", "deployment/web", "--timeout=110s")
    wait_until(counted(kubectl, web=3), deadline=60)
    assert sorted(item["metadata"]["labels"][LABEL] for item in kubectl.json("get", "rs")["items"]) == ["0", "3"]
    kubectl("annotate", "deployment/web", "note=changed")
    kubectl("label", "deployment/web", "team=blue")
    assert_rests(seconds=10)
    wait_until(counted(kubectl, web=3))


@pytest.mark.usefixtures("running")
def test_f45_deletion_while_it_is_labelled_is_quiet(
    kubectl: Kubectl, running: Started, audit: Audit, assert_rests: AssertRests, namespace: str
) -> None:
    mark = audit.mark()
    kubectl.apply(*(workload("Deployment", f"web-{at}", 5) for at in range(5)))
    wait_until(lambda: audit.count(mark, namespace=namespace)["patch", "replicasets.apps"] >= 3, every=0.02)
    kubectl("delete", "deployments", "--all", "--cascade=foreground", timeout=COLLECTION_SECONDS)
    assert_rests()
    assert kubectl.json("get", "rs")["items"] == []
    assert not [line for line in running.err if "Traceback" in line]


def test_f44_a_restart_at_rest_writes_nothing(kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str) -> None:
    kubectl.apply(workload("Deployment", "web", 3), workload("ReplicaSet", "bare", 2))
    wait_until(lambda: len(kubectl.json("get", "pods")["items"]) == 5, deadline=60)
    assert ctrl("run", "podcount", "--until-idle", "--timeout=2m", timeout=150).code == 0
    wait_until(counted(kubectl, web=3, bare=2), what="their own controller has counted as well")
    mark = audit.mark()
    assert ctrl("run", "podcount", "--until-idle", "--timeout=2m", timeout=150).code == 0
    assert audit.writes(mark, namespace=namespace) == []
