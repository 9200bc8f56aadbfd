"""What looks back at a cluster of ours that is gone: says so first, and finds it though its kubeconfig went with it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.cli.main import main
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.model.record import RecordedRun
from kubectl_ctrl.runs.runners import only_runner
from kubectl_ctrl.story import lookup
from kubectl_ctrl.value import replace
from tests.cli.ours import kubeconfig, made, runner_on
from tests.history.made import RUN, begun, done, recording

SERVER = "https://127.0.0.1:4001"
Told = Callable[..., tuple[str, str]]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path / "kubectl-ctrl"


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    def told(*words: str, code: int = 0) -> tuple[str, str]:
        assert main(list(words)) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    return told


def life(folder: Path, number: int = 1, name: str = "ctrl") -> ClusterEntry:
    """A cluster of ours on which a run reconciled foo/web, in the registry."""
    entry = made(App.of_this_process().registry, name, SERVER)
    entry = replace(entry, uid=f"uid-{name}-{number}", ca=f"ca{number}")
    run = of(entry, number)
    start = begun(1, run=run.id)
    recording(folder, start, done(start), run=run)
    return entry


def of(entry: ClusterEntry, number: int) -> RecordedRun:
    return replace(
        RUN,
        id=f"r{entry.name[0]}{number}",
        cluster=entry.uid,
        server=entry.server,
        ca=entry.ca,
        context=entry.context,
        began=RUN.began + number,
    )


def down(entry: ClusterEntry, at: float | None = None) -> None:
    app = App.of_this_process()
    assert lookup.cluster_deleted(app.user, entry, SystemClock().now() if at is None else at) == ""
    app.registry.remove(entry.name)


NOON = "2026-01-01T12:00:00.000+00:00"


def test_the_shell_that_still_points_to_it_gets_its_answers(
    state: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = life(state)
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    down(entry, RUN.began)
    life(state, name="dev")  # the only cluster of ours that is left, and not the one that is meant
    out, _ = told("trace", "foo/web", "--utc")
    assert out.splitlines()[0] == f"cluster ctrl (kind), deleted {NOON}"
    assert "Foo default/web · kind-ctrl" in out
    out, _ = told("explain", "foo/web", "--utc")
    assert out.splitlines()[0] == f"cluster ctrl (kind), deleted {NOON}"
    assert told("trace", "rc1-1", "--utc")[0].startswith(f"cluster ctrl (kind), deleted {NOON}\n")
    assert told("trace", "foos", "--utc")[0].startswith(f"cluster ctrl (kind), deleted {NOON}\n")
    out, err = told("queue", "--utc")
    assert out == ""
    assert err.splitlines()[0] == f"cluster ctrl (kind), deleted {NOON}"
    assert "No controller runs from this machine on cluster kind-ctrl" in err


def test_what_runs_on_the_next_of_its_name_is_not_looked_for_on_it(state: Path, told: Told) -> None:
    down(life(state), RUN.began)
    entry = made(App.of_this_process().registry, "ctrl", SERVER)
    out, err = told("queue", f"--context={entry.context}")
    assert (out, err) == ("", f"No controller runs from this machine on context {entry.context}.\n")
    with only_runner(state, runner_on(entry, "rc2")):
        out, err = told("queue", f"--context={entry.context}")
    assert out.startswith(f"foo: run rc2, process {os.getpid()}, ")
    assert err == ""


def test_nothing_is_advised_that_would_need_it(state: Path, told: Told) -> None:
    entry = life(state)
    assert "] " in told("explain", "foo/web", f"--context={entry.context}")[0]
    assert "[write]" in told("explain", "foo/web", f"--context={entry.context}")[0]
    down(entry, RUN.began)
    for what in ("foo/web", "foo"):
        advised = [line for line in told("explain", what)[0].splitlines() if "  kubectl " in line]
        assert advised
        assert [line for line in advised if "[read]" not in line or "kubectl ctrl " not in line] == []
        assert [line for line in advised if "queue" in line or "list" in line] == []
    lines = told("explain", "foo/web")[0].splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("NEXT")] == [
        "nothing: its cluster was deleted"
    ]


def test_another_shell_finds_it_as_the_only_one_that_knows_the_object(
    state: Path, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    down(life(state), RUN.began)
    only = f"cluster ctrl (kind), deleted {NOON}; the only recorded cluster with it"
    assert told("trace", "foo/web", "--utc")[0].splitlines()[0] == only
    (tmp_path / "mine").write_text(kubeconfig("prod", prod="https://10.0.0.1:6443"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    assert told("trace", "foo/web", "--utc")[0].splitlines()[0] == only
    plain = only.partition(";")[0]
    for words in (("--context=kind-ctrl",), ("--recorded-cluster=kind-ctrl",)):
        assert told("trace", "foo/web", "--utc", *words)[0].splitlines()[0] == plain
    (tmp_path / "mine").write_text(kubeconfig(**{"kind-ctrl": "https://127.0.0.1:5005"}))
    first = told("trace", "foo/web", "--utc", "--context=kind-ctrl")[0].splitlines()[0]
    assert first == f"{plain}; nothing is recorded for the cluster of context 'kind-ctrl'"


def test_of_several_lives_under_one_name_the_last_is_meant(
    state: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        entry = life(state, number)
        down(entry, RUN.began)
    out, _ = told("trace", "foo/web", "--utc")
    assert out.splitlines()[0] == f"cluster ctrl (kind), deleted {NOON}; the newest of 2 clusters of this name with it"
    assert "rc2" in out
    monkeypatch.setenv("KUBECONFIG", str(entry.kubeconfig))
    assert "rc2" in told("trace", "foo/web")[0]
    monkeypatch.delenv("KUBECONFIG")
    down(life(state, 3, name="dev"))
    _, err = told("trace", "foo/web", "--offline", code=4)
    assert "--recorded-cluster" in err


def test_of_lives_whose_end_nobody_noted_the_last_is_meant_too(
    state: Path, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text(kubeconfig("prod", prod="https://10.0.0.1:6443"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    down(life(state, 1), RUN.began)
    for number in (2, 3):  # the one that was lost, and the one that lives
        life(state, number)
    first = "cluster kind-ctrl (uid-ctrl): the newest of 3 clusters of this name with it"
    assert told("trace", "foo/web", "--utc")[0].splitlines()[0] == first
    assert "rc3-1" in told("trace", "foo/web")[0]
    down(life(state, 4, name="dev"))
    listed = told("trace", "foo/web", "--offline", code=4)[1].splitlines()
    assert listed[1] == "tried: recorded: kind-dev (uid-dev-), kind-ctrl (uid-ctrl, and 2 older)"
    assert listed[2] == "next: add --recorded-cluster kind-dev"


def test_a_name_means_the_last_that_knows_the_object(state: Path, told: Told) -> None:
    down(life(state, 1), RUN.began)
    other = of(made(App.of_this_process().registry, "ctrl", SERVER), 2)
    start = begun(1, run=other.id, name="other")
    recording(state, start, done(start), run=other)
    out, _ = told("trace", "foo/web", "--recorded-cluster=kind-ctrl", "--utc")
    assert "rc1-1" in out
    assert "rc2-1" in told("trace", "foo/other", "--recorded-cluster=kind-ctrl")[0]


def test_a_cluster_that_lives_is_not_called_deleted(state: Path, told: Told) -> None:
    entry = life(state)
    out, _ = told("trace", "foo/web", "--context=kind-ctrl", "--utc")
    assert "deleted" not in out
    assert entry.context in out


def test_documents_say_it_too(state: Path, told: Told) -> None:
    down(life(state), RUN.began)
    cluster = json.loads(told("trace", "foo/web", "-o", "json")[0])["cluster"]
    assert (cluster["name"], cluster["provider"]) == ("ctrl", "kind")
    assert cluster["deleted"].startswith("2026-01-01T12:00:00")
    [cluster] = json.loads(told("record", "list", "-o", "json")[0])["clusters"]
    assert (cluster["name"], cluster["provider"]) == ("ctrl", "kind")
    out, _ = told("record", "list")
    assert "kind-ctrl, deleted" in out
    out, _ = told("record", "show", "rc1", "--utc")
    assert f"{NOON}, cluster ctrl (kind)" in out


def test_an_exported_recording_says_it_wherever_it_is_read(state: Path, told: Told, tmp_path: Path) -> None:
    down(life(state), RUN.began)
    told("record", "export", "foo/web", "--to", str(tmp_path / "sent.db"))
    shutil.rmtree(state)
    out, _ = told("trace", "foo/web", "--from", str(tmp_path / "sent.db"), "--utc")
    assert out.splitlines()[0] == f"cluster ctrl (kind), deleted {NOON}"


def test_a_recording_that_is_sick_keeps_no_cluster_from_going(state: Path) -> None:
    entry = life(state)
    (state / "history.db").write_bytes(b"not a database" * 100)
    for beside in state.glob("history.db-*"):
        beside.unlink()
    text = lookup.cluster_deleted(App.of_this_process().user, entry, RUN.began)
    assert text.startswith("The recording does not note its deletion: The recording ")
