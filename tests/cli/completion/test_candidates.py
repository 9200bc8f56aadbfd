"""What Tab offers out of kubeconfig files, the registry, and a cluster that nothing is recorded of."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli.completion import main
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from kubectl_ctrl.runs import background_notes
from kubectl_ctrl.runs.background_notes import BackgroundNote
from kubectl_ctrl.runs.runners import only_runner
from kubectl_ctrl.value import replace
from tests.cli.ours import made
from tests.runs.test_runners import ME

pytestmark = pytest.mark.programs("sleep")

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "dev",
    "contexts": [
        {"name": "dev", "context": {"cluster": "one", "user": "me", "namespace": "shop"}},
        {"name": "prod\teu", "context": {"cluster": "two", "user": "me"}},
        {"name": "stage", "context": {"cluster": "two", "user": "me", "namespace": "shop"}},
    ],
    "clusters": [
        {"name": "one", "cluster": {"server": "https://127.0.0.1:1"}},
        {"name": "two", "cluster": {"server": "https://127.0.0.1:2"}},
    ],
    "users": [{"name": "me", "user": {"token": "secret"}}],
}
OWN = {
    **KUBECONFIG,
    "current-context": "kind-ctrl",
    "contexts": [{"name": "kind-ctrl", "context": {"cluster": "one", "user": "me"}}],
}

# Writes down how it was called, and says what the test put beside it.
KUBECTL = """\
#!/bin/sh
here=${0%/*}
printf '%s\\n' "$*" >>"$here/asked"
[ -e "$here/answer" ] || exit 1
while read -r line; do printf '%s\\n' "$line"; done <"$here/answer"
[ ! -e "$here/slow" ] || exec /bin/sleep 60
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for kind in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(KUBECONFIG))
    monkeypatch.setenv("KUBECONFIG", str(config))
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return tmp_path


def ours(home: Path, name: str, phase: Phase = Phase.READY, context: str = "") -> None:
    registry = Registry(home / "state" / "kubectl-ctrl" / "clusters")
    entry = ClusterEntry(
        name=name,
        provider="kind",
        phase=phase,
        began=1.0,
        folder=registry.place(name),
        context=context or f"kind-{name}",
        version="v1.36.3" if phase is Phase.READY else "",
    )
    with registry.locked(name):
        registry.write(entry)
        registry.write_kubeconfig(entry, yaml.safe_dump(OWN))


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines before the directive."""
    assert main.main(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    *lines, end = out.splitlines()
    assert end in (":0", ":4")
    return lines


def answer(home: Path, *lines: str) -> None:
    (home / "bin" / "answer").write_text("".join(f"{line}\n" for line in lines))


def asked(home: Path) -> list[str]:
    file = home / "bin" / "asked"
    return file.read_text().splitlines() if file.exists() else []


def test_contexts_are_the_users_and_ours(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours(home, "ctrl")
    ours(home, "other", context="dev")  # hidden by the user's own of that name
    whole = ["dev\tCluster one", "stage\tCluster two", "kind-ctrl\tManaged cluster ctrl"]
    assert offered(capsys, "trace", "--context", "") == whole
    assert offered(capsys, "--context", "") == whole
    assert offered(capsys, "run", "--context=st") == ["stage\tCluster two"]
    assert offered(capsys, "run", "foo", "--allow-context", "k") == ["kind-ctrl\tManaged cluster ctrl"]
    assert offered(capsys, "run", "--cluster", "") == ["one\t", "two\t"]
    assert offered(capsys, "run", "--user", "") == ["me\t"]
    assert offered(capsys, "run", f"--kubeconfig={home}/none", "--context", "") == []
    assert asked(home) == []


def test_clusters_of_ours(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours(home, "ctrl")
    ours(home, "two", Phase.CREATING)
    both = ["ctrl\tkind v1.36.3", "two\tkind creating"]
    assert offered(capsys, "down", "") == both
    assert offered(capsys, "down", "ctrl", "") == ["two\tkind creating"]
    assert offered(capsys, "up", "--name", "t") == ["two\tkind creating"]
    assert offered(capsys, "logs", "--name=c") == ["ctrl\tkind v1.36.3"]
    for action in ("delete", "env", "kubeconfig", "logs"):
        assert offered(capsys, "cluster", action, "") == both
    for action in ("create", "list", "load"):
        assert offered(capsys, "cluster", action, "") == []
    assert offered(capsys, "cluster", "de") == ["delete\tDelete a cluster, as down does."]


def test_namespaces_are_the_clusters(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(home, "namespace/default", "namespace/kube-system")
    assert offered(capsys, "run", "-n", "") == ["default\t", "kube-system\t"]
    assert offered(capsys, "run", "-n=k") == ["kube-system\t"]
    assert asked(home) == ["get namespaces --output=name --context=dev"]


def test_namespaces_of_contexts_stand_in(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(capsys, "run", "-n", "") == ["shop\t"]


def test_names_are_asked_of_the_cluster_that_is_meant(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(home, "foo.samplecontroller.k8s.io/web", "foo.samplecontroller.k8s.io/wide", "foo.samplecontroller.k8s.io/x")
    text = "foo.samplecontroller.k8s.io"
    assert offered(capsys, "trace", "foo/w") == [f"foo/web\t{text}", f"foo/wide\t{text}"]
    assert offered(capsys, "trace", "foo", "x") == [f"x\t{text}"]
    assert offered(capsys, "simulate", "foo/x") == [f"foo/x\t{text}"]
    assert offered(capsys, "plan", "--context=stage", "-n", "a", "--as=eve", "--as-group=x", "foo/x") == [
        f"foo/x\t{text}"
    ]
    ours(home, "ctrl")
    assert offered(capsys, "explain", "--context", "kind-ctrl", "foo/x") == [f"foo/x\t{text}"]
    folder = home / "state" / "kubectl-ctrl" / "clusters" / "ctrl"
    assert asked(home) == [
        "get foo --output=name --context=dev",
        "get foo --output=name --context=stage --namespace=a --as=eve --as-group=x",
        f"get foo --output=name --kubeconfig={folder}/kubeconfig --context=kind-ctrl",
    ]


@pytest.mark.parametrize("flag", ["token", "password"])
def test_a_secret_is_in_no_argument_of_kubectl(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    """Every user of the machine can read the arguments of its processes."""
    answer(home, "foo.samplecontroller.k8s.io/web")
    (home / "kubeconfig").write_text(yaml.safe_dump({**KUBECONFIG, "users": [{"name": "me", "user": {}}]}))
    monkeypatch.setenv(f"KUBECTL_CTRL_{flag.upper()}", "canary")
    name = ["--username=me"] if flag == "password" else []
    assert offered(capsys, "trace", *name, "foo/w") == []
    monkeypatch.delenv(f"KUBECTL_CTRL_{flag.upper()}")
    assert offered(capsys, "trace", *name, f"--{flag}=canary", "foo/w") == []
    assert asked(home) == []


def test_types_are_asked_where_none_is_recorded(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(home, "pods", "deployments.apps")
    assert offered(capsys, "trace", "dep") == ["deployments.apps\t"]
    assert asked(home) == ["api-resources --output=name --verbs=get --cached --context=dev"]


@pytest.mark.parametrize("words", [("trace", "-f", "/w"), ("trace", "--all/w"), ("trace", "a b/w"), ("trace", "/w")])
def test_what_is_no_type_is_not_asked_for(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    answer(home, "foo/web")
    assert offered(capsys, *words) == []
    assert asked(home) == []


@pytest.mark.parametrize("flag", ["--offline", "--from=x", "--recorded-cluster=x"])
def test_nothing_is_asked_by_those_who_look_elsewhere(
    home: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    answer(home, "foo/web")
    assert offered(capsys, "trace", flag, "foo/") == []
    assert asked(home) == []


def test_an_answer_is_remembered_for_ten_seconds(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(home, "foo/web")
    for _ in range(3):
        assert offered(capsys, "trace", "foo/") == ["foo/web\tfoo"]
    assert len(asked(home)) == 1
    folder = home / "cache" / "kubectl-ctrl" / "names"
    (file,) = folder.iterdir()
    assert (file.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    os.utime(file, (time.time() - 11,) * 2)
    answer(home, "foo/other")
    assert offered(capsys, "trace", "foo/") == ["foo/other\tfoo"]
    os.utime(file, (time.time() - 11,) * 2)
    assert offered(capsys, "trace", "-n", "b", "foo/") == ["foo/other\tfoo"]
    assert [one for one in folder.iterdir() if one == file] == []  # what is old goes


def test_a_cluster_that_is_slow_is_left_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(home, "foo/web")
    (home / "bin" / "slow").touch()
    assert offered(capsys, "trace", "foo/") == []  # though kubectl has printed a name, and would end well
    assert offered(capsys, "trace", "foo/") == []  # and not asked again at every key
    assert len(asked(home)) == 1


def test_without_kubectl_or_a_place_to_write_nothing_is_said(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(home, "foo/web")
    (home / "cache").write_text("no folder")
    assert offered(capsys, "trace", "foo/") == ["foo/web\tfoo"]
    monkeypatch.setenv("PATH", str(home))
    assert offered(capsys, "trace", "foo/") == []


def test_nothing_that_a_cluster_names_drives_the_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(home, "foo/\x1b[2Jevil", "foo/web\tand", "foo/ok")
    assert offered(capsys, "trace", "foo/") == ["foo/ok\tfoo"]


def test_controllers_that_run_or_have_a_log(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert offered(capsys, "stop", "") == offered(capsys, "logs", "") == []
    state = home / "state" / "kubectl-ctrl"
    for name in ("one", "two"):
        entry = made(Registry(state / "clusters"), name, f"https://127.0.0.1:{len(name)}")
        entry.controllers.mkdir()
        (entry.controllers / f"of-{name}.log").touch()
    with only_runner(state, replace(ME, cluster="uid-of-one", context="kind-one")):
        assert (
            offered(capsys, "stop", "")
            == offered(capsys, "stop", "--name=one", "")
            == ["foo\tProcess 4121 on kind-one"]
        )
        assert offered(capsys, "stop", "--name=two", "") == []
        logs = [f"of-{name}\tIn the background of cluster {name}" for name in ("one", "two")]
        assert offered(capsys, "logs", "") == logs
        assert offered(capsys, "logs", "of-one", "") == []
    note = BackgroundNote(word="of-two", scope="default", pid=1, began=1.0)
    background_notes.write(entry.controllers / "of-two.log", note)
    assert offered(capsys, "stop", "") == ["of-two\tOn cluster two"]
    assert offered(capsys, "stop", "of-two", "") == []
