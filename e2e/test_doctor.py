"""`doctor` on real Kubernetes: a healthy cluster, missing rights, and leftovers of crashes, found and deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.conftest import SESSION
from e2e.ctrl import Ctrl
from e2e.kube import REALKUBE, Audit, Cluster, Kubectl, Ran, run, wait_until
from e2e.test_foo import converged, deployment, foo
from e2e.user import never_ready

pytestmark = pytest.mark.xdist_group("test_doctor")  # They share a cluster.

NAME = "kubectl-ctrl-foo"


@pytest.fixture(scope="module")
def cluster(programs: Path, plain_env: Mapping[str, str]) -> Iterator[Cluster]:
    """The file's own cluster: doctor reports everything in a cluster, also the objects of other files."""
    name = f"{SESSION}-doctor"
    run(REALKUBE, "up", name, "--nodes=1", env=plain_env, timeout=300).checked()
    yield Cluster.shown(name, plain_env)
    run(REALKUBE, "down", name, env=plain_env).checked()


def document(ran: Ran) -> Any:
    assert ran.out, ran.err
    return json.loads(ran.out)


def told(ran: Ran, check: str) -> list[dict[str, Any]]:
    """The lines of one check."""
    return [one for one in document(ran)["checks"] if one["check"] == check]


def repairs(ran: Ran) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(ran)["repairs"]
    return found


@pytest.mark.real
def test_a_healthy_cluster_is_well_in_every_line_and_nothing_is_written(
    ctrl: Ctrl, kubectl: Kubectl, audit: Audit, cluster: Cluster, namespace: str
) -> None:
    ctrl("install", "foo").checked()
    mark = audit.mark()
    ran = ctrl.answered("doctor", "--output=json").checked()
    found = document(ran)
    assert found["exitCode"] == 0
    assert [one for one in found["checks"] if one["state"] == "fail"] == []
    (context,) = told(ran, "context")
    assert context["state"] == "ok"
    assert f"context {cluster.context} answers at https://127.0.0.1:" in context["text"]
    assert kubectl("auth", "whoami", "--output=jsonpath={.status.userInfo.username}") in context["text"]
    assert told(ran, "skew")[0]["state"] == "ok"
    assert told(ran, "kwok")[0]["state"] == "ok"
    assert told(ran, "foo")[0]["text"] == f"foo is installed, and you have all its rights in namespace {namespace}"
    assert "local cluster" in told(ran, "guard")[0]["text"]
    assert told(ran, "crds")[0]["state"] == "ok"
    written = [one for one in audit.writes(mark) if "reviews" not in one.resource]
    assert written == []
    plain = ctrl.answered("doctor").checked()
    assert plain.err == ""
    assert "The cluster\n" in plain.out


def account(kubectl: Kubectl, namespace: str, folder: Path) -> Path:
    """The kubeconfig of a ServiceAccount without any right."""
    kubectl("create", "serviceaccount", "nobody")
    token = kubectl("create", "token", "nobody").strip()
    content = yaml.safe_load(Path(kubectl.env["KUBECONFIG"]).read_text())
    content["users"][0]["user"] = {"token": token}
    path = folder / "nobody"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.real
def test_rights_that_are_lacking_are_named_and_can_be_had(
    ctrl: Ctrl, kubectl: Kubectl, namespace: str, env: Mapping[str, str], tmp_path: Path
) -> None:
    ctrl("install", "foo").checked()
    config = account(kubectl, namespace, tmp_path)
    nobody = Ctrl({**env, "KUBECONFIG": str(config)}, tmp_path)
    ran = nobody.answered("doctor", "--output=json")
    assert ran.code == 7
    user = f"system:serviceaccount:{namespace}:nobody"
    assert told(ran, "context")[0]["text"].endswith(f"your user is {user}")
    (line,) = told(ran, "foo")
    assert f"foo run by {user} lacks rights in namespace {namespace}: create events" in line["text"]
    assert told(ran, "cluster")[0]["text"].startswith("not everything can be checked with these credentials: ")
    # Its suggested command prints the missing rights.
    role = ctrl("rbac", "foo").checked().out
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{NAME}-{namespace}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": namespace}],
    }
    assert f"name: {NAME}" in role
    kubectl.apply(bound)
    # The API server applies changed roles and bindings a moment later.
    wait_until(
        lambda: told(nobody.answered("doctor", "--output=json"), "foo")[0]["state"] == "ok", what="what was bound"
    )
    assert nobody.answered("doctor").code == 0


