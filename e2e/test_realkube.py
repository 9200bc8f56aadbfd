"""hack/realkube is a real Kubernetes and leaves nothing behind: the samples of Kubernetes work, kills do no harm."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.conftest import SESSION, sweep
from e2e.crds import wait_until_served
from e2e.kube import COLLECTION_SECONDS, REALKUBE, Audit, Cluster, Kubectl, Ran, manifest, parts_of, run, wait_until

pytestmark = pytest.mark.real

PARTS = {"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}


def config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": dict(data or {})}


def owned_by(owner: Mapping[str, Any]) -> dict[str, Any]:
    facts = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"]}
    return {**facts, "uid": owner["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}


# The samples of Kubernetes.


def test_a_crd_is_established_and_its_objects_are_stored_and_checked(kubectl: Kubectl, namespace: str) -> None:
    plural, group = "widgets", f"{namespace}.example.com"
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": "widget", "kind": "Widget", "shortNames": ["wi"]}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 3}}
    kubectl.create(crd)
    try:
        wait_until_served(kubectl, f"{plural}.{group}")
        kubectl.create(widget)
        assert kubectl.json("get", f"{plural}.{group}", "one")["spec"] == {"size": 3}

        wrong = kubectl.try_("create", "--filename=-", stdin=manifest({**widget, "spec": {"size": "three"}}))
        assert wrong.code == 1
        assert "must be of type integer" in wrong.err
    finally:
        kubectl("delete", "crd", f"{plural}.{group}", "--wait=false")


def test_a_deployment_brings_up_pods_that_become_ready(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
    kubectl("rollout", "status", "deployment/web", "--timeout=110s")

    deployment = kubectl.json("get", "deployment", "web")
    replica_set = kubectl.json("get", "replicasets")["items"][0]
    pods = kubectl.json("get", "pods")["items"]
    assert deployment["status"]["readyReplicas"] == 3
    assert replica_set["metadata"]["ownerReferences"][0]["uid"] == deployment["metadata"]["uid"]
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods} == {replica_set["metadata"]["uid"]}
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 3


def test_the_garbage_collector_removes_the_children_of_a_deleted_owner(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("rollout", "status", "deployment/web", "--timeout=110s")

    kubectl("delete", "deployment", "web", "--cascade=background")
    left = ("get", "replicasets,pods")
    wait_until(
        lambda: not kubectl.json(*left)["items"], deadline=COLLECTION_SECONDS, what="The garbage collector's work"
    )


def test_foreground_deletion_waits_for_the_dependents(kubectl: Kubectl) -> None:
    kubectl.create(config_map("owner"))
    reference = owned_by(kubectl.json("get", "configmap", "owner"))
    kubectl.create(config_map("child", ownerReferences=[reference], finalizers=["e2e.example.com/hold"]))

    kubectl("delete", "configmap", "owner", "--cascade=foreground", "--wait=false")
    going = partial(kubectl.find, "configmap", "child")
    wait_until(lambda: "deletionTimestamp" in going()["metadata"], deadline=COLLECTION_SECONDS, what="The child's end")
    assert kubectl.find("configmap", "owner")["metadata"]["finalizers"] == ["foregroundDeletion"]

    kubectl("patch", "configmap", "child", "--type=merge", "--patch", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", "configmap/owner", "configmap/child", "--timeout=150s", timeout=200)


def test_a_stale_owner_of_a_lease_cannot_renew_it(kubectl: Kubectl) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}}
    kubectl.create({**lease, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}})
    read_by_a = kubectl.json("get", "lease", "leader")

    kubectl("patch", "lease", "leader", "--type=merge", "--patch", '{"spec":{"holderIdentity":"b"}}')
    renewal = kubectl.try_("replace", "--filename=-", stdin=manifest(read_by_a))
    assert renewal.code == 1
    assert "Conflict" in renewal.err
    assert kubectl.json("get", "lease", "leader")["spec"]["holderIdentity"] == "b"


def test_the_controllers_send_events(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")

    def reasons() -> set[str]:
        return {event["reason"] for event in kubectl.json("get", "events")["items"]}

    wait_until(lambda: {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled"} <= reasons(), what="The events")


def test_server_side_apply_refuses_a_conflict_and_force_takes_the_field(kubectl: Kubectl) -> None:
    def apply(manager: str, value: str, *flags: str) -> tuple[int, str]:
        stdin = manifest(config_map("settings", {"level": value}))
        ran = kubectl.try_("apply", "--server-side", f"--field-manager={manager}", *flags, "--filename=-", stdin=stdin)
        return ran.code, ran.err

    assert apply("alice", "info")[0] == 0
    code, err = apply("bob", "debug")
    assert code == 1
    assert 'conflict with "alice": .data.level' in err
    assert kubectl.json("get", "configmap", "settings")["data"] == {"level": "info"}

    assert apply("bob", "debug", "--force-conflicts")[0] == 0
    settings = kubectl.json("get", "configmap", "settings", "--show-managed-fields")
    owners = [entry["manager"] for entry in settings["metadata"]["managedFields"] if "f:data" in entry["fieldsV1"]]
    assert (settings["data"], owners) == ({"level": "debug"}, ["bob"])


def test_rbac_holds_and_blocking_an_owner_needs_its_finalizers(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "worker")
    kubectl("create", "role", "worker", "--verb=get,create", "--resource=configmaps")
    namespace = kubectl.json("get", "serviceaccount", "worker")["metadata"]["namespace"]
    kubectl("create", "rolebinding", "worker", "--role=worker", f"--serviceaccount={namespace}:worker")
    kubectl.create(config_map("owner"))
    child = config_map("child", ownerReferences=[owned_by(kubectl.json("get", "configmap", "owner"))])
    create = ("create", "--filename=-", f"--as=system:serviceaccount:{namespace}:worker")

    def refused() -> bool:
        """Refused for this reason only: the right to create takes effect a moment later."""
        return "cannot set blockOwnerDeletion" in kubectl.try_(*create, stdin=manifest(child)).err

    wait_until(refused)

    rule = {"apiGroups": [""], "resources": ["configmaps/finalizers"], "verbs": ["update"]}
    addition = json.dumps([{"op": "add", "path": "/rules/-", "value": rule}])
    kubectl("patch", "role", "worker", "--type=json", "--patch", addition)
    wait_until(lambda: kubectl.try_(*create, stdin=manifest(child)).code == 0, what="The new rule")


def test_the_audit_log_counts_writes_and_not_dry_runs_or_reads(kubectl: Kubectl, audit: Audit, namespace: str) -> None:
    mark = audit.mark()
    kubectl.create(config_map("one"))
    kubectl("patch", "configmap", "one", "--type=merge", "--patch", '{"data":{"a":"b"}}', "--dry-run=server")
    kubectl("get", "configmaps")
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("scale", "deployment", "web", "--replicas=2")

    counted = audit.count(mark, agent="kubectl/", namespace=namespace)
    assert counted == {
        ("create", "configmaps"): 1,
        ("create", "deployments.apps"): 1,
        ("patch", "deployments.apps/scale"): 1,
    }
    assert audit.writes(mark, namespace=namespace) == []

    again_and_again = "while at=$((at + 1)); do kubectl annotate configmap one at=$at --overwrite >/dev/null; done"
    with subprocess.Popen(["/bin/sh", "-c", again_and_again], env=kubectl.env, start_new_session=True) as writing:
        try:
            with pytest.raises(AssertionError, match="write at rest"):
                audit.assert_no_writes(seconds=20, agent="kubectl/", namespace=namespace)
        finally:
            os.killpg(writing.pid, signal.SIGKILL)  # and its kubectl, which would write into the home of the next test


# up, down, and kills at any moment.


@pytest.fixture
def spare(programs: Path, plain_env: Mapping[str, str]) -> Iterator[str]:
    """The name of a cluster that does not exist before and after the test; of the session, so that a sweep finds it."""
    name = f"{SESSION}-spare"
    yield name
    realkube("down", name, env=plain_env).checked()


def realkube(*words: str, env: Mapping[str, str]) -> Ran:
    """hack/realkube, which waits while other workers create their clusters."""
    return run(REALKUBE, *words, env=env, timeout=300)


def processes_of(name: str = "") -> dict[int, str]:
    """pid -> arguments of all processes that mention the cluster's folder, or any cluster's; without hack/realkube."""
    folder = f"/realkube/clusters/{name}/" if name else "/realkube/clusters/"
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").replace("\0", " ")
        except OSError:
            continue
        if folder in words:
            found[int(entry.parent.name)] = words
    return found


def ports_of(pids: Iterator[int]) -> set[int]:
    """The TCP ports that these processes listen on."""
    inodes: dict[str, int] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            field = line.split()
            if field[3] == "0A":  # LISTEN
                inodes[f"socket:[{field[9]}]"] = int(field[1].rpartition(":")[2], 16)
    found = set()
    for pid in pids:
        # A process of another worker may exit meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            links = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
            found |= {inodes[link] for link in links & inodes.keys()}
    return found


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def folder_of(name: str, env: Mapping[str, str]) -> Path:
    return Path(env["XDG_CACHE_HOME"], "kubectl-ctrl", "realkube", "clusters", name).resolve()


def printed(err: str) -> str:
    """The lines of realkube, except that it waited for another worker's cluster."""
    return "".join(line for line in err.splitlines(keepends=True) if "of another cluster" not in line)


