"""Kwok with small programs in place of kwokctl and the servers; `kwoksaid` is what the real ones print.

That it makes clusters with the real ones is for e2e/test_clusters.py.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.clusters import lifecycle, ports, programs
from kubectl_ctrl.clusters.kwok import config as kwokconfig
from kubectl_ctrl.clusters.kwok import kwokctl
from kubectl_ctrl.clusters.kwok.provider import KwokProvider
from kubectl_ctrl.clusters.provider import ClusterSpec, ClusterState, CreatedCluster
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.errors import ClusterError, PrerequisiteMissing, UsageError
from kubectl_ctrl.value import replace
from tests.clusters.made_up import machine

pytestmark = pytest.mark.programs("cat", "mkdir", "sleep", "true")

SAID = Path(__file__).parent / "kwoksaid"
SERVERS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
VERSION = "echo 'kwokctl version v0.8.0 go1.26.8 (linux/amd64)'"
ARTIFACTS = """\
https://dl.k8s.io/release/v1.36.1/bin/linux/amd64/kube-apiserver
https://dl.k8s.io/release/v1.36.1/bin/linux/amd64/kube-controller-manager
https://dl.k8s.io/release/v1.36.1/bin/linux/amd64/kube-scheduler
https://dl.k8s.io/release/v1.36.1/bin/linux/amd64/kubectl
https://github.com/etcd-io/etcd/releases/download/v3.6.10/etcd-v3.6.10-linux-amd64.tar.gz#etcd
https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64
https://github.com/kubernetes-sigs/metrics-server/releases/download/v0.8.1/metrics-server-linux-amd64
https://github.com/prometheus/prometheus/releases/download/v3.12.0/prometheus-3.12.0.linux-amd64.tar.gz#prometheus
"""


class House:
    """A folder of programs, and a machine with nothing else on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.machine = replace(machine(folder), environ={"HOME": str(folder), "PATH": str(self.programs)})
        self.kwok = KwokProvider(self.machine)
        self.registry = Registry(folder / "clusters")
        self.notes: list[str] = []

    def program(self, name: str, script: str = "exit 0") -> Path:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def all_programs(self, create: str = "exit 0") -> None:
        for name in (*SERVERS, "kubectl"):
            self.program(name)
        self.program("kwokctl", f'case "$1" in\n--version) {VERSION};;\n*) {create};;\nesac')

    def fetching(self) -> None:
        """kwokctl alone, which knows from where it would download."""
        (self.folder / "artifacts").write_text(ARTIFACTS)
        self.program("kwokctl", f'case "$1" in\n--version) {VERSION};;\nget) /bin/cat {self.folder}/artifacts;;\nesac')

    def fitness(self, **spec: object) -> tuple[bool, str, str, Mapping[str, str]]:
        found = asyncio.run(self.kwok.fitness(replace(ClusterSpec(), **spec)))  # type: ignore[arg-type]
        return found.usable, found.text, found.next_step, found.missing

    def entry(self) -> ClusterEntry:
        entry = ClusterEntry(
            name="one", provider="kwok", phase=Phase.CREATING, began=1.0, folder=self.registry.place("one")
        )
        self.registry.write(entry)
        return entry

    def create(self, spec: ClusterSpec = ClusterSpec(wait=5.0)) -> CreatedCluster:  # noqa: B008 - a frozen value
        return asyncio.run(self.kwok.create(self.entry(), spec, self.notes.append))


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_f58_without_kwokctl_it_says_where_it_looked_and_how_to_get_it(house: House) -> None:
    usable, text, step, missing = house.fitness()
    assert (usable, text, missing) == (False, "kwokctl is not in PATH", {"kwokctl": "is not in PATH"})
    assert step == "kubectl ctrl doctor --fix kwok"
    usable, text, _, _ = house.fitness(bin_dir=house.programs)
    assert (usable, text) == (False, f"kwokctl is not in --bin-dir {str(house.programs)!r}")


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo kwokctl version v0.5.2", "is v0.5.2, and v0.6 or newer is needed"),
        ("echo hello", "does not report its version: 'hello'"),
        ("exit 1", "cannot be run"),
    ],
)
def test_f58_a_kwokctl_that_is_too_old_or_none_at_all_is_told(house: House, script: str, text: str) -> None:
    program = house.program("kwokctl", script)
    assert house.fitness()[:2] == (False, f"{str(program)!r} {text}")
    assert house.fitness()[2] == "install kwokctl v0.6 or newer"


