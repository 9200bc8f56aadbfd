"""One named cluster: API server, etcd, controller manager, scheduler and kwok, in one folder, only on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
import zlib
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from realkube import Failed, process
from realkube.build import SOURCES

POLICY = SOURCES / "audit.yaml"
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller")

# kwokctl itself chooses any port that is free at that moment: also that of a stopped server, or one that a kwokctl left
# by a killed `up` is about to use. Its etcd then exits at once, and kwokctl waits for it in vain.
PORTS = range(30_000, 31_000)
PORT_OPTIONS = (
    "kubeApiserverPort",
    "etcdPort",
    "etcdPeerPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)

# Option of kwokctl -> (name of the link that it starts, program).
BINARIES = {
    "etcdBinary": ("etcd", "etcd"),
    "kubeApiserverBinary": ("kube-apiserver", "kube-apiserver"),
    "kubeControllerManagerBinary": ("kube-controller-manager", "kube-controller-manager"),
    "kubeSchedulerBinary": ("kube-scheduler", "kube-scheduler"),
    "kwokControllerBinary": ("kwok-controller", "kwok"),
    "kubectlBinary": ("kubectl", "kubectl"),
}

EXTRA_ARGS = {
    "kube-apiserver": {
        # Off by default in Kubernetes, on in strict clusters: the rights must suffice to set owner references there.
        "enable-admission-plugins": "OwnerReferencesPermissionEnforcement",
        # Without it the server needs a default route, which a machine may lack. No client uses the address.
        "advertise-address": "192.0.2.1",
        # Megabytes. At the default of 100 the server would start a new file, and tests would read the old one.
        "audit-log-maxsize": "100000",
    },
    # A test cluster need not survive a power failure.
    "etcd": {"unsafe-no-fsync": "true"},
    # With an election it would exit while the API server is stopped, and nothing would restart it. Its default of 20
    # calls a second creates four Deployments a second, which would slow down every test with many objects.
    "kube-controller-manager": {
        "leader-elect": "false",
        "kube-api-qps": "500",
        "kube-api-burst": "1000",
        # The default of 15 s is as long as a whole test.
        "horizontal-pod-autoscaler-sync-period": "2s",
    },
    "kube-scheduler": {"leader-elect": "false", "kube-api-qps": "500", "kube-api-burst": "1000"},
}


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a cluster. Its folder contains them last, as the mark of a complete cluster."""

    programs: str
    recipe: str
    nodes: int


