"""What every provider of clusters keeps, as one body: a lane's file subclasses it and says how its clusters are made.

It is driven through e2e/making.py, a program of the room itself, so that it can be interrupted and killed anywhere.
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

_numbers = count(1)


@dataclass(kw_only=True)
class Maker:
    """One provider, a registry of the test's own, and what a lane knows of the machine below."""

    provider: str
    kubectl: Path
    env: Mapping[str, str]
    root: Path
    spec: Mapping[str, Any]
    names: list[str] = field(default_factory=list)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def name(self) -> str:
        """A new one, of this session alone: a container runtime is shared with others."""
        self.names.append(f"c{os.getpid()}-{next(_numbers)}")
        return self.names[-1]

    def folder(self, name: str) -> Path:
        return self.root / "clusters" / name

    def page(self, name: str) -> dict[str, Any]:
        page: dict[str, Any] = json.loads((self.folder(name) / "cluster.json").read_text())
        return page

    def start(self, verb: str, name: str, **spec: Any) -> Making:
        command = [sys.executable, "-m", "e2e.making", verb, self.provider, name, str(self.root)]
        env = {**self.env, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1"}
        said = self.root.parent / f"said-{len(self.started)}"
        asked = said.with_suffix(".spec")
        asked.write_text(json.dumps({**self.spec, **spec}))
        with asked.open() as source, said.open("w") as output:
            # A session of its own: what is pressed or killed is this program alone.
            process = subprocess.Popen(
                command, env=env, stdin=source, stdout=output, stderr=output, start_new_session=True
            )
        self.started.append(process)
        return Making(process, said)

    def do(self, verb: str, name: str, **spec: Any) -> Making:
        return self.start(verb, name, **spec).ended()

    def up(self, name: str, **spec: Any) -> dict[str, Any]:
        making = self.do("up", name, **spec)
        assert making.code == 0, making.lines
        entry: dict[str, Any] = making.answer["entry"]
        return entry

    def admin(self, name: str) -> Kubectl:
        return Kubectl(self.kubectl, {**self.env, "KUBECONFIG": str(self.folder(name) / "kubeconfig")})

    def left(self, name: str) -> list[str]:
        """Whatever there is of it anywhere: processes, containers, files."""
        raise NotImplementedError

    def stop(self, name: str) -> None:
        """As a restart of the machine does."""
        raise NotImplementedError

    def lose_part(self, name: str) -> None:
        """Something without which it does not serve."""
        raise NotImplementedError

    def take_name(self, name: str) -> None:
        """Have somebody else have a cluster of that name."""
        raise NotImplementedError

    def files(self, name: str) -> list[str]:
        """What is left of it in the registry, locks too."""
        clusters = self.root / "clusters"
        inside = [self.folder(name), clusters / f"{name}.lock", clusters / ".ports.lock"]
        return [str(path) for path in inside if path.exists()]


class Making:
    """e2e/making.py, running or ended."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process = process
        self._said = said

    @property
    def lines(self) -> list[str]:
        return [line for line in self._said.read_text().splitlines(keepends=True) if line.endswith("\n")]

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

    def ended(self) -> Making:
        self.process.wait(timeout=600)
        return self

    def send(self, number: signal.Signals) -> Making:
        self.process.send_signal(number)
        return self

    def has_noted(self, text: str) -> Making:
        wait_until(
            lambda: any(text in note for note in self.notes) or self.process.poll() is not None,
            deadline=300,
            every=0.01,
            what=f"a note of {text!r}",
        )
        return self


class ClusterContract:
    """Subclass it, with a fixture `maker`."""

    kills = 10
    longest = 6.0  # seconds in which most of a creation happens
    begun = ""  # a part of a note that is given in the middle of a creation

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
        """Nothing is left of it; where something is, it is said."""
        assert (maker.left(name), maker.files(name)) == ([], [])
        return True

    def test_it_is_made_found_again_and_taken_away(self, maker: Maker) -> None:
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

    def test_one_that_lost_a_part_is_made_whole(self, maker: Maker) -> None:
        name = maker.name()
        made = maker.up(name)
        maker.lose_part(name)
        state = maker.do("state", name).answer["state"]
        assert state in ("stopped", "absent"), state
        again = maker.up(name)
        assert again["phase"] == "ready"
        # What is left of it stays; where nothing is, there is a new one.
        assert (again["uid"] == made["uid"]) is (state == "stopped")
        assert maker.do("state", name).answer == {"state": "running"}
        assert maker.admin(name)("get", "--raw=/readyz") == "ok"

    def test_one_without_its_kubeconfig_is_not_given_up_unasked(self, maker: Maker) -> None:
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

    def test_its_logs_are_copied(self, maker: Maker) -> None:
        name = maker.name()
        maker.up(name)
        assert maker.do("logs", name).code == 0
        copied = [path for path in (maker.root / "logs").rglob("*") if path.is_file() and path.stat().st_size]
        assert any("apiserver" in str(path) for path in copied)

    def test_interrupted_in_the_middle_it_leaves_nothing(self, maker: Maker) -> None:
        name = maker.name()
        making = maker.start("up", name).has_noted(self.begun).send(signal.SIGINT).ended()
        assert making.code == 130, making.lines
        self.gone(maker, name)

    def test_one_that_does_not_come_up_in_time_is_kept_only_when_that_is_asked_for(self, maker: Maker) -> None:
        name = maker.name()
        hurried = maker.do("up", name, wait=0.5)
        assert (hurried.code, hurried.answer["error"]["id"]) == (124, "CTRL-TIMEOUT"), hurried.lines
        self.gone(maker, name)
        kept = maker.do("up", name, wait=0.5, keep_on_failure=True)
        assert kept.code == 124
        assert f"down {name}" in kept.answer["error"]["next_step"]
        assert maker.page(name)["phase"] == "creating"
        assert maker.left(name)
        assert maker.do("down", name).answer == {"removed": True}
        self.gone(maker, name)

    def test_killed_anywhere_in_a_creation_it_can_be_taken_away(self, maker: Maker) -> None:
        chance = Random(58)
        for moment in sorted(chance.uniform(0.05, self.longest) for _ in range(self.kills)):
            name = maker.name()
            making = maker.start("up", name)
            with suppress(subprocess.TimeoutExpired):
                making.process.wait(timeout=moment)
            making.send(signal.SIGKILL).ended()
            removed = maker.do("down", name)
            assert removed.code == 0, (moment, removed.lines)
            self.gone(maker, name)

    def test_killed_in_the_middle_it_is_made_by_the_next_one(self, maker: Maker) -> None:
        name = maker.name()
        maker.start("up", name).has_noted(self.begun).send(signal.SIGKILL).ended()
        assert maker.page(name)["phase"] == "creating"
        again = maker.do("up", name)
        assert again.answer["entry"]["phase"] == "ready"
        assert any("was not completely created" in note for note in again.notes)
        assert maker.admin(name)("get", "--raw=/readyz") == "ok"

    def test_killed_while_it_is_taken_away_it_can_be_taken_away(self, maker: Maker) -> None:
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

    def test_taken_away_without_its_page_in_the_book(self, maker: Maker) -> None:
        """As after a power loss, or by a user who tidied up: the provider itself knows what is its own."""
        name = maker.name()
        maker.up(name)
        (maker.folder(name) / "cluster.json").unlink()
        assert maker.do("down", name).answer == {"removed": True}
        self.gone(maker, name)

    def test_two_are_made_at_once_side_by_side(self, maker: Maker) -> None:
        one, other = maker.name(), maker.name()
        makings = [maker.start("up", name) for name in (one, other)]
        entries = [making.ended().answer["entry"] for making in makings]
        assert len({entry["server"] for entry in entries}) == len({entry["uid"] for entry in entries}) == 2
        assert maker.do("down", one).answer == {"removed": True}
        assert maker.admin(other)("get", "--raw=/readyz") == "ok"
        assert maker.left(one) == []

    def test_two_who_make_the_same_one_wait_for_each_other(self, maker: Maker) -> None:
        name = maker.name()
        first = maker.start("up", name).has_noted(self.begun)
        second = maker.start("up", name)
        entries = [making.ended().answer["entry"] for making in (first, second)]
        assert entries[0] == entries[1]
        assert second.notes == [f"waiting for process {first.process.pid}, which is changing cluster {name!r}"]

    def test_a_name_of_somebody_else_is_refused_and_left_alone(self, maker: Maker) -> None:
        name = maker.name()
        maker.take_name(name)
        before = maker.left(name)
        refused = maker.do("up", name)
        assert (refused.code, refused.answer["error"]["id"]) == (6, "CTRL-REFUSED"), refused.lines
        assert maker.left(name) == before
        assert maker.files(name) == []
