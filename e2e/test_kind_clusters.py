"""Clusters of the real kind: the contract of all providers, and the properties of kind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote

import pytest

from e2e.contract_clusters import ClusterContract, Maker
from e2e.docker import Docker
from e2e.kube import KindLane, run, wait_until


class KindMaker(Maker):
    """A cluster of kind consists of containers, and during its creation of a kind process started from its folder."""

    @property
    def docker(self) -> Docker:
        return Docker(self.env)

    def left(self, name: str) -> list[str]:
        return [*self.docker.nodes(name), *self.processes(name)]

    def running_first(self, words: str, folder: Path) -> KindMaker:
        """The same, with a docker that runs these commands before it creates a node."""
        docker = run("which", "docker", env=self.env).checked().out.strip()
        folder.mkdir()
        (folder / "docker").write_text(f'#!/bin/sh\n[ "$1" != run ] || {{ {words}; }}\nexec {quote(docker)} "$@"\n')
        (folder / "docker").chmod(0o755)
        return replace(self, env={**self.env, "PATH": f"{folder}:{self.env['PATH']}"})

    def processes(self, name: str) -> list[str]:
        """Processes outside of containers with the folder's path or the name of a node in their arguments."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and entry.name != str(os.getpid()):
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    inside = (entry / "ns" / "mnt").readlink() != Path("/proc/self/ns/mnt").readlink()
                except OSError:
                    continue
                if not inside and any(
                    f"{self.folder(name)}/" in word or word == f"{name}-control-plane" for word in words
                ):
                    found.append(" ".join(words))
        return found

    def stop(self, name: str) -> None:
        self.docker.stop(name)

    def lose_part(self, name: str) -> None:
        # Without -v, as users do it: the volume stays.
        before = self.docker.unused_volumes()
        self.docker("rm", "-f", *self.docker.nodes(name))
        wait_until(lambda: self.docker.unused_volumes() - before, what="the volume that nobody uses any more")

    def take_name(self, name: str) -> None:
        self.docker.imitate_node(name, self.spec["image"])


@pytest.fixture(scope="module", autouse=True)
def _no_volume_is_forgotten(kind_lane: KindLane) -> Iterator[None]:
    docker = Docker(kind_lane.env)
    before = docker.unused_volumes()
    yield
    docker.assert_no_new_volumes(before)


@pytest.fixture
def maker(kind_lane: KindLane, tmp_path: Path) -> Iterator[KindMaker]:
    home = tmp_path / "the user's home"  # with a space and a quote, as users have them
    home.mkdir()
    found = run("which", "kubectl", env=kind_lane.env).checked().out.strip()
    made = KindMaker(
        provider="kind",
        kubectl=Path(found),
        env={**kind_lane.env, "HOME": str(home)},
        root=home / "state",
        spec={"image": kind_lane.image},
    )
    yield made
    for name in made.names:
        made.docker.remove(name)


class TestKind(ClusterContract):
    """All of it; the removal of a node takes a while."""

    begun = "starting the control plane"
    kills = 3
    longest = 9.0

    def test_a_cluster_created_by_hand_after_a_kill_belongs_to_its_creator(
        self, maker: KindMaker, tmp_path: Path
    ) -> None:
        """Killed before the first node: a minute later the name belongs to another user."""
        name, began = maker.name(), tmp_path / "a node was to be made"
        waits = f": > {quote(str(began))}; while [ -e {quote(str(began))} ]; do sleep 0.1; done; exit 1"
        making = maker.running_first(waits, tmp_path / "bin").start("up", name)
        wait_until(began.exists, what="kind, which makes a node")
        making.send(signal.SIGKILL).ended()
        assert maker.docker.nodes(name) == []
        maker.take_name(name)
        began.unlink()
        theirs = maker.docker("ps", "-a", "-q", "--filter", f"name=^{name}-control-plane$")
        for verb, code in (("up", 6), ("down", 0)):
            assert maker.do(verb, name).code == code
            assert maker.docker("ps", "-a", "-q", "--filter", f"name=^{name}-control-plane$") == theirs != ""
        assert (maker.processes(name), maker.files(name)) == ([], [])

    def test_a_network_that_another_cluster_deleted_is_recreated(self, maker: KindMaker, tmp_path: Path) -> None:
        """The network exists when kind checks it, and is deleted before its first node."""
        name, network, once = maker.name(), f"kubectl-ctrl-{os.getpid()}-gone", quote(str(tmp_path / "once"))
        unlucky = maker.running_first(
            f"[ -e {once} ] || {{ : > {once}; docker network rm {network}; }}", tmp_path / "bin"
        )
        unlucky.env = {**unlucky.env, "KIND_EXPERIMENTAL_DOCKER_NETWORK": network}
        unlucky.up(name)
        assert maker.do("state", name).answer == {"state": "running"}
        assert maker.do("down", name).answer == {"removed": True}
        assert network not in maker.docker.networks()
