"""`record` on recordings that the real Recorder made; no cluster, no kubeconfig."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli import main as cli
from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.history.database import VERSION
from kubectl_ctrl.history.writer import Recorder
from kubectl_ctrl.model.attempt import Attempt, Outcome, Verdict
from kubectl_ctrl.runs.holder import identity
from kubectl_ctrl.value import replace
from tests.history.made import NOON, RUN, recording
from tests.history.test_extract import OTHER, attempt
from tests.rights import unprivileged

Captured = pytest.CaptureFixture[str]
DAY = 86_400.0


def failed(run: str, number: int, name: str) -> Attempt:
    return replace(attempt(run, number, name), verdict=Verdict(outcome=Outcome.RETRY, message="It failed."))


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No kubeconfig, and a state folder of the test's own."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two runs on two clusters, in the place where recordings are looked for."""
    folder = tmp_path / "state/kubectl-ctrl"
    recording(folder, attempt("r7f3", 1, "web"), failed("r7f3", 2, "api"))
    return recording(folder, attempt("r8aa", 1, "web"), run=OTHER)


def asked(capsys: Captured, *words: str, code: int = 0) -> tuple[str, str]:
    assert cli.main(["record", *words]) == code
    out, err = capsys.readouterr()
    return out, err


def listed(capsys: Captured, *words: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(asked(capsys, "list", "-ojson", *words)[0])
    return document


def names(capsys: Captured, *words: str) -> dict[str, int]:
    return {run["run"]: run["attempts"] for run in listed(capsys, *words)["runs"]}


# list, show, path.


def test_the_list_has_a_line_for_each_run(file: Path, capsys: Captured) -> None:
    out, err = asked(capsys, "list")
    header, *rows = [line.split() for line in out.splitlines()]
    assert header == ["RUN", "CLUSTER", "CONTROLLERS", "BEGAN", "STATE", "ATTEMPTS", "ERRORS", "GAPS"]
    assert [[row[0], row[1], row[2], *row[-3:]] for row in rows] == [
        ["r8aa", "kind-other", "foo", "1", "0", "0"],
        ["r7f3", "kind-dev", "foo", "2", "1", "0"],
    ]
    assert err.startswith(f"{file}: ")


def test_the_list_for_machines(file: Path, capsys: Captured) -> None:
    found = listed(capsys)
    assert found["file"] == str(file)
    assert found["bytes"] >= file.stat().st_size
    assert [one["uid"] for one in found["clusters"]] == ["c2", "c1"]
    newest, run = found["runs"]
    assert (newest["run"], newest["state"]) == ("r8aa", "ended")
    assert (run["attempts"], run["errors"], run["lostRows"], run["context"]) == (2, 1, 0, "kind-dev")
    assert run["controllers"][0]["writes"] == 2
    assert yaml.safe_load(asked(capsys, "list", "-oyaml")[0]) == found


@pytest.mark.parametrize("flag", ["--recorded-cluster=kind-dev", "--recorded-cluster=c1", "--context=kind-dev"])
def test_the_list_of_one_cluster(file: Path, capsys: Captured, flag: str) -> None:
    assert list(names(capsys, flag)) == ["r7f3"]
    assert len(listed(capsys, flag)["clusters"]) == 1


def test_without_a_recording_the_list_is_empty(tmp_path: Path, capsys: Captured) -> None:
    out, err = asked(capsys, "list")
    assert out == ""
    assert err.startswith("There is no recording yet")
    assert listed(capsys)["runs"] == []
    asked(capsys, "list", f"--from={tmp_path / 'none.db'}", code=4)


def test_runs_that_live_ended_and_died_are_told_apart(tmp_path: Path, capsys: Captured) -> None:
    gone = replace(RUN, id="rdead", holder=identity("rdead").replace(f"_{os.getpid()}_", "_999999999_"))
    here = replace(RUN, id="rlive", holder=identity("rlive"), began=NOON + 1)
    recorders = [Recorder(tmp_path / "x.db", run, clock=SystemClock()) for run in (gone, here)]
    for recorder in recorders:
        recorder.close()
    with closing(sqlite3.connect(tmp_path / "x.db")) as connection, connection:
        connection.execute("UPDATE run SET ended = NULL")
    found = listed(capsys, f"--from={tmp_path / 'x.db'}")
    assert {run["run"]: run["state"] for run in found["runs"]} == {"rlive": "runs", "rdead": "died"}
    out, _ = asked(capsys, "list", f"--from={tmp_path / 'x.db'}")
    assert "died, last seen" in out
    assert " running " in out


def test_one_run_in_detail(file: Path, capsys: Captured) -> None:
    out, _ = asked(capsys, "show", "r7f3", "--utc")
    for text in ("Server        https://127.0.0.1:6443", "4121 on laptop", "foos.samplecontroller.k8s.io"):
        assert text in out
    document = json.loads(asked(capsys, "show", "r7f3", "-o", "json")[0])
    assert (document["run"], document["cluster"]["uid"], document["process"]["pid"]) == ("r7f3", "c1", 4121)
    _, err = asked(capsys, "show", "r7f4", code=4)
    assert "did you mean r7f3?" in err


def test_the_path_is_told_also_where_nothing_is(tmp_path: Path, capsys: Captured) -> None:
    assert asked(capsys, "path")[0] == f"{tmp_path}/state/kubectl-ctrl/history.db\n"
    assert asked(capsys, "path", "--from=~/x.db")[0] == f"{tmp_path}/x.db\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "one of: list, show, path, export, prune"),
        (("lst",), "did you mean list?"),
        (("list", "foo"), "record list takes no 'foo'"),
        (("show",), "record show takes one run"),
        (("export",), "RUN-N, RUN, TYPE/NAME or --all"),
        (("export", "r7f3", "--all"), "RUN-N, RUN, TYPE/NAME or --all"),
        (("export", "12", "--to=x"), "write RUN-N"),
        (("prune",), "--older-than 24h"),
        (("prune", "--older-than=soon"), "Invalid value for --older-than"),
        (("list", "--yes"), "--yes is for record prune"),
        (("prune", "--to=x"), "--to is for record export"),
        (("list", "-o", "xml"), "use one of: wide, name, json, yaml, text, jsonpath=..."),
    ],
)
def test_wrong_words(file: Path, capsys: Captured, words: tuple[str, ...], told: str) -> None:
    out, err = asked(capsys, *words, code=2)
    assert told in err
    assert out == ""


