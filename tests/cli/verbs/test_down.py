"""`down` of clusters that are in the registry, and of which nothing runs: what it takes away, and what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.clusters.registry import ClusterEntry, Phase, Registry
from tests.cli.ours import kubeconfig, made

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return tmp_path / "state" / "kubectl-ctrl"


@pytest.fixture
def registry(state: Path) -> Registry:
    return Registry(state / "clusters")


def add(registry: Registry, name: str, phase: Phase = Phase.READY, provider: str = "kwok") -> ClusterEntry:
    entry = ClusterEntry(
        name=name, provider=provider, phase=phase, began=1.0, folder=registry.place(name), context=f"kwok-{name}"
    )
    registry.write(entry)
    registry.write_kubeconfig(entry, "kind: Config\n")
    (entry.folder / "kwok").mkdir()
    (entry.folder / "kwok" / "etcd.log").write_text("{}")
    return entry


def told(capsys: Captured) -> list[str]:
    """What stderr had, without the seconds."""
    out, err = capsys.readouterr()
    assert out == ""
    return [line.rpartition("  ")[0].rstrip() if line.endswith("s") else line for line in err.splitlines()]


@pytest.mark.parametrize("phase", list(Phase))
def test_whatever_its_page_says_nothing_is_left(registry: Registry, capsys: Captured, phase: Phase) -> None:
    add(registry, "ctrl", phase)
    assert cli.main(["down"]) == 0
    assert [line.split()[1] for line in told(capsys)] == ["no", "cluster", "deletion", "files"]
    assert not list(registry.folder.iterdir())


def test_what_was_begun_before_there_was_a_page_goes_too(registry: Registry) -> None:
    registry.place("ctrl").mkdir(parents=True)
    (registry.folder / "ctrl" / "cluster.json.new").write_text("{")
    assert cli.main(["down"]) == 0
    assert not list(registry.folder.iterdir())


@pytest.mark.parametrize("words", [["down"], ["down", "ctrl"], ["down", "--all"]])
def test_a_lock_that_a_killed_process_left_goes(registry: Registry, words: list[str]) -> None:
    registry.folder.mkdir(parents=True)
    (registry.folder / "ctrl.lock").write_text("1")
    assert cli.main(words) == 0
    assert not list(registry.folder.iterdir())


@pytest.mark.parametrize("words", [["down"], ["down", "--all"], ["cluster", "delete"]])
def test_what_locks_the_ports_is_the_name_of_no_cluster(registry: Registry, words: list[str]) -> None:
    add(registry, "ctrl")
    for file in (registry.folder / ".ports.lock", registry.folder / "ctrl.lock"):
        file.write_text("1")
    assert cli.main(words) == 0
    assert not list(registry.folder.iterdir())
    (registry.folder / ".ports.lock").write_text("1")
    assert cli.main(words) == 0


@pytest.mark.parametrize("words", [["down"], ["down", "--all"], ["up"]])
def test_contexts_of_others_that_came_into_its_kubeconfig_do_not_go_with_it(
    registry: Registry, capsys: Captured, words: list[str]
) -> None:
    """Whoever logs in elsewhere in a shell of `cluster env` has that context written there.

    It goes also where `up` would make a cluster anew of which nothing is left.
    """
    entry = made(registry, "ctrl", "https://127.0.0.1:4001", provider="kwok")
    own = yaml.safe_load(entry.kubeconfig.read_text())
    theirs = yaml.safe_load(kubeconfig("my prod", **{"my prod": "https://10.0.0.1:6443"}))
    content = {**own, **{kind: own[kind] + theirs[kind] for kind in ("clusters", "contexts", "users")}}
    content["contexts"].append({"name": "web", "context": {**own["contexts"][0]["context"], "namespace": "web"}})
    content["contexts"].append({"name": "nowhere", "context": {"cluster": "gone", "user": "gone"}})
    entry.kubeconfig.write_text(yaml.safe_dump(content))
    assert cli.main([*words, "--progress=none"]) == 6
    message, tried, step, *_ = told(capsys)
    assert message.endswith(
        "The kubeconfig of cluster 'ctrl' also contains other contexts, which would be deleted with it: 'my prod'."
    )
    assert tried == f"tried: {entry.kubeconfig}"
    assert step.endswith(f"for each: kubectl --kubeconfig {entry.kubeconfig} config delete-context 'my prod'")
    assert yaml.safe_load(entry.kubeconfig.read_text()) == content
    content["contexts"] = [one for one in content["contexts"] if one["name"] != "my prod"]
    entry.kubeconfig.write_text(yaml.safe_dump(content))
    assert cli.main(["down"]) == 0
    assert not list(registry.folder.iterdir())


def test_only_the_one_that_is_named_goes(registry: Registry) -> None:
    for name in ("one", "two", "three"):
        add(registry, name)
    assert cli.main(["down", "two"]) == 0
    assert [path.name for path in sorted(registry.folder.iterdir())] == ["one", "three"]
    assert cli.main(["down", "--all"]) == 0
    assert not list(registry.folder.iterdir())


@pytest.mark.parametrize("words", [["down"], ["down", "--all"]])
def test_what_somebody_put_beside_them_is_no_cluster(registry: Registry, words: list[str]) -> None:
    kept = registry.folder / "two.bak"
    shutil.copytree(add(registry, "two").folder, kept)
    (registry.folder / "Notes").mkdir()
    assert cli.main(words) == 0
    assert sorted(path.name for path in registry.folder.iterdir()) == ["Notes", "two.bak"]
    assert (kept / "cluster.json").exists()


def test_machines_are_told_every_step(registry: Registry, capsys: Captured) -> None:
    add(registry, "ctrl")
    assert cli.main(["cluster", "delete", "ctrl", "--progress=json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [
        (line["step"], line["name"], line["state"]) for line in lines if line["state"] not in ("began", "note")
    ] == [
        (1, "controllers", "ended"),
        (2, "use", "skipped"),
        (3, "cluster", "ended"),
        (4, "recording", "ended"),
        (5, "files", "ended"),
    ]


def test_quiet_says_nothing(registry: Registry, capsys: Captured) -> None:
    add(registry, "ctrl")
    assert cli.main(["down", "-q"]) == 0
    assert cli.main(["down", "-q"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_recording_that_cannot_be_written_keeps_no_cluster(registry: Registry, state: Path, capsys: Captured) -> None:
    add(registry, "ctrl")
    (state / "history.db").write_text("This is no database." * 100)
    assert cli.main(["down"]) == 0
    assert "The recording does not note its deletion: " in capsys.readouterr().err
    assert not list(registry.folder.iterdir())


def test_a_maker_that_nobody_knows_is_an_error_and_the_page_stays(registry: Registry, capsys: Captured) -> None:
    add(registry, "ctrl", provider="minikube")
    assert cli.main(["down"]) == 1
    assert "Cluster 'ctrl' was created with 'minikube', which this version does not support." in capsys.readouterr().err
    assert registry.find("ctrl") is not None


def test_with_all_one_that_cannot_go_does_not_keep_the_others(registry: Registry, capsys: Captured) -> None:
    add(registry, "a", provider="minikube")
    add(registry, "b")
    add(registry, "c", provider="minikube")
    add(registry, "d")
    assert cli.main(["down", "--all"]) == 1
    assert [path.name for path in sorted(registry.folder.iterdir())] == ["a", "c"]
    assert "error[CTRL-CLUSTER]: 2 of 4 clusters could not be deleted: a, c." in capsys.readouterr().err
