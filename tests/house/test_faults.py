"""docs/faults.md promises a test for each row and subject, by name: each of them is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from kubectl_ctrl.controllers import BUNDLED
from tests.house.checkout import REPOSITORY

ROW = re.compile(r"^\| ([FMS])(\d+) \| [^|]+ \| ([a-z ]+) \| [^|]+ \|$", re.MULTILINE)
ROOMS = {
    "runtime": ("tests/runtime", "tests/cache", "tests/client", "tests/model"),
    "history": ("tests/history", "tests/cli", "e2e"),
    "cli": ("tests/cli", "tests/clusters", "tests/install", "tests/model", "e2e"),
}


def rows() -> Iterator[tuple[str, str]]:
    """(prefix of the test's name, subject)."""
    for letter, number, subjects in ROW.findall((REPOSITORY / "docs/faults.md").read_text()):
        for subject in subjects.split():
            yield f"test_{letter.lower()}{int(number):02}_", subject


@cache
def names(place: str) -> frozenset[str]:
    """The tests in a file or folder."""
    path = REPOSITORY / place
    files = [path] if path.suffix else sorted(path.rglob("test_*.py"))
    trees = [ast.parse(file.read_text()) for file in files if file.exists()]
    return frozenset(
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def places(subject: str) -> tuple[str, ...]:
    if subject in ROOMS:
        return ROOMS[subject]
    shared = "tests/controllers/test_faults.py"
    return (shared,) if subject == "all" else (f"tests/controllers/{subject}", f"e2e/test_{subject}.py", shared)


@pytest.mark.parametrize(("prefix", "subject"), list(rows()))
def test_the_row_has_its_test(prefix: str, subject: str) -> None:
    assert subject in (*ROOMS, *BUNDLED, "all")
    assert [name for place in places(subject) for name in names(place) if name.startswith(prefix)]


def test_the_page_is_read_whole() -> None:
    text = (REPOSITORY / "docs/faults.md").read_text()
    assert len(ROW.findall(text)) == len(re.findall(r"^\| [FMS]\d", text, re.MULTILINE)) == 65
