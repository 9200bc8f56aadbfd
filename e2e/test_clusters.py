"""Clusters of the real kwokctl: the contract of all providers, and the properties of kwok."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
import yaml

from e2e.contract_clusters import ClusterContract, Maker, SharedNames
from e2e.kube import wait_until
from kubectl_ctrl.processes import has_exited

pytestmark = pytest.mark.real


class KwokMaker(Maker):
    """All of a cluster of kwok is in its folder, or was started from it."""

    def left(self, name: str) -> list[str]:
        places = (self.folder(name) / "kwok", self.own_place(name), *self.ways(name))
        return [f"{pid} {program}" for program, pid in self.processes(name).items()] + [
            str(path) for path in places if path.exists()
        ]

    def ways(self, name: str) -> list[Path]:
        """Links to its folder, because kwokctl does not accept every path."""
        links = Path(f"/tmp/kubectl-ctrl-{os.getuid()}").glob("*")
        return [link for link in links if link.is_symlink() and link.readlink() == self.folder(name)]

    def own_place(self, name: str) -> Path:
        return Path(self.env["HOME"], ".kwok", "clusters", name)

    def processes(self, name: str) -> dict[str, int]:
        """All processes with a path of that name in their arguments: more than the package itself looks for."""
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
        pids = tuple(self.processes(name).values())
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.processes(name) and all(map(has_exited, pids)), what="the end of its processes")
        # After a restart of the machine the pids of kwokctl are those of other programs.
        for file in (self.folder(name) / "kwok").rglob("*.pid"):
            file.write_text(str(os.getpid()))
        for link in self.ways(name):  # /tmp is empty then
            link.unlink()

    def lose_part(self, name: str) -> None:
        pid = self.processes(name)["kube-apiserver"]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "kube-apiserver" not in self.processes(name) and has_exited(pid), what="its end")

    def take_name(self, name: str) -> None:
        self.own_place(name).mkdir(parents=True)


@pytest.fixture
def maker(programs: Path, plain_env: Mapping[str, str], tmp_path: Path) -> KwokMaker:
    home = tmp_path / "home of mine"  # with spaces, as users have them
    home.mkdir()
    return KwokMaker(
        provider="kwok",
        kubectl=programs / "kubectl",
        env={**plain_env, "HOME": str(home)},
        root=home / "state",
        spec={"bin_dir": str(programs), "offline": True},
    )


class TestKwok(ClusterContract, SharedNames):
    begun = "adding 1 node"  # all servers run

    def test_it_has_the_requested_nodes_and_listens_only_on_loopback(self, maker: KwokMaker) -> None:
        name = maker.name()
        maker.up(name, nodes=3)
        assert len(maker.admin(name).json("get", "nodes")["items"]) == 3
        addresses = {address for address, pid in listening() if pid in maker.processes(name).values()}
        assert addresses == {"127.0.0.1"}

    def test_without_nodes_it_only_answers(self, maker: KwokMaker) -> None:
        name = maker.name()
        maker.up(name, nodes=0)
        assert maker.admin(name).json("get", "nodes")["items"] == []

    def test_pods_run_and_there_is_nothing_to_load_into(self, maker: KwokMaker) -> None:
        name = maker.name()
        maker.up(name)
        admin = maker.admin(name)
        admin("create", "deployment", "web", "--image=none.invalid/web", "--replicas=2")
        admin("rollout", "status", "deployment/web", "--timeout=110s")
        refused = maker.do("load", name)
        assert refused.code == 2
        assert "its pods are simulated" in refused.answer["error"]["message"]

    def test_it_is_deleted_without_the_programs_that_created_it(self, maker: KwokMaker, tmp_path: Path) -> None:
        programs = tmp_path / "programs"
        shutil.copytree(maker.spec["bin_dir"], programs, symlinks=False, copy_function=os.symlink)
        name = maker.name()
        maker.up(name, bin_dir=str(programs))
        shutil.rmtree(programs)
        maker.stop(name)
        refused = maker.do("up", name)
        assert (refused.code, refused.answer["error"]["id"]) == (5, "CTRL-PREREQUISITE")
        assert str(programs / "kube-apiserver") in refused.answer["error"]["message"]
        assert maker.do("down", name).answer == {"removed": True}
        self.gone(maker, name)

    def test_one_whose_file_of_kwokctl_is_damaged_is_not_replaced(self, maker: KwokMaker) -> None:
        name = maker.name()
        maker.up(name)
        file = maker.folder(name) / "kwok" / "clusters" / name / "kwok.yaml"
        file.write_text(file.read_text()[:100])
        assert maker.do("state", name).answer == {"state": "partial"}
        refused = maker.do("up", name)
        assert refused.code == 1
        assert "would delete everything in it" in refused.answer["error"]["message"]
        assert maker.admin(name)("get", "--raw=/readyz") == "ok"
        assert maker.do("down", name).answer == {"removed": True}
        self.gone(maker, name)

    def test_the_users_own_configuration_counts(self, maker: KwokMaker, tmp_path: Path) -> None:
        port = free_port()
        config = configuration(
            tmp_path,
            {"kubeApiserverPort": port, "kubeFeatureGates": "ContextualLogging=true"},
            patches=[{"name": "kube-apiserver", "extraArgs": [{"key": "profiling", "value": "false"}]}],
        )
        name = maker.name()
        assert maker.up(name, config=config)["server"] == f"https://127.0.0.1:{port}"
        command = Path("/proc", str(maker.processes(name)["kube-apiserver"]), "cmdline").read_text().split("\0")
        assert {"--profiling=false", "--feature-gates=ContextualLogging=true"} <= set(command)

    def test_f58_a_port_in_use_is_named(self, maker: KwokMaker, tmp_path: Path) -> None:
        name = maker.name()
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            making = maker.do("up", name, config=configuration(tmp_path, {"etcdPort": port}))
        assert (making.code, making.answer["error"]["id"]) == (1, "CTRL-CLUSTER")
        assert f"{port} (etcdPort)" in making.answer["error"]["message"]
        self.gone(maker, name)

    def test_f58_a_port_in_use_after_a_stop_is_named(self, maker: KwokMaker) -> None:
        name = maker.name()
        made = maker.up(name)
        maker.stop(name)
        port = int(made["server"].rpartition(":")[2])
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", port))
            other.listen()
            again = maker.do("up", name)
        assert again.code == 1
        assert f"{port} (kube-apiserver)" in again.answer["error"]["message"]
        assert maker.up(name)["uid"] == made["uid"]

    def test_f58_the_reason_of_a_server_that_exits_at_once_is_printed_at_once(
        self, maker: KwokMaker, tmp_path: Path
    ) -> None:
        patches = [{"name": "kube-apiserver", "extraArgs": [{"key": "nonsense", "value": "1"}]}]
        name = maker.name()
        making = maker.do("up", name, config=configuration(tmp_path, {}, patches=patches))
        error = making.answer["error"]
        assert error["message"] == f"kube-apiserver of cluster {name!r} exited: unknown flag: --nonsense."
        assert "unknown flag" in error["output"]
        self.gone(maker, name)

    @pytest.mark.parametrize("size", ["80k", "8m"])  # the first has no space for a server's last log lines either
    def test_f58_a_full_disk_is_called_one(self, size: str, maker: KwokMaker, tmp_path: Path) -> None:
        with small_disk(tmp_path / "small", size) as small:
            cramped = replace(maker, root=small)
            name = maker.name()
            making = cramped.do("up", name)
            assert making.code == 1
            assert "the disk is full" in making.answer["error"]["message"], making.lines
            self.gone(cramped, name)

    def test_f58_a_missing_program_is_named_with_the_searched_folders(self, maker: KwokMaker, tmp_path: Path) -> None:
        name = maker.name()
        empty = tmp_path / "empty"
        empty.mkdir()
        nothing = maker.do("up", name, bin_dir=str(empty))
        assert (nothing.code, nothing.answer["error"]["id"]) == (5, "CTRL-PREREQUISITE")
        assert str(empty) in nothing.answer["error"]["message"]
        (empty / "kwokctl").symlink_to(Path(maker.spec["bin_dir"]) / "kwokctl")
        alone = replace(maker, env={**maker.env, "PATH": str(empty)}).do("up", name, bin_dir=None)
        assert alone.code == 5
        for program in ("etcd", "kube-apiserver", "kwok"):
            assert program in alone.answer["error"]["message"]
        assert "--offline" in alone.answer["error"]["next_step"]
        assert maker.files(name) == []

    def test_missing_programs_are_downloaded_once_after_a_message(self, maker: KwokMaker, tmp_path: Path) -> None:
        programs = Path(maker.spec["bin_dir"])
        alone = tmp_path / "alone"
        alone.mkdir()
        (alone / "kwokctl").symlink_to(programs / "kwokctl")
        fetching = replace(maker, env={**maker.env, "PATH": str(alone)})
        with serving(programs, tmp_path / "served") as (options, asked):
            config = configuration(tmp_path, options)
            name = maker.name()
            making = fetching.do("up", name, bin_dir=None, offline=False, config=config)
            assert making.code == 0, making.lines
            assert "kwokctl downloads about 345 MB from 127.0.0.1" in making.notes[0]
            assert sum(note.startswith("downloading http://127.0.0.1") for note in making.notes) == 6
            assert maker.do("down", name).code == 0
            self.gone(maker, name)
            once = len(asked)
            again = fetching.do("up", name, bin_dir=None, offline=True, config=config)
            assert again.code == 0, again.lines
            assert len(asked) == once


def free_port() -> int:
    """No port that the system gives to a program that asks for any port, before the server listens."""
    for port in Random().sample(range(10_000, 20_000), 100):
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("a hundred ports are taken")


def configuration(folder: Path, options: Mapping[str, Any], *, patches: Sequence[Any] = ()) -> str:
    """A file of kwokctl."""
    kind = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokctlConfiguration"}
    file = folder / "kwok.yaml"
    file.write_text(yaml.safe_dump({**kind, "options": dict(options), "componentsPatches": list(patches)}))
    return str(file)


def listening() -> list[tuple[str, int]]:
    """(address, pid) of every server of ours."""
    said = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout
    lines = [(line.split()[3].rpartition(":")[0], re.findall(r"pid=(\d+)", line)) for line in said.splitlines()]
    return [(address, int(pid)) for address, pids in lines for pid in pids]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=False)
    if done.returncode != 0:
        pytest.skip("No disk of its own can be mounted here.")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def serving(programs: Path, folder: Path) -> Iterator[tuple[dict[str, str], list[str]]]:
    """A download server of kwokctl: small programs that exec the real ones, and a log of the requests."""
    folder.mkdir()
    names = {
        "etcd": "etcdBinary",
        "kube-apiserver": "kubeApiserverBinary",
        "kube-controller-manager": "kubeControllerManagerBinary",
        "kube-scheduler": "kubeSchedulerBinary",
        "kwok": "kwokControllerBinary",
        "kubectl": "kubectlBinary",
    }
    for name in names:
        (folder / name).write_text(f'#!/bin/bash\nexec -a "$0" {programs / name} "$@"\n')
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - named as its base names it
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield {option: f"http://127.0.0.1:{server.server_port}/{name}" for name, option in names.items()}, asked
        server.shutdown()
        thread.join()