def assert_gone(name: str, env: Mapping[str, str]) -> None:
    assert processes_of(name) == {}
    assert not folder_of(name, env).exists()
    assert name not in run(REALKUBE, "list", env=env).checked().out


def test_up_twice_is_one_cluster_and_down_leaves_nothing(spare: str, plain_env: Mapping[str, str], home: Path) -> None:
    before = sorted(home.rglob("*"))
    at_once = subprocess.Popen([str(REALKUBE), "up", spare], env=plain_env, stdout=subprocess.PIPE, text=True)
    first = realkube("up", spare, env=plain_env).checked()
    cluster = Cluster.shown(spare, plain_env)
    assert first.out == at_once.communicate(timeout=300)[0] == f"{cluster.kubeconfig}\n"
    parts = parts_of(spare, plain_env)
    assert set(parts) == PARTS
    assert set(processes_of(spare)) == set(parts.values())

    again = realkube("up", spare, env=plain_env).checked()
    assert (again.out, printed(again.err)) == (first.out, "")
    assert (Cluster.shown(spare, plain_env), parts_of(spare, plain_env)) == (cluster, parts)
    shell = f'eval "$({shlex.quote(str(REALKUBE))} env {spare})" && kubectl config current-context'
    assert run("/bin/sh", "-c", shell, env=plain_env).checked().out == f"{cluster.context}\n"

    def all_ports() -> set[int]:
        found = ports_of(iter(parts.values()))
        assert len(found) == 6, found  # etcd has two
        return found

    # `up` waits only for the API server and for kwok.
    ports = wait_until(all_ports)
    realkube("down", spare, env=plain_env).checked()
    assert_gone(spare, plain_env)
    # A cluster that another worker creates at this moment may have them already.
    taken_again = ports_of(iter(processes_of()))
    assert [port for port in ports - taken_again if not is_free(port)] == []
    assert sorted(home.rglob("*")) == before, "Something was written into the user's home."

    assert printed(realkube("down", spare, env=plain_env).checked().err) == ""