def test_no_verb_that_looks_back_needs_what_talks_to_a_cluster(file: Path) -> None:
    code = (
        "import json, sys; from kubectl_ctrl.cli import main\n"
        "assert [main.main(['record', *words]) for words in json.loads(sys.argv[1])] == [0] * 5\n"
        "bad = {'asyncio', 'aiohttp', 'kubernetes', 'rich', 'kubectl_ctrl.client.client'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    words = json.dumps([["list"], ["show", "r7f3"], ["path"], ["export", "r7f3-1"], ["export", "--all"]])
    done = subprocess.run([sys.executable, "-c", code, words], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


# export.


def test_an_attempt_is_exported_as_a_case(file: Path, capsys: Captured, tmp_path: Path) -> None:
    case = json.loads(asked(capsys, "export", "r7f3-2")[0])
    assert (case["schema"], case["attempt"]) == ("kubectl-ctrl.case/v1", "r7f3-2")
    asked(capsys, "export", "r7f3-2", f"--to={tmp_path / 'case.json'}")
    assert json.loads((tmp_path / "case.json").read_text()) == case
    assert "no attempt" in asked(capsys, "export", "r7f3-99", code=4)[1]


def test_a_recording_goes_to_stdout(file: Path, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    assert cli.main(["record", "export", "r8aa"]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b"1 run, 1 attempt, %s.\n" % err.split(b", ")[-1].rstrip(b".\n")
    (tmp_path / "x.db").write_bytes(out)
    assert cli.main(["record", "list", "-ojson", f"--from={tmp_path / 'x.db'}"]) == 0
    assert [run["run"] for run in json.loads(capfdbinary.readouterr().out)["runs"]] == ["r8aa"]


@pytest.mark.parametrize(
    ("words", "held"),
    [
        (["r7f3"], {"r7f3": 2}),
        (["foo/web", "--recorded-cluster=c1"], {"r7f3": 1}),
        (["foo", "api"], {"r7f3": 1}),
        (["--all"], {"r8aa": 1, "r7f3": 2}),
        (["--all", "--recorded-cluster=kind-other"], {"r8aa": 1}),
    ],
)
def test_what_is_exported_is_what_was_said(
    file: Path, capsys: Captured, tmp_path: Path, words: list[str], held: dict[str, int]
) -> None:
    asked(capsys, "export", *words, f"--to={tmp_path / 'x.db'}")
    assert names(capsys, f"--from={tmp_path / 'x.db'}") == held


@pytest.mark.parametrize("word", ["r9zz", "Foo!", "foo/none"])
def test_what_is_not_there_is_not_exported(file: Path, capsys: Captured, tmp_path: Path, word: str) -> None:
    asked(capsys, "export", word, f"--to={tmp_path / 'x.db'}", code=2 if word == "Foo!" else 4)
    assert not (tmp_path / "x.db").exists()


def test_a_terminal_is_not_given_a_database(
    file: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    out, err = asked(capsys, "export", "r7f3", code=2)
    assert out == ""
    assert "kubectl ctrl record export r7f3 > recording.db" in err
    asked(capsys, "export", "r7f3", f"--to={tmp_path / 'x.db'}")


@pytest.mark.parametrize("words", [["r7f3"], ["r7f3-1"]])
def test_s05_an_export_is_its_owners_alone_and_goes_over_and_through_nothing(
    file: Path, capsys: Captured, tmp_path: Path, words: list[str]
) -> None:
    made, link = tmp_path / "made", tmp_path / "link"
    before = os.umask(0)
    try:
        asked(capsys, "export", *words, f"--to={made}")
    finally:
        os.umask(before)
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    link.symlink_to(tmp_path / "precious")
    for there in (made, link):
        assert str(there) in asked(capsys, "export", *words, f"--to={there}", code=1)[1]
    assert not (tmp_path / "precious").exists()


# prune.


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Runs of today and of long ago, and one that goes on, on two clusters."""
    now = SystemClock().now()
    for run, number, name in (("rold", 1, "web"), ("rold", 2, "api")):
        began = replace(attempt(run, number, name).start, started=now - 3 * DAY + number * 3600)
        one = replace(attempt(run, number, name), start=began)
        path = recording(tmp_path / "old", one, run=replace(RUN, id=run, began=now - 3 * DAY))
    new = attempt("rnew", 1, "web")
    new = replace(new, start=replace(new.start, started=now - 60))
    path = recording(tmp_path / "old", new, run=replace(OTHER, id="rnew", began=now - 60))
    live = attempt("rlive", 1, "web")
    live = replace(live, start=replace(live.start, started=now - 5 * DAY))
    recording(tmp_path / "old", live, run=replace(RUN, id="rlive", began=now - 5 * DAY, holder=identity("rlive")))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET ended = NULL WHERE name = 'rlive'")
    return path


@pytest.mark.parametrize(
    ("flags", "left"),
    [
        (["--older-than=24h"], {"rnew": 1, "rlive": 1}),
        (["--all"], {"rlive": 1}),
        (["--run=rnew"], {"rold": 2, "rlive": 1}),
        (["--cluster=kind-other"], {"rold": 2, "rlive": 1}),
        (["--recorded-cluster=c1"], {"rnew": 1, "rlive": 1}),
        (["--context=kind-dev", "--older-than=24h"], {"rnew": 1, "rlive": 1}),
        (["--all", "--older-than=24h"], {"rnew": 1, "rlive": 1}),
        (["--run=rold", "--older-than=70h30m"], {"rnew": 1, "rold": 1, "rlive": 1}),
    ],
)
def test_prune_says_what_would_go_and_takes_that_alone(
    old: Path, capsys: Captured, flags: list[str], left: dict[str, int]
) -> None:
    before = names(capsys, f"--from={old}")
    out, err = asked(capsys, "prune", f"--from={old}", *flags, code=6)
    assert names(capsys, f"--from={old}") == before
    gone = {name for name, count in before.items() if left.get(name) != count}
    assert {line.split()[0] for line in out.splitlines()[1:]} == gone
    assert f"next: kubectl ctrl record prune --from={old} {' '.join(flags)} --yes" in err
    asked(capsys, "prune", f"--from={old}", *flags, "--yes")
    assert names(capsys, f"--from={old}") == left


def test_prune_with_nothing_to_take_is_content(old: Path, capsys: Captured) -> None:
    for _ in range(2):
        _, err = asked(capsys, "prune", f"--from={old}", "--all", "--yes")
    assert "Nothing to delete" in err


def test_prune_leaves_what_still_goes_on(old: Path, capsys: Captured) -> None:
    _, err = asked(capsys, "prune", f"--from={old}", "--run=rlive", "--yes")
    assert "Run rlive is active" in err
    assert "Nothing to delete" in err
    assert names(capsys, f"--from={old}")["rlive"] == 1


# M34: a file that is none.


ACTIONS = pytest.mark.parametrize(
    "words", [["list"], ["show", "r7f3"], ["export", "r7f3-1"], ["prune", "--all", "--yes"]]
)


def refused(capsys: Captured, file: Path, words: list[str]) -> str:
    out, err = asked(capsys, *words, f"--from={file}", code=1)
    assert out == ""
    assert str(file) in err
    assert err.startswith("error[CTRL-RECORDING]: ")
    assert len(err.splitlines()) <= 3
    return err


@ACTIONS
def test_m34_a_folder(tmp_path: Path, capsys: Captured, words: list[str]) -> None:
    assert "is a folder" in refused(capsys, tmp_path, words)


@ACTIONS
def test_m34_a_symbolic_link(file: Path, tmp_path: Path, capsys: Captured, words: list[str]) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(file)
    assert "symbolic link" in refused(capsys, link, words)


@ACTIONS
def test_m34_not_a_database(tmp_path: Path, capsys: Captured, words: list[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary. " * 100)
    assert "not a recording" in refused(capsys, path, words)
    assert path.read_text() == "Dear diary. " * 100


@ACTIONS
def test_m34_a_database_of_something_else(tmp_path: Path, capsys: Captured, words: list[str]) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE run (id)")
    assert "a database, but not" in refused(capsys, path, words)


@ACTIONS
def test_m34_a_newer_version(file: Path, capsys: Captured, words: list[str]) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    err = refused(capsys, file, words)
    assert f"its schema is {VERSION + 1}; this version supports {VERSION}" in err


@ACTIONS
def test_m34_no_permission(file: Path, capsys: Captured, words: list[str]) -> None:
    file.chmod(0)
    with unprivileged():
        err = refused(capsys, file, words)
    assert "make the file and its folder readable" in err


@ACTIONS
def test_m34_a_damaged_file(file: Path, capsys: Captured, words: list[str]) -> None:
    spoilt = bytearray(file.read_bytes())
    spoilt[4096:] = b"\x5a" * (len(spoilt) - 4096)
    file.write_bytes(spoilt)
    err = refused(capsys, file, words)
    assert "corrupt" in err
    assert f"mv {file}* {file.parent}/damaged" in err
    assert f"record export --all --from={file.parent}/damaged/history.db --to=saved.db" in err


def test_m34_what_is_advised_for_a_damaged_file_saves_what_can_be_read(
    file: Path, capsys: Captured, tmp_path: Path
) -> None:
    spoilt = bytearray(file.read_bytes())
    page = spoilt.rfind(b"\x58\x09") // 4096 * 4096
    spoilt[page : page + 64] = b"\xff" * 64
    file.write_bytes(spoilt)
    (file.parent / "damaged").mkdir()
    for one in file.parent.glob("history.db*"):
        shutil.move(one, file.parent / "damaged")
    saved = tmp_path / "saved.db"
    _, err = asked(capsys, "export", "--all", f"--from={file.parent}/damaged/history.db", f"--to={saved}")
    assert "only a part of its table 'body' is readable" in err
    assert names(capsys, f"--from={saved}") == {"r8aa": 1, "r7f3": 2}


def test_m34_nothing_to_save(file: Path, capsys: Captured, tmp_path: Path) -> None:
    file.write_bytes(b"\x00" * 8192)
    _, err = asked(capsys, "export", "--all", f"--from={file}", f"--to={tmp_path / 'saved.db'}", code=1)
    assert "there is nothing to save" in err
    assert not (tmp_path / "saved.db").exists()


def test_m34_a_name_that_no_object_has_is_a_value(file: Path, capsys: Captured) -> None:
    for name in ("web'--", "%", "_", "..", "a\\"):
        asked(capsys, "export", f"foo/{name}", "--recorded-cluster=c1", f"--to={file.parent / 'x'}", code=4)
