"""Images that are given to the nodes of kind's clusters, and the logs that are had from them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing
from tests.clusters.kindprograms import TOOLS, Programs, programs, ready

pytestmark = pytest.mark.programs(*TOOLS)


def test_images_that_are_not_here_are_named(there: Programs) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    with pytest.raises(PrerequisiteMissing, match="docker has no image 'no/such:1'"):
        asyncio.run(kind.load(entry, ["example/app:1", "no/such:1"]))
    assert there.calls("kind", "load") == []


def test_an_archive_is_loaded_as_one(there: Programs, tmp_path: Path) -> None:
    archive = tmp_path / "app.tar"
    archive.write_bytes(b"")
    kind = there.kind()
    asyncio.run(kind.load(ready(there, kind), [str(archive), "example/app:1"]))
    assert there.calls("kind", "load") == [
        "kind <load> <docker-image> <--name> <ctrl> <--> <example/app:1>",
        f"kind <load> <image-archive> <--name> <ctrl> <--> <{archive}>",
    ]


def test_a_runtime_that_kind_does_not_ask_for_images_saves_them(tmp_path: Path) -> None:
    there = programs(tmp_path / "machine", ["kind", "nerdctl"])
    kind = there.kind(KIND_EXPERIMENTAL_PROVIDER="nerdctl")
    entry = ready(there, kind)
    archive = entry.folder / "tmp" / "image.tar"
    asyncio.run(kind.load(entry, ["example/app:1"]))
    assert there.calls("nerdctl", "save") == [f"nerdctl <save> <-o> <{archive}> <--> <example/app:1>"]
    assert there.calls("kind", "load") == [f"kind <load> <image-archive> <--name> <ctrl> <--> <{archive}>"]
    assert not archive.exists()


@pytest.mark.parametrize(
    ("runtime", "fails"), [("docker", "docker-image"), ("nerdctl", "save"), ("nerdctl", "image-archive")]
)
def test_of_an_image_that_cannot_be_loaded_nothing_stays(runtime: str, fails: str, tmp_path: Path) -> None:
    there = programs(tmp_path / "machine", ["kind", runtime])
    kind = there.kind()
    entry = ready(there, kind)
    there.says(f"{fails}.says", "ERROR: no such thing\n")
    with pytest.raises(ClusterError):
        asyncio.run(kind.load(entry, ["example/app:1"]))
    assert list(entry.folder.glob("tmp/*")) == []


def test_an_image_of_which_docker_has_one_platform_is_loaded_all_the_same(there: Programs) -> None:
    said = "ERROR: failed to load image: ...\n\nCommand Output: ctr: content digest sha256:820140: not found\n"
    there.says("docker-image.says", said)
    kind = there.kind()
    entry = ready(there, kind)
    asyncio.run(kind.load(entry, ["example/app:1"]))
    archive = entry.folder / "tmp" / "image.tar"
    assert there.calls("docker", "save") == [
        f"docker <save> <--platform=linux/amd64> <-o> <{archive}> <--> <example/app:1>"
    ]
    assert there.calls("kind", "load")[-1] == f"kind <load> <image-archive> <--name> <ctrl> <--> <{archive}>"
    assert not archive.exists()


def test_f58_loading_into_a_stopped_cluster_says_so(there: Programs) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    there.says(
        "docker-image.says", "ERROR: ...\n\nCommand Output: Error response from daemon: Container b05f is not running\n"
    )
    with pytest.raises(ClusterError, match="Cluster 'ctrl' is stopped"):
        asyncio.run(kind.load(entry, ["example/app:1"]))


def test_logs_of_a_stopped_cluster_are_what_can_be_had(there: Programs, tmp_path: Path) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    there.says("logs.says", "ERROR: [command failed]\n")
    with pytest.raises(ClusterError, match="kind could not export the logs"):
        asyncio.run(kind.logs(entry, tmp_path / "empty"))
    (tmp_path / "logs" / "ctrl-control-plane").mkdir(parents=True)
    (tmp_path / "logs" / "ctrl-control-plane" / "inspect.json").write_text("[]")
    asyncio.run(kind.logs(entry, tmp_path / "logs"))
    assert there.calls("kind", "export")[-1] == f"kind <export> <logs> <--name> <ctrl> <--> <{tmp_path / 'logs'}>"
