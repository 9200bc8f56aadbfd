"""pytest finds the fixtures of an installed package, and pays for them only where a test uses one."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.guard import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
(NAME,) = PROJECT["entry-points"]["pytest11"]
USED = """\
import sys

def test_both(sandbox, sandbox_server):
    assert sandbox.server.version > 0
    assert sandbox_server.url.startswith("https://127.0.0.1:")
"""
UNUSED = """\
import sys

def test_nothing():
    loaded = {name for name in sys.modules if name.startswith("kubectl_ctrl")}
    assert loaded == {"kubectl_ctrl", "kubectl_ctrl.testing", "kubectl_ctrl.testing.plugin"}
"""
NAMED = f"pytest_plugins = [{NAME!r}]\n"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The folder that makes this checkout an installed package, as a wheel does."""
    folder = tmp_path / "installed"
    metadata = folder / "kubectl_ctrl-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kubectl-ctrl\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{NAME} = {PROJECT['entry-points']['pytest11'][NAME]}\n")
    return folder


@pytest.mark.parametrize("conftest", ["", NAMED], ids=["found", "named as well"])
@pytest.mark.parametrize("test", [USED, UNUSED], ids=["used", "unused"])
def test_an_installed_package_brings_the_fixtures(tmp_path: Path, installed: Path, test: str, conftest: str) -> None:
    (tmp_path / "conftest.py").write_text(conftest)
    (tmp_path / "test_one.py").write_text(test)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(installed)]), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["--basetemp=base", "-p", "no:cacheprovider", "-c", os.devnull, "-W", "error"]
    command = [sys.executable, "-m", "pytest", *options, "test_one.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
