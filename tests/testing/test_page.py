"""docs/testing.md: its files, written as they are shown, pass with plain pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from kubectl_ctrl.testing.plugin import __name__ as plugin
from tests.guard import CHECKOUT

PAGE = (CHECKOUT / "docs" / "testing.md").read_text()
FILES = re.findall(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_passes(tmp_path: Path) -> None:
    assert len(FILES) == PAGE.count("```python") + PAGE.count("```yaml")
    for name, content in FILES:
        (tmp_path / name).write_text(content)
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_PLUGINS": plugin}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # of plugins that only our own tests need
    options = ["--basetemp=base", "-p", "no:cacheprovider", "-c", os.devnull]
    command = [sys.executable, "-m", "pytest", *options, "."]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    tests = sum(content.count("\ndef test_") for _, content in FILES)
    assert f" {tests} passed" in done.stdout, done.stdout + done.stderr
