"""A controller that also runs in the cluster: refused, or taken over and given back, even if the run is killed."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from e2e.crds import install_crd
from e2e.ctrl import Ctrl, Started
from e2e.kube import COLLECTION_SECONDS, Audit, Cluster, Kubectl, run, wait_until
from e2e.test_foo import converged, deployment, foo

TAKEN = "kubectl-ctrl/taken-over"
NAME = "kubectl-ctrl-foo"
ELSEWHERE = "another-machine.12345678.1_77_r000"


@pytest.fixture(autouse=True)
def _crd(kubectl: Kubectl) -> None:
    install_crd(kubectl, "foo")


@pytest.fixture(autouse=True)
def in_cluster(kubectl: Kubectl) -> Iterator[None]:
    """A Deployment of install with two running replicas, deleted before the next test."""
    labels = {
        "app.kubernetes.io/managed-by": "kubectl-ctrl",
        "app.kubernetes.io/name": "foo",
        "app.kubernetes.io/component": "controller",
    }
    body = deployment(NAME, 2)
    body["metadata"]["labels"] = labels
    kubectl.apply(body)
    kubectl("rollout", "status", f"deployment/{NAME}")
    yield
    kubectl(
        "delete", "deployment", NAME, "--ignore-not-found", "--cascade=foreground", "--wait", timeout=COLLECTION_SECONDS
    )


def replicas(kubectl: Kubectl) -> int:
    count: int = kubectl.json("get", "deployment", NAME)["spec"]["replicas"]
    return count


def annotation(kubectl: Kubectl) -> dict[str, Any]:
    found = kubectl.json("get", "deployment", NAME)["metadata"].get("annotations", {})
    fields: dict[str, Any] = json.loads(found.get(TAKEN, "{}"))
    return fields


def pods(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "pods", f"--selector=foreign={NAME}", "--output=name").split()


def restored(kubectl: Kubectl, count: int = 2) -> None:
    assert replicas(kubectl) == count
    assert annotation(kubectl) == {}


def working(kubectl: Kubectl, running: Started, name: str = "web") -> Started:
    """Wait until it has reconciled, so that its start is over."""
    kubectl.apply(foo(name))
    wait_until(converged(kubectl, name, 1), deadline=60, what=f"{name} of {running!r}\n{running.output()}")
    return running


def test_it_is_refused_beside_a_deployment_with_the_next_step(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str
) -> None:
    kubectl.apply(foo("web"))
    mark = audit.mark()
    ran = ctrl("run", "foo")
    assert ran.code == 6
    assert f"Deployment {namespace}/{NAME}" in ran.err or f"deployments.apps {namespace}/{NAME}" in ran.err
    assert "(2 replicas)" in ran.err
    assert "kubectl ctrl run foo --takeover" in ran.err
    assert audit.writes(mark, namespace=namespace) == []


def test_a_deployment_with_zero_replicas_is_no_obstacle(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl("scale", "deployment", NAME, "--replicas=0")
    kubectl.apply(foo("web"))
    ctrl("run", "foo", "--once").checked()


@pytest.mark.real
def test_a_takeover_waits_for_the_pods_and_restores_the_replicas_at_the_end(ctrl: Ctrl, kubectl: Kubectl) -> None:
    kubectl.apply(foo("web"))
    running = ctrl.started("run", "foo", "--takeover")
    first = wait_until(lambda: running.out, what="the first attempt")
    assert first
    assert pods(kubectl) == [], "It worked while the other one still ran."
    assert replicas(kubectl) == 0
    assert annotation(kubectl)["replicas"] == 2
    assert f"_{running.process.pid}_" in annotation(kubectl)["holder"]
    assert running.stop() == 0
    restored(kubectl)


def test_the_command_that_is_printed_first_restores_the_replicas_by_hand(
    ctrl: Ctrl, kubectl: Kubectl, cluster: Cluster
) -> None:
    running = working(kubectl, ctrl.started("run", "foo", "--takeover"))
    line = running.line("By hand: ").partition("By hand: ")[2].split(" (deployment=")[0]
    running.kill()
    words = shlex.split(line)
    assert words[0] == "kubectl"
    run(cluster.programs / "kubectl", *words[1:], env=kubectl.env).checked()
    restored(kubectl)


def test_a_failed_run_restores_the_replicas(ctrl: Ctrl, kubectl: Kubectl) -> None:
    ran = ctrl("run", "foo", "--takeover", "--until", "foo/none=create", "--timeout=10s")
    assert ran.code == 124
    restored(kubectl)


def test_a_run_that_is_stopped_while_it_waits_restores_the_replicas(ctrl: Ctrl, kubectl: Kubectl) -> None:
    (one, *_) = pods(kubectl)
    kubectl("patch", one, "--type=merge", "--patch", '{"metadata":{"finalizers":["example.com/held"]}}')
    try:
        running = ctrl.started("run", "foo", "--takeover")
        running.line("Waiting until its pods are gone")
        assert running.stop() == 0
        restored(kubectl)
        assert running.out == []
    finally:
        kubectl("patch", one, "--type=merge", "--patch", '{"metadata":{"finalizers":null}}')


def test_a_second_ctrl_c_restores_the_replicas(ctrl: Ctrl, kubectl: Kubectl) -> None:
    running = working(kubectl, ctrl.started("run", "foo", "--takeover"))
    running.signal(2)
    running.signal(2)
    assert running.wait() in (0, 130)
    restored(kubectl)


@pytest.mark.real
def test_after_a_kill_the_next_run_restores_it_and_is_refused(ctrl: Ctrl, kubectl: Kubectl) -> None:
    working(kubectl, ctrl.started("run", "foo", "--takeover")).kill()
    assert replicas(kubectl) == 0
    listed = ctrl.answered("list").checked()
    assert f"{NAME} was scaled to zero by process " in listed.err
    assert "its next run, or --takeover, restores it" in listed.err
    ran = ctrl("run", "foo")
    assert ran.code == 6
    assert "not restored" in ran.err
    assert "kubectl ctrl run foo --takeover" in ran.err
    restored(kubectl)


def test_after_a_kill_the_next_takeover_keeps_the_original_count(ctrl: Ctrl, kubectl: Kubectl) -> None:
    working(kubectl, ctrl.started("run", "foo", "--takeover")).kill()
    second = working(kubectl, ctrl.started("run", "foo", "--takeover"), "second")
    assert annotation(kubectl)["replicas"] == 2
    assert f"_{second.process.pid}_" in annotation(kubectl)["holder"]
    assert second.stop() == 0
    restored(kubectl)


def test_a_count_that_a_user_sets_meanwhile_wins(ctrl: Ctrl, kubectl: Kubectl) -> None:
    running = working(kubectl, ctrl.started("run", "foo", "--takeover"))
    kubectl("scale", "deployment", NAME, "--replicas=1")
    assert running.stop() == 0
    restored(kubectl, 1)
    assert "keeps the replicas that somebody else set" in running.output()


def test_a_takeover_of_another_machine_is_respected(ctrl: Ctrl, kubectl: Kubectl, audit: Audit, namespace: str) -> None:
    note = json.dumps({"holder": ELSEWHERE, "replicas": 3, "since": "2026-01-01T00:00:00Z"})
    patch = {"metadata": {"annotations": {TAKEN: note}}, "spec": {"replicas": 0}}
    kubectl("patch", "deployment", NAME, "--type=merge", "--patch", json.dumps(patch))
    for flags in ((), ("--takeover",)):
        mark = audit.mark()
        ran = ctrl("run", "foo", *flags)
        assert ran.code == 6
        assert ELSEWHERE in ran.err
        assert "--takeover --yes" in ran.err
        assert audit.writes(mark, namespace=namespace) == []
    ctrl("run", "foo", "--takeover", "--yes", "--once").checked()
    restored(kubectl, 3)


def test_a_dead_run_whose_pid_was_reused_can_be_continued(ctrl: Ctrl, kubectl: Kubectl) -> None:
    running = working(kubectl, ctrl.started("run", "foo", "--takeover"))
    running.kill()
    holder = annotation(kubectl)["holder"].replace(f"_{running.process.pid}_", f"_{os.getpid()}_")
    note = json.dumps({"holder": holder, "replicas": 2, "since": "2026-01-01T00:00:00Z"})
    kubectl("annotate", "deployment", NAME, "--overwrite", f"{TAKEN}={note}")
    ran = ctrl("run", "foo", "--once")
    assert ran.code == 6
    assert "if it is gone:" in ran.err
    ctrl("run", "foo", "--takeover", "--yes", "--once").checked()
    restored(kubectl)


def test_another_run_on_this_machine_is_not_replaced(ctrl: Ctrl, kubectl: Kubectl) -> None:
    first = working(kubectl, ctrl.started("run", "foo", "--takeover"))
    ran = ctrl("run", "foo", "--takeover", "--yes", "--namespace=default")
    assert ran.code == 6
    assert f"process {first.process.pid} on this machine" in ran.err
    assert first.stop() == 0
    restored(kubectl)


def test_two_takeovers_at_once_are_one(ctrl: Ctrl, kubectl: Kubectl) -> None:
    """The loser of the race for the Deployment is refused, or finds the other run on this machine."""
    both = [ctrl.started("run", "foo", "--takeover", f"--namespace={one}") for one in ("default", "kube-public")]
    wait_until(lambda: any(one.process.poll() is not None for one in both), what="one of them is refused")
    (loser,) = (one for one in both if one.process.poll() is not None)
    (winner,) = (one for one in both if one is not loser)
    assert loser.wait() == 6, loser.output()
    wait_until(lambda: replicas(kubectl) == 0, what=f"{winner!r} has its place")
    assert winner.stop() == 0
    restored(kubectl)
