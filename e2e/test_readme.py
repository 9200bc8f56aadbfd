"""The README's commands, as they stand there, one after the other."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from e2e.ctrl import Ctrl
from e2e.kube import CHECKOUT, Kubectl, Ran, run, wait_until
from e2e.user import User

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


@pytest.fixture
def tourist(user: User, kubeconfig: Path, programs: Path, tmp_path: Path) -> Iterator[Reader]:
    """Somebody in a checkout, whose own kubeconfig has a cluster of theirs and one that is not local."""
    content = yaml.safe_load(kubeconfig.read_text())
    content["clusters"].append({"name": "staging", "cluster": {"server": "https://staging.invalid:6443"}})
    content["contexts"].append({"name": "staging", "context": {"cluster": "staging", "user": "staging"}})
    content["users"].append({"name": "staging", "user": {"token": "not-a-token"}})
    config = tmp_path / "home" / ".kube" / "config"
    config.parent.mkdir(parents=True)
    config.write_text(yaml.safe_dump(content))
    env = {**user.env, "HOME": str(tmp_path / "home"), "PATH": f"{programs}:{user.env['PATH']}"}
    del env["KUBECONFIG"]
    if shutil.which("kind", path=env["PATH"]) is None:
        del env["KUBECTL_CTRL_PROVIDER"]
    before = config.read_bytes()
    reader = Reader(Ctrl(env, tmp_path))
    yield reader
    reader.kill()
    assert config.read_bytes() == before, "The tour changed the reader's kubeconfig."


class Reader:
    """Types commands into one shell; what runs until Ctrl-C goes to the background."""

    def __init__(self, ctrl: Ctrl) -> None:
        self._ctrl = ctrl
        self._env = dict(ctrl.env)
        self._after = ctrl.folder / "environment"

    def typed(self, command: str) -> Ran:
        """Whatever comes out; what the command makes of the shell's variables is there for the next one."""
        script = f"{command}\ncode=$?; env -0 >{shlex.quote(str(self._after))}; exit $code"
        ran = run("bash", "-o", "pipefail", "-c", script, env=self._env, timeout=300)
        pairs = [pair.partition("=") for pair in self._after.read_text().split("\0") if pair]
        self._env = {name: value for name, _, value in pairs}
        return replace(ran, command=(command,))

    def type(self, command: str) -> str:
        return self.typed(command).checked().out

    def shown(self, command: str, pattern: str) -> str:
        """What it shows, once that has the pattern; it is typed again only where it reads."""
        again = command.startswith(("kubectl get", "kubectl ctrl trace", "kubectl ctrl explain"))

        def look() -> str:
            ran = self.typed(command).checked()
            assert re.search(pattern, ran.out + ran.err), f"{command}\n{ran.out}{ran.err}"
            return ran.out + ran.err

        return wait_until(look, what=command) if again else look()

    def start(self, command: str) -> None:
        """`kubectl ctrl run ...`, until it has reconciled something."""
        self.begin(command)
        self._running.line(r"\bdone\b|rollout")

    def begin(self, command: str) -> None:
        words = shlex.split(command)
        assert words[:3] == ["kubectl", "ctrl", "run"]
        self._running = self._ctrl.started(*words[2:])

    def end(self) -> None:
        """Ctrl-C."""
        assert self._running.stop() == 0

    def kill(self) -> None:
        for started in self._ctrl.all_started:
            started.kill()


# What the lines of the first block show; nothing that matters may be missing.
_TOUR = (
    "",
    r"ok +kwok v[^|]*Recordings",
    r"memcached runs in the background \(process [^|]*context \S+-ctrl; your context \S+ is unchanged\n.*cluster env",
    "",
    r"memcached-sample +3 +3 (.|\n)*(pod/memcached-sample-\S+ +1/1 +Running .*\n){3}",
    r"memcached-sample patched",
    r"spec\.size 3→5 by kubectl-patch .*apply Deployment/memcached-sample 200 (.|\n)*\nNEXT ",
    # Where the pods of a slow machine come late, the edit stands apart from the chain.
    r"^CONVERGED for (.|\n)* spec\.size 3→5 by kubectl-patch (.|\n)*\nCHAIN +kub(.|\n)*wakes on Memcached",
    r"(.* default/memcached-sample r\w+-\d+ .*\n){4}(.|\n)*memcached: run r\w+, process \d+",
    r"1 controller ended(.|\n)*cluster ctrl \(\w+\) removed(.|\n)*files removed",
    r"^cluster ctrl \(\w+\), deleted (.|\n)*spec\.size 3→5 by kubectl-patch",
    "",
)


def test_the_first_tour(tourist: Reader, user: User) -> None:
    steps = commands("First tour")
    assert len(steps) > len(_TOUR)
    for step, pattern in zip(steps, _TOUR, strict=False):
        told = tourist.shown(step, pattern)
        if step == "kubectl ctrl down":
            assert (user.processes(), user.files()) == ([], []), told


def test_the_first_tour_goes_on_with_ones_own_cluster(tourist: Reader, kubectl: Kubectl) -> None:
    begins, example, trace, delete, refused = commands("First tour")[len(_TOUR) :]
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


def deployment_uid(kubectl: Kubectl) -> str:
    found = kubectl.find("deployment", "example-foo")
    return str(found["metadata"]["uid"]) if found else ""
