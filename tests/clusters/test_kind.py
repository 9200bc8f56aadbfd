"""The kind provider, with stand-ins for kind and docker: what is made, found, refused and taken away, and how."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import stat
from pathlib import Path

import pytest

from kubectl_ctrl import processes
from kubectl_ctrl.clusters.kind import cluster_files, container_runtimes
from kubectl_ctrl.clusters.kind.provider import KindProvider
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase
from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing, Refused, UsageError
from kubectl_ctrl.exec import Output, detached, run
from kubectl_ctrl.files import draft_of
from kubectl_ctrl.value import replace
from tests.clusters.kindprograms import TOOLS, Programs, create, node, programs, quiet, ready

pytestmark = pytest.mark.programs(*TOOLS)


@pytest.fixture
def entry(there: Programs, kind: KindProvider) -> ClusterEntry:
    return ready(there, kind)


def state(kind: KindProvider, entry: ClusterEntry) -> ClusterState:
    return asyncio.run(kind.state(entry))


def mark(entry: ClusterEntry) -> str:
    found: str = json.loads((entry.folder / "kind.json").read_text())["mark"]
    return found


def delete(kind: KindProvider, entry: ClusterEntry) -> list[str]:
    told: list[str] = []
    asyncio.run(kind.delete(entry, told.append))
    return told


# CreatedCluster.


def test_a_cluster_is_made_with_a_kubeconfig_of_its_own(there: Programs) -> None:
    told: list[str] = []
    entry = there.entry()
    made = asyncio.run(there.kind().create(entry, ClusterSpec(wait=90), told.append))
    notes = {"nodes": "ours1", "runtime": "docker", "mark": mark(entry)}
    assert made == CreatedCluster(
        context="kind-ctrl", kubeconfig="apiVersion: v1\nkind: Config\n", version="v1.36.3", notes=notes
    )
    own = entry.folder / "tmp" / "kubeconfig"
    assert there.calls("kind", "create") == [
        f"kind <create> <cluster> <--name> <ctrl> <--kubeconfig> <{own}> <--wait> <90s> <--retain>"
    ]
    assert told[0] == "node image example/node:v1.36.3"
    assert told[-1] == "waiting until the control plane is Ready"
    assert not own.exists()


def test_what_was_wished_is_what_kind_is_asked(there: Programs) -> None:
    config = there.home / "kind.yaml"
    config.write_text("kind: Cluster")
    create(there.kind(), there.entry(), image="example/node:v1.36.3", config=config, keep_on_failure=True)
    (call,) = there.calls("kind", "create")
    assert call.endswith(f" <--image=example/node:v1.36.3> <--config={config}>")


def test_several_nodes_need_no_configuration_of_the_user(there: Programs) -> None:
    entry = there.entry()
    create(there.kind(), entry, nodes=3)
    (call,) = there.calls("kind", "create")
    file = entry.folder / "tmp" / "config.json"
    assert call.endswith(f" <--config={file}>")
    assert [each["role"] for each in json.loads(file.read_text())["nodes"]] == ["control-plane", "worker", "worker"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ClusterSpec(nodes=3, config=Path("kind.yaml")), "--nodes and --config both define the nodes."),
        (ClusterSpec(nodes=0), "A kind cluster needs at least one node; --nodes is 0."),
        (ClusterSpec(config=Path("no/kind.yaml")), "The configuration file 'no/kind.yaml' does not exist."),
        (ClusterSpec(image="--help"), "'--help' is not the name of an image."),
        (ClusterSpec(image="a;b"), "'a;b' is not the name of an image."),
    ],
)
def test_an_invalid_spec_is_refused_before_anything_runs(spec: ClusterSpec, message: str, there: Programs) -> None:
    with pytest.raises(UsageError) as caught:
        asyncio.run(there.kind().create(there.entry(), spec, quiet))
    assert caught.value.message == message
    assert there.calls() == []


def test_its_page_is_on_the_disk_before_it_counts(there: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, kept = there.entry(), list[tuple[str | None, str | None]]()
    file = entry.folder / "kind.json"

    def content(path: Path) -> str | None:
        return path.read_text() if path.exists() else None

    monkeypatch.setattr(os, "fsync", lambda _: kept.append((content(draft_of(file)), content(file))))
    cluster_files.write(entry, cluster_files.Identity(runtime="docker", mark="m"))
    written = file.read_text()
    assert kept == [(written, None), (None, written)], "first the file, then its folder"


@pytest.mark.parametrize("content", ["", "[]"])
def test_a_page_is_read_also_of_a_later_version_or_is_an_error(
    there: Programs, content: str, kind: KindProvider
) -> None:
    entry = replace(ready(there, kind), notes={})
    page = entry.folder / "kind.json"
    later = json.dumps({**json.loads(page.read_text()), "of_a_later_version": 1})
    page.write_text(content)
    with pytest.raises(ClusterError, match="the nodes of cluster 'ctrl' are unknown"):
        delete(kind, entry)
    page.write_text(later)
    delete(kind, entry)
    assert there.nodes() == []


# Whose it is.


def test_a_cluster_of_that_name_that_is_not_ours_is_neither_used_nor_touched(there: Programs) -> None:
    there.made_by_hand()
    kind = there.kind()
    assert asyncio.run(kind.foreign("ctrl")) == "docker has an unmanaged container ctrl-control-plane"
    entry = there.entry()
    with pytest.raises(Refused, match="The name 'ctrl' is in use"):
        create(kind, entry)
    delete(kind, entry)
    assert there.nodes() == ["theirs"]
    assert there.calls("kind", "create") == there.calls("docker", "rm") == []


def test_somebody_who_is_quicker_keeps_the_name(there: Programs) -> None:
    """Between our look and kind's a cluster of that name appeared."""
    there.kind_says("exists")
    there.says("create.makes", node("theirs", "ctrl-control-plane"))
    entry, kind = there.entry(), there.kind()
    with pytest.raises(Refused):
        create(kind, entry)
    delete(kind, entry)
    assert len(there.nodes()) == 1


