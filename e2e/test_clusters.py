"""Clusters made with the real kwokctl: what every provider keeps, and what only kwok has."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.contract_clusters import ClusterContract, Maker
from e2e.kube import wait_until


class KwokMaker(Maker):
    """All of a cluster of kwok's is in its folder, or runs out of it."""

    def left(self, name: str) -> list[str]:
        places = (self.folder(name) / "kwok", self.own_place(name), *self.ways(name))
        return [f"{pid} {program}" for program, pid in self.processes(name).items()] + [
            str(path) for path in places if path.exists()
        ]

    def ways(self, name: str) -> list[Path]:
        """Links to its folder: kwokctl cannot take every path."""
        links = Path(f"/tmp/kubectl-ctrl-{os.getuid()}").glob("*")
        return [link for link in links if link.is_symlink() and link.readlink() == self.folder(name)]

    def own_place(self, name: str) -> Path:
        return Path(self.env["HOME"], ".kwok", "clusters", name)

    def processes(self, name: str) -> dict[str, int]:
        """Whatever has a path with that name anywhere in its command line: more than the package itself looks for."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and entry.name != str(os.getpid()):
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if any(f"/{name}/" in word for word in words):
                    found[Path(words[0]).name] = int(entry.name)
        return found

    def stop(self, name: str) -> None:
        for pid in self.processes(name).values():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.processes(name), what="the end of its processes")
        # After a restart of the machine the numbers that kwokctl kept are those of other programs.
        for file in (self.folder(name) / "kwok").rglob("*.pid"):
            file.write_text(str(os.getpid()))

    def lose_part(self, name: str) -> None:
        pid = self.processes(name)["kube-apiserver"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "kube-apiserver" not in self.processes(name), what="the end of the API server")

    def take_name(self, name: str) -> None:
        self.own_place(name).mkdir(parents=True)


@pytest.fixture
def maker(programs: Path, plain_env: Mapping[str, str], tmp_path: Path) -> KwokMaker:
    home = tmp_path / "home of mine"  # with blanks, as people have them
    home.mkdir()
    return KwokMaker(
        provider="kwok",
        kubectl=programs / "kubectl",
        env={**plain_env, "HOME": str(home)},
        root=home / "state",
        wish={"bin_dir": str(programs), "offline": True},
    )


class TestKwok(ClusterContract):
    begun = "starting the control plane"