def test_f58_programs_of_another_system_and_those_that_are_missing_are_told(house: House) -> None:
    house.all_programs()
    assert house.fitness(bin_dir=house.programs)[:2] == (True, "kwok v0.8.0")
    (house.programs / "etcd").write_bytes(b"MZ\x00\x00")
    (house.programs / "kube-scheduler").chmod(0o644)
    (house.programs / "kwok").unlink()
    usable, text, _, missing = house.fitness(bin_dir=house.programs)
    assert not usable
    assert missing == {
        "etcd": "is not a program for this system",
        "kube-scheduler": "is not executable",
        "kwok": "is not there",
    }
    assert "etcd is not a program for this system" in text
    assert str(house.programs) in text


def test_f58_offline_it_names_what_kwokctl_would_download(house: House) -> None:
    house.fetching()
    usable, text, step, missing = house.fitness(offline=True)
    assert not usable
    names = "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok"
    assert text == f"kwokctl would have to download {names}, and --offline forbids it"
    assert set(missing) == set(names.split(", "))
    assert "--bin-dir" in step
    assert house.fitness()[:2] == (True, "kwok v0.8.0, which downloads about 345 MB first")


def test_what_is_in_its_cache_is_not_downloaded_again(house: House) -> None:
    house.fetching()
    cache = house.machine.cache / "kwok" / "https"
    kubernetes = cache / "dl.k8s.io/release/v1.36.1/bin/linux/amd64"
    files = [kubernetes / name for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")]
    files += [cache / "github.com/etcd-io/etcd/releases/download/v3.6.10/etcd"]
    files += [cache / "github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert house.fitness(offline=True)[:2] == (True, "kwok v0.8.0")
    files[-1].unlink()
    assert house.fitness()[:2] == (True, "kwok v0.8.0, which downloads about 50 MB first")


def test_it_is_not_for_what_only_kind_has(house: House) -> None:
    house.all_programs()
    assert house.fitness(image="kindest/node:v1")[0] is False
    config = house.folder / "kind.yaml"
    config.write_text("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n")
    usable, text, _, _ = house.fitness(config=config)
    assert (usable, text) == (False, f"The --config file {str(config)!r} is for kind")


@pytest.mark.parametrize(
    ("situation", "message"),
    [
        ("missing", "kwokctl failed for cluster 'one': stat /nowhere/etcd: no such file or directory."),
        ("bad-option", "json: cannot unmarshal string into Go struct field"),
    ],
)
def test_f58_what_kwokctl_complains_of_is_the_error(house: House, situation: str, message: str) -> None:
    house.all_programs(f"/bin/cat {SAID / situation} >&2; exit 1")
    with pytest.raises(ClusterError) as caught:
        house.create(ClusterSpec(wait=5.0, bin_dir=house.programs))
    assert message in caught.value.message
    assert caught.value.output == (SAID / situation).read_text()


@pytest.mark.parametrize(
    ("situation", "message"),
    [
        ("not-a-program", "etcd cannot be run: permission denied."),
        ("other-system", "kube-apiserver cannot be run: exec format error."),
        (
            "no-network",
            (
                "kwokctl cannot download https://dl.k8s.io/x/etcd: "
                "proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused."
            ),
        ),
    ],
)
def test_f58_a_program_that_cannot_be_run_or_downloaded_is_missing(house: House, situation: str, message: str) -> None:
    house.all_programs(f"/bin/cat {SAID / situation} >&2; exit 1")
    with pytest.raises(PrerequisiteMissing) as caught:
        house.create(ClusterSpec(wait=5.0, bin_dir=house.programs))
    assert caught.value.message == message
    assert "--bin-dir" in caught.value.next_step


def test_f58_a_server_that_ends_is_not_waited_for(house: House) -> None:
    """kwokctl itself would wait for two minutes."""
    work = house.registry.place("one") / "kwok" / "clusters" / "one"
    made = f"/bin/mkdir -p {work}/pids {work}/logs; /bin/true & wait $!; echo $! > {work}/pids/kube-apiserver.pid"
    logged = f"/bin/cat {SAID}/kube-apiserver-flag.log > {work}/logs/kube-apiserver.log"
    house.all_programs(f"{logged.join((made + '; ', ''))}; exec /bin/sleep 60")
    with pytest.raises(ClusterError, match="unknown flag: --nonsense"):
        house.create(ClusterSpec(wait=50.0, bin_dir=house.programs))


def test_a_server_that_is_not_yet_what_it_becomes_has_not_ended(house: House) -> None:
    """As one that a script starts, and be it only to give it some flags."""
    runner = kwokctl.Kwokctl(house.entry(), house.machine)
    (runner.work / "pids").mkdir(parents=True)
    becoming = subprocess.Popen(["/bin/sleep", "1000"])
    (runner.work / "pids" / "etcd.pid").write_text(str(becoming.pid))
    (runner.work / "pids" / "kwok.pid").touch()  # its number is just being written

    async def work() -> str:
        for _ in range(3):  # the other one looks meanwhile
            await asyncio.sleep(0)
        return "done"

    try:
        assert asyncio.run(runner.while_alive(work())) == "done"
    finally:
        becoming.kill()
        becoming.wait()
    with pytest.raises(ClusterError, match="etcd of cluster 'one' exited"):
        asyncio.run(runner.while_alive(work()))


def test_nothing_of_the_user_reaches_kwokctl(house: House) -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "KUBECONFIG": "/mine",
        "KWOK_RUNTIME": "docker",
        "https_proxy": "http://p",
    }
    assert kwokctl.environ(house.folder, given, path=Path("/p")) == {
        "https_proxy": "http://p",
        "PATH": "/p",
        "HOME": f"{house.folder}/home",
        "KWOK_WORKDIR": str(house.folder),
    }


def test_the_users_own_file_counts_but_for_what_must_hold(tmp_path: Path) -> None:
    file = tmp_path / "kwok.yaml"
    stage = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": "mine"}}
    own = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": {"etcdPort": 7, "kubeFeatureGates": "A=true"},
        "componentsPatches": [{"name": "etcd", "extraArgs": [{"key": "a", "value": "b"}]}],
    }
    file.write_text(yaml.safe_dump_all([stage, own]))
    made, other = yaml.safe_load_all(kwokconfig.read(file).completed({"etcdPort": 1, "kubeApiserverPort": 2}))
    assert made["options"] == {
        "etcdPort": 7,
        "kubeApiserverPort": 2,
        "kubeFeatureGates": "A=true",
        "runtime": "binary",
        "bindAddress": "127.0.0.1",
        "quietPull": True,
    }
    assert made["componentsPatches"][-1] == own["componentsPatches"][0]  # type: ignore[index]
    assert other == stage


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"runtime": "docker"}, "sets runtime: docker, but only binary"),
        ({"bindAddress": "0.0.0.0"}, "sets bindAddress: 0.0.0.0, but only 127.0.0.1"),
        ({"kubeApiserverInsecurePort": 8080}, "sets kubeApiserverInsecurePort: 8080, but only 0"),
        ({"securePort": False}, "sets securePort: False, but only True"),
    ],
)
def test_a_file_that_asks_for_what_must_not_be_is_refused(tmp_path: Path, options: object, text: str) -> None:
    file = tmp_path / "kwok.yaml"
    kind = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokctlConfiguration"}
    file.write_text(json.dumps({**kind, "options": options}))
    with pytest.raises(UsageError, match=text):
        kwokconfig.read(file)