def test_clusters_side_by_side_know_nothing_of_each_other(
    cluster: Cluster, kubectl: Kubectl, namespace: str, spare: str, plain_env: Mapping[str, str]
) -> None:
    realkube("up", spare, env=plain_env).checked()
    other = Cluster.shown(spare, plain_env)
    there = Kubectl(other.programs / "kubectl", {**plain_env, "KUBECONFIG": str(other.kubeconfig)})

    def uid(of: Kubectl) -> str:
        return str(of.json("get", "namespace", "kube-system")["metadata"]["uid"])

    assert uid(there) != uid(kubectl)
    assert there.find("namespace", namespace) is None
    ours, theirs = parts_of(cluster.name, plain_env), parts_of(spare, plain_env)
    assert not ports_of(iter(theirs.values())) & ports_of(iter(ours.values()))

    realkube("down", spare, env=plain_env).checked()
    assert kubectl.find("namespace", namespace)
    assert parts_of(cluster.name, plain_env) == ours


def test_the_api_server_can_be_stopped_and_started(spare: str, plain_env: Mapping[str, str]) -> None:
    realkube("up", spare, env=plain_env).checked()
    cluster, before = Cluster.shown(spare, plain_env), parts_of(spare, plain_env)
    kubectl = Kubectl(cluster.programs / "kubectl", {**plain_env, "KUBECONFIG": str(cluster.kubeconfig)})
    kubectl("create", "deployment", "web", "--image=nginx")

    realkube("stop-apiserver", spare, env=plain_env).checked()
    assert "refused" in kubectl.try_("get", "pods").err
    assert re.search(rf"^{spare}\twithout kube-apiserver\t", run(REALKUBE, "list", env=plain_env).out, re.MULTILINE)

    realkube("start-apiserver", spare, env=plain_env).checked()
    # The other programs survived and work.
    kubectl("rollout", "status", "deployment/web", "--timeout=110s")
    after = parts_of(spare, plain_env)
    changed = {part for part in PARTS if after[part] != before[part]}
    assert changed == {"kube-apiserver"}

    realkube("restart-apiserver", spare, env=plain_env).checked()
    assert kubectl.find("deployment", "web")


