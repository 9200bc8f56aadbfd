"""Every page of docs/tutorials/: its commands, typed in order, print the page's output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from e2e.ctrl import Ctrl
from e2e.kube import CHECKOUT
from e2e.tour import Reader

PLUGIN = "kubectl_ctrl.testing.plugin"
PAGES = sorted((CHECKOUT / "docs/tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial(page: Path, ctrl: Ctrl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # A reader's environment has pytest, and kubectl-ctrl with its plugin for pytest.
    path = os.pathsep.join([str(Path(sys.executable).parent), ctrl.env["PATH"]])
    reader = Reader(Ctrl({**ctrl.env, "PATH": path, "PYTHONPATH": str(CHECKOUT), "PYTEST_PLUGINS": PLUGIN}, tmp_path))
    try:
        reader.follow(page.read_text())
    finally:
        reader.kill()
