"""Memcached on a real API server: the steps of the tutorial, the bugs of the original, and every kind of crash.

Each flow is a function, which other tests run under the rights of the controller.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import AssertRests, Ctrl, Started
from e2e.kube import CHECKOUT, COLLECTION_SECONDS, Audit, Kubectl, wait_until
from e2e.rights import granted_by_now, owner_known_by_now

MANIFESTS = CHECKOUT / "kubectl_ctrl" / "controllers" / "memcached"
SAMPLE = "memcached-sample"

# config/samples of the tutorial, in its first version and as later versions of the SDK generate it.
TUTORIAL = {
    "first": "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata:\n  name: memcached-sample\n"
    "spec:\n  size: 3\n",
    "later": "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\nmetadata:\n  labels:\n"
    "    app.kubernetes.io/name: project\n    app.kubernetes.io/managed-by: kustomize\n  name: memcached-sample\n"
    "spec:\n  size: 1\n  containerPort: 11211\n",
}


def memcached(name: str = SAMPLE, size: Any = 3, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": name},
        "spec": {"size": size, **spec},
    }


def deployment(name: str, owner: dict[str, Any] | None = None, **labels: str) -> dict[str, Any]:
    """A Deployment of another user, perhaps with an owner that we reconcile."""
    labels = labels or {"foreign": name}
    meta: dict[str, Any] = {"name": name}
    if owner is not None:
        named = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        meta["ownerReferences"] = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **named}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "busybox:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "memcached")


@pytest.fixture
def running(ctrl: Ctrl) -> Started:
    return ctrl.started("run", "memcached")


# --- what is looked at ---


def pods(kubectl: Kubectl, name: str = SAMPLE) -> list[str]:
    """The pods that serve or will serve, of every object with the Memcached's labels, sorted."""
    found = kubectl.json("get", "pods", f"--selector=app=memcached,memcached_cr={name}")["items"]
    return sorted(
        pod["metadata"]["name"]
        for pod in found
        if "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in ("Succeeded", "Failed")
    )


def condition(obj: dict[str, Any], kind: str = "Available") -> dict[str, Any]:
    found = [one for one in obj.get("status", {}).get("conditions", []) if one["type"] == kind]
    return found[0] if found else {}


def degraded(kubectl: Kubectl, name: str = SAMPLE) -> dict[str, Any]:
    return condition(kubectl.json("get", "memcached", name), "Degraded")


def converged(kubectl: Kubectl, size: int, name: str = SAMPLE) -> Callable[[], bool]:
    """The Memcached's status names that many existing pods, and its conditions are good."""

    def check() -> bool:
        obj = kubectl.find("memcached", name)
        assert obj, f"no memcached {name}"
        status = obj.get("status", {})
        assert len(status.get("nodes", "none yet")) == size, status
        assert status["nodes"] == pods(kubectl, name), status
        assert status["readyReplicas"] == size, status
        assert status["observedGeneration"] == obj["metadata"]["generation"], status
        states = {one["type"]: one["status"] for one in status["conditions"]}
        assert states == {"Available": "True", "Progressing": "False", "Degraded": "False"}, status
        return True

    return check


def container(kubectl: Kubectl, name: str = SAMPLE) -> dict[str, Any]:
    (found,) = kubectl.json("get", "deployment", name)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def uid(kubectl: Kubectl, kind: str, name: str = SAMPLE) -> str:
    return str((kubectl.find(kind, name) or {"metadata": {"uid": ""}})["metadata"]["uid"])


def nothing_left(kubectl: Kubectl) -> bool:
    return not kubectl.json("get", "memcacheds,deployments,replicasets,pods")["items"]


def patch(kubectl: Kubectl, name: str = SAMPLE, **spec: Any) -> None:
    kubectl("patch", "memcached", name, "--type=merge", f"--patch={json.dumps({'spec': spec})}")


# --- the flows; together they need every rule of rbac.yaml ---


def walk(kubectl: Kubectl, sample: str = TUTORIAL["first"], size: int = 3) -> None:
    """The tutorial: create, patch to 2 and to 5, delete."""
    kubectl("apply", "--filename=-", stdin=sample)
    wait_until(converged(kubectl, size), deadline=60)
    for other in (2, 5):
        patch(kubectl, size=other)
        wait_until(converged(kubectl, other), deadline=60)
    kubectl("delete", "memcached", SAMPLE)
    wait_until(lambda: nothing_left(kubectl), deadline=COLLECTION_SECONDS)


