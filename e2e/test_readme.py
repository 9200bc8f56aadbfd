"""The README's commands, in their order."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from e2e import tour
from e2e.ctrl import Ctrl
from e2e.kube import Kubectl, wait_until
from e2e.tour import Reader, commands
from e2e.user import User


@pytest.fixture
def reader(ctrl: Ctrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """A reader who types the README's commands, in their own folder."""
    folder = tmp_path / "somewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Reader(ctrl)


@pytest.fixture
def tourist(user: User, kubeconfig: Path, programs: Path, tmp_path: Path) -> Iterator[Reader]:
    """A reader in a checkout, whose kubeconfig has their own cluster and one that is not local."""
    content = yaml.safe_load(kubeconfig.read_text())
    content["clusters"].append({"name": "staging", "cluster": {"server": "https://staging.invalid:6443"}})
    content["contexts"].append({"name": "staging", "context": {"cluster": "staging", "user": "staging"}})
    content["users"].append({"name": "staging", "user": {"token": "not-a-token"}})
    env = {**user.env, "PATH": f"{programs}:{user.env['PATH']}"}
    if shutil.which("kind", path=env["PATH"]) is None:
        del env["KUBECTL_CTRL_PROVIDER"]
    with tour.tourist(tmp_path, env, yaml.safe_dump(content)) as reader:
        yield reader


@pytest.mark.real
def test_the_first_tour(tourist: Reader, user: User) -> None:
    tour.take(tourist, user, "kwok")


def test_the_rest_of_the_first_tour_on_an_existing_cluster(tourist: Reader, kubectl: Kubectl) -> None:
    begins, example, trace, delete, refused = commands("First tour")[len(tour.TOUR) :]
    install, run_foo = begins.split(" && ")
    tourist.type(install)
    tourist.begin(run_foo)
    tourist.type(example)
    tourist.shown(trace, r"initial list|added.*create Deployment/example-foo 201")
    wait_until(lambda: deployment_uid(kubectl), what="the Deployment is there")
    former = ["", deployment_uid(kubectl)]
    tourist.type(delete)
    wait_until(partial(is_another, kubectl, former), what="the Deployment is back")
    told = tourist.typed(refused)
    assert (told.code, told.out) == (6, "")
    assert "next: repeat with --allow-context staging if that is the cluster you mean" in told.err
    tourist.end()


@pytest.mark.real
def test_the_controllers(reader: Reader) -> None:
    reader.type("kubectl ctrl install foo memcached")
    for name in ("foo", "memcached"):
        reader.type(f"kubectl ctrl example {name} | kubectl apply -f -")
    both, until, installed = commands("The controllers")
    reader.start(both)
    reader.end()
    reader.type(until)
    reader.start(installed)


def test_trace_and_explain(reader: Reader, kubectl: Kubectl) -> None:
    reader.type("kubectl ctrl install foo")
    reader.type("kubectl ctrl example foo | kubectl apply -f -")
    begins, *steps = commands("Trace and explain")
    reader.start(begins)
    kubectl("wait", "--for=condition=Available", "deployment/example-foo", "--timeout=110s")
    wait_until(lambda: "CONVERGED" in reader.type("kubectl ctrl explain foo/example-foo"), what="it is at rest")
    told = {step: reader.type(step) for step in steps}
    assert all(text for step, text in told.items() if ">" not in step)
    (trace, one, *_) = told.values()
    assert re.search(r"initial list.*create Deployment/example-foo 201", trace)
    assert "TRIGGERED BY" in one
    reader.end()
    attempt = re.search(r"\br[0-9a-f]{3}-1\b", trace)
    assert attempt
    assert "SAME" in reader.type(f"kubectl ctrl replay {attempt[0]}")
    reader.type(f"kubectl ctrl record export {attempt[0]} > case.json && kubectl ctrl replay case.json")
    assert Path("trace.html").read_text().startswith("<!doctype html>")


def test_ones_own_controller(reader: Reader, kubectl: Kubectl) -> None:
    *steps, last = commands("Your own controller")
    assert last == "kubectl ctrl run ./greeter --reload"
    for step in steps:
        reader.type(step)
    reader.start(last)
    reader.end()
    reader.type("kubectl ctrl uninstall ./greeter --crds=delete --yes")


def is_another(kubectl: Kubectl, former: list[str]) -> bool:
    return deployment_uid(kubectl) not in former


def deployment_uid(kubectl: Kubectl) -> str:
    found = kubectl.find("deployment", "example-foo")
    return str(found["metadata"]["uid"]) if found else ""
