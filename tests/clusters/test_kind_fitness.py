"""With what kind would work, and what is given to kind and its runtime: lists of words, and little else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubectl_ctrl.clusters.provider import ClusterSpec
from kubectl_ctrl.errors import UsageError
from tests.clusters.kindprograms import TOOLS, Programs, programs, ready

pytestmark = pytest.mark.programs(*TOOLS)


# What goes to other programs.


def test_s06_programs_get_lists_of_words_and_no_more_environment_than_they_need(there: Programs) -> None:
    secrets = {"KUBECONFIG": "/home/u/.kube/config", "AWS_SECRET_ACCESS_KEY": "hush", "KIND_CLUSTER_NAME": "prod"}
    needed = {"HTTPS_PROXY": "http://proxy:3128", "DOCKER_CONTEXT": "default", "XDG_RUNTIME_DIR": "/run/user/1"}
    kind = there.kind(**secrets, **needed, LD_PRELOAD="evil.so")
    entry = ready(there, kind)
    asyncio.run(kind.load(entry, ["example/app:1"]))
    for program in ("kind", "docker"):
        given = there.environment(program)
        assert not set(given) & {*secrets, "LD_PRELOAD"}
        assert needed.items() <= given.items()
    assert there.calls("kind", "load") == ["kind <load> <docker-image> <--name> <ctrl> <--> <example/app:1>"]


@pytest.mark.parametrize("image", ["-x", "--help", "a b", "$(touch x)", "a;b", ""])
def test_s06_a_name_that_no_image_can_have_reaches_no_program(image: str, there: Programs) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    with pytest.raises(UsageError, match="is not the name of an image"):
        asyncio.run(kind.load(entry, [image]))
    assert there.calls("kind", "load") == []


def test_s06_a_program_is_not_taken_from_where_we_happen_to_stand(
    there: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(there.home / "bin")
    fitness = asyncio.run(there.kind(PATH=".:").fitness(ClusterSpec()))
    assert fitness.text == "kind is not installed, and no docker, podman or nerdctl is installed"


# Whether it can work.


def fitness(there: Programs, spec: ClusterSpec | None = None, choice: str = "") -> str:
    """The line, which begins with `no: ` where it cannot."""
    found = asyncio.run(there.kind(KIND_EXPERIMENTAL_PROVIDER=choice).fitness(spec or ClusterSpec()))
    assert bool(found.next_step) == (not found.usable)
    return found.text if found.usable else f"no: {found.text}"


def remedy(there: Programs) -> str:
    return asyncio.run(there.kind().fitness(ClusterSpec())).next_step


def test_it_says_with_what_it_would_work(there: Programs) -> None:
    assert fitness(there) == "kind v0.33.0 with docker 20.10.24+dfsg1"


def test_f58_without_kind(tmp_path: Path) -> None:
    assert fitness(programs(tmp_path / "machine", ["docker"])) == "no: kind is not installed"


def test_f58_without_a_runtime(tmp_path: Path) -> None:
    lone = programs(tmp_path / "machine", ["kind"])
    found = asyncio.run(lone.kind().fitness(ClusterSpec()))
    assert (found.usable, found.text) == (False, "no docker, podman or nerdctl is installed")
    assert found.missing == dict.fromkeys(("docker", "podman", "nerdctl"), "not installed")


def test_f58_without_either_both_are_said(tmp_path: Path) -> None:
    found = asyncio.run(programs(tmp_path / "machine", []).kind().fitness(ClusterSpec()))
    assert found.text == "kind is not installed, and no docker, podman or nerdctl is installed"
    assert found.next_step == "install docker, podman or nerdctl, then kubectl ctrl doctor --fix kind"


def test_f58_with_an_old_kind(there: Programs) -> None:
    there.says("kind.version", "kind v0.19.0 go1.20.4 linux/amd64\n")
    assert fitness(there) == "no: kind v0.19.0 is too old: v0.20 or newer is needed"
    assert remedy(there) == "install kind v0.20 or newer"


def test_f58_with_a_kind_that_does_not_work(there: Programs) -> None:
    there.install("kind", "exit 3")
    found = there.home / "bin" / "kind"
    assert fitness(there) == f"no: {found} does not report its version: it exited with code 3"
    assert remedy(there) == "install kind v0.20 or newer"


def test_f58_with_an_old_docker(there: Programs) -> None:
    there.says("docker.info", '{"ID": "X", "ServerVersion": "19.03.15"}')
    assert fitness(there) == "no: docker 19.03.15 is too old: kind needs 20.10 or newer"


def test_f58_with_an_old_containerd(tmp_path: Path) -> None:
    """Of nerdctl and its daemon, each has a version of its own."""
    there = programs(tmp_path / "machine", ["kind", "nerdctl"])
    there.says("nerdctl.info", '{"ID": "X", "ServerVersion": "1.6.20~ds1"}')
    assert fitness(there) == "no: containerd 1.6.20~ds1 is too old: kind needs 1.7 or newer"
    assert asyncio.run(there.kind().fitness(ClusterSpec())).next_step == "update containerd"


def test_f58_with_a_daemon_that_is_down(there: Programs) -> None:
    there.says("daemon.says", "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?\n")
    assert fitness(there) == "no: docker does not answer: nothing listens on unix:///x.sock"
    found = asyncio.run(there.kind().fitness(ClusterSpec()))
    assert found.missing["docker"] == "does not answer: nothing listens on unix:///x.sock"
    assert found.next_step == "start docker, or set DOCKER_HOST to its address"


def test_f58_with_a_docker_that_talks_nonsense(there: Programs) -> None:
    there.says("docker.info", "WARNING: No blkio throttle support\n")
    assert fitness(there).startswith("no: docker does not answer: its output is not JSON (")


def test_docker_that_is_podman_is_podman(tmp_path: Path) -> None:
    there = programs(tmp_path / "machine", ["kind", "docker", "podman"])
    there.says("docker.version", "podman version 5.2.1\n")
    assert fitness(there) == "kind v0.33.0 with podman 5.2.1"


def test_the_runtime_that_the_environment_names_is_the_one(tmp_path: Path) -> None:
    there = programs(tmp_path / "machine", ["kind", "docker", "podman", "nerdctl"])
    assert fitness(there, choice="podman") == "kind v0.33.0 with podman 5.2.1"
    assert fitness(there, choice="nerdctl") == "kind v0.33.0 with nerdctl 2.0.3"
    assert fitness(there, choice="finch") == "no: finch, which KIND_EXPERIMENTAL_PROVIDER selects, is not installed"
    assert fitness(there, choice="unknown") == "kind v0.33.0 with docker 20.10.24+dfsg1"


def test_f58_offline_it_needs_an_image_that_is_here(there: Programs) -> None:
    assert fitness(there, ClusterSpec(offline=True, image="example/node:v1.36.3")).startswith("kind v0.33.0")
    assert fitness(there, ClusterSpec(offline=True, image="x:1")) == "no: the node image 'x:1' is not on this machine"
    assert (
        fitness(there, ClusterSpec(offline=True))
        == "no: the node image that kind would pull is unknown without --image"
    )
    config = there.home / "kind.yaml"
    config.write_text("nodes: [{role: control-plane, image: 'example/node:v1.36.3'}, {role: worker, image: 'x:2'}]")
    assert fitness(there, ClusterSpec(offline=True, config=config)) == "no: the node image 'x:2' is not on this machine"
    config.write_text("nodes: [{role: control-plane}]")
    assert "unknown without --image" in fitness(there, ClusterSpec(offline=True, config=config))