def find_the_name_taken(kubectl: Kubectl) -> None:
    """A foreign Deployment stays unchanged, is reported once, and triggers the Memcached when it is deleted."""
    kubectl.create(deployment(SAMPLE))
    before = kubectl.json("get", "deployment", SAMPLE)
    kubectl.apply(memcached())
    text = f'Resource "{SAMPLE}" already exists and is not managed by Memcached'

    def told() -> bool:
        found = degraded(kubectl)
        assert (found.get("status"), found.get("reason"), found.get("message")) == ("True", "ErrResourceExists", text)
        events = kubectl.json("get", "events", "--field-selector=reason=ErrResourceExists")["items"]
        assert [(event["type"], event["message"], event.get("count", 1)) for event in events] == [("Warning", text, 1)]
        return True

    wait_until(told, deadline=60)
    after = kubectl.json("get", "deployment", SAMPLE)
    assert after["spec"] == before["spec"]
    assert after["metadata"].get("ownerReferences") == before["metadata"].get("ownerReferences")


def find_it_gone(kubectl: Kubectl) -> None:
    kubectl("delete", "deployment", SAMPLE)
    wait_until(converged(kubectl, 3), deadline=60)


def leave_the_replicas_to_an_autoscaler(kubectl: Kubectl) -> None:
    kubectl.apply(memcached())
    wait_until(converged(kubectl, 3), deadline=60)
    # Without metrics it never scales by itself: the test scales.
    kubectl("autoscale", f"deployment/{SAMPLE}", "--min=2", "--max=9", "--cpu=80%")
    words = f"HorizontalPodAutoscaler '{SAMPLE}'"
    wait_until(lambda: words in condition(kubectl.json("get", "memcached", SAMPLE))["message"])
    assert kubectl.json("get", "deployment", SAMPLE)["spec"]["replicas"] == 3, "leaving it out must not reset it"
    kubectl("scale", f"deployment/{SAMPLE}", "--replicas=5")
    patch(kubectl, size=1)
    wait_until(converged(kubectl, 5), deadline=60)


# --- the tutorial ---


@pytest.mark.parametrize(("which", "size"), [("first", 3), ("later", 1)])
@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_the_tutorials_walk(kubectl: Kubectl, which: str, size: int) -> None:
    walk(kubectl, TUTORIAL[which], size)


@pytest.mark.usefixtures("running")
def test_the_example_comes_to_rest_and_its_columns_tell(
    kubectl: Kubectl, ctrl: Ctrl, assert_rests: AssertRests
) -> None:
    kubectl("apply", "--filename=-", stdin=ctrl("example", "memcached").out)
    wait_until(converged(kubectl, 3), deadline=60)
    head, row = kubectl("get", "mc").splitlines()
    assert head.split() == ["NAME", "SIZE", "READY", "AVAILABLE", "AGE"]
    assert row.split()[:4] == [SAMPLE, "3", "3", "True"]
    kubectl("wait", "--for=condition=Available", f"memcached/{SAMPLE}", "--timeout=110s")
    assert_rests(seconds=10)


@pytest.mark.usefixtures("running")
def test_two_in_one_namespace_do_not_mix(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("one", 2), memcached("two", 3))
    wait_until(converged(kubectl, 2, "one"), deadline=60)
    wait_until(converged(kubectl, 3, "two"), deadline=60)
    kubectl("delete", "memcached", "one")
    wait_until(lambda: kubectl.find("deployment", "one") is None, deadline=COLLECTION_SECONDS)
    assert converged(kubectl, 3, "two")()


