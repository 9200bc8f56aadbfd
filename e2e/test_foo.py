"""Foo on a real API server: converge, repair, rename, delete, and recover from every kind of crash."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import AssertRests, Ctrl, Started
from e2e.kube import CHECKOUT, COLLECTION_SECONDS, REALKUBE, Audit, Cluster, Kubectl, run, wait_until

MANIFESTS = CHECKOUT / "kubectl_ctrl" / "controllers" / "foo"
_CREATE = ("create", "deployments.apps")


def foo(name: str, *, deployment: str | None = None, replicas: int | None = 1) -> dict[str, Any]:
    spec: dict[str, Any] = {"deploymentName": name if deployment is None else deployment}
    if replicas is not None:
        spec["replicas"] = replicas
    return {
        "apiVersion": "samplecontroller.k8s.io/v1alpha1",
        "kind": "Foo",
        "metadata": {"name": name},
        "spec": spec,
    }


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"foreign": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "busybox:1"}]},
            },
        },
    }


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    return ctrl.started("run", "foo")


def condition(obj: dict[str, Any], kind: str = "Ready") -> dict[str, Any]:
    found = [one for one in obj.get("status", {}).get("conditions", []) if one["type"] == kind]
    return found[0] if found else {}


def converged(kubectl: Kubectl, name: str, replicas: int) -> Callable[[], bool]:
    """The Foo is Ready for its current generation, with that many replicas."""

    def check() -> bool:
        obj = kubectl.find("foo", name)
        assert obj, f"no foo {name}"
        status = obj.get("status", {})
        assert status.get("availableReplicas") == replicas, status
        assert status.get("observedGeneration") == obj["metadata"]["generation"], status
        assert condition(obj)["status"] == "True", status
        rolled_out(kubectl, obj["spec"]["deploymentName"], replicas)
        return True

    return check


def rolled_out(kubectl: Kubectl, name: str, replicas: int) -> None:
    """The Deployment's own controller has finished; before that, the Foo's status follows it."""
    found = kubectl.find("deployment", name)
    assert found, f"no deployment {name}"
    status = found.get("status", {})
    assert status.get("observedGeneration") == found["metadata"]["generation"], status
    counts = [status.get(key) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    assert counts == [replicas] * 3, status


def owned(kubectl: Kubectl, name: str) -> list[str]:
    """The Deployments that this Foo controls."""
    uid = kubectl.json("get", "foo", name)["metadata"]["uid"]
    return [
        item["metadata"]["name"]
        for item in kubectl.json("get", "deployments")["items"]
        if any(ref["uid"] == uid and ref.get("controller") for ref in item["metadata"].get("ownerReferences", []))
    ]


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_the_example_converges_scales_and_then_rests(kubectl: Kubectl, ctrl: Ctrl, assert_rests: AssertRests) -> None:
    kubectl("apply", "--filename=-", stdin=ctrl("example", "foo").out)
    wait_until(converged(kubectl, "example-foo", 1), deadline=60)
    kubectl("patch", "foo", "example-foo", "--type=merge", "--patch", '{"spec":{"replicas":3}}')
    wait_until(converged(kubectl, "example-foo", 3), deadline=60)
    assert owned(kubectl, "example-foo") == ["example-foo"]
    assert_rests(seconds=10)


def test_each_attempt_is_a_line_with_its_causes_and_writes(kubectl: Kubectl, running: Started) -> None:
    kubectl.apply(foo("first"))
    wait_until(converged(kubectl, "first", 1), deadline=60)
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1), deadline=60)
    kubectl("patch", "foo", "web", "--type=merge", "--patch", '{"spec":{"replicas":2}}')
    wait_until(converged(kubectl, "web", 2), deadline=60)
    # The line of a reconcile follows its last write, which is enough for the state above.
    running.line("added by kubectl-client-side-apply")
    running.line("spec.replicas 1→2 by kubectl-patch")
    running.line("create Deployment/web 201")


@pytest.mark.usefixtures("running")
def test_removed_replicas_mean_one_again(kubectl: Kubectl) -> None:
    kubectl.apply(foo("web", replicas=2))
    wait_until(converged(kubectl, "web", 2), deadline=60)
    kubectl("patch", "foo", "web", "--type=json", "--patch", '[{"op":"remove","path":"/spec/replicas"}]')
    wait_until(converged(kubectl, "web", 1), deadline=60)


@pytest.mark.usefixtures("running")
def test_a_renamed_deployment_replaces_the_old_one_once_it_is_there(
    kubectl: Kubectl, audit: Audit, assert_rests: AssertRests, namespace: str
) -> None:
    kubectl.apply(foo("web", deployment="old"))
    wait_until(converged(kubectl, "web", 1), deadline=60)
    mark = audit.mark()
    kubectl("patch", "foo", "web", "--type=merge", "--patch", '{"spec":{"deploymentName":"new"}}')
    wait_until(lambda: owned(kubectl, "web") == ["new"], deadline=60, what="only the new Deployment is left")
    wait_until(converged(kubectl, "web", 1), deadline=60)
    written = [
        (one.verb, one.name) for one in audit.writes(mark, namespace=namespace) if one.resource == "deployments.apps"
    ]
    assert written.index(("create", "new")) < written.index(("delete", "old"))
    assert_rests()


@pytest.mark.usefixtures("running")
def test_a_foreign_deployment_stays_and_its_deletion_triggers_the_foo(
    kubectl: Kubectl, assert_rests: AssertRests
) -> None:
    kubectl.apply(deployment("taken"))
    before = kubectl.json("get", "deployment", "taken")["spec"]
    kubectl.apply(foo("web", deployment="taken"))
    text = 'Resource "taken" already exists and is not managed by Foo'

    def told() -> bool:
        ready = condition(kubectl.json("get", "foo", "web"))
        assert (ready.get("reason"), ready.get("message")) == ("ErrResourceExists", text), ready
        events = kubectl.json("get", "events", "--field-selector=reason=ErrResourceExists")["items"]
        assert [(event["type"], event["message"], event.get("count", 1)) for event in events] == [("Warning", text, 1)]
        return True

    wait_until(told)
    assert_rests()
    assert kubectl.json("get", "deployment", "taken")["spec"] == before
    kubectl("delete", "deployment", "taken")
    wait_until(converged(kubectl, "web", 1), deadline=60)


@pytest.mark.usefixtures("running")
def test_drift_is_repaired_and_fields_of_others_stay(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1), deadline=60)
    kubectl("label", "deployment", "web", "team=blue")
    kubectl("annotate", "deployment", "web", "note=kept")
    kubectl("set", "image", "deployment/web", "nginx=nginx:evil")
    kubectl("scale", "deployment/web", "--replicas=4")

    def repaired() -> bool:
        found = kubectl.json("get", "deployment", "web")
        assert found["spec"]["replicas"] == 1
        assert [one["image"] for one in found["spec"]["template"]["spec"]["containers"]] == ["nginx:latest"]
        assert found["metadata"]["labels"] == {"team": "blue"}
        assert found["metadata"]["annotations"]["note"] == "kept"
        return True

    wait_until(repaired, deadline=60)
    wait_until(converged(kubectl, "web", 1), deadline=60)
    assert_rests()


@pytest.mark.usefixtures("running")
def test_an_autoscaler_keeps_the_replicas(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    kubectl.apply(foo("web", replicas=3))
    wait_until(converged(kubectl, "web", 3), deadline=60)
    # Without metrics it never scales by itself: the test scales.
    kubectl("autoscale", "deployment/web", "--min=2", "--max=9", "--cpu=80%")
    wait_until(lambda: "HorizontalPodAutoscaler 'web'" in condition(kubectl.json("get", "foo", "web"))["message"])
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 3, "leaving it out must not reset it"
    kubectl("scale", "deployment/web", "--replicas=5")
    wait_until(converged(kubectl, "web", 5), deadline=60)
    assert_rests()
    kubectl("delete", "hpa", "web")
    wait_until(converged(kubectl, "web", 3), deadline=60)


@pytest.mark.usefixtures("running")
def test_a_deleted_deployment_comes_back(kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1), deadline=60)
    first = kubectl.json("get", "deployment", "web")["metadata"]["uid"]
    kubectl("delete", "deployment", "web", "--wait=false")
    wait_until(lambda: (kubectl.find("deployment", "web") or {"metadata": {"uid": first}})["metadata"]["uid"] != first)
    wait_until(converged(kubectl, "web", 1), deadline=60)


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_deletion_is_left_to_the_garbage_collector(
    kubectl: Kubectl, audit: Audit, namespace: str, cascade: str
) -> None:
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1), deadline=60)
    mark = audit.mark()
    kubectl("delete", "foo", "web", f"--cascade={cascade}", timeout=COLLECTION_SECONDS)
    if cascade == "orphan":
        assert kubectl.find("deployment", "web")
    else:
        wait_until(lambda: kubectl.find("deployment", "web") is None, deadline=COLLECTION_SECONDS)
    created = [one for one in audit.writes(mark, namespace=namespace) if one.resource == "deployments.apps"]
    assert created == []


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_a_foo_recreated_before_collection_waits_and_then_converges(kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1), deadline=60)
    before = kubectl.json("get", "deployment", "web")["metadata"]["uid"]
    kubectl("delete", "foo", "web", "--wait=false")
    kubectl.apply(foo("web"))
    wait_until(converged(kubectl, "web", 1), deadline=COLLECTION_SECONDS)
    assert kubectl.json("get", "deployment", "web")["metadata"]["uid"] != before
    assert owned(kubectl, "web") == ["web"]


@pytest.mark.parametrize("bad", ["", "Not_A_Name"])
@pytest.mark.usefixtures("running")
def test_a_name_that_cannot_be_is_a_condition_and_not_a_storm(
    kubectl: Kubectl, assert_rests: AssertRests, bad: str
) -> None:
    kubectl.apply(foo("web", deployment=bad))
    wait_until(lambda: condition(kubectl.json("get", "foo", "web")).get("status") == "False")
    assert_rests()
    kubectl("patch", "foo", "web", "--type=merge", "--patch", '{"spec":{"deploymentName":"good"}}')
    wait_until(converged(kubectl, "web", 1), deadline=60)


@pytest.mark.usefixtures("running")
def test_kubectl_shows_and_scales_it(kubectl: Kubectl) -> None:
    kubectl.apply(foo("web", replicas=2), foo("taken", deployment=""))
    wait_until(converged(kubectl, "web", 2), deadline=60)
    wait_until(lambda: condition(kubectl.json("get", "foo", "taken")).get("status") == "False")
    header, *rows = (line.split() for line in kubectl("get", "fo", "web").splitlines())
    assert header == ["NAME", "DEPLOYMENT", "DESIRED", "AVAILABLE", "READY", "AGE"]
    assert [row[:5] for row in rows] == [["web", "web", "2", "2", "True"]]
    assert kubectl("get", "foo", "taken", "--no-headers").split()[:3] == ["taken", "1", "False"]
    kubectl("scale", "foo/web", "--replicas=4")
    wait_until(converged(kubectl, "web", 4), deadline=60)
    refused = kubectl.try_("scale", "foo/web", "--replicas=11")
    assert "less than or equal to 10" in refused.err


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_an_autoscaler_scales_the_foo_itself(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    """There are no metrics; without them it finds its pods, and keeps its own minimum."""
    bare = foo("web", replicas=None)
    kubectl.apply(bare)
    wait_until(converged(kubectl, "web", 1), deadline=60)
    kubectl("autoscale", "foo/web", "--min=3", "--max=5", "--cpu=80%")
    wait_until(converged(kubectl, "web", 3), deadline=90)

    def needs_metrics() -> bool:
        """It needs metrics once the minimum is reached; another reason would be a missing selector."""
        hpa = kubectl.json("get", "hpa", "web")
        assert condition(hpa, "ScalingActive")["reason"] == "FailedGetResourceMetric", hpa["status"]
        return bool(condition(hpa, "AbleToScale")["status"] == "True")

    wait_until(needs_metrics)
    assert_rests()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.real
def test_killed_at_any_moment_and_started_again_it_ends_the_same(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str, seed: int
) -> None:
    """SIGKILL after a seeded number of calls, three times, while Foos are created, changed and deleted."""
    dice = random.Random(seed)
    kubectl.apply(*(foo(f"web-{at}") for at in range(4)))
    for _ in range(3):
        ctrl.started("run", "foo").kill_after_calls(dice.randint(1, 25), audit, namespace)
        kubectl.apply(foo(f"web-{dice.randrange(4)}", replicas=dice.randint(1, 3)), foo("late", deployment="late-2"))
        kubectl("delete", "foo", "late", "--wait=false")
    ctrl.started("run", "foo")
    wanted = {item["metadata"]["name"]: item["spec"]["replicas"] for item in kubectl.json("get", "foos")["items"]}
    wanted.pop("late", None)
    for name, replicas in wanted.items():
        wait_until(converged(kubectl, name, replicas), deadline=90)
        assert owned(kubectl, name) == [name]
    AssertRests(ctrl, audit, namespace)()


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_a_restart_of_the_api_server_under_load_costs_nothing(
    kubectl: Kubectl, cluster: Cluster, assert_rests: AssertRests
) -> None:
    kubectl.apply(*(foo(f"web-{at}") for at in range(20)))
    run(REALKUBE, "restart-apiserver", cluster.name, env=kubectl.env, timeout=300).checked()
    wait_until(lambda: kubectl.try_("get", "--raw", "/readyz").code == 0, deadline=60)
    kubectl.apply(*(foo(f"web-{at}", replicas=2) for at in range(20)))
    for at in range(20):
        wait_until(converged(kubectl, f"web-{at}", 2), deadline=240)
    assert_rests(seconds=10)


@pytest.mark.real
def test_five_hundred_at_once_converge_and_rest(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, assert_rests: AssertRests, namespace: str
) -> None:
    # `apply` sends twice as many requests, which takes minutes on a busy machine.
    kubectl.create(*(foo(f"web-{at}") for at in range(500)))
    ctrl.started("run", "foo")

    def all_ready() -> bool:
        items = kubectl.json("get", "foos")["items"]
        ready = [item for item in items if condition(item).get("status") == "True"]
        assert len(ready) == 500, f"{len(ready)} are ready"
        return True

    wait_until(all_ready, deadline=300, every=2)
    tried = [one.code for one in audit.writes(namespace=namespace) if (one.verb, one.resource) == _CREATE]
    # A busy server may refuse a request with 429 or 5xx, which is then repeated.
    assert Counter(code for code in tried if code != 429 and code < 500) == {201: 500}
    assert_rests(seconds=10)


def test_a_restart_at_rest_writes_nothing(kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str) -> None:
    kubectl.apply(*(foo(f"web-{at}") for at in range(5)))
    assert ctrl("run", "foo", "--until-idle", "--timeout=2m", timeout=150).code == 0
    mark = audit.mark()
    assert ctrl("run", "foo", "--until-idle", "--timeout=2m", timeout=150).code == 0
    assert audit.writes(mark, namespace=namespace) == []
