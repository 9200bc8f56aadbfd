"""The errors of the real kind and docker, and the errors that a user of `up` gets; nothing is left.

tests/clusters/test_kind_messages.py has every row of it verbatim, on any machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.ctrl import Ctrl
from e2e.docker import Docker
from e2e.kube import KindLane, Ran, run

NODES = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane%s}]\n"


@dataclass(frozen=True, slots=True)
class Errors:
    """A user whose `up` fails."""

    env: Mapping[str, str]
    folder: Path
    image: str

    @property
    def name(self) -> str:
        return f"err{os.getpid()}"

    @property
    def docker(self) -> Docker:
        return Docker(self.env)

    def up(self, *words: str, env: Mapping[str, str] | None = None) -> Ran:
        ctrl = Ctrl(env or self.env, self.folder)
        return ctrl("up", "--name", self.name, "--provider=kind", "--progress=none", *words, timeout=240)

    def config(self, text: str) -> str:
        file = self.folder / "kind.yaml"
        file.write_text(text)
        return f"--config={file}"

    def clusters(self) -> list[str]:
        return [path.name for path in (self.folder / "state" / "kubectl-ctrl" / "clusters").glob("*")]


@pytest.fixture
def user(kind_lane: KindLane, kind_env: Mapping[str, str], tmp_path: Path) -> Iterator[Errors]:
    user = Errors(kind_env, tmp_path, kind_lane.image)
    before = user.docker.unused_volumes()
    yield user
    left = user.docker.nodes(user.name)
    user.docker.remove(user.name)
    assert left == []
    user.docker.assert_no_new_volumes(before)


def says(ran: Ran, code: int, id: str, message: str, next_step: str) -> None:  # noqa: A002 - it is called that
    lines = [line for line in ran.err.splitlines() if line.startswith(("error[", "tried:", "next:"))]
    assert (ran.code, ran.out) == (code, ""), ran.err
    assert lines[0].startswith(f"error[{id}]: "), ran.err
    assert message in lines[0], ran.err
    assert next_step in lines[-1], ran.err


def test_f58_the_daemon_is_down(user: Errors) -> None:
    ran = user.up(env={**user.env, "DOCKER_HOST": "unix:///nowhere/docker.sock"})
    says(
        ran,
        5,
        "CTRL-PREREQUISITE",
        "docker does not answer: nothing listens on unix:///nowhere/docker.sock",
        "start docker",
    )
    assert user.clusters() == []


def test_f58_there_is_no_docker_program(user: Errors) -> None:
    bare = user.folder / "bin"
    bare.mkdir()
    for program in ("kind", "sh", "python3", "dirname", "readlink", "env", "sed", "uname", "cksum", "sha256sum", "cat"):
        if found := run("which", program, env=user.env).out.strip():
            (bare / program).symlink_to(found)
    ran = user.up(env={**user.env, "PATH": str(bare)})
    says(ran, 5, "CTRL-PREREQUISITE", "no docker, podman or nerdctl is installed", "install docker, podman or nerdctl")


def test_f58_the_image_is_not_here_and_there_is_no_registry(user: Errors) -> None:
    ran = user.up("--image=registry.invalid/x:1")
    says(
        ran, 5, "CTRL-PREREQUISITE", "'registry.invalid/x:1' is not on this machine and could not be pulled", "--image"
    )
    assert user.clusters() == []


def test_f58_the_name_belongs_to_another_cluster(user: Errors) -> None:
    user.docker.imitate_node(user.name, user.image)
    ran = user.up(f"--image={user.image}")
    says(ran, 6, "CTRL-REFUSED", f"has an unmanaged container {user.name}-control-plane", "choose another --name")
    down = Ctrl(user.env, user.folder)("down", user.name)
    assert (down.code, user.docker.nodes(user.name)) == (6, [f"{user.name}-control-plane"]), down.err
    user.docker.remove(user.name)
    assert user.clusters() == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (NODES % "" + "nodez: []\n", "field nodez not found"),
        (NODES % "" + "  \n- {", "did not find expected"),
        (NODES.replace("control-plane", "boss") % "", '"boss" is not a valid node role'),
        (NODES.replace("v1alpha4", "v9") % "", "unknown apiVersion: kind.x-k8s.io/v9"),
    ],
)
def test_f58_the_configuration_is_invalid(content: str, why: str, user: Errors) -> None:
    ran = user.up(f"--image={user.image}", user.config(content))
    says(ran, 2, "CTRL-USAGE", why, "correct the file")
    assert user.clusters() == []


def test_f58_a_port_is_in_use(user: Errors) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        mapping = f", extraPortMappings: [{{containerPort: 80, hostPort: {port}, listenAddress: 127.0.0.1}}]"
        ran = user.up(f"--image={user.image}", user.config(NODES % mapping))
    says(
        ran,
        1,
        "CTRL-CLUSTER",
        f"port 127.0.0.1:{port} of this machine is in use",
        "stop the program that listens there",
    )
    assert user.clusters() == []


def test_f58_the_image_is_not_a_node_image(user: Errors) -> None:
    """A program that exists and exits at once; kind would wait 30 s for one that does not exit."""
    source = f"{user.name}-source"
    user.docker("create", "--name", source, user.image)
    try:
        user.docker("commit", "--change", 'ENTRYPOINT ["/bin/true"]', source, f"{user.name}/none:1")
        ran = user.up(f"--image={user.name}/none:1")
    finally:
        user.docker("rm", "-f", "-v", source)
        user.docker.try_("rmi", f"{user.name}/none:1")
    says(ran, 1, "CTRL-CLUSTER", "the container does not start as a node", "kind build node-image")
    assert user.clusters() == []


def test_f58_kubeadm_fails(user: Errors) -> None:
    patch = ', kubeadmConfigPatches: ["{kind: ClusterConfiguration, networking: {podSubnet: nonsense}}"]'
    ran = user.up(f"--image={user.image}", user.config(NODES % patch))
    says(ran, 1, "CTRL-CLUSTER", "its control plane did not start (kubeadm init failed)", "--keep-on-failure")
    below = ran.err.partition("\nnext: ")[2].splitlines()[1:]
    assert below[0].startswith("  failed to init node with kubeadm: command "), ran.err
    assert "[config] WARNING: Ignored configuration" in below[1], ran.err
    assert user.clusters() == []


def test_f58_the_wait_runs_out_although_kind_ends_with_0(user: Errors) -> None:
    # Without a network plugin no node becomes Ready, even on a fast machine.
    config = user.config(NODES % "" + "networking: {disableDefaultCNI: true}\n")
    ran = user.up(f"--image={user.image}", config, "--wait=1s")
    says(ran, 124, "CTRL-TIMEOUT", f"was not Ready after 1 s: {user.name}-control-plane (", "--keep-on-failure")
    assert user.clusters() == []
    ran = user.up(f"--image={user.image}", config, "--wait=1s", "--keep-on-failure")
    says(ran, 124, "CTRL-TIMEOUT", "was not Ready after 1 s", f"kubectl ctrl down {user.name}")
    assert user.docker.nodes(user.name) == [f"{user.name}-control-plane"]
    Ctrl(user.env, user.folder)("down", user.name).checked()
    assert user.clusters() == []
