from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("file", ["there", "missing"])
def test_s10_killed_before_any_step_on_a_file_it_is_undone_to_the_byte(tmp_path: Path, file: str) -> None:
    command = [sys.executable, "-m", "tests.clusters.killed_context", str(tmp_path), file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > 20, "so few steps cannot be all"
