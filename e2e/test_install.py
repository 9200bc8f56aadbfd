"""`install` on a real API server: the objects that it creates, keeps and refuses, and how it survives kills."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.crds import wait_until_served
from e2e.ctrl import Ctrl
from e2e.kube import Audit, Kubectl, manifest, wait_until
from e2e.rights import granted_by_now
from e2e.sample import Sample, delete_sample, write_sample


@pytest.fixture
def made(tmp_path: Path, namespace: str, kubectl: Kubectl, ctrl: Ctrl) -> Iterator[Sample]:
    made = write_sample(tmp_path / "mine", namespace.rpartition("-")[2])
    yield made
    delete_sample(made, kubectl, ctrl)


def said(made: Sample, word: str) -> list[str]:
    return [f"{line} {word}" for line in made.lines]


def everything(made: Sample, kubectl: Kubectl) -> list[dict[str, Any]]:
    """The created objects, without the fields that differ each time."""
    found = [kubectl.json("get", name) for name in made.lines if name.startswith(("custom", "namespace", "cluster"))]
    inside = ("serviceaccount", "role.", "rolebinding.")
    found += [kubectl.json("get", name, f"-n={made.system}") for name in made.lines if name.startswith(inside)]
    for obj in found:
        for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "annotations"):
            obj["metadata"].pop(key, None)
        obj.pop("status", None)
    return found


# Created objects.


@pytest.mark.real
def test_it_creates_everything_and_the_crd_can_be_used_at_once(kubectl: Kubectl, ctrl: Ctrl, made: Sample) -> None:
    ran = ctrl("install", made.path).checked()
    assert ran.out.splitlines() == said(made, "created")
    kubectl.create(made.thing("one"))
    assert made.remains(kubectl) == sorted(made.lines)
    binding = kubectl.json("get", "clusterrolebinding", made.account)
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": made.account, "namespace": made.system}]
    user = f"system:serviceaccount:{made.system}:{made.account}"
    who = f"--as={user}"
    granted_by_now(kubectl, user, "list", made.crd, "-A")
    granted_by_now(kubectl, user, "update", "leases", f"-n={made.system}")
    assert kubectl.try_("auth", "can-i", "update", "leases", "-n=default", who).out == "no\n"
    assert kubectl.try_("auth", "can-i", "delete", made.crd, "-A", who).out == "no\n"


@pytest.mark.real
def test_a_second_install_writes_nothing(ctrl: Ctrl, audit: Audit, made: Sample) -> None:
    ctrl("install", made.path).checked()
    mark = audit.mark()
    assert ctrl("install", made.path).checked().out.splitlines() == said(made, "unchanged")
    asked = audit.requests(mark)
    assert asked
    assert {one.verb for one in asked} == {"get"}, "Not even a dry run is needed to see that nothing changed."


def test_only_changes_are_written(ctrl: Ctrl, audit: Audit, made: Sample, kubectl: Kubectl) -> None:
    ctrl("install", made.path).checked()
    made.change(lambda crd: crd["spec"]["names"].update(shortNames=["th"]))
    mark = audit.mark()
    told = ctrl("install", made.path).checked().out.splitlines()
    assert told == [f"{made.lines[0]} configured", *said(made, "unchanged")[1:]]
    assert [(one.verb, one.name) for one in audit.writes(mark)] == [("patch", made.crd)]
    # A field that is no longer in the manifest is removed.
    made.change(lambda crd: crd["spec"]["names"].pop("shortNames"))
    ctrl("install", made.path).checked()
    assert "shortNames" not in kubectl.json("get", "crd", made.crd)["spec"]["names"]


def test_changes_by_hand_are_reverted(ctrl: Ctrl, made: Sample, kubectl: Kubectl) -> None:
    ctrl("install", made.path).checked()
    kubectl("delete", "clusterrolebinding", made.account)
    kubectl("label", "serviceaccount", made.account, f"-n={made.system}", "theirs=1")
    told = ctrl("install", made.path).checked().out.splitlines()
    assert told == [
        *said(made, "unchanged")[:5],
        f"{made.lines[5]} created",
        f"{made.lines[6]} unchanged",
    ]
    account = kubectl.json("get", "serviceaccount", made.account, f"-n={made.system}")
    assert account["metadata"]["labels"]["theirs"] == "1"


def test_printed_and_applied_by_kubectl_it_is_the_same(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, audit: Audit
) -> None:
    ctrl("install", made.path).checked()
    ours = everything(made, kubectl)
    ctrl("uninstall", made.path, "--crds=delete", "--yes").checked()
    nowhere = Ctrl({**ctrl.env, "KUBECONFIG": "/dev/null"}, ctrl.folder)
    kubectl("apply", "--filename=-", stdin=nowhere("install", made.path, "--print").checked().out)
    wait_until_served(kubectl, made.crd)
    assert everything(made, kubectl) == ours
    assert ctrl("install", made.path).checked().out.splitlines() == said(made, "configured")
    mark = audit.mark()
    assert ctrl("install", made.path).checked().out.splitlines() == said(made, "unchanged")
    assert audit.writes(mark) == []


@pytest.mark.parametrize("where", ["client", "server"])
def test_a_dry_run_keeps_nothing(ctrl: Ctrl, kubectl: Kubectl, made: Sample, audit: Audit, where: str) -> None:
    mark = audit.mark()
    ran = ctrl("install", made.path, f"--dry-run={where}").checked()
    note = "(dry run)" if where == "client" else "(server dry run)"
    assert ran.out.splitlines() == said(made, f"created {note}")
    assert audit.writes(mark) == []
    assert any(one.dry_run for one in audit.requests(mark)) == (where == "server")
    assert made.remains(kubectl) == []


def test_only_one_half(ctrl: Ctrl, made: Sample) -> None:
    assert ctrl("install", made.path, "--rbac-only").checked().out.splitlines() == said(made, "created")[1:]
    assert ctrl("install", made.path, "--crds-only").checked().out.splitlines() == said(made, "created")[:1]


def test_a_namespace_that_is_there_is_used_and_not_marked(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, namespace: str
) -> None:
    told = ctrl("install", made.path, "-n", namespace).checked().out.splitlines()
    assert f"namespace/{namespace} unchanged, not managed" in told
    assert kubectl.json("get", "role", made.account)["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [made.account],
            "verbs": ["get", "update"],
        },
    ]
    ctrl("uninstall", made.path, "--crds=delete", "--yes").checked()
    assert kubectl.find("namespace", namespace)["status"]["phase"] == "Active"
    assert made.remains(kubectl) == []


def test_the_objects_as_json_and_their_names(ctrl: Ctrl, made: Sample) -> None:
    listed = json.loads(ctrl("install", made.path, "-o", "json").checked().out)
    assert [obj["kind"] for obj in listed["items"]][:3] == ["CustomResourceDefinition", "Namespace", "ServiceAccount"]
    assert all(obj["metadata"]["uid"] for obj in listed["items"])
    assert ctrl("install", made.path, "-o=name").checked().out.splitlines() == made.lines


@pytest.mark.real
def test_a_crd_over_256_kib(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    def grow(crd: dict[str, Any]) -> None:
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "long " * 60_000

    made.change(grow)
    printed = ctrl("install", made.path, "--print", "--crds-only").checked()
    assert len(printed.out) > 300_000
    assert "--server-side" in printed.err
    assert ctrl("install", made.path).checked().out.splitlines() == said(made, "created")
    assert ctrl("install", made.path).checked().out.splitlines() == said(made, "unchanged")
    kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=printed.out)


# Interruptions, and two at once.


@pytest.mark.real
def test_killed_at_any_step_it_ends_the_same(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    ctrl("install", made.path).checked()
    whole = everything(made, kubectl)
    for step in range(1, len(made.lines) + 1):
        ctrl("uninstall", made.path, "--crds=delete", "--yes").checked()
        ctrl.killed_after_lines(step, "install", made.path)
        ctrl("install", made.path).checked()
        assert everything(made, kubectl) == whole, step
        assert ctrl("install", made.path).checked().out.splitlines() == said(made, "unchanged")


@pytest.mark.real
def test_two_at_once(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    both = [ctrl.started("install", made.path) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0], [one.output() for one in both]
    assert made.remains(kubectl) == sorted(made.lines)
    assert ctrl("install", made.path).checked().out.splitlines() == said(made, "unchanged")


# Refusals.


def test_rights_that_the_user_lacks_cannot_be_given(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    narrow = f"narrow-{made.name}"
    rules = [
        ("", ["namespaces", "serviceaccounts"]),
        ("apiextensions.k8s.io", ["customresourcedefinitions"]),
        ("rbac.authorization.k8s.io", ["clusterroles", "clusterrolebindings", "roles", "rolebindings"]),
    ]
    verbs = ["get", "list", "create", "patch", "update"]
    kubectl.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": narrow, "labels": dict(part.split("=") for part in made.selector.split(","))},
            "rules": [{"apiGroups": [group], "resources": names, "verbs": verbs} for group, names in rules],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": narrow, "labels": dict(part.split("=") for part in made.selector.split(","))},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": narrow},
            "subjects": [{"kind": "User", "name": narrow, "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    granted_by_now(kubectl, narrow, "update", "rolebindings", "--all-namespaces")
    ran = ctrl("install", made.path, f"--as={narrow}")
    assert ran.code == 7, ran
    assert "attempting to grant" in ran.err
    assert f'APIGroups:["{made.group}"], Resources:["things"]' in ran.err
    assert "you can only grant rights that you have" in ran.err
    assert kubectl.find("crd", made.crd) is None, "What is refused is refused before anything is written."


def test_the_missing_rights_of_a_user_are_named(ctrl: Ctrl, made: Sample) -> None:
    ran = ctrl("install", made.path, "--as=nobody")
    assert ran.code == 7
    assert 'resources ["customresourcedefinitions"], verbs ["get"]' in ran.err


def test_an_equal_crd_of_others_is_used_and_never_touched(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, audit: Audit
) -> None:
    kubectl.apply(made.manifest())
    wait_until_served(kubectl, made.crd)
    mark = audit.mark()
    told = ctrl("install", made.path).checked().out.splitlines()
    assert told == [f"{made.lines[0]} unchanged, not managed", *said(made, "created")[1:]]
    ran = ctrl("uninstall", made.path, "--crds=delete", "--yes").checked()
    assert f"{made.lines[0]} is kept: install did not create it." in ran.err
    assert kubectl.find("crd", made.crd)
    assert not [one for one in audit.writes(mark) if one.name == made.crd]


def test_a_different_foreign_crd_is_refused_without_force(
    ctrl: Ctrl, kubectl: Kubectl, made: Sample, audit: Audit
) -> None:
    theirs = made.manifest()
    theirs["spec"]["names"]["shortNames"] = ["their"]
    theirs["spec"]["versions"].append({**theirs["spec"]["versions"][0], "name": "v0", "storage": False})
    kubectl.apply(theirs)
    wait_until_served(kubectl, made.crd)
    mark = audit.mark()
    ran = ctrl("install", made.path)
    assert ran.code == 6
    assert "exists, was not created by install, and differs: " in ran.err
    assert "spec.names.shortNames is ['their'] and would be absent" in ran.err
    assert "It was written by kubectl-client-side-apply" in ran.err
    assert "next: --force-conflicts" in ran.err
    assert audit.writes(mark) == []
    ctrl("install", made.path, "--force-conflicts").checked()
    spec = kubectl.json("get", "crd", made.crd)["spec"]
    assert "shortNames" not in spec["names"]
    assert [version["name"] for version in spec["versions"]] == ["v1"]
    assert ctrl("install", made.path).checked().out.splitlines() == said(made, "unchanged")


@pytest.mark.real
def test_a_stored_version_is_not_dropped(ctrl: Ctrl, kubectl: Kubectl, made: Sample, audit: Audit) -> None:
    ctrl("install", made.path).checked()
    kubectl.create(made.thing("one"))

    def rename(crd: dict[str, Any]) -> None:
        crd["spec"]["versions"][0]["name"] = "v2"

    made.change(rename)
    mark = audit.mark()
    for force in ([], ["--force-conflicts"]):
        ran = ctrl("install", made.path, *force)
        assert ran.code == 6
        assert f"The CRD '{made.crd}' would lose v1" in ran.err
        assert "--subresource=status" in ran.err
    assert audit.writes(mark) == []
    assert kubectl.find(made.crd, "one")


@pytest.mark.real
def test_fields_of_other_managers_are_refused_without_force(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    ctrl("install", made.path).checked()
    role = made.manifest("rbac")
    role["rules"][0]["verbs"] = ["*"]
    kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f=-", stdin=manifest(role))
    ran = ctrl("install", made.path)
    assert ran.code == 6
    assert 'conflict with "gitops": .rules' in ran.err
    told = ctrl("install", made.path, "--force-conflicts").checked().out.splitlines()
    assert f"{made.lines[3]} configured" in told
    assert kubectl.json("get", "clusterrole", made.account)["rules"][0]["verbs"] == ["get", "list", "watch", "patch"]


def test_a_name_that_another_crd_has_is_an_error_that_names_it(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    other = made.manifest()
    other["metadata"]["name"] = f"others.{made.group}"
    other["spec"]["names"] = {"plural": "others", "kind": "Other", "shortNames": ["thing"]}
    kubectl.apply(other)
    wait_until_served(kubectl, f"others.{made.group}")
    ran = ctrl("install", made.path)
    kubectl("delete", "crd", f"others.{made.group}")
    assert ran.code == 1, ran
    assert f"others.{made.group} has it" in ran.err


def test_m23_the_message_about_a_refused_crd_is_printed(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    def spoil(crd: dict[str, Any]) -> None:
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["size"] = {}

    made.change(spoil)
    ran = ctrl("install", made.path)
    assert ran.code == 1
    assert "openAPIV3Schema.properties[spec].properties[size].type: Required value" in ran.err
    assert made.remains(kubectl) == []


def test_m09_an_invalid_manifest_is_named_with_its_line(ctrl: Ctrl, made: Sample) -> None:
    (made.folder / "rbac.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    ran = ctrl("install", made.path, "--print")
    assert ran.code == 1
    assert f"{made.folder / 'rbac.yaml'}:1: A ConfigMap (v1) does not belong here." in ran.err


def test_m14_a_terminating_namespace_accepts_nothing(ctrl: Ctrl, kubectl: Kubectl, made: Sample) -> None:
    kubectl("create", "namespace", made.system)
    held = {"name": "held", "namespace": made.system, "finalizers": ["example.com/hold"]}
    kubectl.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    kubectl("delete", "namespace", made.system, "--wait=false")
    ran = ctrl("install", made.path)
    free = '{"metadata":{"finalizers":null}}'
    kubectl("patch", "configmap", "held", f"-n={made.system}", "--type=merge", f"--patch={free}")
    assert ran.code == 7, ran
    assert f"The namespace '{made.system}' is being deleted" in ran.err
    assert kubectl.find("crd", made.crd) is None
    wait_until(lambda: kubectl.find("namespace", made.system) is None)
    ctrl("install", made.path).checked()


def test_a_dry_run_of_the_server_prints_the_future_objects(ctrl: Ctrl, made: Sample) -> None:
    ctrl("install", made.path).checked()

    def longer(role: dict[str, Any]) -> None:
        role["rules"].append({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]})

    made.change(longer, "rbac")
    shown = json.loads(ctrl("install", made.path, "--dry-run=server", "--output=json").checked().out)
    [role] = [obj for obj in shown["items"] if obj["kind"] == "ClusterRole"]
    assert role["rules"][-1]["resources"] == ["configmaps"]
    assert role["metadata"]["uid"]


# Bundled controllers.


def test_alone_it_names_all_bundled_controllers_first(ctrl: Ctrl) -> None:
    ran = ctrl("install", "--dry-run=server").checked()
    names = ctrl("list", "-o", "name").out.split()
    assert ran.err.splitlines()[0] == f"all bundled controllers: {', '.join(names)}"
    for name in names:
        assert f"serviceaccount/kubectl-ctrl-{name} " in ran.out