def test_a_new_cluster_does_not_use_the_port_of_a_stopped_api_server(spare: str, plain_env: Mapping[str, str]) -> None:
    realkube("up", spare, env=plain_env).checked()
    realkube("stop-apiserver", spare, env=plain_env).checked()
    meanwhile = f"{spare}-b"
    try:
        realkube("up", meanwhile, env=plain_env).checked()
        realkube("start-apiserver", spare, env=plain_env).checked()
    finally:
        realkube("down", meanwhile, env=plain_env).checked()


def test_up_replaces_a_cluster_that_lost_a_part(spare: str, plain_env: Mapping[str, str]) -> None:
    realkube("up", spare, env=plain_env).checked()
    lost = parts_of(spare, plain_env)["kube-controller-manager"]
    os.kill(lost, signal.SIGKILL)
    wait_until(lambda: lost not in processes_of(spare), what="its end")

    realkube("up", spare, env=plain_env).checked()
    assert set(parts_of(spare, plain_env)) == PARTS


def test_the_next_session_removes_the_remains_of_a_killed_one(cluster: Cluster, plain_env: Mapping[str, str]) -> None:
    with subprocess.Popen(["/bin/true"]) as ended:
        ended.wait()
    left = f"{SESSION.rpartition('-')[0]}-{ended.pid}"
    (folder_of(left, plain_env) / "logs").mkdir(parents=True)
    ours = parts_of(cluster.name, plain_env)

    sweep(plain_env)
    assert_gone(left, plain_env)
    assert parts_of(cluster.name, plain_env) == ours


# The progress of `up` when it is killed -> its sign.
MOMENTS: dict[str, Callable[[Path, str], object]] = {
    "folder made": lambda folder, name: folder.exists(),
    "kwokctl at work": lambda folder, name: any("kwokctl" in words for words in processes_of(name).values()),
    "etcd started": lambda folder, name: any("/bin/etcd " in words for words in processes_of(name).values()),
    "all started": lambda folder, name: len(processes_of(name)) >= len(PARTS),
    "API server up": lambda folder, name: "/version" in "".join(map(Path.read_text, folder.glob("logs/audit.log"))),
}


@pytest.mark.parametrize(
    ("moment", "then"), [*((moment, "down") for moment in MOMENTS), ("kwokctl at work", "up"), ("all started", "up")]
)
def test_a_killed_up_is_cleaned_up(moment: str, then: str, spare: str, plain_env: Mapping[str, str]) -> None:
    up = subprocess.Popen([str(REALKUBE), "up", spare], env=plain_env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: MOMENTS[moment](folder_of(spare, plain_env), spare), every=0.02, what=moment)
    up.kill()
    # No process that it started keeps its streams open: a reader gets their end at once.
    out, _ = up.communicate(timeout=60)
    # One that finished before it was killed does no harm.
    assert (out, up.returncode) == (b"", -signal.SIGKILL) or up.returncode == 0

    realkube(then, spare, env=plain_env).checked()
    if then == "down":
        assert_gone(spare, plain_env)
    else:
        parts = parts_of(spare, plain_env)
        assert set(processes_of(spare)) == set(parts.values())
        assert set(parts) == PARTS


# The progress of `down` when it is killed -> its sign. It takes 0.2 s; one that finished earlier does no harm.
LATE_MOMENTS: dict[str, Callable[[Path, str], object]] = {
    "marked": lambda folder, name: not (folder / "realkube.json").exists(),
    "processes ended": lambda folder, name: not processes_of(name),
    "files half removed": lambda folder, name: not (folder / "etcd").exists() or not (folder / "logs").exists(),
}


@pytest.mark.parametrize("moment", LATE_MOMENTS)
def test_a_killed_down_is_finished_by_the_next(moment: str, spare: str, plain_env: Mapping[str, str]) -> None:
    realkube("up", spare, env=plain_env).checked()
    with subprocess.Popen([str(REALKUBE), "down", spare], env=plain_env, stderr=subprocess.DEVNULL) as down:
        wait_until(lambda: LATE_MOMENTS[moment](folder_of(spare, plain_env), spare), every=0.001, what=moment)
        down.kill()

    realkube("down", spare, env=plain_env).checked()
    assert_gone(spare, plain_env)
