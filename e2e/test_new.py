"""The folder of `kubectl ctrl new` works on a real API server as its README promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from e2e.ctrl import AssertRests, Ctrl, Started
from e2e.kube import COLLECTION_SECONDS, Audit, Kubectl, manifest, wait_until
from e2e.rights import owner_known_by_now, user_of

CRD = "greetings.new.example.com"


@pytest.fixture
def folder(kubectl: Kubectl, tmp_path: Path) -> Path:
    return written(kubectl, tmp_path, "--full")


def written(kubectl: Kubectl, tmp_path: Path, *form: str) -> Path:
    out = kubectl("ctrl", "new", "greeting", "--group", "new.example.com", "--dir", str(tmp_path / "mine"), *form)
    assert out.splitlines()[0] == str(tmp_path / "mine" / "greeting" / "controller.py")
    return tmp_path / "mine" / "greeting"


def ready(kubectl: Kubectl, name: str) -> tuple[str, str]:
    found = kubectl.find(CRD, name) or {}
    for condition in found.get("status", {}).get("conditions", []):
        assert condition["observedGeneration"] == found["metadata"]["generation"]
        return condition["status"], condition["reason"]
    return "", ""


def data(kubectl: Kubectl, name: str) -> dict[str, str]:
    found: dict[str, Any] = kubectl.find("configmap", name) or {}
    return found.get("data") or {}


def greets(kubectl: Kubectl, name: str, text: str) -> None:
    wait_until(
        lambda: data(kubectl, name).get("greeting") == text and ready(kubectl, name) == ("True", "Greeted"),
        what=f"{name} says {text!r}",
    )


def greeting(name: str, **spec: str) -> dict[str, Any]:
    return {
        "apiVersion": "new.example.com/v1alpha1",
        "kind": "Greeting",
        "metadata": {"name": name},
        "spec": {"text": "Hello, {name}!", **spec},
    }


def install(kubectl: Kubectl, folder: Path) -> None:
    """Install it, and wait until the API server applies its rights."""
    kubectl("ctrl", "install", str(folder))
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}}
    owner_known_by_now(kubectl, user_of("greeting"), greeting("x"), child)


def walk(kubectl: Kubectl) -> None:
    """Everything that the controller promises."""
    greets(kubectl, "example-greeting", "Hello, world!")
    kubectl("patch", CRD, "example-greeting", "--type=merge", '--patch={"spec":{"text":"Hi, {name}"}}')
    greets(kubectl, "example-greeting", "Hi, world")
    kubectl("patch", "configmap", "example-greeting", "--type=merge", '--patch={"data":{"greeting":"no","x":"y"}}')
    wait_until(lambda: data(kubectl, "example-greeting") == {"greeting": "Hi, world", "x": "y"})
    kubectl("delete", "configmap", "example-greeting")
    greets(kubectl, "example-greeting", "Hi, world")
    kubectl.apply(greeting("waits", nameFrom="who"))
    wait_until(lambda: ready(kubectl, "waits") == ("False", "WaitingForName"))
    kubectl("create", "configmap", "who", "--from-literal=name=Ada")
    greets(kubectl, "waits", "Hello, Ada!")
    kubectl("create", "configmap", "taken", "--from-literal=theirs=yes")
    kubectl.apply(greeting("taken"))
    wait_until(lambda: ready(kubectl, "taken") == ("False", "NameTaken"))
    assert data(kubectl, "taken") == {"theirs": "yes"}
    kubectl("delete", "configmap", "taken")
    greets(kubectl, "taken", "Hello, world!")


@pytest.mark.real
def test_install_run_example_get_and_uninstall(
    folder: Path, kubectl: Kubectl, ctrl: Ctrl, assert_rests: AssertRests
) -> None:
    kubectl("ctrl", "install", str(folder))
    run = ctrl.started("run", str(folder), "--reload")
    run.line("Watching for changes: .*controller.py")
    kubectl("apply", "--filename=-", stdin=kubectl("ctrl", "example", str(folder)))
    walk(kubectl)
    header, first = kubectl("get", CRD, "example-greeting").splitlines()
    assert header.split() == ["NAME", "READY", "REASON", "AGE"]
    assert first.split()[:3] == ["example-greeting", "True", "Greeted"]
    assert "greets world" in kubectl("describe", CRD, "example-greeting")
    assert_rests()
    assert "Greeted" in kubectl("events", f"--for={CRD}/example-greeting", "--no-headers")
    assert run.stop() == 0
    once = ctrl("run", str(folder), "--until-idle", "--timeout", "60s").checked()
    assert "no writes" in once.out
    kubectl("delete", CRD, "taken")
    wait_until(
        lambda: not kubectl.find("configmap", "taken"), deadline=COLLECTION_SECONDS, what="it goes with its owner"
    )
    kubectl("ctrl", "uninstall", str(folder), "--crds=delete", "--yes")
    assert not kubectl.find("crd", CRD)
    wait_until(
        lambda: not kubectl.find("configmap", "example-greeting"),
        deadline=COLLECTION_SECONDS,
        what="it goes with its owner",
    )


def test_its_rights_are_enough(folder: Path, kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str) -> None:
    install(kubectl, folder)
    since = audit.mark()
    run = ctrl.started("run", str(folder), "--as-installed")
    kubectl("apply", "--filename=-", stdin=manifest(greeting("example-greeting")))
    walk(kubectl)
    assert run.stop() == 0
    refused = [one for one in audit.requests(since, namespace=namespace) if one.code == 403]
    assert refused == []
    kubectl("ctrl", "uninstall", str(folder), "--crds=delete", "--yes")


def test_the_short_form_works_with_its_rights(
    kubectl: Kubectl, ctrl: Ctrl, audit: Audit, namespace: str, tmp_path: Path
) -> None:
    folder = written(kubectl, tmp_path)
    install(kubectl, folder)
    since = audit.mark()
    run = ctrl.started("run", str(folder), "--as-installed")
    kubectl("apply", "--filename=-", stdin=kubectl("ctrl", "example", str(folder)))
    greets(kubectl, "example-greeting", "Hello, world!")
    kubectl("patch", "configmap", "example-greeting", "--type=merge", '--patch={"data":{"greeting":"no","x":"y"}}')
    wait_until(lambda: data(kubectl, "example-greeting") == {"greeting": "Hello, world!", "x": "y"})
    kubectl("delete", "configmap", "example-greeting")
    greets(kubectl, "example-greeting", "Hello, world!")
    kubectl("create", "configmap", "taken", "--from-literal=theirs=yes")
    kubectl.apply(greeting("taken"))
    wait_until(lambda: ready(kubectl, "taken") == ("False", "NameTaken"))
    assert data(kubectl, "taken") == {"theirs": "yes"}
    assert run.stop() == 0
    assert [one for one in audit.requests(since, namespace=namespace) if one.code == 403] == []
    kubectl("ctrl", "uninstall", str(folder), "--crds=delete", "--yes")


def test_without_its_crd_the_error_names_the_install_command(folder: Path, ctrl: Ctrl, kubectl: Kubectl) -> None:
    ran = ctrl("run", str(folder), "--once")
    assert ran.code == 8
    assert "error[CTRL-NOT-INSTALLED]" in ran.err
    assert f"kubectl ctrl install {folder}" in ran.err
    run: Started = ctrl.started("run", str(folder))
    run.line("greetings.new.example.com is not installed")
    kubectl("ctrl", "install", str(folder))
    kubectl.apply(greeting("late"))
    greets(kubectl, "late", "Hello, world!")
    assert run.stop() == 0
    kubectl("ctrl", "uninstall", str(folder), "--crds=delete", "--yes")


def test_nothing_is_overwritten(folder: Path, kubectl: Kubectl) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = kubectl.try_("ctrl", "new", "greeting", "--dir", str(folder.parent))
    assert again.code == 2
    assert f"{folder}/controller.py already exists; nothing was written." in again.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