def test_a_changed_role_is_a_failure(ctrl: Ctrl, kubectl: Kubectl) -> None:
    ctrl("install", "foo").checked()
    kubectl("patch", "clusterrole", NAME, "--type=json", '--patch=[{"op":"remove","path":"/rules/0"}]')
    ran = ctrl.answered("doctor", "--output=json")
    assert ran.code == 7
    (line,) = [one for one in told(ran, "foo") if "ServiceAccount" in one["text"]]
    assert line["command"] == "kubectl ctrl install foo --force-conflicts"
    ctrl(*line["command"].split()[2:]).checked()
    assert ctrl.answered("doctor").code == 0
    kubectl("delete", "clusterrolebinding", NAME)
    ran = ctrl.answered("doctor", "--output=json")
    assert (ran.code, told(ran, "foo")[0]["command"]) == (8, "kubectl ctrl install foo")


@pytest.mark.real
def test_an_old_stored_version_is_reported_with_the_command_that_migrates_it(
    ctrl: Ctrl, kubectl: Kubectl, tmp_path: Path
) -> None:
    # kubectl's cache of the served versions would mislead the tests after this one.
    kubectl = Kubectl(kubectl.program, {**kubectl.env, "KUBECACHEDIR": str(tmp_path / "cache")})
    ctrl("install", "foo").checked()
    crd = "foos.samplecontroller.k8s.io"
    kubectl.apply(foo("web"))
    known = kubectl.json("get", "crd", crd)["spec"]["versions"]
    newer = {**known[0], "name": "v9", "storage": True, "served": True}
    versions = [{**known[0], "storage": False}, newer]
    patch = json.dumps({"spec": {"versions": versions}})
    kubectl("patch", "crd", crd, "--type=merge", f"--patch={patch}")
    try:
        wait_until(lambda: kubectl.try_("get", "foos.v9.samplecontroller.k8s.io").code == 0, what="v9 is served")
        ran = ctrl.answered("doctor", "--output=json")
        (line,) = told(ran, "crds")
        assert (ran.code, line["state"]) == (0, "warn")
        mended = run_line(line["command"], kubectl)
        assert mended.code == 0, mended.err
        assert kubectl.json("get", "crd", crd)["status"]["storedVersions"] == ["v9"]
        assert told(ctrl.answered("doctor", "--output=json"), "crds")[0]["state"] == "ok"
    finally:
        kubectl("delete", "foos.samplecontroller.k8s.io", "--all", "--all-namespaces")
        kubectl("delete", "crd", crd, "--wait")


def run_line(line: str, kubectl: Kubectl) -> Ran:
    """A line of `next:`, as a user copies it into a shell."""
    return run("sh", "-c", line, env=kubectl.env)


# Leftovers of crashes.