def test_what_is_made_by_hand_after_we_were_killed_is_not_ours(there: Programs) -> None:
    """The page was written, and no node made; then, at once, somebody made a cluster of that name."""
    entry = ready(there, kind := there.kind())
    delete(kind, replace(entry, phase=Phase.DELETING))
    there.made_by_hand()
    for left in (entry, replace(entry, phase=Phase.CREATING, notes={}), there.registry.unread("ctrl")):
        assert state(kind, left) is ClusterState.ABSENT
        assert delete(kind, left) == []
    with pytest.raises(Refused):
        create(kind, there.entry())
    assert there.nodes() == ["theirs"]


def test_without_nodes_of_ours_kind_is_not_asked_for_those_of_that_name(there: Programs, tmp_path: Path) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    (there.home / "nodes" / "ctrl" / "ours1").unlink()
    there.made_by_hand()
    for asked in (kind.load(entry, ["example/app:1"]), kind.logs(entry, tmp_path / "logs")):
        with pytest.raises(ClusterError, match="Cluster 'ctrl' no longer has any nodes"):
            asyncio.run(asked)
    assert there.calls("kind", "load") == there.calls("kind", "export") == []


def test_all_that_kind_makes_carries_the_mark(there: Programs) -> None:
    entry = there.entry()
    create(there.kind(), entry)
    label = f"<--label> <kubectl-ctrl/mark={mark(entry)}>"
    assert there.calls("docker", "network", "create") == [f"docker <network> <create> {label} <-d=bridge> <kind>"]
    words = "<--name> <ctrl-control-plane> <--label> <io.x-k8s.kind.cluster=ctrl> <--net> <kind> <example/node:1>"
    assert there.calls("docker", "run") == [f"docker <run> {label} {words}"]
    # Whatever docker starts is what it would be without us.
    assert there.environment("docker")["PATH"] == str(there.home / "bin")


@pytest.mark.parametrize(
    ("words", "marked"),
    [
        (["run", "-v", "/var", "a b", "it's", ""], ["run", "--label", "M", "-v", "/var", "a b", "it's", ""]),
        (["create", "x"], ["create", "--label", "M", "x"]),
        (["container", "run", "x"], ["container", "run", "--label", "M", "x"]),
        (["network", "create", "x"], ["network", "create", "--label", "M", "x"]),
        (["volume", "create"], ["volume", "create", "--label", "M"]),
        (["exec", "run", "create"], ["exec", "run", "create"]),
        (["network", "inspect", "create"], ["network", "inspect", "create"]),
        (["-v"], ["-v"]),
        ([], []),
    ],
)
def test_the_mark_is_put_on_what_is_made_and_on_nothing_else(
    words: list[str], marked: list[str], there: Programs
) -> None:
    asked = there.home / "asked"
    there.install("docker", f'[ "$1" = info ] || printf "%s\\0" "$@" > {shlex.quote(str(asked))}; exit 7')
    runtime = container_runtimes.Runtime("docker", there.home / "bin" / "docker", there.environ)
    path = cluster_files.wrapped(entry := there.entry(), "docker", runtime.wrapper("m"), runtime.path)
    assert path == f"{entry.folder}/bin:{there.home}/bin"
    file = entry.folder / "bin" / "docker"
    assert stat.S_IMODE(file.stat().st_mode) == 0o700
    assert ran([str(file), *words]).code == 7
    said = asked.read_bytes().decode().removesuffix("\0")
    assert said.replace("kubectl-ctrl/mark=m", "M").split("\0") == (marked or [""])


