"""A machine for `doctor`, and the folder of a user's recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.bench import Layout, laid_out


@pytest.fixture
async def at(tmp_path: Path) -> Layout:
    return laid_out(tmp_path)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's recording and locks; there is no kubeconfig."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    folder = tmp_path / "kubectl-ctrl"
    folder.mkdir(mode=0o700)
    return folder