def test_the_remains_of_a_takeover_are_found_and_fixed(ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> None:
    ctrl("install", "foo").checked()
    body = deployment(NAME, 2)
    body["metadata"]["labels"] = {
        "app.kubernetes.io/managed-by": "kubectl-ctrl",
        "app.kubernetes.io/name": "foo",
        "app.kubernetes.io/component": "controller",
    }
    kubectl.apply(body)
    kubectl("rollout", "status", f"deployment/{NAME}")
    try:
        running = ctrl.started("run", "foo", "--takeover")
        kubectl.apply(foo("web"))
        wait_until(converged(kubectl, "web", 1), what="web")
        assert told(ctrl.answered("doctor", "--output=json"), "takeovers") == [], "It runs, so nothing is wrong."
        running.kill()
        ran = ctrl.answered("doctor", "--output=json")
        (line,) = told(ran, "takeovers")
        assert (ran.code, line["state"]) == (0, "warn")
        assert "was scaled to zero by process " in line["text"]
        (repair,) = repairs(ctrl.answered("doctor", "--fix", "--output=json").checked())
        assert repair["state"] == "done"
        assert repair["text"].endswith(f"deployments.apps {namespace}/{NAME} is scaled back to 2")
        found = kubectl.json("get", "deployment", NAME)
        assert found["spec"]["replicas"] == 2
        assert "kubectl-ctrl/taken-over" not in found["metadata"].get("annotations", {})
        assert repairs(ctrl.answered("doctor", "--fix", "--output=json").checked()) == []
    finally:
        kubectl("delete", "deployment", NAME, "--ignore-not-found", "--cascade=foreground", timeout=240)


def test_the_line_of_a_scar_heals_it_as_well(ctrl: Ctrl, kubectl: Kubectl) -> None:
    note = json.dumps({"holder": "another-machine.1.1_77_r000", "replicas": 3, "since": "2026-01-01T00:00:00Z"})
    body = deployment(NAME, 0)
    body["metadata"]["labels"] = {
        "app.kubernetes.io/managed-by": "kubectl-ctrl",
        "app.kubernetes.io/name": "foo",
        "app.kubernetes.io/component": "controller",
    }
    body["metadata"]["annotations"] = {"kubectl-ctrl/taken-over": note}
    kubectl.apply(body)
    try:
        (repair,) = repairs(ctrl.answered("doctor", "--fix", "--yes", "--output=json").checked())
        assert repair["state"] == "by-hand", "The run on the other machine may go on."
        assert kubectl.json("get", "deployment", NAME)["spec"]["replicas"] == 0
        assert run_line(repair["command"], kubectl).code == 0
        assert kubectl.json("get", "deployment", NAME)["spec"]["replicas"] == 3
        assert repairs(ctrl.answered("doctor", "--fix", "--output=json").checked()) == []
    finally:
        kubectl("delete", "deployment", NAME, "--ignore-not-found", "--cascade=foreground", timeout=240)


def test_the_lease_of_a_dead_run_is_deleted(ctrl: Ctrl, kubectl: Kubectl, namespace: str) -> None:
    ctrl("install", "foo").checked()
    running = ctrl.started("run", "foo", "--leader-elect")

    def holder() -> str:
        leases = kubectl.json("get", "leases", "--namespace=foo-system")["items"]
        return next(
            (one["spec"].get("holderIdentity", "") for one in leases if namespace in one["metadata"]["name"]), ""
        )

    wait_until(lambda: f"_{running.process.pid}_" in holder(), what=f"{running!r} leads")
    assert told(ctrl.answered("doctor", "--output=json"), "leases") == []
    running.kill()
    (line,) = told(ctrl.answered("doctor", "--output=json"), "leases")
    assert line["text"].endswith(f"is held by process {running.process.pid} on this machine, which has exited")
    (repair,) = repairs(ctrl.answered("doctor", "--fix", "--output=json").checked())
    assert (repair["state"], repair["text"].endswith(" is deleted")) == ("done", True)
    assert holder() == ""


def test_a_foreign_context_is_left_alone_until_it_is_named(
    ctrl: Ctrl, kubectl: Kubectl, env: Mapping[str, str], tmp_path: Path, cluster: Cluster
) -> None:
    content = yaml.safe_load(Path(env["KUBECONFIG"]).read_text())
    content["contexts"][0]["name"] = content["current-context"] = "staging"
    config = tmp_path / "staging"
    config.write_text(yaml.safe_dump(content))
    foreign = Ctrl({**env, "KUBECONFIG": str(config)}, tmp_path)
    spec = {"holderIdentity": "a.b.c_1_r1", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    labels = {"app.kubernetes.io/managed-by": "kubectl-ctrl", "app.kubernetes.io/name": "foo"}
    meta = {"name": f"{NAME}-old", "namespace": "default", "labels": labels}
    kubectl.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec})
    assert "--allow-context staging" in told(foreign.answered("doctor", "--output=json"), "guard")[0]["text"]
    ran = foreign.answered("doctor", "--fix")
    assert ran.code == 6
    assert "refused" in ran.out
    assert "next: kubectl ctrl doctor --fix --allow-context=staging" in ran.err
    assert kubectl.find("lease", f"{NAME}-old", "--namespace=default")
    foreign.answered("doctor", "--fix", "--allow-context=staging").checked()
    assert kubectl.find("lease", f"{NAME}-old", "--namespace=default") is None


@pytest.fixture
def alone(env: Mapping[str, str], tmp_path: Path) -> Ctrl:
    """A user without a cluster, with the programs to create one."""
    return Ctrl({**env, "KUBECONFIG": str(tmp_path / "none")}, tmp_path)


def processes(folder: Path) -> list[int]:
    """The processes with that folder in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(f"{folder}/") in words:
                found.append(int(entry.name))
    return found


@pytest.mark.real
def test_the_remains_of_a_killed_up_are_listed_and_then_deleted(alone: Ctrl, tmp_path: Path) -> None:
    nothing = alone.answered("doctor", "--output=json").checked()
    assert told(nothing, "context")[0]["command"] == "kubectl ctrl up"
    state = tmp_path / "state" / "kubectl-ctrl"
    up = alone.started("up", "--name=d7r", "--provider=kwok", "--progress=plain", never_ready(tmp_path))
    wait_until(lambda: processes(state / "clusters" / "d7r" / "bin"), what=f"servers of {up!r}")
    up.kill()
    assert (state / "clusters" / "d7r" / "cluster.json").exists()
    lines = [
        one["text"]
        for one in document(alone.answered("doctor", "--output=json"))["checks"]
        if one["group"] == "leftovers"
    ]
    assert "cluster d7r (kwok) was not completely created" in lines
    ran = alone.answered("doctor", "--fix")
    assert ran.code == 6
    assert "listed" in ran.out
    assert "next: kubectl ctrl doctor --fix --yes" in ran.err
    assert (state / "clusters" / "d7r").is_dir()
    alone.answered("doctor", "--fix", "--yes").checked()
    assert processes(state) == []
    assert list((state / "clusters").iterdir()) == []
    assert "No leftovers were found" in alone.answered("doctor", "--fix").checked().out