def ran(argv: list[str]) -> Output:
    return asyncio.run(run(argv, timeout=10, env={}, check=False))


def test_where_no_program_of_ours_would_be_found_nothing_is_begun(there: Programs) -> None:
    """PATH has no way to write a folder with a colon; on a disk that is mounted noexec it is the same."""
    entry = replace(there.entry(), folder=there.home / "a:b")
    with pytest.raises(PrerequisiteMissing, match=r"kind cannot work from .*/a:b\"") as caught:
        create(there.kind(), entry)
    assert caught.value.next_step == "set XDG_STATE_HOME to another folder, or use --provider kwok"
    assert there.calls("kind", "create") == []


def test_a_container_that_goes_by_itself_is_no_error(there: Programs, kind: KindProvider, entry: ClusterEntry) -> None:
    there.says("rm.says", "Error response from daemon: removal of container ours1 is already in progress\n")
    delete(kind, entry)
    assert there.nodes() == []


def test_a_name_that_any_container_has_is_taken(there: Programs) -> None:
    (there.home / "others").mkdir()
    there.says("others/x1", node("x1", "ctrl-control-plane"))
    assert asyncio.run(there.kind().foreign("ctrl")) == "docker has an unmanaged container ctrl-control-plane"
    there.says("others/x1", node("x1", "not-ctrl-control-plane"))
    assert asyncio.run(there.kind().foreign("ctrl")) == ""


def test_a_cluster_that_was_made_anew_by_hand_is_not_ours_any_more(
    there: Programs, kind: KindProvider, entry: ClusterEntry
) -> None:
    (there.home / "nodes" / "ctrl" / "ours1").unlink()
    there.made_by_hand()
    assert state(kind, entry) is ClusterState.ABSENT
    delete(kind, entry)
    assert there.nodes() == ["theirs"]


def test_the_runtime_that_made_it_is_asked_whatever_the_environment_says_now(tmp_path: Path) -> None:
    there = programs(tmp_path / "machine", ["kind", "docker", "podman"])
    entry = ready(there, there.kind(DOCKER_HOST="unix:///first.sock"))
    now = there.kind(DOCKER_HOST="unix:///second.sock", KIND_EXPERIMENTAL_PROVIDER="podman")
    assert state(now, entry) is ClusterState.RUNNING
    assert there.environment("docker")["DOCKER_HOST"] == "unix:///first.sock"
    delete(now, entry)
    assert there.nodes() == []
    assert there.calls("podman") == []


def test_a_cluster_of_the_usual_daemon_is_not_looked_for_in_another_one(there: Programs) -> None:
    entry = ready(there, there.kind())
    assert state(there.kind(DOCKER_HOST="unix:///second.sock", DOCKER_CONTEXT="far"), entry) is ClusterState.RUNNING
    assert not {"DOCKER_HOST", "DOCKER_CONTEXT"} & set(there.environment("docker"))


@pytest.mark.parametrize(
    ("runtime", "pointer"),
    [
        ("docker", "DOCKER_CONFIG"),  # has docker's current context
        ("nerdctl", "CONTAINERD_NAMESPACE"),
        ("nerdctl", "NERDCTL_TOML"),
    ],
)
def test_what_leads_to_other_containers_is_as_it_was(tmp_path: Path, runtime: str, pointer: str) -> None:
    there = programs(tmp_path / "machine", ["kind", runtime])
    entry = ready(there, there.kind(**{pointer: "then"}))
    for today in ({}, {pointer: "now"}):
        assert state(there.kind(**today), entry) is ClusterState.RUNNING
        assert there.environment(runtime)[pointer] == "then"


