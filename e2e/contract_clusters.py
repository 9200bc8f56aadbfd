"""The contract of all providers of clusters: each lane subclasses it with its own way to create clusters.

It uses e2e/provider.py, a program of the package, so that it can be interrupted and killed at any time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from e2e.kube import CHECKOUT, Kubectl, wait_until
from kubectl_ctrl.runs.holder import is_stopped

_numbers = count(1)


@dataclass(kw_only=True)
class Maker:
    """One provider, the test's own registry, and the lane's access to the machine."""

    provider: str
    kubectl: Path
    env: Mapping[str, str]
    root: Path
    spec: Mapping[str, Any]
    names: list[str] = field(default_factory=list)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def name(self) -> str:
        """A new name, unique to this session: others may use the same container runtime."""
        self.names.append(f"c{os.getpid()}-{next(_numbers)}")
        return self.names[-1]

    def folder(self, name: str) -> Path:
        return self.root / "clusters" / name

    def page(self, name: str) -> dict[str, Any]:
        page: dict[str, Any] = json.loads((self.folder(name) / "cluster.json").read_text())
        return page

    def start(self, verb: str, name: str, **spec: Any) -> ProgramRun:
        command = [sys.executable, "-m", "e2e.provider", verb, self.provider, name, str(self.root)]
        env = {**self.env, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}
        printed = self.root.parent / f"printed-{len(self.started)}"
        given = printed.with_suffix(".spec")
        given.write_text(json.dumps({**self.spec, **spec}))
        with given.open() as source, printed.open("w") as output:
            # Its own session: Ctrl-C and kills affect only this program.
            process = subprocess.Popen(
                command, env=env, stdin=source, stdout=output, stderr=output, start_new_session=True
            )
        self.started.append(process)
        return ProgramRun(process, printed)

    def do(self, verb: str, name: str, **spec: Any) -> ProgramRun:
        return self.start(verb, name, **spec).ended()

    def up(self, name: str, **spec: Any) -> dict[str, Any]:
        run = self.do("up", name, **spec)
        assert run.code == 0, run.lines
        entry: dict[str, Any] = run.answer["entry"]
        return entry

    def admin(self, name: str) -> Kubectl:
        return Kubectl(self.kubectl, {**self.env, "KUBECONFIG": str(self.folder(name) / "kubeconfig")})

    def left(self, name: str) -> list[str]:
        """Its processes, containers and files."""
        raise NotImplementedError

    def stop(self, name: str) -> None:
        """Stop it, as a restart of the machine does."""
        raise NotImplementedError

    def lose_part(self, name: str) -> None:
        """Delete a part that it needs."""
        raise NotImplementedError

    def take_name(self, name: str) -> None:
        """Create a cluster of that name for another user."""
        raise NotImplementedError

    def files(self, name: str) -> list[str]:
        """Its files in the registry, including locks."""
        clusters = self.root / "clusters"
        inside = [self.folder(name), clusters / f"{name}.lock", clusters / ".ports.lock"]
        return [str(path) for path in inside if path.exists()]


class ProgramRun:
    """A run of e2e/provider.py."""

    def __init__(self, process: subprocess.Popen[bytes], printed: Path) -> None:
        self.process = process
        self._printed = printed

    @property
    def lines(self) -> list[str]:
        return [line for line in self._printed.read_text().splitlines(keepends=True) if line.endswith("\n")]

    @property
    def notes(self) -> list[str]:
        return [note for line in self.lines if line.startswith("{") and (note := json.loads(line).get("note"))]

    @property
    def answer(self) -> dict[str, Any]:
        assert self.lines, "it printed nothing"
        answer: dict[str, Any] = json.loads(self.lines[-1])
        return answer

    @property
    def code(self) -> int:
        return self.process.wait(timeout=600)

    def ended(self) -> ProgramRun:
        self.process.wait(timeout=600)
        return self

    def send(self, number: signal.Signals) -> ProgramRun:
        self.process.send_signal(number)
        return self

    def has_stopped(self) -> ProgramRun:
        wait_until(lambda: self.process.poll() is not None or is_stopped(self.process.pid), what="its stop")
        return self

    def has_noted(self, text: str) -> ProgramRun:
        wait_until(
            lambda: any(text in note for note in self.notes) or self.process.poll() is not None,
            deadline=300,
            every=0.01,
            what=f"a note of {text!r}",
        )
        return self


class ClusterContract:
    """Subclasses have a fixture `maker`."""

    kills = 10
    longest = 6.0  # seconds of most of a creation
    begun = ""  # part of a note in the middle of a creation; tests stop the program there

    @pytest.fixture(autouse=True)
    def _nothing_stays(self, maker: Maker) -> Iterator[None]:
        yield
        for process in maker.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for name in maker.names:
            maker.do("down", name)
        assert not Path(maker.env["HOME"], ".kube", "config").exists(), "The test wrote to the user's kubeconfig."

    def gone(self, maker: Maker, name: str) -> bool:
        assert (maker.left(name), maker.files(name)) == ([], [])
        return True

    def test_it_is_created_found_again_logged_and_deleted(self, maker: Maker) -> None:
        name = maker.name()
        made = maker.up(name)
        admin = maker.admin(name)
        assert made["context"] == f"{maker.provider}-{name}" == admin("config", "current-context").strip()
        assert made["version"].startswith("v1.")
        assert made["ca"]
        nodes = admin.json("get", "nodes")["items"]
        ready = [c["status"] for node in nodes for c in node["status"]["conditions"] if c["type"] == "Ready"]
        assert set(ready) == {"True"}
        assert admin.find("namespace", "kube-system")["metadata"]["uid"] == made["uid"]
        assert (maker.folder(name) / "kubeconfig").stat().st_mode & 0o777 == 0o600
        again = maker.start("up", name).ended()
        assert (again.answer["entry"], again.notes) == (made, [])
        assert maker.do("logs", name).code == 0
        copied = [path for path in (maker.root / "logs").rglob("*") if path.is_file() and path.stat().st_size]
        assert any("apiserver" in str(path) for path in copied)
        assert maker.do("down", name).answer == {"removed": True}
        self.gone(maker, name)
        assert maker.do("down", name).answer == {"removed": False}

    def test_it_comes_back_after_a_restart_of_the_machine(self, maker: Maker) -> None:
        name = maker.name()
        made = maker.up(name)
        maker.admin(name)("create", "configmap", "kept", "--from-literal=a=b")
        maker.stop(name)
        assert maker.do("state", name).answer == {"state": "stopped"}
        again = maker.do("up", name)
        assert again.answer["entry"] == made
        assert any("is stopped" in note for note in again.notes)
        assert maker.admin(name).find("configmap", "kept")["data"] == {"a": "b"}

    def test_one_that_lost_a_part_is_repaired(self, maker: Maker) -> None:
        name = maker.name()
        made = maker.up(name)
        maker.lose_part(name)
        state = maker.do("state", name).answer["state"]
        assert state in ("stopped", "absent"), state
        again = maker.up(name)
        assert again["phase"] == "ready"
        # A stopped cluster is started, an absent one is created again.
        assert (again["uid"] == made["uid"]) is (state == "stopped")
        assert maker.do("state", name).answer == {"state": "running"}
        assert maker.admin(name)("get", "--raw=/readyz") == "ok"

    def test_interrupted_in_the_middle_it_leaves_nothing(self, maker: Maker) -> None:
        name = maker.name()
        run = maker.start("up", name, stops_at=self.begun).has_noted(self.begun).has_stopped()
        run.send(signal.SIGINT).send(signal.SIGCONT).ended()
        assert run.code == 130, run.lines
        self.gone(maker, name)

    def test_killed_at_any_time_of_a_creation_it_can_be_deleted(self, maker: Maker) -> None:
        chance = Random(58)
        for moment in sorted(chance.uniform(0.05, self.longest) for _ in range(self.kills)):
            name = maker.name()
            run = maker.start("up", name)
            with suppress(subprocess.TimeoutExpired):
                run.process.wait(timeout=moment)
            run.send(signal.SIGKILL).ended()
            removed = maker.do("down", name)
            assert removed.code == 0, (moment, removed.lines)
            self.gone(maker, name)

    def test_killed_in_the_middle_it_is_created_by_the_next_up(self, maker: Maker) -> None:
        name = maker.name()
        maker.start("up", name, stops_at=self.begun).has_noted(self.begun).has_stopped().send(signal.SIGKILL).ended()
        assert maker.page(name)["phase"] == "creating"
        again = maker.do("up", name)
        assert again.answer["entry"]["phase"] == "ready"
        assert any("was not completely created" in note for note in again.notes)
        assert maker.admin(name)("get", "--raw=/readyz") == "ok"

    def test_killed_during_a_deletion_it_can_be_deleted(self, maker: Maker) -> None:
        name = maker.name()
        maker.up(name)
        removing = maker.start("down", name)
        page = maker.folder(name) / "cluster.json"

        def is_marked() -> bool:
            with suppress(FileNotFoundError):
                return '"deleting"' in page.read_text()
            return True

        wait_until(lambda: removing.process.poll() is not None or is_marked(), every=0.001, what="its mark")
        removing.send(signal.SIGKILL).ended()
        assert maker.do("down", name).code == 0
        self.gone(maker, name)

    def test_deleted_without_its_registry_entry(self, maker: Maker) -> None:
        """As after a power loss, or a deletion by hand: the provider itself recognizes its clusters."""
        name = maker.name()
        maker.up(name)
        (maker.folder(name) / "cluster.json").unlink()
        assert maker.do("down", name).answer == {"removed": True}
        self.gone(maker, name)

    def test_two_are_created_at_once(self, maker: Maker) -> None:
        one, other = maker.name(), maker.name()
        runs = [maker.start("up", name) for name in (one, other)]
        entries = [run.ended().answer["entry"] for run in runs]
        assert len({entry["server"] for entry in entries}) == len({entry["uid"] for entry in entries}) == 2
        assert maker.do("down", one).answer == {"removed": True}
        assert maker.admin(other)("get", "--raw=/readyz") == "ok"
        assert maker.left(one) == []


class RegistryContract(ClusterContract):
    """With what the registry does alike for all providers; played on the one that is fastest."""

    def test_one_without_its_kubeconfig_is_not_replaced(self, maker: Maker) -> None:
        name = maker.name()
        made = maker.up(name)
        kubeconfig = maker.folder(name) / "kubeconfig"
        aside = kubeconfig.rename(kubeconfig.with_name("aside"))
        refused = maker.do("up", name)
        assert (refused.code, refused.answer["error"]["id"]) == (1, "CTRL-CLUSTER"), refused.lines
        assert "its kubeconfig is missing" in refused.answer["error"]["message"]
        aside.rename(kubeconfig)
        assert maker.up(name) == made
        assert maker.admin(name)("get", "--raw=/readyz") == "ok"

    def test_one_that_is_not_ready_in_time_is_kept_only_with_keep_on_failure(self, maker: Maker) -> None:
        name = maker.name()
        hurried = maker.do("up", name, wait=0.0)
        assert (hurried.code, hurried.answer["error"]["id"]) == (124, "CTRL-TIMEOUT"), hurried.lines
        self.gone(maker, name)
        kept = maker.do("up", name, wait=0.0, keep_on_failure=True)
        assert kept.code == 124
        assert f"down {name}" in kept.answer["error"]["next_step"]
        assert maker.page(name)["phase"] == "creating"
        assert maker.left(name)
        assert maker.do("down", name).answer == {"removed": True}
        self.gone(maker, name)

    def test_two_creations_of_one_cluster_wait_for_each_other(self, maker: Maker) -> None:
        name = maker.name()
        first = maker.start("up", name, stops_at=self.begun).has_noted(self.begun).has_stopped()
        second = maker.start("up", name).has_noted("waiting for process")
        first.send(signal.SIGCONT)
        entries = [run.ended().answer["entry"] for run in (first, second)]
        assert entries[0] == entries[1]
        assert second.notes == [f"waiting for process {first.process.pid}, which is changing cluster {name!r}"]


class SharedNames:
    """The contract of providers whose names of clusters other programs use too."""

    def test_a_name_of_somebody_else_is_refused_and_left_alone(self, maker: Maker) -> None:
        name = maker.name()
        maker.take_name(name)
        before = maker.left(name)
        refused = maker.do("up", name)
        assert (refused.code, refused.answer["error"]["id"]) == (6, "CTRL-REFUSED"), refused.lines
        assert maker.left(name) == before
        assert maker.files(name) == []
