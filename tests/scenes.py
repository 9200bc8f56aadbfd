"""A folder in which a test writes a user's own code, a kubeconfig that points to production, and one to be changed."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from kubectl_ctrl.cli.app import App
from kubectl_ctrl.clusters.registry import ClusterEntry
from kubectl_ctrl.user import User
from tests.cli.ours import made
from tests.cli.own import PRODUCTION, Write
from tests.cli.theirs import MINE, SERVER


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a file below the current directory; afterwards nothing that it brought is loaded."""
    here = (tmp_path / "here").resolve()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # as for a user
    before = set(sys.modules)

    def write(name: str, text: str) -> Path:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
        return path

    yield write
    for name in set(sys.modules) - before:
        if not name.startswith("kubectl_ctrl"):
            del sys.modules[name]


@pytest.fixture
def production(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's kubeconfig, whose current context is one that nobody named as one to be changed."""
    path = tmp_path / "kubeconfig"
    path.write_text(PRODUCTION)
    monkeypatch.setenv("KUBECONFIG", str(path))
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return path


# Of the tests of --use.


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return App(out=io.StringIO(), err=io.StringIO(), user=User({"HOME": str(tmp_path)}))


@pytest.fixture
def mine(app: App) -> Path:
    file = app.user.home / ".kube" / "config"
    file.parent.mkdir()
    file.write_text(MINE)
    file.chmod(0o640)
    return file


@pytest.fixture
def entry(app: App) -> ClusterEntry:
    return made(app.registry, "ctrl", SERVER)
