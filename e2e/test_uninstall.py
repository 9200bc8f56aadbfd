"""`uninstall` on a real API server: what it deletes and in which order, what stays, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.ctrl import Ctrl, Started
from e2e.kube import COLLECTION_SECONDS, Audit, Kubectl, manifest, wait_until
from e2e.sample import Sample, delete_sample, write_sample

OURS = "guard.example.com/hold"
THEIRS = "backup.example.com/hold"


@pytest.fixture
def made(tmp_path: Path, namespace: str, kubectl: Kubectl, ctrl: Ctrl) -> Iterator[Sample]:
    """An installed controller."""
    made = write_sample(tmp_path / "mine", namespace.rpartition("-")[2])
    ctrl("install", made.path).checked()
    yield made
    delete_sample(made, kubectl, ctrl)


def gone(made: Sample) -> list[str]:
    """The output of uninstall about rights and the namespace, in its order."""
    _, space, account, cluster_role, role, cluster_binding, binding = made.lines
    return [f"{line} deleted" for line in (cluster_binding, binding, cluster_role, role, account, space)]


def held(made: Sample, kubectl: Kubectl, name: str) -> bool:
    found = kubectl.find(made.crd, name)
    return bool(found) and OURS in found["metadata"].get("finalizers", [])


@pytest.fixture
def running(ctrl: Ctrl, made: Sample, kubectl: Kubectl) -> Started:
    """The controller runs, and protects one Thing."""
    started = ctrl.started("run", made.path)
    kubectl.create(made.thing("one"))
    wait_until(lambda: held(made, kubectl, "one"), what="the controller holds it")
    return started


def free(made: Sample, kubectl: Kubectl, name: str) -> None:
    kubectl("patch", made.crd, name, "--type=merge", '--patch={"metadata":{"finalizers":null}}')


# By default.


def test_rights_go_and_the_crd_stays_with_its_objects(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    kubectl.create(made.thing("one"))
    assert ctrl("uninstall", made.path).checked().out.splitlines() == gone(made)
    assert made.remains(kubectl) == [made.lines[0]]
    assert kubectl.find(made.crd, "one")
    assert kubectl.find("namespace", made.system) is None
    again = ctrl("uninstall", made.path).checked()
    assert again.out == ""
    assert again.err.splitlines() == [
        f"{made.name}: {made.lines[0]} is kept with its objects; --crds=delete deletes both",
        f"{made.name}: nothing else is installed",
    ]
    assert ctrl("install", made.path).checked().out.splitlines()[0] == f"{made.lines[0]} unchanged"


def test_objects_that_have_its_finalizer_are_counted(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, running: Started
) -> None:
    kubectl.create(made.thing("theirs", THEIRS))
    wait_until(lambda: held(made, kubectl, "theirs"))
    ran = ctrl("uninstall", made.path).checked()
    assert f"{made.name}: 2 objects have its finalizer, and cannot be deleted while it does not run" in ran.err
    # It runs with the rights of its user, so it continues.
    assert f"it also runs as process {running.process.pid} on this machine" in ran.err
    assert running.process.poll() is None


def test_foreign_objects_stay(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    marks = dict(part.split("=") for part in made.selector.split(","))
    role = made.manifest("rbac")
    role["metadata"] = {"name": f"{made.account}-extra", "labels": marks}
    kubectl.apply(role)
    kubectl("create", "configmap", "notes", f"-n={made.system}")
    ran = ctrl("uninstall", made.path).checked()
    assert (
        f"clusterrole.rbac.authorization.k8s.io/{made.account}-extra is kept: it has the labels of install" in ran.err
    )
    assert f"namespace/{made.system} is kept: it contains configmaps {made.system}/notes" in ran.err
    assert ran.out.splitlines() == gone(made)[:-1]
    kubectl("delete", "configmap", "notes", f"-n={made.system}")
    assert ctrl("uninstall", made.path).checked().out.splitlines() == gone(made)[-1:]
    assert kubectl.find("clusterrole", f"{made.account}-extra")


def test_the_namespace_stays_while_a_lease_in_it_is_held(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    running = ctrl.started("run", made.path, "--leader-elect")
    kubectl.create(made.thing("one"))
    wait_until(lambda: held(made, kubectl, "one"), what="it leads, and works")
    ran = ctrl("uninstall", made.path).checked()
    assert ran.out.splitlines() == gone(made)[:-1]
    assert f"namespace/{made.system} is kept: a run uses it: lease {made.system}/" in ran.err
    assert running.stop() == 0
    assert ctrl("uninstall", made.path).checked().out.splitlines() == gone(made)[-1:]


def test_a_deployment_that_runs_it_is_named_and_left_alone(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    kubectl.apply(_runner(made, "runner"))
    ran = ctrl("uninstall", made.path).checked()
    assert ran.out.splitlines() == gone(made)[:-1]
    assert f"it also runs as Deployment {made.system}/runner" in ran.err
    assert f"namespace/{made.system} is kept: it contains " in ran.err
    assert f"deployments.apps {made.system}/runner" in ran.err
    assert kubectl.find("deployment", "runner", f"-n={made.system}")


def test_the_managed_deployment_is_deleted_with_the_crds(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    kubectl.apply(_runner(made, "theirs"))
    ours = ("--server-side", "--field-manager=kubectl-ctrl-install", "--filename=-")
    kubectl("apply", *ours, stdin=manifest(_runner(made, "runner")))
    kubectl("rollout", "status", "deployment/runner", f"-n={made.system}", "--timeout=110s")
    # uninstall waits 45 seconds for the garbage collector, which may pause for longer after another test's CRD has
    # disappeared: wait until it works.
    kubectl.apply(_deployment("probe", made.system, {}))
    probe = ("deployment/probe", f"-n={made.system}", "--cascade=foreground")
    kubectl("delete", *probe, timeout=COLLECTION_SECONDS)
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes").checked()
    assert ran.out.splitlines()[0] == "deployment.apps/runner deleted"
    assert f"it also runs as Deployment {made.system}/theirs" in ran.err
    assert kubectl.find("deployment", "runner", f"-n={made.system}") is None
    assert kubectl.find("deployment", "theirs", f"-n={made.system}")


def _runner(made: Sample, name: str) -> dict[str, Any]:
    """A Deployment with the labels of one that install created."""
    marks = dict(part.split("=") for part in made.selector.split(","))
    return _deployment(name, made.system, {**marks, "app.kubernetes.io/component": "controller"})


def _deployment(name: str, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


@pytest.mark.parametrize("where", ["client", "server"])
def test_a_dry_run_deletes_nothing(ctrl: Ctrl, kubectl: Kubectl, made: Sample, audit: Audit, where: str) -> None:
    kubectl.create(made.thing("one"))
    mark = audit.mark()
    ran = ctrl("uninstall", made.path, "--crds=delete", f"--dry-run={where}").checked()
    note = "(dry run)" if where == "client" else "(server dry run)"
    assert [line for line in ran.out.splitlines() if "binding" in line] == [f"{line} {note}" for line in gone(made)[:2]]
    assert f"{made.lines[0]} deleted {note}" in ran.out
    if where == "client":
        assert audit.writes(mark) == []
    # A delete has the dry run in its body, which the audit log does not show.
    assert made.remains(kubectl) == sorted(made.lines)
    assert [kubectl.json("get", line)["metadata"].get("deletionTimestamp") for line in made.lines[:2]] == [None, None]


def test_without_arguments_it_lists_the_installed_controllers(ctrl: Ctrl) -> None:
    ran = ctrl("uninstall")
    assert ran.code == 2
    assert "next: the bundled controllers are: foo" in ran.err


# With the CRDs.


def test_without_yes_it_prints_the_plan_and_does_nothing(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, namespace: str, audit: Audit
) -> None:
    kubectl.create(made.thing("one"), made.thing("two"))
    mark = audit.mark()
    ran = ctrl("uninstall", made.path, "--crds=delete")
    assert ran.code == 6
    first = f"{made.lines[0]} would be deleted, with 2 objects: 2 in namespace {namespace}"
    assert ran.out.splitlines()[0] == first
    assert f"clusterrole.rbac.authorization.k8s.io/{made.account} would be deleted" in ran.out
    # It continues with the same cluster, even if current-context changes.
    context = kubectl("config", "current-context").strip()
    assert f"CRDs and all their objects would be deleted on context '{context}', server https://127.0.0.1:" in ran.err
    assert f"next: kubectl ctrl uninstall {made.path} --crds=delete --context={context} --yes" in ran.err
    assert audit.writes(mark) == []


@pytest.mark.real
def test_objects_then_controller_then_rights_then_crds(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, running: Started, audit: Audit
) -> None:
    mark = audit.mark()
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes").checked()
    told = ran.out.splitlines()
    assert told[0].startswith(f"{made.crd}: 1 object")
    assert told[1:] == [*gone(made), f"{made.lines[0]} deleted"]
    assert running.wait() == 0, "It was asked to stop, and stopped well."
    assert made.remains(kubectl) == []
    deletes = [one for one in audit.writes(mark) if one.verb == "delete"]
    assert [deletes[0].resource, deletes[-1].resource] == [
        made.crd,
        "customresourcedefinitions.apiextensions.k8s.io",
    ]
    removals = [one for one in audit.writes(mark) if one.verb == "patch" and one.resource == made.crd]
    assert removals, "The controller itself took its finalizer away."


def test_finalizers_that_no_controller_would_remove_are_named_and_refused(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, running: Started, namespace: str
) -> None:
    running.stop()
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes")
    assert ran.code == 6
    assert f"{made.name} does not run, and 1 object cannot be deleted without it" in ran.err
    assert f"{made.crd} {namespace}/one has {OURS} (set by kubectl-ctrl-{made.name})" in ran.err
    assert "next: --drain-with-run" in ran.err
    assert made.remains(kubectl) == sorted(made.lines)
    assert held(made, kubectl, "one")
    assert "deletionTimestamp" not in kubectl.find(made.crd, "one")["metadata"]
    ctrl("uninstall", made.path, "--crds=delete", "--yes", "--drain-with-run").checked()
    assert made.remains(kubectl) == []


@pytest.mark.real
def test_f56_objects_with_foreign_finalizers_are_named_and_everything_else_stays(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, running: Started, namespace: str
) -> None:
    kubectl.create(made.thing("two", THEIRS))
    wait_until(lambda: held(made, kubectl, "two"))
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes", "--drain=10s")
    assert ran.code == 124
    assert f"{made.name}: 1 still finalizing" in ran.err
    assert f"{made.crd} {namespace}/two: {THEIRS} (set by kubectl-create)" in ran.err
    assert "1 object was not deleted within 10s" in ran.err
    assert kubectl.find(made.crd, "one") is None, "The others proceed."
    assert running.process.poll() is None
    assert made.remains(kubectl) == sorted(made.lines)
    assert kubectl.find(made.crd, "two")["metadata"]["finalizers"] == [THEIRS], "Nothing is stripped."
    free(made, kubectl, "two")
    ctrl("uninstall", made.path, "--crds=delete", "--yes").checked()
    assert made.remains(kubectl) == []


def test_a_finalizer_in_the_domain_of_its_crd_is_its_own(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    kubectl.create(made.thing("restored", f"{made.group}/guard"))
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes")
    assert ran.code == 6
    assert f"{made.group}/guard (set by kubectl-create)" in ran.err


# Interruptions, and two at once.


@pytest.mark.real
def test_killed_at_any_step_it_ends_the_same(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    words = ("uninstall", made.path, "--crds=delete", "--yes")
    for step in range(1, len(made.lines) + 2):
        ctrl("install", made.path).checked()
        kubectl.create(made.thing("one"))
        ctrl.killed_after_lines(step, *words)
        ctrl(*words).checked()
        assert made.remains(kubectl) == [], step
        wait_until(lambda: kubectl.find("namespace", made.system) is None)


@pytest.mark.real
def test_two_at_once(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    both = [ctrl.started("uninstall", made.path, "--crds=delete", "--yes") for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0], [one.output() for one in both]
    assert made.remains(kubectl) == []


# The cleanup.


def test_podcount_removes_its_labels(ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(_deployment("web", namespace, {}))
    kubectl("rollout", "status", "deployment/web", "--timeout=110s")
    running = ctrl.started("run", "podcount")

    def counts() -> list[str]:
        return [one["metadata"].get("labels", {}).get("pod-count", "") for one in kubectl.json("get", "rs")["items"]]

    wait_until(lambda: counts() == ["1"])
    ctrl("install", "podcount").checked()
    refused = ctrl("uninstall", "podcount", "--clean")
    assert refused.code == 6
    assert "podcount still runs, and would repeat what its cleanup reverts: process" in refused.err
    running.stop()
    ran = ctrl("uninstall", "podcount", "--clean").checked()
    assert "podcount: cleaned" in ran.err
    assert counts() == [""]
    assert kubectl.find("namespace", "podcount-system") is None


def test_a_controller_without_a_cleanup_is_reported(ctrl: Ctrl, made: Sample) -> None:
    ran = ctrl("uninstall", made.path, "--clean").checked()
    assert f"{made.name}: it has no cleanup" in ran.err
    assert ran.out.splitlines() == gone(made)


def test_a_process_that_runs_others_too_is_not_stopped(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    running = ctrl.started("run", made.path, "podcount")
    kubectl.create(made.thing("one"))
    wait_until(lambda: held(made, kubectl, "one"))
    plan = ctrl("uninstall", made.path, "--crds=delete")
    assert plan.code == 6
    assert f"process {running.process.pid} on this machine" in plan.out
    assert "must be stopped first: it also runs podcount" in plan.out
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes")
    assert ran.code == 6
    assert f"runs {made.name} and also podcount, which would stop too" in ran.err
    assert running.process.poll() is None
    assert kubectl.find(made.crd, "one")


def test_the_command_to_repeat_names_the_same_cluster(ctrl: Ctrl, kubeconfig: Path, made: Sample) -> None:
    which = f"--kubeconfig={kubeconfig} --drain=90s --cluster={_first_cluster(kubeconfig)}"
    ran = ctrl("uninstall", made.path, "--crds=delete", *which.split())
    assert ran.code == 6
    context = yaml.safe_load(kubeconfig.read_text())["current-context"]
    again = f"kubectl ctrl uninstall {made.path} --crds=delete {which} --context={context} --yes"
    assert ran.err.splitlines()[-1] == f"next: {again}"


def _first_cluster(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["name"])


def test_objects_out_of_reach_of_every_runner_are_refused(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, running: Started, namespace: str
) -> None:
    meta = {"name": "far", "namespace": "default", "finalizers": [f"{made.group}/guard"]}
    kubectl.create({**made.thing("far"), "metadata": meta})
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes")
    assert ran.code == 6
    assert f"{made.crd} default/far has" in ran.err
    assert f"{namespace}/one" not in ran.err, "The runner of this namespace finishes with that one."
    assert kubectl.find(made.crd, "one")
    assert running.process.poll() is None


@pytest.mark.parametrize("how", [[], ["--drain-with-run"]])
def test_ctrl_c_while_it_waits_leaves_everything_in_place(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, how: list[str]
) -> None:
    kubectl.create(made.thing("one", THEIRS))
    words = ("uninstall", made.path, "--crds=delete", "--yes", *how)
    waiting = ctrl.started(*words)
    waiting.line("1 still finalizing")
    assert waiting.stop() == 130
    assert made.remains(kubectl) == sorted(made.lines)
    assert kubectl.find(made.crd, "one")["metadata"]["finalizers"][0] == THEIRS
    free(made, kubectl, "one")
    ctrl(*words).checked()
    assert made.remains(kubectl) == []
