"""Never a cluster that the user did not mean: managed clusters, pinned contexts, and the user's kubeconfig."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.ctrl import Ctrl, Started
from e2e.kube import CHECKOUT, Audit, Cluster, Kubectl, wait_until
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.kubeconfig.resolution import ConfigFlags, ca_fingerprint, load
from kubectl_ctrl.value import replace

OTHER_AUTHORITY = CHECKOUT / "tests" / "client" / "certificates" / "ca.pem"
MINE = """\
from kubectl_ctrl import CONFIGMAPS, controller


async def reconcile(ctx, request):
    obj = await ctx.read.get(CONFIGMAPS, request.name)
    if obj is not None and "ask" in obj.get("data", {}):
        await ctx.write.patch(obj, {"data": {"answer": obj["data"]["ask"]}})


CONTROLLER = controller("mine", reconcile).for_(CONFIGMAPS)
"""
PROD = "https://prod-eu.invalid:6443"

Content = dict[str, Any]


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path.resolve() / "mine.py"
    path.write_text(MINE)
    return str(path)


class Scene:
    """The session's cluster in a kubeconfig that a test may change, and a registry that may contain it."""

    def __init__(self, ctrl: Ctrl, kubeconfig: Path, folder: Path) -> None:
        self.folder = folder
        self.registry = Registry(Path(ctrl.env["XDG_STATE_HOME"]) / "kubectl-ctrl" / "clusters")
        self.file = folder / "users-kubeconfig"
        self.content = _whole(kubeconfig)
        self.ctrl = Ctrl({**ctrl.env, "KUBECONFIG": str(self.file)}, folder)
        self.ctrl.all_started = ctrl.all_started
        self.write()

    @property
    def cluster(self) -> Any:
        return self.content["clusters"][0]["cluster"]

    def write(self) -> None:
        self.file.write_text(yaml.safe_dump(self.content))

    def noted(self, name: str = "ctrl", ca: str = "") -> ClusterEntry:
        """The cluster in the registry, as a managed one."""
        context, place = f"kwok-{name}", self.registry.place(name)
        entry = ClusterEntry(name=name, provider="kwok", phase=Phase.CREATING, began=1.0, folder=place, context=context)
        self.registry.write(entry)
        contexts = [{**self.content["contexts"][0], "name": context}]
        own = {**self.content, "current-context": context, "contexts": contexts}
        self.registry.write_kubeconfig(entry, yaml.safe_dump(own))
        resolved = load(ConfigFlags(kubeconfig=str(entry.kubeconfig)), {}, place)
        entry = replace(entry, server=resolved.server, ca=ca or ca_fingerprint(resolved), phase=Phase.READY)
        self.registry.write(entry)
        return entry


def _whole(kubeconfig: Path) -> Content:
    """The kubeconfig with the contents of its files, under a name that matches no kind of cluster."""
    found: Content = yaml.safe_load(kubeconfig.read_text())
    for section, kind in (("clusters", "cluster"), ("users", "user")):
        fields = found[section][0][kind]
        for key in ("certificate-authority", "client-certificate", "client-key"):
            if file := fields.pop(key, ""):
                fields[f"{key}-data"] = base64.b64encode((kubeconfig.parent / file).read_bytes()).decode()
    found["contexts"][0]["name"] = found["current-context"] = "play"
    return found


@pytest.fixture
def scene(ctrl: Ctrl, kubeconfig: Path, tmp_path: Path) -> Scene:
    return Scene(ctrl, kubeconfig, tmp_path)


def answered(kubectl: Kubectl, name: str) -> None:
    kubectl("create", "configmap", name, "--from-literal=ask=me")
    wait_until(
        lambda: kubectl.json("get", "configmap", name)["data"].get("answer") == "me", what=f"{name} is reconciled"
    )


# Managed clusters.


def test_s10_a_managed_cluster_is_allowed_under_any_name_and_others_are_not(
    scene: Scene, audit: Audit, mine: str, kubectl: Kubectl, namespace: str
) -> None:
    kubectl("create", "configmap", "mark", "--from-literal=ask=me")
    mark, server = audit.mark(), scene.cluster["server"]
    scene.noted(ca="0" * 64)  # the same address, with the authority of another cluster
    for words in (("run", mine, "--once"), ("install", "foo"), ("uninstall", "foo", "--crds=delete", "--yes")):
        ran = scene.ctrl(*words)
        assert (ran.code, ran.out) == (6, "")
        assert f"tried: context 'play', server {server}, namespace '{namespace}'" in ran.err
    assert audit.requests(mark) == []
    scene.noted()
    ran = scene.ctrl("run", mine, "--once").checked()
    assert f"on context play ({server}, managed cluster ctrl), namespace {namespace}" in " ".join(ran.err.split())
    assert "leader election off (managed cluster)" in ran.err
    assert kubectl.json("get", "configmap", "mark")["data"]["answer"] == "me"
    leases = [one for one in audit.requests(mark) if one.resource == "leases.coordination.k8s.io"]
    assert {one.verb for one in leases} <= {"get", "list"}, "it holds none"
    assert scene.ctrl("run", mine, "--once", "--server", server).code == 6
    assert scene.ctrl("run", mine, "--once", "--insecure-skip-tls-verify").code == 6


