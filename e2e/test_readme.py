"""The README's commands, as they stand there, one after the other."""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

import pytest

from e2e.ctrl import Ctrl
from e2e.kube import CHECKOUT, Kubectl, run, wait_until

README = (CHECKOUT / "README.md").read_text()


def commands(heading: str) -> list[str]:
    """The lines of a section's shell blocks, without remarks."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]


@pytest.fixture
def reader(ctrl: Ctrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Somebody who types what the README says, in a folder of their own."""
    folder = tmp_path / "somewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Reader(ctrl)


class Reader:
    """Types commands; what runs until Ctrl-C goes to the background."""

    def __init__(self, ctrl: Ctrl) -> None:
        self._ctrl = ctrl

    def type(self, command: str) -> str:
        ran = run("bash", "-o", "pipefail", "-c", command, env=self._ctrl.env, timeout=120)
        return ran.checked().out

    def start(self, command: str) -> None:
        """`kubectl ctrl run ...`, until it has reconciled something."""
        words = shlex.split(command)
        assert words[:3] == ["kubectl", "ctrl", "run"]
        self._running = self._ctrl.started(*words[2:])
        self._running.line(r"\bdone\b|rollout")

    def end(self) -> None:
        """Ctrl-C."""
        assert self._running.stop() == 0


def test_the_first_tour(reader: Reader, kubectl: Kubectl) -> None:
    steps = commands("First tour")
    assert steps[:2] == ['export PATH="$PWD/bin:$PATH"', "hack/realkube up tour"]
    for step in steps[3:]:
        if "--context prod-eu" in step:
            continue  # a context that only its owner has
        if step.startswith("kubectl ctrl run"):
            reader.start(step)
        elif "scale" in step:
            reader.type(step)
            wait_until(lambda: replicas(kubectl) == 3, what="three replicas")
        elif "delete deployment" in step:
            former = ["", deployment_uid(kubectl)]
            reader.type(step)
            wait_until(partial(is_another, kubectl, former), what="the Deployment is back")
        else:
            reader.type(step)
    # Where the type is new, the garbage collector learns of it within half a minute, and then looks again.
    wait_until(lambda: not deployment_uid(kubectl), what="the Deployment went with its Foo", deadline=120)


def test_the_controllers(reader: Reader) -> None:
    reader.type("kubectl ctrl install foo memcached")
    for name in ("foo", "memcached"):
        reader.type(f"kubectl ctrl example {name} | kubectl apply -f -")
    both, until, installed = commands("The controllers")
    reader.start(both)
    reader.end()
    reader.type(until)
    reader.start(installed)


def test_what_they_did_and_why(reader: Reader, kubectl: Kubectl) -> None:
    reader.type("kubectl ctrl install foo")
    reader.type("kubectl ctrl example foo | kubectl apply -f -")
    begins, *steps = commands("What they did, and why")
    reader.start(begins)
    kubectl("wait", "--for=condition=Available", "deployment/example-foo")
    wait_until(lambda: "CONVERGED" in reader.type("kubectl ctrl explain foo/example-foo"), what="it is at rest")
    told = {step: reader.type(step) for step in steps}
    assert all(text for step, text in told.items() if ">" not in step)
    (trace, one, *_) = told.values()
    assert re.search(r"initial list.*create Deployment/example-foo 201", trace)
    assert "WOKEN BY" in one
    reader.end()
    attempt = re.search(r"\br[0-9a-f]{3}-1\b", trace)
    assert attempt
    assert "SAME" in reader.type(f"kubectl ctrl replay {attempt[0]}")
    reader.type(f"kubectl ctrl record export {attempt[0]} > case.json && kubectl ctrl replay case.json")
    assert Path("trace.html").read_text().startswith("<!doctype html>")


def test_ones_own(reader: Reader, kubectl: Kubectl) -> None:
    *steps, last = commands("Your own")
    assert last == "kubectl ctrl run ./greeter --reload"
    for step in steps:
        reader.type(step)
    reader.start(last)
    reader.end()
    reader.type("kubectl ctrl uninstall ./greeter --crds=delete --yes")


def is_another(kubectl: Kubectl, former: list[str]) -> bool:
    return deployment_uid(kubectl) not in former


def replicas(kubectl: Kubectl) -> int:
    found = kubectl.find("deployment", "example-foo")
    return int(found["spec"]["replicas"]) if found else 0


def deployment_uid(kubectl: Kubectl) -> str:
    found = kubectl.find("deployment", "example-foo")
    return str(found["metadata"]["uid"]) if found else ""
