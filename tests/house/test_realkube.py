"""hack/realkube without Go and Kubernetes: with a fake `go`, and any program as a process of a cluster."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs("chmod", "dirname")

HACK = Path(__file__).resolve().parents[2] / "hack"

PROGRAMS = {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubectl", "kwok", "kwokctl"}
FOR_KIND = {"kubelet", "kubeadm", "kube-proxy"}

# Logs each call; `build` creates the file after -o, and waits first if there is a gate.
GO = """\
#!/bin/sh
echo "$*" >> "$GO_CALLS"
case "$1" in
    env) echo "$GO_VERSION" ;;
    list) [ -z "${GO_OFFLINE-}" ] || { echo "dial tcp: lookup proxy.example.com: no such host" >&2; exit 1; } ;;
    build)
        [ -z "${GO_BREAKS-}" ] || { echo "main.go:1: syntax error" >&2; exit 1; }
        [ ! -p "$GO_GATE" ] || read -r opened < "$GO_GATE"
        while [ "$1" != -o ]; do shift; done
        echo '#!/bin/sh' > "$2"
        /bin/chmod +x "$2"
        ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Realkube:
    """hack/realkube in an environment with nothing else on PATH."""

    folder: Path
    env: dict[str, str]

    @property
    def cache(self) -> Path:
        return self.folder / "cache" / "kubectl-ctrl" / "realkube"

    @property
    def calls(self) -> list[str]:
        """The first argument of each call of go."""
        return [line.split()[0] for line in (self.folder / "calls").read_text().splitlines()]

    def __call__(self, *args: str, hack: Path = HACK, **env: str) -> subprocess.CompletedProcess[str]:
        command = [str(hack / "realkube"), *args]
        return subprocess.run(command, env={**self.env, **env}, capture_output=True, text=True, timeout=99, check=False)

    def started(self, *args: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([str(HACK / "realkube"), *args], env=self.env, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def realkube(tmp_path: Path) -> Realkube:
    (tmp_path / "bin").mkdir()
    go = tmp_path / "bin" / "go"
    go.write_text(GO)
    go.chmod(0o755)
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    (tmp_path / "bin" / "dirname").symlink_to(shutil.which("dirname") or "")
    env = {
        "PATH": str(tmp_path / "bin"),
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "GO_CALLS": str(tmp_path / "calls"),
        "GO_GATE": str(tmp_path / "gate"),
        "GO_VERSION": "go1.26.0",
    }
    return Realkube(tmp_path, env)


def test_build_makes_every_program_once(realkube: Realkube) -> None:
    first = realkube("build")
    folder = Path(first.stdout.strip())
    assert folder.parent == realkube.cache
    assert {path.name for path in folder.iterdir()} == PROGRAMS | FOR_KIND | {"k8s"}
    assert {(folder / name).readlink() for name in FOR_KIND | {"etcd", "kubectl"}} == {Path("k8s")}
    assert realkube.calls == ["env", "list", "list", "list", "build", "build", "build"]

    (realkube.folder / "bin" / "go").unlink()
    again = realkube("build")
    assert (again.returncode, again.stdout, again.stderr) == (0, first.stdout, "")


def test_the_specs_are_one_program_that_is_built_once(realkube: Realkube) -> None:
    program = Path(realkube("conformance").stdout.strip())
    assert [path.name for path in program.parent.iterdir()] == ["conformance"]
    assert realkube.calls == ["env", "list", "build"]

    (realkube.folder / "bin" / "go").unlink()
    again = realkube("conformance")
    assert (again.returncode, again.stdout, again.stderr) == (0, f"{program}\n", "")
    assert realkube("build").returncode == 3  # the programs of a cluster are another build


def test_build_without_go_says_so_and_exits_3(realkube: Realkube) -> None:
    (realkube.folder / "bin" / "go").unlink()
    ran = realkube("build")
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "Go 1.26 or newer is needed" in ran.stderr
    assert "https://go.dev/dl/" in ran.stderr


@pytest.mark.parametrize(("version", "code"), [("go1.25.9", 3), ("devel", 3), ("go1.26.8", 0), ("go1.27rc1", 0)])
def test_build_wants_go_1_26(version: str, code: int, realkube: Realkube) -> None:
    ran = realkube("build", GO_VERSION=version)
    assert ran.returncode == code
    assert (f"`go env GOVERSION` prints {version!r}" in ran.stderr) == (code == 3)


def test_build_without_network_exits_3_with_gos_words(realkube: Realkube) -> None:
    ran = realkube("build", GO_OFFLINE="1")
    assert ran.returncode == 3
    assert "Cannot download" in ran.stderr
    assert "no such host" in ran.stderr


def test_a_failed_build_is_no_build_and_the_next_one_starts_over(realkube: Realkube) -> None:
    broken = realkube("build", GO_BREAKS="1")
    assert (broken.returncode, broken.stdout) == (1, "")
    assert "syntax error" in broken.stderr

    assert realkube("build").returncode == 0


def test_a_damaged_build_is_made_again(realkube: Realkube) -> None:
    folder = Path(realkube("build").stdout.strip())
    (folder / "k8s").unlink()
    assert realkube("build").stdout.strip() == str(folder)
    assert (folder / "kubectl").exists()


def stand_at(gate: Path, build: subprocess.Popen[str]) -> int:
    """Wait until this build's go reaches the gate; closing the result opens it."""
    while True:
        with contextlib.suppress(OSError):  # no go has reached it yet
            opened = os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
            gate.unlink()
            return opened
        with contextlib.suppress(subprocess.TimeoutExpired):
            pytest.fail(f"The build ended early, with {build.wait(0.02)}.")


def test_two_builds_at_once_are_one(realkube: Realkube) -> None:
    gate = realkube.folder / "gate"
    os.mkfifo(gate)
    first = realkube.started("build")
    opened = stand_at(gate, first)
    second = realkube.started("build")
    assert second.stderr
    assert "Waiting for another build" in second.stderr.readline()

    os.close(opened)
    assert first.communicate(timeout=90)[0] == second.communicate(timeout=90)[0] != ""
    assert first.returncode == second.returncode == 0
    assert realkube.calls.count("build") == 3


def test_after_a_killed_build_the_next_one_waits_for_its_go_and_builds(realkube: Realkube) -> None:
    gate = realkube.folder / "gate"
    os.mkfifo(gate)
    killed = realkube.started("build")
    opened = stand_at(gate, killed)
    killed.kill()
    # Its go, which still runs, holds neither stream.
    assert killed.communicate(timeout=60)[0] == ""
    following = realkube.started("build")
    assert following.stderr
    assert "Waiting for another build" in following.stderr.readline()

    os.close(opened)
    out, err = following.communicate(timeout=90)
    assert following.returncode == 0, err
    assert (Path(out.strip()) / "kwokctl").exists()
    assert [path.name for path in realkube.cache.glob("*.part")] == []


def test_other_inputs_are_another_build(realkube: Realkube) -> None:
    hack = realkube.folder / "hack"
    shutil.copytree(HACK / "realkube.d", hack / "realkube.d")
    shutil.copy(HACK / "realkube", hack / "realkube")
    same = realkube("build", hack=hack).stdout
    assert same == realkube("build").stdout

    with (hack / "realkube.d" / "kwok" / "go.sum").open("a") as sums:
        sums.write("example.com/other v1.0.0 h1:AAAA=\n")
    assert realkube("build", hack=hack).stdout not in ("", same)


def test_down_ends_what_runs_from_the_folder_and_spares_what_only_names_it(realkube: Realkube) -> None:
    folder = realkube.cache / "clusters" / "one"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "etcd").symlink_to(sys.executable)
    waits = "import signal; print('here', flush=True); signal.pause()"
    command = ["-I", "-c", waits, f"--data-dir={folder}/etcd"]
    pipe = subprocess.PIPE
    ours = subprocess.Popen([folder / "bin" / "etcd", *command], stdout=pipe)
    other = subprocess.Popen([sys.executable, *command], stdout=pipe)
    try:
        assert ours.stdout
        assert other.stdout
        assert ours.stdout.readline() == other.stdout.readline() == b"here\n"
        assert realkube("list").stdout == f"one\tunfinished\t{folder}/kubeconfig\n"

        down = realkube("down", "one")
        assert (down.returncode, down.stdout, ours.wait(60)) == (0, "", -signal.SIGKILL)
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.communicate()
    assert not folder.exists()
    assert realkube("list").stdout == ""
    assert realkube("down", "one").stderr == ""


@pytest.mark.parametrize(
    "command", ["show", "kubeconfig", "env", "stop-apiserver", "start-apiserver", "restart-apiserver"]
)
def test_an_error_about_a_missing_cluster_names_up(command: str, realkube: Realkube) -> None:
    ran = realkube(command, "nowhere")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "hack/realkube up nowhere" in ran.stderr


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "..", "-a", "a" * 51])
def test_a_name_that_is_no_name_is_refused(name: str, realkube: Realkube) -> None:
    ran = realkube("down", "--", name)
    assert ran.returncode == 1
    assert "is not a valid cluster name" in ran.stderr