def test_s10_our_name_over_another_server_is_refused(scene: Scene, mine: str, audit: Audit) -> None:
    entry = scene.noted()
    scene.content["contexts"][0]["name"] = scene.content["current-context"] = entry.context
    scene.cluster["server"] = PROD
    scene.write()
    mark = audit.mark()
    ran = scene.ctrl("run", mine, "--once")
    assert ran.code == 6
    assert f"context '{entry.context}', server {PROD}" in ran.err
    assert audit.requests(mark) == []


def test_a_managed_cluster_is_selected_by_its_context_or_as_the_only_one(
    scene: Scene, mine: str, kubectl: Kubectl, tmp_path: Path
) -> None:
    """With the kubeconfig of a user who does not know the cluster, and without one."""
    scene.noted()
    kubectl("create", "configmap", "mark", "--from-literal=ask=me")
    env = {name: value for name, value in scene.ctrl.env.items() if name != "KUBECONFIG"}
    at_home = Ctrl(env, tmp_path)
    foreign = at_home("run", mine, "--once")
    assert (foreign.code, "context 'prod-eu'" in foreign.err) == (6, True)
    at_home("run", mine, "--once", "--context=kwok-ctrl").checked()
    assert kubectl.json("get", "configmap", "mark")["data"]["answer"] == "me"
    (tmp_path / "nobody").mkdir()
    nowhere = Ctrl({**env, "HOME": str(tmp_path / "nobody")}, tmp_path)
    assert "on context kwok-ctrl" in nowhere("run", mine, "--once").checked().err
    assert "ConfigMap" in nowhere("trace", "configmap/mark").checked().out
    scene.noted("dev")
    ran = nowhere("run", mine, "--once")
    assert ran.code == 3
    assert "choose with --context one of 'kwok-ctrl', 'kwok-dev'" in ran.err


# Pinned contexts.


def started(scene: Scene, mine: str, kubectl: Kubectl) -> Started:
    begun = scene.ctrl.started("run", mine)
    begun.line("leader election")
    answered(kubectl, "first")
    return begun


def test_s10_a_switch_elsewhere_changes_nothing_of_a_run(scene: Scene, mine: str, kubectl: Kubectl) -> None:
    scene.noted()
    scene.content["clusters"].append({"name": "prod-eu", "cluster": {"server": PROD}})
    scene.content["contexts"].append({"name": "prod-eu", "context": {"cluster": "prod-eu", "user": "prod-eu"}})
    scene.content["users"].append({"name": "prod-eu", "user": {"token": "not-a-token"}})
    scene.write()
    runs, theirs = started(scene, mine, kubectl), Kubectl(kubectl.program, scene.ctrl.env)
    theirs("config", "use-context", "prod-eu")
    theirs("config", "set-context", "play", "--namespace=elsewhere")
    answered(kubectl, "second")
    theirs("config", "delete-context", "play")
    answered(kubectl, "third")
    scene.file.unlink()
    answered(kubectl, "fourth")
    shutil.rmtree(scene.registry.folder)
    answered(kubectl, "fifth")
    assert runs.stop() == 0


def plugin(grant: Path) -> Content:
    command = {"command": "cat", "args": [str(grant)], "interactiveMode": "Never"}
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", **command}}


@pytest.mark.parametrize("what", ["server", "authority"])
def test_s10_a_reload_that_finds_another_cluster_ends_the_run(
    scene: Scene, mine: str, kubectl: Kubectl, what: str
) -> None:
    """Expired credentials are renewed, and read from the kubeconfig again if that fails."""
    scene.noted()
    user, grant = scene.content["users"][0]["user"], scene.folder / "grant.json"
    status = {"expirationTimestamp": "2001-01-01T00:00:00Z"}
    if "token" in user:
        status["token"] = user["token"]
    else:
        status["clientCertificateData"] = base64.b64decode(user["client-certificate-data"]).decode()
        status["clientKeyData"] = base64.b64decode(user["client-key-data"]).decode()
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    grant.write_text(json.dumps(document))
    scene.content["users"][0]["user"] = plugin(grant)
    scene.write()
    runs = started(scene, mine, kubectl)
    if what == "server":
        scene.cluster["server"] = PROD
    else:
        scene.cluster["certificate-authority-data"] = base64.b64encode(OTHER_AUTHORITY.read_bytes()).decode()
    scene.write()
    grant.write_text("nothing any more")
    kubectl("create", "configmap", "second", "--from-literal=ask=me")
    assert runs.wait() == 6
    assert "The context 'play' now means another cluster or certificate authority." in runs.output()
    assert "answer" not in kubectl.json("get", "configmap", "second")["data"]


def test_suggested_commands_select_the_same_cluster(ctrl: Ctrl, cluster: Cluster) -> None:
    ran = ctrl("run", "foo", f"--context={cluster.context}", "--namespace=nowhere")
    assert ran.code == 4
    assert f"next: kubectl --context={cluster.context} create namespace nowhere, or" in ran.err
