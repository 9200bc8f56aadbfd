"""hack/environment.py when a disk or a tool fails: its error, and the removal of incomplete environments."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from hack import environment
from hack.environment import Plan, SetupError, explain, explain_output


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(checkout=tmp_path, locks=("requirements.lock",), folder=tmp_path / "home" / "key-cpython-311", uv="")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_seen_by_ourselves(plan: Plan, number: int) -> None:
    assert "error[CTRL-SETUP-DISK]" in explain(plan, OSError(number, os.strerror(number))).lines


def test_folder_of_somebody_else(plan: Plan) -> None:
    lines = explain(plan, PermissionError(errno.EACCES, "Permission denied", "/home/ana/.cache")).lines
    assert "error[CTRL-SETUP-FOLDER]" in lines
    assert "tried: Permission denied (/home/ana/.cache)" in lines


@pytest.mark.parametrize(
    ("output", "name"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n", "DISK"),
        ("error: failed to copy\n  cause: No space left on device (os error 28)\n", "DISK"),
        (
            "WARNING: Retrying after connection broken by 'ProxyError'\nERROR: No matching distribution found\n",
            "NETWORK",
        ),
        ("error: Failed to fetch: `https://index.example/simple/`\n", "NETWORK"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n", "HASHES"),
        ("ERROR: Failed building wheel for multidict\n", "PACKAGES"),
        ("", "PACKAGES"),
    ],
)
def test_reason_is_read_from_what_the_tool_said(plan: Plan, output: str, name: str) -> None:
    plan.folder.parent.mkdir()
    error = explain_output(plan, "pip install", output)
    assert f"error[CTRL-SETUP-{name}]" in error.lines
    assert len(error.lines.splitlines()) == 3


def test_disk_that_is_nearly_full_explains_a_tool_that_says_nothing(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan.folder.parent.mkdir()
    usage = shutil.disk_usage(plan.folder.parent)._replace(free=1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert "error[CTRL-SETUP-DISK]" in explain_output(plan, "python -m venv", "Error: returned 1").lines


@pytest.mark.programs("false")
def test_failed_environment_leaves_no_folder(plan: Plan) -> None:
    plan.folder.parent.mkdir()
    broken = Plan(checkout=plan.checkout, locks=plan.locks, folder=plan.folder, uv="/bin/false")
    with pytest.raises(SetupError):
        environment.provide(broken)
    assert sorted(file.name for file in plan.folder.parent.iterdir()) == ["key-cpython-311.lock", "key-cpython-311.log"]