@pytest.mark.parametrize(
    "text", ["", "a: [", "- 1", "just words", "kind: X", "{apiVersion: kwok.x-k8s.io/v1, options: 3}"]
)
def test_a_file_that_is_none_of_kwokctls_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(UsageError):
        kwokconfig.read(file)
    with pytest.raises(UsageError, match="cannot be read"):
        kwokconfig.read(tmp_path / "none")


def test_where_a_file_is_no_yaml_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a: 1\nb: [\n")
    with pytest.raises(UsageError, match=r"not valid YAML: .*stream end.* in line 3, column 1\.$") as caught:
        kwokconfig.read(tmp_path / "file")
    assert caught.value.next_step == "correct it and repeat the command"


def test_its_kubeconfig_needs_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("authority")
    (tmp_path / "key").write_text("secret")
    content = {
        "clusters": [
            {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": str(tmp_path / "ca")}}
        ],
        "users": [{"name": "u", "user": {"client-key": str(tmp_path / "key")}}],
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(content))
    made = yaml.safe_load(kwokconfig.self_contained(tmp_path / "kubeconfig"))
    assert made["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": "YXV0aG9yaXR5",
    }
    assert made["users"][0]["user"] == {"client-key-data": "c2VjcmV0"}


def test_f58_ports_are_free_and_no_other_clusters(tmp_path: Path) -> None:
    clock = machine(tmp_path).clock
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one = asyncio.run(ports.reserved(tmp_path / "one", ("a", "b"), clock))
    # Where the first one looked, so that they would meet.
    (tmp_path / "two" / ports.FILE).write_text(json.dumps({"a": one["a"]}))
    again = asyncio.run(ports.reserved(tmp_path / "one", ("a", "b"), clock))
    assert len({one["a"], *again.values()}) == 3
    assert ports.taken(again.values()) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_a_lock_of_the_ports_that_a_killed_process_left_goes_with_the_cluster(house: House) -> None:
    entry = house.entry()
    (house.registry.folder / ".ports.lock").write_text("1")
    asyncio.run(house.kwok.delete(entry, house.notes.append))
    house.registry.remove(entry.name)
    assert not list(house.registry.folder.iterdir())


def test_a_folder_that_is_not_ours_alone_is_no_way(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(house.entry(), folder=house.folder / "with blanks" / "one")
    runner = kwokctl.Kwokctl(entry, house.machine)
    assert runner.alias != runner.folder
    assert kwokctl.Kwokctl(house.entry(), house.machine).alias == house.registry.place("one").resolve()
    open_to_all = house.folder / "open"
    open_to_all.mkdir(mode=0o777)
    open_to_all.chmod(0o777)
    monkeypatch.setattr(kwokctl.Kwokctl, "alias", property(lambda self: open_to_all / "way"))
    with pytest.raises(PermissionError):
        runner.prepare()


def test_its_life_is_what_its_folder_and_processes_say(house: House) -> None:
    entry = house.entry()
    assert asyncio.run(house.kwok.state(entry)) is ClusterState.ABSENT
    work = entry.folder / "kwok" / "clusters" / "one"
    work.mkdir(parents=True)
    assert asyncio.run(house.kwok.state(entry)) is ClusterState.PARTIAL
    (work / "etcd" / "member").mkdir(parents=True)
    part = {"name": "etcd", "binary": str(work / "bin" / "etcd"), "ports": [{"port": 1}]}
    (work / "kwok.yaml").write_text(yaml.safe_dump({"kind": "KwokctlConfiguration", "components": [part]}))
    assert asyncio.run(house.kwok.state(entry)) is ClusterState.STOPPED
    with pytest.raises(PrerequisiteMissing, match="Programs of cluster 'one' no longer exist: "):
        asyncio.run(house.kwok.start(entry, house.notes.append))
    asyncio.run(house.kwok.delete(entry, house.notes.append))
    assert asyncio.run(house.kwok.state(entry)) is ClusterState.ABSENT
    asyncio.run(house.kwok.delete(entry, house.notes.append))


def test_one_whose_way_was_cleared_away_is_not_gone(house: House) -> None:
    """A restart of the machine empties /tmp, and some systems do so every few days."""
    entry = replace(house.entry(), folder=house.folder / "with blanks" / "one")
    work = entry.folder / "kwok" / "clusters" / "one"
    (work / "etcd" / "member").mkdir(parents=True)
    (work / "logs").mkdir()
    (work / "logs" / "etcd.log").write_text("said")
    runner = kwokctl.Kwokctl(entry, house.machine)
    assert not runner.alias.exists()
    part = {"name": "etcd", "binary": f"{runner.alias}/kwok/clusters/one/bin/etcd", "ports": [{"port": 1}]}
    (work / "kwok.yaml").write_text(yaml.safe_dump({"kind": "KwokctlConfiguration", "components": [part]}))
    assert asyncio.run(house.kwok.state(entry)) is ClusterState.STOPPED
    asyncio.run(house.kwok.logs(entry, house.folder / "logs"))
    assert (house.folder / "logs" / "etcd.log").read_text() == "said"


@pytest.fixture
def server(house: House) -> Iterator[Callable[[Path], subprocess.Popen[bytes]]]:
    """Starts what stands for a server through a link in that folder."""
    started: list[subprocess.Popen[bytes]] = []

    def start(folder: Path) -> subprocess.Popen[bytes]:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "etcd").symlink_to("/bin/sleep")
        started.append(subprocess.Popen([folder / "etcd", "1000"]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_one_whose_page_cannot_be_read_ends_by_whichever_path_it_was_started(
    house: House, monkeypatch: pytest.MonkeyPatch, server: Callable[[Path], subprocess.Popen[bytes]]
) -> None:
    folder = house.registry.place("one")
    folder.mkdir(parents=True)
    (folder / "cluster.json").write_text("{")
    way = house.folder / "way"
    way.symlink_to(folder)
    monkeypatch.setattr(kwokctl.Kwokctl, "alias", property(lambda self: way))
    process = server(way / "kwok" / "clusters" / "one" / "bin")
    assert asyncio.run(lifecycle.delete(house.registry, {"kwok": house.kwok}, "one", note=house.notes.append))
    assert process.wait(timeout=10) == -9
    assert not way.is_symlink()


def test_what_runs_where_a_strangers_way_leads_is_let_be(
    house: House, monkeypatch: pytest.MonkeyPatch, server: Callable[[Path], subprocess.Popen[bytes]]
) -> None:
    """Where the way was may be anybody's, once it is cleared away."""
    elsewhere, way = house.folder / "elsewhere", house.folder / "stranger" / "way"
    way.parent.mkdir()
    way.symlink_to(elsewhere)
    monkeypatch.setattr(kwokctl.Kwokctl, "alias", property(lambda self: way))
    process = server(elsewhere)
    asyncio.run(house.kwok.delete(house.entry(), house.notes.append))
    assert process.poll() is None


def test_f58_a_cluster_that_the_user_has_with_kwokctl_is_foreign(house: House) -> None:
    assert asyncio.run(house.kwok.foreign("one")) == ""
    place = house.folder / ".kwok" / "clusters" / "one"
    place.mkdir(parents=True)
    assert asyncio.run(house.kwok.foreign("one")) == f"kwokctl has a cluster of that name in {str(place)!r}"


def test_there_is_nothing_to_load_into(house: House) -> None:
    with pytest.raises(UsageError, match="its pods are simulated"):
        asyncio.run(house.kwok.load(house.entry(), ["a:1"]))


def test_of_path_only_absolute_folders_count(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.program("kwokctl")
    monkeypatch.chdir(house.programs)
    for path in (".", "", ":", "bin:.", "../programs"):
        assert programs.found("kwokctl", {"PATH": path}) is None
    assert programs.found("kwokctl", {"PATH": f".:{house.programs}"}) == house.programs / "kwokctl"