def test_another_daemon_is_not_asked_to_forget_a_cluster_that_it_never_had(there: Programs) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    there.says("docker.info", '{"ID": "ANOTHER", "ServerVersion": "28.2.2"}')
    with pytest.raises(PrerequisiteMissing, match=r"\(id ANOTHER, not X3WQ:5GDI\)"):
        delete(kind, entry)
    assert there.nodes() == ["ours1"]


# How it stands.


def test_how_a_cluster_stands(there: Programs, kind: KindProvider) -> None:
    assert state(kind, there.entry()) is ClusterState.ABSENT
    entry = ready(there, kind)
    assert state(kind, entry) is ClusterState.RUNNING
    assert state(kind, replace(entry, phase=Phase.CREATING)) is ClusterState.PARTIAL
    assert state(kind, replace(entry, notes={**entry.notes, "nodes": "ours1 ours2"})) is ClusterState.PARTIAL
    there.becomes("exited")
    assert state(kind, entry) is ClusterState.STOPPED
    there.becomes("dead")
    assert state(kind, entry) is ClusterState.PARTIAL


def test_nodes_that_a_daemon_names_and_does_not_show_are_not_gone(
    there: Programs, kind: KindProvider, entry: ClusterEntry
) -> None:
    """As when it is started anew between the two questions."""
    there.says("inspect.says", "Error: No such container: ours1\n")
    assert state(kind, entry) is ClusterState.ABSENT
    there.says("inspect.says", "error during connect: EOF\n")
    with pytest.raises(ClusterError, match="docker container failed: error during connect: EOF"):
        state(kind, entry)
    there.says("inspect.says", "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?\n")
    with pytest.raises(PrerequisiteMissing, match=r"nothing listens on unix:///x\.sock"):
        delete(kind, entry)
    assert there.nodes() == ["ours1"]


@pytest.mark.parametrize(("status", "how"), [("exited", "start"), ("paused", "unpause")])
def test_a_stopped_one_runs_again(
    status: str, how: str, there: Programs, kind: KindProvider, entry: ClusterEntry
) -> None:
    there.becomes(status)
    asyncio.run(kind.start(entry, quiet))
    assert state(kind, entry) is ClusterState.RUNNING
    assert there.calls("docker", how) == [f"docker <{how}> <ours1>"]


def test_it_is_found_by_the_book_where_its_own_page_was_lost(
    there: Programs, kind: KindProvider, entry: ClusterEntry
) -> None:
    (entry.folder / "kind.json").unlink()
    assert state(kind, entry) is ClusterState.RUNNING
    delete(kind, entry)
    assert there.nodes() == []


# Taken away.


def test_what_kind_leaves_behind_when_it_fails_goes(there: Programs) -> None:
    """It does not take its nodes away when it cannot write the kubeconfig."""
    there.kind_says("locked")
    with pytest.raises(ClusterError):
        create(there.kind(), there.entry())
    assert there.nodes() == []


def test_on_demand_it_stays(there: Programs) -> None:
    there.kind_says("kubeadm")
    entry, kind = there.entry(), there.kind()
    with pytest.raises(ClusterError):
        create(kind, entry, keep_on_failure=True)
    assert there.nodes() == ["ours1"]
    assert state(kind, entry) is ClusterState.PARTIAL
    assert delete(kind, entry) == ["removing ctrl-control-plane", "removed network kind"]
    assert there.nodes() == []


@pytest.mark.real_loop
async def test_cancelled_it_leaves_nothing(there: Programs) -> None:
    """kind, told to end, leaves its node."""
    there.says("create.hangs", "")
    entry, kind = there.entry(), there.kind()
    making = asyncio.create_task(kind.create(entry, ClusterSpec(), quiet))
    while not (there.home / "hanging").exists() and not making.done():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0)
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert making.cancelled()
    assert there.nodes() == []
    assert not Path("/proc", (there.home / "hanging").read_text().strip()).exists()


def test_a_kind_that_outlived_us_is_ended_before_its_nodes_are_taken_away(there: Programs) -> None:
    """We were killed: kind goes on in a session of its own, and would make the node that was just removed."""
    entry, kind = ready(there, there.kind()), there.kind()
    there.says("create.hangs", "")
    argv = [str(entry.folder / "bin" / "sleep"), "60"]
    Path(argv[0]).symlink_to("/bin/sleep")
    pid = detached(argv, env={}, output=there.home / "output")
    while not asyncio.run(processes.running(entry.folder)):
        pass  # the kernel takes a moment to show what it runs
    delete(kind, replace(entry, phase=Phase.DELETING))
    assert there.nodes() == []
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()