@pytest.mark.usefixtures("running")
def test_down_to_nothing_and_back(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    kubectl.apply(memcached(size=0))
    wait_until(converged(kubectl, 0), deadline=60)
    assert kubectl.json("get", "memcached", SAMPLE)["status"]["nodes"] == []
    for size in (2, 0):
        patch(kubectl, size=size)
        wait_until(converged(kubectl, size), deadline=60)
    assert_rests()


@pytest.mark.usefixtures("running")
def test_image_and_port_follow_whatever_the_image_is_called(kubectl: Kubectl) -> None:
    kubectl.apply(memcached(size=1))
    wait_until(converged(kubectl, 1), deadline=60)
    digest = "sha256:" + "0123456789abcdef" * 4
    for image in ("memcached", "localhost:5000/memcached", "localhost:5000/a/memcached:1.6", f"memcached@{digest}"):
        patch(kubectl, image=image, containerPort=11212)
        wait_until(lambda image=image: container(kubectl)["image"] == image)  # type: ignore[misc]
        wait_until(converged(kubectl, 1), deadline=60)
    assert container(kubectl)["command"][-2:] == ["-p", "11212"]
    assert [port["containerPort"] for port in container(kubectl)["ports"]] == [11212]
    kubectl("patch", "memcached", SAMPLE, "--type=json", '--patch=[{"op":"remove","path":"/spec/containerPort"}]')
    wait_until(lambda: [port["containerPort"] for port in container(kubectl)["ports"]] == [11211])
    assert "-p" not in container(kubectl)["command"]


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_nodes_follow_the_pods(kubectl: Kubectl) -> None:
    kubectl.apply(memcached())
    wait_until(converged(kubectl, 3), deadline=60)
    first = pods(kubectl)[0]
    kubectl("run", "alone", "--image=busybox:1", f"--labels=app=looks-alike,memcached_cr={SAMPLE}")
    kubectl("delete", "pod", first, "--wait=false")
    wait_until(lambda: first not in kubectl.json("get", "memcached", SAMPLE)["status"]["nodes"])
    wait_until(converged(kubectl, 3), deadline=60)
    # A failed pod is not a node any more; its ReplicaSet creates another one.
    failed = pods(kubectl)[0]
    kubectl("patch", "pod", failed, "--subresource=status", "--type=merge", '--patch={"status":{"phase":"Failed"}}')
    wait_until(lambda: failed not in kubectl.json("get", "memcached", SAMPLE)["status"]["nodes"])
    wait_until(converged(kubectl, 3), deadline=60)


# --- others have a say ---


@pytest.mark.usefixtures("running")
def test_f08_the_name_belongs_to_another_owner(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    find_the_name_taken(kubectl)
    assert_rests()
    find_it_gone(kubectl)


@pytest.mark.usefixtures("running")
def test_f31_drift_is_repaired_and_fields_of_others_stay(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    kubectl.apply(memcached())
    wait_until(converged(kubectl, 3), deadline=60)
    kubectl("label", "deployment", SAMPLE, "team=blue")
    kubectl("annotate", "deployment", SAMPLE, "note=kept")
    kubectl("set", "image", f"deployment/{SAMPLE}", "memcached=memcached:evil")
    kubectl("scale", f"deployment/{SAMPLE}", "--replicas=6")
    editor = Kubectl(kubectl.program, {**kubectl.env, "KUBE_EDITOR": "sed -i s/runAsUser:.*/runAsUser:\\ 0/"})
    editor("edit", "deployment", SAMPLE)

    def repaired() -> bool:
        found = kubectl.json("get", "deployment", SAMPLE)
        assert found["spec"]["replicas"] == 3
        assert container(kubectl)["image"] == "memcached:1.4.36-alpine"
        assert container(kubectl)["securityContext"]["runAsUser"] == 1001
        assert found["metadata"]["labels"] == {"team": "blue"}
        assert found["metadata"]["annotations"]["note"] == "kept"
        return True

    wait_until(repaired, deadline=60)
    wait_until(converged(kubectl, 3), deadline=60)
    assert_rests()


@pytest.mark.usefixtures("running")
def test_f31_a_deleted_deployment_comes_back(kubectl: Kubectl) -> None:
    kubectl.apply(memcached())
    wait_until(converged(kubectl, 3), deadline=60)
    first = uid(kubectl, "deployment")
    # With foreground deletion the pods go first, and the Deployment last; with background deletion it is the reverse.
    for cascade in ("background", "foreground"):
        kubectl("delete", "deployment", SAMPLE, f"--cascade={cascade}", "--wait=false")
        others = ("", first)
        wait_until(lambda others=others: uid(kubectl, "deployment") not in others, deadline=COLLECTION_SECONDS)  # type: ignore[misc]
        wait_until(converged(kubectl, 3), deadline=COLLECTION_SECONDS)
        first = uid(kubectl, "deployment")


@pytest.mark.usefixtures("running")
def test_f32_an_autoscaler_keeps_the_replicas(kubectl: Kubectl, assert_rests: AssertRests) -> None:
    leave_the_replicas_to_an_autoscaler(kubectl)
    assert_rests()
    kubectl("delete", "hpa", SAMPLE)
    wait_until(converged(kubectl, 1), deadline=60)


def test_f34_a_selector_that_is_there_is_kept(kubectl: Kubectl, ctrl: Ctrl, assert_rests: AssertRests) -> None:
    """Like one of later versions of the operator: no label names the owner of the pods."""
    kubectl.apply(memcached(size=2))
    labels = {"app.kubernetes.io/name": "memcached-operator", "app.kubernetes.io/version": "1.4.36-alpine"}
    kubectl.create(deployment(SAMPLE, kubectl.json("get", "memcached", SAMPLE), **labels))
    ctrl.started("run", "memcached")
    wait_until(converged(kubectl, 2), deadline=60)
    assert kubectl.json("get", "deployment", SAMPLE)["spec"]["selector"] == {"matchLabels": labels}
    assert degraded(kubectl)["reason"] == "SelectorKept"
    assert_rests()


# --- deletion, death and rights ---


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_f14_deletion_is_left_to_the_garbage_collector(
    kubectl: Kubectl, audit: Audit, namespace: str, cascade: str
) -> None:
    kubectl.apply(memcached())
    wait_until(converged(kubectl, 3), deadline=60)
    mark = audit.mark()
    kubectl("delete", "memcached", SAMPLE, f"--cascade={cascade}", timeout=COLLECTION_SECONDS)
    if cascade == "orphan":
        assert len(pods(kubectl)) == 3
    else:
        wait_until(lambda: nothing_left(kubectl), deadline=COLLECTION_SECONDS)
    assert [one for one in audit.writes(mark, namespace=namespace) if one.resource == "deployments.apps"] == []


@pytest.mark.usefixtures("running")
@pytest.mark.real
def test_f11_recreated_before_collection(kubectl: Kubectl) -> None:
    kubectl.apply(memcached())
    wait_until(converged(kubectl, 3), deadline=60)
    before = uid(kubectl, "deployment")
    kubectl("delete", "memcached", SAMPLE, "--wait=false")
    kubectl.apply(memcached(size=2))
    wait_until(converged(kubectl, 2), deadline=COLLECTION_SECONDS)
    assert uid(kubectl, "deployment") != before


def test_it_can_be_deleted_without_a_controller(kubectl: Kubectl, ctrl: Ctrl) -> None:
    kubectl.apply(memcached())
    assert ctrl("run", "memcached", "--until-idle", "--timeout=2m", timeout=150).code == 0
    assert converged(kubectl, 3)()
    kubectl("delete", "memcached", SAMPLE)
    wait_until(lambda: nothing_left(kubectl), deadline=COLLECTION_SECONDS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.real
def test_f02_killed_at_any_moment_and_started_again_it_ends_the_same(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str, seed: int
) -> None:
    """SIGKILL after a seeded number of calls, three times, while Memcacheds are created, changed and deleted."""
    dice = random.Random(seed)
    names = [f"cache-{at}" for at in range(4)]
    sizes = dict.fromkeys(names, 1)
    kubectl.apply(*(memcached(name, size) for name, size in sizes.items()))
    for _ in range(3):
        ctrl.started("run", "memcached").kill_after_calls(dice.randint(1, 30), audit, namespace)
        name = dice.choice(names)
        sizes[name] = dice.randint(0, 3)
        kubectl.apply(memcached(name, sizes[name]), memcached("late"))
        kubectl("delete", "memcached", "late", "--wait=false")
    ctrl.started("run", "memcached")
    for name, size in sizes.items():
        wait_until(converged(kubectl, size, name), deadline=90)
    wait_until(lambda: len(kubectl.json("get", "deployments")["items"]) == len(names), deadline=COLLECTION_SECONDS)
    AssertRests(ctrl, audit, namespace)()


def test_a_restart_at_rest_writes_nothing(kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str) -> None:
    kubectl.apply(*(memcached(f"cache-{at}", at, containerPort=11211 + at) for at in range(4)))
    assert ctrl("run", "memcached", "--until-idle", "--timeout=2m", timeout=150).code == 0
    mark = audit.mark()
    assert ctrl("run", "memcached", "--until-idle", "--timeout=2m", timeout=150).code == 0
    assert audit.writes(mark, namespace=namespace) == []


def test_its_own_rights_are_enough(kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str) -> None:
    account = f"system:serviceaccount:{namespace}:controller"
    kubectl("apply", f"--filename={MANIFESTS / 'rbac.yaml'}")
    kubectl("create", "serviceaccount", "controller")
    bound = ("--clusterrole=kubectl-ctrl-memcached", f"--serviceaccount={namespace}:controller")
    kubectl("create", "rolebinding", "controller", *bound)
    granted_by_now(kubectl, account, "create", "events")
    owner_known_by_now(kubectl, account, memcached(), deployment("probe"))
    mark = audit.mark()
    ctrl.started("run", "memcached", f"--as={account}")
    find_the_name_taken(kubectl)
    find_it_gone(kubectl)
    leave_the_replicas_to_an_autoscaler(kubectl)
    kubectl("delete", "hpa,memcached", SAMPLE)
    wait_until(lambda: nothing_left(kubectl), deadline=COLLECTION_SECONDS)
    walk(kubectl)
    # The command looks for the namespace of install, and works without it.
    asked = [one for one in audit.requests(mark, namespace=namespace) if one.resource != "namespaces"]
    assert [one for one in asked if one.code in (401, 403)] == []