class Cluster:
    def __init__(self, root: Path, name: str) -> None:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?", name):
            raise Failed(f"{name!r} is not a valid cluster name: use at most 50 of a-z, 0-9 and '-'.")
        self.name = name
        self.root = root
        self.folder = root / "clusters" / name
        self.kubeconfig = self.folder / "kubeconfig"
        self.audit = self.folder / "logs" / "audit.log"
        self._options_file = self.folder / "realkube.json"

    def __repr__(self) -> str:
        return f"<Cluster {self.name} {self.state()}>"

    def state(self) -> str:
        """absent, ready, unfinished, or `without` and the stopped parts."""
        if self._options() is None:
            return "unfinished" if self.folder.exists() else "absent"
        missing = [part for part in PARTS if part not in process.running(self.folder)]
        return "without " + ",".join(missing) if missing else "ready"

    def _options(self) -> Options | None:
        try:
            return Options(**json.loads(self._options_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def up(self, programs: Path, nodes: int | None) -> bool:
        """Create or restart it with these programs and that many nodes; False if there was nothing to do."""
        known, wanted = self._options(), Options(str(programs), self._recipe(), 2 if nodes is None else nodes)
        if (
            known
            and (known.programs, known.recipe) == (wanted.programs, wanted.recipe)
            and self.state() == "ready"
            and self.answers(10)
        ):
            if nodes in (None, known.nodes):
                return False
        else:
            self.down()
            self._create(programs)
        self._scale(wanted.nodes)
        self._options_file.write_text(json.dumps(asdict(wanted)))
        return True

    def down(self) -> bool:
        """Remove all processes and files, also those of a killed run; False if there was nothing to do."""
        found = self.folder.exists() or bool(process.running(self.folder))
        # First, so that the cluster does not count as complete any more.
        self._options_file.unlink(missing_ok=True)
        process.end(self.folder)
        if self.folder.exists():
            shutil.rmtree(self.folder)
        return found

    def stop_apiserver(self) -> None:
        """Kill it, as a crash does; after SIGTERM it would wait a minute for open watches."""
        self._must_exist()
        process.end(self.folder, only="kube-apiserver")
        # kwokctl trusts the pid in it, which may be that of another process by now.
        (self.folder / "pids" / "kube-apiserver.pid").unlink(missing_ok=True)

    def start_apiserver(self) -> None:
        self._must_exist()
        self._kwokctl("start", "cluster")
        if not self.answers(60):
            raise Failed(f"The API server of {self.name!r} is not ready after 60 s; see {self.folder / 'logs'}.")

    def answers(self, patience: float) -> bool:
        """Wait for a ready API server, for `patience` seconds."""
        deadline = time.monotonic() + patience
        while True:
            if self._kubectl("get", "--raw=/readyz", "--request-timeout=5s").returncode == 0:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)

    def describe(self) -> dict[str, Any]:
        known = self._options()
        return {
            "name": self.name,
            "state": self.state(),
            "context": f"kwok-{self.name}",
            "kubeconfig": str(self.kubeconfig),
            "audit": str(self.audit),
            "programs": known.programs if known else "",
            "nodes": known.nodes if known else 0,
            "processes": process.running(self.folder),
        }

    def _must_exist(self) -> None:
        if self._options() is None:
            raise Failed(f"There is no cluster {self.name!r}: create it with `hack/realkube up {self.name}`.")

    def _create(self, programs: Path) -> None:
        links = self.folder / "bin"
        links.mkdir(parents=True, mode=0o700)
        for link, program in [*BINARIES.values(), ("kwokctl", "kwokctl")]:
            (links / link).symlink_to(programs / program)
        shutil.copy(POLICY, self.folder / "policy.yaml")
        content = self._kwokctl_config()
        content["options"] |= self._ports()
        config = self.folder / "kwokctl.json"
        config.write_text(json.dumps(content, indent=1))
        self._kwokctl("create", "cluster", "--config", str(config), "--kubeconfig", str(self.kubeconfig), "--wait=60s")
        if not self.answers(60):
            raise Failed(f"The API server of {self.name!r} is not ready after 60 s; see {self.folder / 'logs'}.")

    def _kwokctl_config(self) -> dict[str, Any]:
        """All programs by their paths, so that kwokctl downloads nothing."""
        options: dict[str, Any] = {name: str(self.folder / "bin" / link) for name, (link, _) in BINARIES.items()}
        options |= {
            "runtime": "binary",
            "bindAddress": "127.0.0.1",
            "kubeAuditPolicy": str(self.folder / "policy.yaml"),
        }
        patches = [
            {"name": part, "extraArgs": [{"key": key, "value": value} for key, value in args.items()]}
            for part, args in EXTRA_ARGS.items()
        ]
        kind = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokctlConfiguration"}
        return {**kind, "options": options, "componentsPatches": patches}

    def _ports(self) -> dict[str, int]:
        """Free ports, other than those of stopped and unfinished clusters."""
        taken: set[int] = set()
        for other in all_of(self.root):
            with suppress(OSError, ValueError):
                options = json.loads((other.folder / "kwokctl.json").read_text())["options"]
                taken |= {options[name] for name in PORT_OPTIONS if name in options}
        first = zlib.crc32(os.fsencode(self.folder))
        turn = (PORTS[(first + step) % len(PORTS)] for step in range(len(PORTS)))
        ports = list(islice((port for port in turn if port not in taken and _is_free(port)), len(PORT_OPTIONS)))
        if len(ports) < len(PORT_OPTIONS):
            raise Failed(f"Too few ports from {PORTS[0]} to {PORTS[-1]} are free for the servers of {self.name!r}.")
        return dict(zip(PORT_OPTIONS, ports, strict=True))

    def _recipe(self) -> str:
        """Hash of the configuration of a cluster: `up` recreates a cluster with another one."""
        return hashlib.sha256((json.dumps(self._kwokctl_config()) + POLICY.read_text()).encode()).hexdigest()[:16]

    def _scale(self, nodes: int) -> None:
        self._kwokctl("scale", "node", f"--replicas={nodes}")
        if nodes:
            done = self._kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
            if done.returncode != 0:
                raise Failed(f"The nodes of {self.name!r} are not Ready after 60 s: {done.stderr.strip()}")

    def _env(self) -> dict[str, str]:
        """Nothing of the caller's: neither the home folder (kubectl has a cache there) nor KUBECONFIG or KWOK_*.

        PATH has only the cluster's links: kwokctl prefers a kubectl from there.
        """
        return {"PATH": str(self.folder / "bin"), "HOME": str(self.folder / "home"), "KWOK_WORKDIR": str(self.root)}

    def _kubectl(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "bin" / "kubectl"), f"--kubeconfig={self.kubeconfig}", *args]
        return subprocess.run(
            command, env=self._env(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    def _kwokctl(self, *args: str) -> None:
        command = [str(self.folder / "bin" / "kwokctl"), *args, "--name", self.name]
        # Output to a file: neither the servers, nor kwokctl if we are killed, may keep our caller's streams open.
        # The open file is readable even after a failed kwokctl has removed the folder. A new session, because Ctrl-C in
        # the caller's terminal is for the caller.
        with (self.folder / f"kwokctl-{args[0]}.log").open("w+") as log:
            try:
                done = subprocess.run(
                    command,
                    env=self._env(),
                    cwd=self.root,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    timeout=180,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise Failed(
                    f"`{' '.join(command)}` did not finish within 180 s; see {self.folder / 'logs'}."
                ) from error
            if done.returncode != 0:
                log.seek(0)
                tail = "".join(log.readlines()[-15:])
                raise Failed(f"`{' '.join(command)}` exited with code {done.returncode}:\n{tail}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # A port that was closed a moment ago counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def all_of(root: Path) -> list[Cluster]:
    try:
        return [Cluster(root, folder.name) for folder in sorted((root / "clusters").iterdir())]
    except FileNotFoundError:
        return []
