"""Kubeconfigs that say nothing usable, at the shell: exit 3, with the file or the entry, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_ctrl.cli.main import main
from tests.cli.ours import kubeconfig

Content = dict[str, Any]
GOOD = kubeconfig("dev", dev="https://127.0.0.1:1", staging="https://127.0.0.1:2")


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    return tmp_path / "mine"


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["run", "foo", "--once", *words]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error[CTRL-KUBECONFIG]: " in captured.err
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "No cluster is configured: there is no current-context, and no --server was given."),
        (b"", "No cluster is configured"),
        (b"a: 1\nb: {c", "is not valid YAML at line "),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"- a", "contains a list instead of a mapping"),
        (b"apiVersion: v1\nkind: Secret", "is not a kubeconfig: it has apiVersion 'v1', kind 'Secret'"),
        (b"contexts: 3", "must be a list of mappings"),
    ],
)
def test_m04_a_file_that_is_none(
    file: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, told: str
) -> None:
    if content is not None:
        file.write_bytes(content)
    err = refused(capsys)
    assert told in err
    assert str(file) in err, "which file, and by what it was chosen"


def test_m04_a_folder_and_a_file_that_a_flag_names(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.mkdir()
    assert f"The kubeconfig {str(file)!r} cannot be read: Is a directory." in refused(capsys)
    missing = tmp_path / "missing"
    err = refused(capsys, "--kubeconfig", str(missing))
    assert f"The kubeconfig {str(missing)!r} does not exist." in err
    assert "next: check --kubeconfig" in err


def cluster(content: Content) -> Content:
    found: Content = content["clusters"][0]["cluster"]
    return found


def _no_user(content: Content) -> None:
    content["users"] = []


def _bad_server(content: Content) -> None:
    cluster(content)["server"] = "https://[::1"


def _bad_scheme(content: Content) -> None:
    cluster(content)["server"] = "ftp://10.0.0.1"


def _bad_data(content: Content) -> None:
    cluster(content)["certificate-authority-data"] = "%%%"


def _no_file(content: Content) -> None:
    content["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", "certificate-authority": "gone.crt"}


def _no_cluster(content: Content) -> None:
    content["clusters"] = content["clusters"][1:]


def _no_context(content: Content) -> None:
    content["current-context"] = "gone"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_no_context, ("The current-context 'gone' does not exist.", "choose with --context one of 'dev', 'staging'")),
        (_no_cluster, ("names the cluster 'dev', which does not exist", "choose with --cluster one of 'staging'")),
        (_no_user, ("names the user 'dev', which does not exist",)),
        (_bad_server, ("The server of cluster 'dev'", "is not a URL or host:port")),
        (_bad_scheme, ("has the scheme 'ftp'; it must be http or https",)),
        (_bad_data, ("'certificate-authority-data' of cluster 'dev'", "is not valid base64")),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_m05_an_entry_that_is_missing_or_wrong(
    file: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Content], None], told: tuple[str, ...]
) -> None:
    content = yaml.safe_load(GOOD)
    change(content)
    file.write_text(yaml.safe_dump(content))
    err = refused(capsys)
    for words in told:
        assert words in err


def test_m05_an_authority_that_is_not_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = yaml.safe_load(GOOD)
    _no_file(content)
    content["contexts"][0]["name"] = content["current-context"] = "kind-dev"
    file.write_text(yaml.safe_dump(content))
    err = refused(capsys)
    assert "certificate-authority of cluster 'dev'" in err
    assert str(file.parent / "gone.crt") in err


def test_m05_a_context_that_was_mistyped(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(GOOD)
    err = refused(capsys, "--context=stagin")
    assert "The context 'stagin' does not exist." in err
    assert "choose with --context one of 'dev', 'staging'" in err
