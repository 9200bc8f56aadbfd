"""podman's own ways, with stand-ins that answer as podman 4.3.1 did: no daemon does the work, its program does.

And a word of nerdctl's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from random import SystemRandom

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.kind import cluster_files
from kubectl_ctrl.clusters.kind.container_runtimes import MARK, Node, Runtime, last_line
from kubectl_ctrl.clusters.kind.provider import KindProvider
from kubectl_ctrl.clusters.provider import ClusterSpec, Machine
from kubectl_ctrl.errors import ClusterError
from kubectl_ctrl.exec import run
from tests.clusters.kindprograms import TOOLS, Programs, programs, quiet

pytestmark = pytest.mark.programs(*TOOLS, "sh")

NODE = Node(id="c0ffee", name="ctrl-control-plane", role="control-plane", state="running")
# What it says of a container that lost its `podman run` in the middle. It has forgotten the container by then.
BUSY = """\
Error: removing container c0ffee root filesystem: 1 error occurred:
	* unlinkat /storage/c0ffee/userdata/shm: device or resource busy


"""


@pytest.fixture
def there(tmp_path: Path) -> Programs:
    return programs(tmp_path / "machine", ["kind", "podman"])


def podman(there: Programs, script: str) -> Runtime:
    there.install("podman", script)
    return Runtime("podman", there.home / "bin" / "podman", there.environ)


def removal(there: Programs, inspected: str) -> None:
    """Of a node, by a podman that fails in it and then says that of the node."""
    there.says("busy", BUSY)
    asked = podman(there, f'case "$1" in rm) cat "$home/busy" >&2; exit 125 ;; container) {inspected} ;; esac')
    asyncio.run(asked.remove([NODE]))


def test_a_node_is_killed_since_podman_would_ask_it_to_end_first(there: Programs) -> None:
    asyncio.run(podman(there, "").remove([NODE]))
    assert there.calls() == ["podman <kill> <c0ffee>", "podman <rm> <-f> <-v> <c0ffee>"]


def test_a_removal_that_leaves_a_mount_has_removed_the_node(there: Programs) -> None:
    removal(there, "echo 'Error: inspecting object: no such container c0ffee' >&2; exit 125")


@pytest.mark.parametrize("inspected", ["echo c0ffee", "echo 'Error: out of memory' >&2; exit 125"])
def test_a_removal_that_leaves_the_node_is_an_error_with_its_cause(inspected: str, there: Programs) -> None:
    cause = r"removing container c0ffee .*: 1 error occurred: unlinkat \S+/shm: device or resource busy\.$"
    with pytest.raises(ClusterError, match=rf"^podman rm failed: {cause}"):
        removal(there, inspected)


@pytest.mark.programs("setsid")
def test_what_makes_something_is_in_a_session_of_its_own(there: Programs) -> None:
    """There, it is not killed with the kind that started it."""
    (there.home / "bin" / "setsid").symlink_to(shutil.which("setsid") or "")
    asked = podman(there, 'read -r _ _ _ _ _ session _ < /proc/$$/stat; echo "$$ $session"')
    cluster_files.wrapped(entry := there.entry(), "podman", asked.wrapper("m"), asked.path)

    def alone(*words: str) -> bool:
        argv = [str(entry.folder / "bin" / "podman"), *words]
        own, session = asyncio.run(run(["/bin/sh", "-c", '"$@"; :', "-", *argv], timeout=10, env={})).stdout.split()
        return own == session

    assert alone("run", "--name", "x")
    assert alone("volume", "create")
    assert not alone("exec", "x")
    assert not alone("pull", "x")


@pytest.mark.programs("setsid")
@pytest.mark.real_loop
async def test_a_node_that_is_being_made_is_there_before_it_is_taken_away(there: Programs) -> None:
    """Cancelled in the middle of `podman run`: kind is killed at once, podman comes to its end."""
    (there.home / "bin" / "setsid").symlink_to(shutil.which("setsid") or "")
    os.mkfifo(go := there.home / "go")
    entry, asked_before = there.entry(), list[str]()

    class Meanwhile(SystemClock):
        async def sleep(self, seconds: float) -> None:
            if go.exists():
                asked_before.extend(line for line in there.calls("podman", "ps") if MARK in line)
                handle = os.open(go, os.O_WRONLY | os.O_NONBLOCK)  # an error where podman was killed
                os.write(handle, b"\n")
                os.close(handle)
                go.unlink()
            await super().sleep(seconds)

    machine = Machine(clock=Meanwhile(), rng=SystemRandom(), environ=there.environ, cache=there.home / "cache")
    making = asyncio.create_task(KindProvider(machine).create(entry, ClusterSpec(), quiet))
    while not (there.home / "waiting").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0)
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert making.cancelled()
    assert asked_before == there.nodes() == []
    assert there.calls("podman", "rm") == ["podman <rm> <-f> <-v> <ours1>"]


@pytest.mark.parametrize(
    ("image", "names"),
    [
        ("mine:dev", "<mine:dev> <docker.io/library/mine:dev>"),
        ("team/mine", "<team/mine> <docker.io/team/mine>"),
        ("localhost/mine:dev", "<localhost/mine:dev>"),
        ("quay.io/team/mine:1", "<quay.io/team/mine:1>"),
        ("registry:5000/mine", "<registry:5000/mine>"),
        ("mine@sha256:c0ffee", "<mine@sha256:c0ffee>"),
    ],
)
def test_an_image_is_known_to_the_nodes_by_the_name_that_pods_have(image: str, names: str, there: Programs) -> None:
    """podman calls what it has built localhost/NAME, and a pod's NAME is docker.io/library/NAME."""
    asyncio.run(podman(there, "").save(image, there.home / "image.tar"))
    form = "<--format> <docker-archive> <--multi-image-archive=false>"
    assert there.calls() == [f"podman <save> {form} <-o> <{there.home}/image.tar> <--> {names}"]


def test_a_machine_that_is_not_started_is_said_to_be(there: Programs) -> None:
    there.says(
        "daemon.says",
        "Cannot connect to Podman. Please verify your connection to the Linux system using `podman system connection "
        "list`, or try `podman machine init` and `podman machine start` to manage a new Linux VM\n"
        'Error: unable to connect to Podman socket: Get "http://d/v4.3.1/libpod/_ping": dial unix /run/p.sock: '
        "connect: no such file or directory\n",
    )
    found = asyncio.run(there.kind().fitness(ClusterSpec()))
    assert found.text == "podman does not answer: nothing listens on /run/p.sock"
    assert found.next_step == "start podman, or set CONTAINER_HOST to its address"


def test_of_what_nerdctl_says_the_last_that_is_fatal_tells_why() -> None:
    said = (
        'ERROR: failed to create cluster: command "nerdctl run --name x" failed with error: exit status 1\n'
        'time="2026-11-22T07:06:03Z" level=fatal msg="unsupported restart policy \\"on-failure\\""\n'
    )
    assert last_line(said) == 'unsupported restart policy "on-failure"'
