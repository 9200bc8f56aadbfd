"""A user of `up` with their own kubeconfig and state folder, and the remains of their clusters."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from e2e.ctrl import Ctrl, Started
from e2e.docker import Docker
from e2e.kube import Kubectl, Ran, run, wait_until
from kubectl_ctrl.processes import has_exited

USER_KUBECONFIG = """\
# My own: comments stay.
apiVersion: v1
kind: Config
current-context: prod-eu
clusters: [{name: prod-eu, cluster: {server: "https://prod-eu.invalid:6443"}}]
contexts: [{name: prod-eu, context: {cluster: prod-eu, user: prod-eu, namespace: payments}}]
users: [{name: prod-eu, user: {token: not-a-token}}]
"""
# Files that stay by design: the recording, and the lock of runs.
_STAYS = re.compile(r"history\.db.*|runners/gate")


class User:
    """A user with their own kubeconfig, state folder and programs; finds the remains of their clusters."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(USER_KUBECONFIG)
        self.state = folder / "state" / "kubectl-ctrl"
        folders = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
        self.env = {**env, **folders, "KUBECONFIG": str(self.kubeconfig)}
        self.ctrl = Ctrl(self.env, folder)

    def context(self, cluster: str) -> str:
        return f"{self.env['KUBECTL_CTRL_PROVIDER']}-{cluster}"

    def up(self, *words: str) -> Ran:
        return self.ctrl("up", *words)

    def down(self, *words: str) -> Ran:
        return self.ctrl("down", *words)

    def processes(self) -> list[str]:
        """The processes with the state folder in their arguments: those of clusters and of their controllers."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace") if entry.name.isdecimal() else ""
                if f"{self.state}/" in words:
                    found.append(f"{entry.name} {' '.join(words.split(chr(0)))}")
        return found

    def files(self) -> list[str]:
        paths = [path for path in self.state.rglob("*") if not path.is_dir()]
        names = [path.relative_to(self.state).as_posix() for path in paths]
        return [name for name in names if not _STAYS.fullmatch(name)]

    def assert_nothing_is_left(self, down: Ran) -> None:
        err = down.checked().err
        assert (self.processes(), self.files()) == ([], []), err
        assert not list((self.state / "clusters").glob("*")), err
        assert self.kubeconfig.read_text() == USER_KUBECONFIG, err
        assert [path.name for path in self.kubeconfig.parent.glob("kubeconfig*")] == ["kubeconfig"], err

    def kubectl(self, programs: Path) -> Kubectl:
        """kubectl for the cluster."""
        path = self.ctrl("cluster", "kubeconfig", "--path").checked().out.strip()
        return Kubectl(programs / "kubectl", {**self.env, "KUBECONFIG": path})

    def killed_at(self, verb: str, step: str, *words: str) -> bool:
        """Kill it at the beginning of that step; False if it exited before."""
        started = self.started_to(verb, step, *words)
        reached = _is_at(started, step)
        started.kill()
        return reached

    def started_to(self, verb: str, step: str, *words: str) -> Started:
        """Started, and at the beginning of that step unless it exited before."""
        started = self.ctrl.started(verb, *words, "--progress=json")
        wait_until(
            lambda: started.process.poll() is not None or _is_at(started, step), every=0.005, what=f"{verb} at {step}"
        )
        return started

    def steps(self, started: Started) -> list[str]:
        """The steps that it has begun, without those that it skipped."""
        return [event["name"] for event in _events(started) if event.get("state") == "began"]

    def end_all(self) -> None:
        """Kill all its processes, as a restart of the machine does, and wait for free ports."""
        pids = [int(line.split()[0]) for line in self.processes()]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.processes() and all(map(has_exited, pids)), what="the exit of its processes")

    def clean(self) -> None:
        """Stop everything, also after a failed test."""
        for started in self.ctrl.all_started:
            started.kill()
        self.ctrl("down", "--all")
        self.end_all()


def _is_at(started: Started, step: str) -> bool:
    return any(event.get("name") == step for event in _events(started))


def _events(started: Started) -> list[dict[str, Any]]:
    """The lines of --progress=json; the last one may be incomplete."""
    return [json.loads(line) for line in started.err if line.startswith("{") and line.endswith("}")]


def never_ready(folder: Path) -> str:
    """A flag for a kwok cluster whose servers all run, but whose node never becomes Ready.

    So an `up` is interrupted or killed during the creation, even if the signal is late.
    """
    arguments = {"manage-all-nodes": "false", "manage-single-node": "nobody"}
    extra = [{"key": key, "value": value} for key, value in arguments.items()]
    kind = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokctlConfiguration"}
    file = folder / "never-ready.yaml"
    file.write_text(json.dumps({**kind, "componentsPatches": [{"name": "kwok-controller", "extraArgs": extra}]}))
    return f"--config={file}"


class KindUser(User):
    """A user with docker, whose clusters have names of this test session."""

    memcached = "memcached:1.4.36-alpine"  # the image of the example; the lane has no registry

    def __init__(self, folder: Path, env: Mapping[str, str], image: str) -> None:
        # Its own network: others may use the one with the name kind.
        self.network = f"kubectl-ctrl-{os.getpid()}"
        chosen = {"KUBECTL_CTRL_PROVIDER": "kind", "KUBECTL_CTRL_IMAGE": image}
        super().__init__(folder, {**env, **chosen, "KIND_EXPERIMENTAL_DOCKER_NETWORK": self.network})
        self.docker = Docker(self.env)
        self.name = f"up{os.getpid()}"
        self.other = f"{self.name}-b"

    def started_up(self) -> int:
        """The pid of an `up` that is creating its nodes."""
        started = self.ctrl.started("up", "--name", self.name, "--progress=json")
        started.line("starting the control plane", deadline=120)
        assert self.docker.nodes(self.name), "kind has created its node."
        return started.process.pid

    def of(self, name: str) -> Kubectl:
        path = self.ctrl("cluster", "kubeconfig", name, "--path").checked().out.strip()
        program = run("which", "kubectl", env=self.env).checked().out.strip()
        return Kubectl(Path(program), {**self.env, "KUBECONFIG": path})

    def assert_nothing_is_in_docker(self) -> None:
        assert self.docker.nodes(self.name) == self.docker.nodes(self.other) == []
        assert self.network not in self.docker.networks()
