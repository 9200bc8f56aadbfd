"""hack/check's own steps, on small trees: each reports every violation, and nothing else."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.checkout import REPOSITORY

ROOM = '''"""A room.

Belongs here: this.
Does not belong here: that.
"""
'''


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def step(name: str, root: Path) -> list[str]:
    """The report of a step about a tree."""
    command = [sys.executable, str(REPOSITORY / f"hack/check.d/{name}.py"), str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    reported = done.stdout.strip().splitlines()
    assert bool(reported) == bool(done.returncode)
    return reported


def function(lines: int, parameters: str = "") -> str:
    return f"def long({parameters}):\n" + "    pass\n" * (lines - 1)


def test_sizes_within_the_ceilings(tmp_path: Path) -> None:
    write(tmp_path, "kubectl_ctrl/a.py", function(60, "a, b, c, d, *, e, f, g") + "\n" * 440)
    write(tmp_path, "tests/b.py", "class A:\n    def m(self, a, b, c, d, e, f, g): ...\n")
    assert step("ceilings", tmp_path) == []


def test_sizes_over_the_ceilings(tmp_path: Path) -> None:
    write(tmp_path, "kubectl_ctrl/a.py", "\n" * 501)
    write(tmp_path, "tests/b.py", function(61))
    write(tmp_path, "e2e/c.py", "class A:\n    async def m(self, a, b, c, d, *e, f, g, **h): ...\n")
    assert step("ceilings", tmp_path) == [
        "kubectl_ctrl/a.py:1: The file has 501 lines, more than 500.",
        "tests/b.py:1: long has 61 lines, more than 60.",
        "e2e/c.py:2: A.m takes 8 parameters, more than 7.",
    ]


def test_exceptions_have_a_name_and_a_reason_and_are_needed(tmp_path: Path) -> None:
    write(tmp_path, "tests/b.py", function(61))
    reasons = '"tests/b.py:long" = "One table."\n"tests/b.py:short" = "Was long."\n"tests/b.py:other" = ""\n'
    write(tmp_path, "hack/check.d/ceilings.toml", reasons)
    assert step("ceilings", tmp_path) == [
        "hack/check.d/ceilings.toml: 'tests/b.py:other' has no reason.",
        "hack/check.d/ceilings.toml: 'tests/b.py:short' no longer needs an exception.",
        "hack/check.d/ceilings.toml: 'tests/b.py:other' no longer needs an exception.",
    ]


def test_rooms_with_a_docstring(tmp_path: Path) -> None:
    write(tmp_path, "kubectl_ctrl/__init__.py", "__all__ = []\n")
    write(tmp_path, "kubectl_ctrl/cache/__init__.py", ROOM + "\nfrom __future__ import annotations\n")
    write(tmp_path, "kubectl_ctrl/controllers/__init__.py", ROOM + "\nNAMES = ('foo',)\n")
    write(tmp_path, "kubectl_ctrl/controllers/foo/__init__.py", '"""Foo."""\n\nCONTROLLER = 1\n')
    assert step("rooms", tmp_path) == []


def test_rooms_without_a_proper_docstring(tmp_path: Path) -> None:
    write(tmp_path, "kubectl_ctrl/cache/__init__.py", '"""Copies.\n\nBelongs here: all."""\n')
    write(tmp_path, "kubectl_ctrl/client/__init__.py", "")
    write(tmp_path, "kubectl_ctrl/model/__init__.py", ROOM + "\nfrom kubectl_ctrl.model.rv import compare\n")
    write(tmp_path, "kubectl_ctrl/render/text.py", "")
    assert step("rooms", tmp_path) == [
        "kubectl_ctrl/cache/__init__.py: its docstring lacks 'Does not belong here:'.",
        "kubectl_ctrl/client/__init__.py: has no docstring.",
        "kubectl_ctrl/model/__init__.py: line 7: contains code; import from the file that defines the name instead.",
        "kubectl_ctrl/render/__init__.py: is missing, so the folder is not a package.",
    ]


def test_finished_words_and_waiting_without_sleep(tmp_path: Path) -> None:
    write(tmp_path, "kubectl_ctrl/a.py", "# The methods of a todolist are fixed.\n")
    write(tmp_path, "tests/b.py", "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n")
    write(tmp_path, "hack/c.py", "import time\ntime.sleep(1)\n")
    assert step("words", tmp_path) == []


@pytest.mark.parametrize("word", ["TO" + "DO", "fix" + "me", "for " + "now", "place" + "holder"])
def test_unfinished_words(tmp_path: Path, word: str) -> None:
    write(tmp_path, "hack/run", f"#!/bin/sh\n# {word}: more\n")
    assert step("words", tmp_path) == [f"hack/run:2: {word!r} marks unfinished work."]


@pytest.mark.parametrize("call", ["time.sleep(1)", "asyncio.sleep(0.1)", "asyncio.sleep(delay)", "sleep(0)"])
def test_sleeping_in_tests(tmp_path: Path, call: str) -> None:
    write(tmp_path, "tests/b.py", f"def test():\n    {call}\n")
    assert step("words", tmp_path) == ["tests/b.py:2: Sleeps; wait for a condition, or use a FakeClock."]


def locked(body: str) -> str:
    return f"# key: {hashlib.sha256(body.encode()).hexdigest()[:16]}\n{body}"


PIN = "click==8.5.1 \\\n    --hash=sha256:00\n"


@pytest.fixture
def locks(tmp_path: Path) -> Path:
    """A tree with valid lock files."""
    write(tmp_path, "pyproject.toml", '[project]\ndependencies = ["click>=8"]\n')
    write(tmp_path, "requirements.lock", locked(PIN))
    write(tmp_path, "hack/requirements.in", "# tools\nruff\n")
    write(tmp_path, "hack/requirements.lock", locked("ruff==1.0 \\\n    --hash=sha256:00\n"))
    return tmp_path


def test_locks_that_match_the_requirements(locks: Path) -> None:
    assert step("locks", locks) == []


def test_lock_that_was_changed_by_hand(locks: Path) -> None:
    write(locks, "requirements.lock", locked(PIN) + "# more\n")
    assert "requirements.lock:1: The key does not match the lines below it" in step("locks", locks)[0]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("click==8.5.1\n", "requirements.lock: contains a package without a hash."),
        (f"--index-url https://index.example/simple\n{PIN}", "requirements.lock: contains an address"),
        ("click==7.0 \\\n    --hash=sha256:00\n", "requirements.lock: contains 7.0 for 'click>=8'."),
        ("", "requirements.lock: contains no version for 'click>=8'."),
        (PIN + "ruff==2.0 \\\n    --hash=sha256:00\n", "hack/requirements.lock: contains another version of 'ruff'"),
    ],
)
def test_invalid_locks(locks: Path, body: str, sentence: str) -> None:
    write(locks, "requirements.lock", locked(body))
    first, *_, advice = step("locks", locks)
    assert first.startswith(sentence)
    assert advice == "Run hack/update."


def plant_program(root: Path, main: str, complete: str) -> None:
    """A program with the name of the package, which shadows it."""
    for name in ("kubectl_ctrl/__init__.py", "kubectl_ctrl/cli/__init__.py", "kubectl_ctrl/cli/completion/__init__.py"):
        write(root, name, "")
    write(root, "kubectl_ctrl/cli/main.py", main)
    write(root, "kubectl_ctrl/cli/completion/main.py", complete)


def test_program_that_imports_too_much_before_it_answers(tmp_path: Path) -> None:
    plant_program(tmp_path, "import sqlite3\n\ndef main(words): return 0\n", "import asyncio\n\ndef main(): return 0\n")
    assert step("startup", tmp_path) == [
        "`kubectl ctrl --help` imports sqlite3.",
        "`kubectl ctrl options` imports sqlite3.",
        "`kubectl ctrl version` imports sqlite3.",
        "`completion of ` imports asyncio.",
        "`completion of run ` imports asyncio.",
        "`completion of run --context ` imports asyncio.",
        "`completion of trace foo/` imports asyncio.",
    ]


def test_program_that_fails_before_it_answers(tmp_path: Path) -> None:
    plant_program(tmp_path, "def main(words): return 3\n", "def main(): return 0\n")
    assert step("startup", tmp_path)[0] == "`kubectl ctrl --help` exited with code 3."