def test_delete_twice_is_fine(there: Programs, kind: KindProvider, entry: ClusterEntry) -> None:
    assert delete(kind, entry) == ["removing ctrl-control-plane", "removed network kind"]
    assert delete(kind, entry) == []
    assert there.calls("docker", "rm") == ["docker <rm> <-f> <-v> <ours1>"]


def test_the_volume_of_a_node_that_somebody_removed_without_it_goes_too(there: Programs) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    volumes = there.home / "volumes"
    volumes.mkdir()
    for name in ("volume-of-ours1", "volume-of-theirs"):
        (volumes / name).touch()
    (there.home / "nodes" / "ctrl" / "ours1").unlink()
    delete(kind, entry)
    assert [path.name for path in volumes.iterdir()] == ["volume-of-theirs"]


def test_f58_with_a_daemon_that_is_down_nothing_is_said_to_be_gone(
    there: Programs, kind: KindProvider, entry: ClusterEntry
) -> None:
    there.says("daemon.says", "Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?\n")
    for asked in (
        kind.delete(entry, quiet),
        kind.state(entry),
        kind.foreign("ctrl"),
        kind.load(entry, ["example/app:1"]),
    ):
        with pytest.raises(PrerequisiteMissing, match=r"nothing listens on unix:///x\.sock"):
            asyncio.run(asked)


def test_a_frozen_node_is_thawed_and_removed(there: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = there.kind()
    entry = ready(there, kind)
    group = there.home / "freezer" / "docker" / "ours1" / "kubelet"
    group.mkdir(parents=True)
    (group / "freezer.state").write_text("FROZEN\n")
    monkeypatch.setattr(container_runtimes, "_FREEZER", there.home / "freezer")
    there.says("rm.says", "Error response from daemon: tried to kill container, but did not receive an exit event\n")
    delete(kind, entry)
    assert there.nodes() == []
    assert (group / "freezer.state").read_text() == "THAWED"


def test_podmans_volumes_are_removed_by_name(tmp_path: Path) -> None:
    there = programs(tmp_path / "machine", ["kind", "podman"])
    kind = there.kind(KIND_EXPERIMENTAL_PROVIDER="podman")
    entry = ready(there, kind)
    (there.home / "volumes" / "theirs").write_text("volume create --label ctrl-control-plane=true")
    # We were killed, and nobody noted them.
    page = entry.folder / "kind.json"
    page.write_text(json.dumps({**json.loads(page.read_text()), "volumes": []}))
    delete(kind, entry)
    assert [path.name for path in (there.home / "volumes").iterdir()] == ["theirs"]


# The network.


def test_the_network_that_came_with_it_goes_with_it(there: Programs, kind: KindProvider, entry: ClusterEntry) -> None:
    assert delete(kind, entry) == ["removing ctrl-control-plane", "removed network kind"]
    assert not (there.home / "network").exists()


def test_a_network_that_somebody_else_made_stays(there: Programs) -> None:
    there.says("network", "network create -d=bridge kind")
    kind = there.kind()
    delete(kind, ready(there, kind))
    assert (there.home / "network").exists()


def test_a_network_that_is_used_stays_and_the_last_of_ours_takes_it_along(there: Programs, kind: KindProvider) -> None:
    first, second = ready(there, kind), ready(there, kind, "other")
    there.says("network.users", "ours1\n")
    delete(kind, first)
    assert (there.home / "network").exists()
    there.says("network.users", "")
    delete(kind, second)
    assert not (there.home / "network").exists()


@pytest.mark.parametrize(
    "said",
    [
        "docker: Error response from daemon: network kind not found.\n",
        "Error: unable to find network with name or ID kind: network not found\n",
    ],
)
def test_a_network_that_another_cluster_took_along_meanwhile_is_made_anew(said: str, there: Programs) -> None:
    """It was there when kind looked, and nobody used it yet."""
    there.says("run.says", said)
    assert state(there.kind(), ready(there, there.kind())) is ClusterState.RUNNING
    assert len(there.calls("docker", "network", "create")) == 2
    assert there.calls("docker", "rm") == ["docker <rm> <-f> <-v> <ours1>"]
