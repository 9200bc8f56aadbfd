"""`--use` beside real kubectl: the same file, the same lock, and the same contents for kubectl before and after."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.kube import Cluster, Ran, run
from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clusters import current_context
from kubectl_ctrl.clusters.registry import ClusterEntry, Registry
from kubectl_ctrl.user import User
from tests.cli.ours import kubeconfig, made

UNKNOWN = "of-nobody-we-know: {kept: true}\n"


class Theirs:
    """One user's files, with kubectl and kubectl-ctrl."""

    def __init__(self, cluster: Cluster, env: Mapping[str, str], folder: Path) -> None:
        self.folder = folder
        self.kubectl = cluster.programs / "kubectl"
        self.env = {**env, "HOME": str(folder)}
        del self.env["KUBECONFIG"]
        self.registry = Registry(folder / "clusters")

    def __call__(self, *words: str) -> Ran:
        return run(self.kubectl, *words, env=self.env)

    def app(self) -> App:
        return App(out=io.StringIO(), err=io.StringIO(), user=User(self.env))

    def view(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self("config", "view", "--raw", "--output=json").checked().out)
        return content

    def use(self, entry: ClusterEntry) -> ClusterEntry:
        return asyncio.run(current_context.use(self.app().user, entry, self.registry, self.app().narrate))

    def undo(self, entry: ClusterEntry) -> str:
        return asyncio.run(current_context.undo(self.app().user, entry, self.registry))

    def snapshot(self) -> dict[str, str]:
        files = [path for path in self.folder.rglob("*") if path.is_file() and self.registry.folder not in path.parents]
        return {
            str(path.relative_to(self.folder)): path.read_text() for path in files if ".kube/cache" not in str(path)
        }


@pytest.fixture
def theirs(cluster: Cluster, env: Mapping[str, str], tmp_path: Path) -> Theirs:
    folder = tmp_path / "user"
    folder.mkdir()
    return Theirs(cluster, env, folder)


@pytest.fixture
def entry(theirs: Theirs) -> ClusterEntry:
    return made(theirs.registry, "ctrl", "https://127.0.0.1:4001")


WITH = kubeconfig("prod", prod="https://10.0.0.1:6443", parity="https://10.0.0.2:6443")
BARE = kubeconfig(dev="https://10.0.0.3:6443")


@pytest.mark.parametrize(
    ("files", "listed"),
    [
        ({".kube/config": WITH}, ""),
        ({}, ""),
        ({"a": WITH}, "a"),
        ({}, "new/a"),
        ({"b": WITH}, "a:b"),
        ({"a": BARE, "b": WITH}, "a:b"),
        ({"a": WITH, "b": BARE}, "a:b:a"),
        ({}, "a:b"),
        ({"b": WITH}, ":a::b"),
    ],
)
def test_it_is_written_where_kubectl_writes_it(
    theirs: Theirs, entry: ClusterEntry, files: Mapping[str, str], listed: str
) -> None:
    """As `config set-context`, which creates missing files, and `use-context`, if the context exists."""
    for name, text in files.items():
        file = theirs.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    if listed:
        theirs.env["KUBECONFIG"] = ":".join(str(theirs.folder / name) if name else "" for name in listed.split(":"))
    before = theirs.snapshot()
    theirs("config", "set-context", "new", "--namespace=x").checked()
    [kubectls] = changed(before, theirs.snapshot())
    if files:
        _reset(theirs, before)
        theirs("config", "use-context", "parity").checked()
        assert changed(before, theirs.snapshot()) == [kubectls]
    _reset(theirs, before)
    used = theirs.use(entry)
    assert changed(before, theirs.snapshot()) == [kubectls]
    current = theirs("config", "current-context").checked().out.strip()
    assert current == "kind-ctrl"
    theirs.undo(used)
    assert theirs.snapshot() == before


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _reset(theirs: Theirs, before: Mapping[str, str]) -> None:
    for name in theirs.snapshot():
        (theirs.folder / name).unlink()
    for name, text in before.items():
        (theirs.folder / name).write_text(text)
    if (theirs.folder / "new").is_dir():
        (theirs.folder / "new").rmdir()


def test_kubectl_reads_the_same_beside_ours_and_the_same_as_before_afterwards(
    theirs: Theirs, entry: ClusterEntry
) -> None:
    file = theirs.folder / ".kube" / "config"
    file.parent.mkdir()
    file.write_text(WITH)
    before = theirs.view()
    used = theirs.use(entry)
    after = theirs.view()
    assert after["current-context"] == "kind-ctrl"
    for plural in ("clusters", "contexts", "users"):
        added = [one for one in after[plural] if one not in before[plural]]
        assert [one["name"] for one in added] == ["kind-ctrl"]
        assert [one for one in after[plural] if one in before[plural]] == before[plural]
    theirs("config", "set-context", "kind-ctrl", "--namespace=apps").checked()
    theirs("config", "set-context", "later", "--cluster=prod", "--user=prod").checked()
    assert theirs.undo(used).endswith("; current-context is prod again")
    left = theirs.view()
    assert [one["name"] for one in left["contexts"]] == ["later", "parity", "prod"]
    left["contexts"] = [one for one in left["contexts"] if one["name"] != "later"]
    assert {key: sorted(map(str, left[key])) for key in ("clusters", "contexts", "users")} == {
        key: sorted(map(str, before[key])) for key in ("clusters", "contexts", "users")
    }


def test_the_lock_is_that_of_kubectl(theirs: Theirs, entry: ClusterEntry) -> None:
    file = theirs.folder / ".kube" / "config"
    file.parent.mkdir()
    file.write_text(WITH)
    lock = file.with_name("config.lock")
    lock.write_text(f"kubectl-ctrl {os.getpid()}")  # as a kubectl-ctrl that holds it
    ran = theirs("config", "use-context", "parity")
    assert ran.code == 1
    assert str(lock) in ran.err
    assert file.read_text() == WITH
    lock.unlink()
    theirs.use(entry)
    theirs("config", "use-context", "parity").checked()
    assert sorted(path.name for path in file.parent.iterdir()) == ["config"]


def test_why_it_is_not_done_by_kubectl_config(theirs: Theirs, entry: ClusterEntry) -> None:
    """kubectl drops unknown fields, and writes into the file while others may read it."""
    file = theirs.folder / ".kube" / "config"
    file.parent.mkdir()
    file.write_text("# mine\n" + WITH + UNKNOWN)
    node = file.stat().st_ino
    theirs("config", "use-context", "parity").checked()
    assert "of-nobody-we-know" not in file.read_text()
    assert "# mine" not in file.read_text()
    assert file.stat().st_ino == node, "nothing took its place: it was emptied and filled again"
    file.write_text("# mine\n" + WITH + UNKNOWN)
    used = theirs.use(entry)
    assert yaml.safe_load(file.read_text())["of-nobody-we-know"] == {"kept": True}
    assert file.stat().st_ino != node
    theirs.undo(used)
    assert file.read_text() == "# mine\n" + WITH + UNKNOWN
