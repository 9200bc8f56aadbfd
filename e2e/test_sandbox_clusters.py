"""Clusters of the sandbox: the contract of all providers, and its own properties."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.contract_clusters import Maker, RegistryContract
from e2e.kube import wait_until
from kubectl_ctrl.processes import has_exited, of_module


class SandboxMaker(Maker):
    """All of a cluster is in its folder, which its one process names."""

    def place(self, name: str) -> Path:
        return self.folder(name) / "sandbox"

    def processes(self, name: str) -> tuple[int, ...]:
        return of_module("kubectl_ctrl.sandbox", self.place(name))

    def left(self, name: str) -> list[str]:
        return [*map(str, self.processes(name)), *(str(path) for path in [self.place(name)] if path.exists())]

    def stop(self, name: str) -> None:
        pids = self.processes(name)
        assert len(pids) == 1
        os.kill(pids[0], signal.SIGKILL)
        wait_until(lambda: not self.processes(name) and has_exited(pids[0]), what="its end")

    def lose_part(self, name: str) -> None:
        self.stop(name)


@pytest.fixture
def maker(programs: Path, plain_env: Mapping[str, str], tmp_path: Path) -> SandboxMaker:
    home = tmp_path / "home of mine"
    home.mkdir()
    root = home / "state"
    return SandboxMaker(
        provider="sandbox", kubectl=programs / "kubectl", env={**plain_env, "HOME": str(home)}, root=root, spec={}
    )


class TestSandbox(RegistryContract):
    begun = "starting the API server"
    longest = 1.5

    def test_it_has_the_requested_nodes(self, maker: SandboxMaker) -> None:
        name = maker.name()
        maker.up(name, nodes=3)
        assert len(maker.admin(name).json("get", "nodes")["items"]) == 3

    def test_without_nodes_it_only_answers(self, maker: SandboxMaker) -> None:
        name = maker.name()
        maker.up(name, nodes=0)
        assert maker.admin(name).json("get", "nodes")["items"] == []

    def test_pods_run_and_there_is_nothing_to_load_into(self, maker: SandboxMaker) -> None:
        name = maker.name()
        maker.up(name)
        admin = maker.admin(name)
        admin("create", "deployment", "web", "--image=nginx", "--replicas=2")
        admin("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
        refused = maker.do("load", name)
        assert refused.answer["error"]["id"] == "CTRL-USAGE"

    def test_a_port_that_another_program_took_is_named(self, maker: SandboxMaker) -> None:
        name = maker.name()
        made = maker.up(name)
        maker.stop(name)
        port = int(made["server"].rpartition(":")[2])
        with socket.create_server(("127.0.0.1", port)):
            refused = maker.do("up", name)
        assert refused.answer["error"]["id"] == "CTRL-CLUSTER"
        assert f"another program uses its port {port}" in refused.answer["error"]["message"]
        assert maker.up(name) == made
