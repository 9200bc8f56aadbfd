"""The API servers that `sandbox` compares: the sandbox, and kube-apiserver with etcd. Both serve the same clients."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT / "hack" / "realkube.d"))

from realkube.build import root  # noqa: E402 - after the path is set
from realkube.cluster import Cluster  # noqa: E402
from realkube.process import running  # noqa: E402

_TICKS = os.sysconf("SC_CLK_TCK")
_BINDING = ("clusterrolebinding", "bench", "--clusterrole=cluster-admin", "--serviceaccount=default:bench")
CLIENTS = 8  # connections, each with one request at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running API server."""

    pids: Sequence[int]
    start: float  # seconds from nothing to serving
    kubeconfig: Path
    kubectl: str

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids]
        return sum(int(one[11]) + int(one[12]) for one in fields) / _TICKS

    def memory(self) -> float:
        """MB of resident memory."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def env(self) -> Mapping[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.kubeconfig.parent / "cache")}

    def run(self, *args: str, given: str = "") -> str:
        """The output of kubectl."""
        command = [self.kubectl, *args]
        done = subprocess.run(command, env=self.env, input=given, text=True, check=True, capture_output=True)
        return done.stdout

    def token(self) -> str:
        """Of a new ServiceAccount with all rights: the same credentials on both servers."""
        self.run("create", "serviceaccount", "bench")
        self.run("create", *_BINDING)
        return self.run("create", "token", "bench").strip()

    def session(self, token: str, clients: int = CLIENTS) -> aiohttp.ClientSession:
        shown = json.loads(self.run("config", "view", "--raw", "--flatten", "--output=json"))
        cluster: Mapping[str, Any] = shown["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return aiohttp.ClientSession(
            cluster["server"],
            headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority), limit=clients),
            timeout=aiohttp.ClientTimeout(total=None),
        )


class _Unaudited(Cluster):
    """Without an audit log: the sandbox writes none either."""

    def _kwokctl_config(self) -> dict[str, Any]:
        content = super()._kwokctl_config()
        del content["options"]["kubeAuditPolicy"]
        return content


def programs() -> Path:
    built = subprocess.run([str(_ROOT / "hack" / "realkube"), "build"], check=True, capture_output=True, text=True)
    return Path(built.stdout.strip())


@contextmanager
def real(nodes: int) -> Iterator[Server]:
    """kube-apiserver and etcd, with controllers and nodes in other processes, which are not measured."""
    folder = programs()
    cluster = _Unaudited(root(os.environ), f"bench-{os.getpid()}")
    started = time.perf_counter()
    try:
        cluster.up(folder, nodes)
        start = time.perf_counter() - started
        found = running(cluster.folder)
        pids = [found["kube-apiserver"], found["etcd"]]
        yield Server(pids=pids, start=start, kubeconfig=cluster.kubeconfig, kubectl=str(folder / "kubectl"))
    finally:
        cluster.down()


@contextmanager
def sandbox(nodes: int) -> Iterator[Server]:
    """The sandbox, controllers and nodes included; its second start, as of an installed package, which is compiled."""
    kubectl = str(programs() / "kubectl")
    with TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        command = [sys.executable, "-m", "kubectl_ctrl.sandbox", f"{folder}/box", f"--nodes={nodes}", "--temporary"]
        with _serving(command, env, kubectl):
            pass
        with _serving(command, env, kubectl) as server:
            yield server


@contextmanager
def _serving(command: Sequence[str], env: Mapping[str, str], kubectl: str) -> Iterator[Server]:
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=_ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        kubeconfig = Path(json.loads(process.stdout.readline())["kubeconfig"])
        yield Server(pids=[process.pid], start=time.perf_counter() - started, kubeconfig=kubeconfig, kubectl=kubectl)
