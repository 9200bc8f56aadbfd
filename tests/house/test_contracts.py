"""The contracts and rules of pyproject.toml: code that violates each of them is found."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.checkout import REPOSITORY

BIN = Path(sys.executable).parent
SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
CONTRACTS = [contract["name"] for contract in SETTINGS["tool"]["importlinter"]["contracts"]]

LAYERS = "Each layer imports"
FACADE = "Only controllers import the facade"
CONTROLLERS = "Controllers import only the facade"
EACH_OTHER = "Controllers do not know each other"
VERBS = "Verbs do not import each other"


def plant(root: Path, *files: tuple[str, str]) -> None:
    """A package with only these files, and the settings of the real one."""
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    rooms = ("cli/verbs/down", "controllers/foo", "controllers/bar", "runtime", "history", "cache", "client", "model")
    for folder in ("", "cli", "cli/verbs", "controllers", *rooms):
        (root / "kubectl_ctrl" / folder).mkdir(parents=True, exist_ok=True)
        (root / "kubectl_ctrl" / folder / "__init__.py").touch()
    for name in ("clock", "exec", "errors"):
        (root / f"kubectl_ctrl/{name}.py").touch()
    for name, text in files:
        (root / "kubectl_ctrl" / name).write_text(text + "\n")


def broken(root: Path) -> list[str]:
    """The names of the broken contracts."""
    words = [str(BIN / "lint-imports"), "--no-cache", "--no-logo"]
    # Wide enough that no name is wrapped.
    environ = {"PYTHONPATH": str(root), "COLUMNS": "300", "TERM": "dumb"}
    done = subprocess.run(words, cwd=root, env=environ, capture_output=True, text=True, check=False)
    assert "Contracts: " in done.stdout, done.stdout + done.stderr
    return [name for name in CONTRACTS if f"{name} BROKEN" in done.stdout]


def test_owners_and_layers_may_do_what_is_theirs(tmp_path: Path) -> None:
    plant(
        tmp_path,
        (
            "cli/run.py",
            "import click\nimport kubectl_ctrl.runtime.loop\nimport kubectl_ctrl.controllers.foo.reconciler",
        ),
        ("runtime/loop.py", "import kubectl_ctrl.cache.store\nimport kubectl_ctrl.clock"),
        ("cache/store.py", "import kubectl_ctrl.client.calls\nfrom kubectl_ctrl.model import rv"),
        ("model/rv.py", "import kubectl_ctrl.errors"),
        ("client/calls.py", "import aiohttp"),
        ("history/writer.py", "import sqlite3"),
        ("clock.py", "import time"),
        ("exec.py", "import subprocess"),
        ("controllers/foo/reconciler.py", "import kubectl_ctrl\nfrom kubectl_ctrl import controller"),
    )
    assert broken(tmp_path) == []


@pytest.mark.parametrize(
    ("file", "text", "contract"),
    [
        ("model/a.py", "import kubectl_ctrl.client", LAYERS),
        ("runtime/a.py", "import kubectl_ctrl.history", LAYERS),
        ("cache/a.py", "def f():\n    import kubectl_ctrl.runtime", LAYERS),
        ("newroom.py", "", LAYERS),
        ("model/a.py", "from kubectl_ctrl import Result", FACADE),
        ("cli/a.py", "import kubectl_ctrl", FACADE),
        ("controllers/foo/a.py", "import kubectl_ctrl.model", CONTROLLERS),
        ("controllers/foo/a.py", "import kubectl_ctrl.controllers.bar", EACH_OTHER),
        ("cli/verbs/up.py", "import kubectl_ctrl.cli.verbs.down", VERBS),
        ("runtime/a.py", "import sqlite3", "sqlite3 belongs"),
        ("cli/a.py", "import subprocess", "subprocess belongs"),
        ("runtime/a.py", "from click import echo", "click belongs"),
        ("cache/a.py", "import time", "time belongs"),
        ("runtime/a.py", "from http.server import HTTPServer", "HTTP belongs"),
        ("cli/a.py", "import aiohttp", "HTTP belongs"),
        ("client/a.py", "import kubernetes", "kubernetes belongs to client.official"),
    ],
)
def test_what_a_contract_forbids_breaks_it_alone(tmp_path: Path, file: str, text: str, contract: str) -> None:
    plant(tmp_path, (file, text))
    [name] = broken(tmp_path)
    assert name.startswith(contract)


def linted(root: Path, name: str, text: str) -> list[str]:
    """The rules that a file with that name and text breaks."""
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"from __future__ import annotations\n\n{text}\n")
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    words = [
        str(BIN / "ruff"),
        "check",
        "--no-cache",
        "--quiet",
        "--output-format",
        "concise",
        "--select",
        "TID251,T201",
    ]
    done = subprocess.run([*words, name], cwd=root, capture_output=True, text=True, check=False)
    return [line.split()[1] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("import time\n\ntime.time()", "TID251"),
        ("from time import monotonic\n\nmonotonic()", "TID251"),
        ("import asyncio\n\nasyncio.sleep(1)", "TID251"),
        ("from asyncio import wait_for\n\nwait_for()", "TID251"),
        ("from datetime import datetime\n\ndatetime.now()", "TID251"),
        ("import os\n\nos.environ", "TID251"),
        ("import random\n\nrandom.random()", "TID251"),
        ("from uuid import uuid4\n\nuuid4()", "TID251"),
        ("import secrets\n\nsecrets.token_hex()", "TID251"),
        ("import subprocess\n\nsubprocess.run([])", "TID251"),
        ("print()", "T201"),
    ],
)
def test_calls_that_only_their_owners_may_make(tmp_path: Path, text: str, rule: str) -> None:
    assert rule in linted(tmp_path, "kubectl_ctrl/runtime/a.py", text)


@pytest.mark.parametrize("owner", ["clock.py", "exec.py", "cli/app.py"])
def test_owners_may_make_them(tmp_path: Path, owner: str) -> None:
    assert linted(tmp_path, f"kubectl_ctrl/{owner}", "import os\nimport time\n\ntime.time(), os.environ") == []


def test_seeded_randomness_is_free_to_use(tmp_path: Path) -> None:
    assert linted(tmp_path, "kubectl_ctrl/runtime/a.py", "import random\n\nrandom.Random(7).random()") == []
