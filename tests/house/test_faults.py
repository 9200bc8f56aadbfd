"""docs/faults.md promises a test for each row and subject, by name: each of them exists, and can fail."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

from kubectl_ctrl.controllers import BUNDLED
from tests.house.checkout import REPOSITORY

ROW = re.compile(r"^\| ([FMS])(\d+) \| [^|]+ \| ([a-z ]+) \| [^|]+ \|$", re.MULTILINE)
ROOMS = {
    "runtime": ("tests/runtime", "tests/cache", "tests/client", "tests/model", "tests/workqueue"),
    "history": ("tests/history", "tests/cli", "e2e"),
    "cli": (
        "tests/cli",
        "tests/clusters",
        "tests/install",
        "tests/kubeconfig",
        "tests/loader",
        "tests/model",
        "tests/runs",
        "tests/target",
        "e2e",
    ),
}


Function = ast.FunctionDef | ast.AsyncFunctionDef
Named = ast.Name | ast.Attribute


def rows() -> Iterator[tuple[str, str]]:
    """(prefix of the test's name, subject)."""
    for letter, number, subjects in ROW.findall((REPOSITORY / "docs/faults.md").read_text()):
        for subject in subjects.split():
            yield f"test_{letter.lower()}{int(number):02}_", subject


@cache
def collected(place: str) -> tuple[Function, ...]:
    """The tests that pytest collects from a file or folder: functions at the top level."""
    path = REPOSITORY / place
    files = [path] if path.suffix else sorted(path.rglob("test_*.py"))
    return tuple(node for file in files if file.exists() for node in parsed(file).body if isinstance(node, Function))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def claims(node: ast.AST) -> bool:
    """It is an assertion that can fail."""
    if isinstance(node, ast.Assert):
        return any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node.test))
    return isinstance(node, ast.Call) and ast.unparse(node.func) in {"pytest.raises", "pytest.fail"}


def called(function: Function) -> set[str]:
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {part.id if isinstance(part, ast.Name) else part.attr for part in calls if isinstance(part, Named)}


@cache
def asserting() -> frozenset[str]:
    """The names of functions of tests/ and e2e/ that assert something, or call such a function."""
    files = [*(REPOSITORY / "tests").rglob("*.py"), *(REPOSITORY / "e2e").rglob("*.py")]
    functions = [node for file in files for node in ast.walk(parsed(file)) if isinstance(node, Function)]
    found = {function.name for function in functions if any(map(claims, ast.walk(function)))}
    calls = [(function.name, called(function)) for function in functions]
    while more := {name for name, names in calls if name not in found and not names.isdisjoint(found)}:
        found |= more
    return frozenset(found)


def can_fail(function: Function, helpers: Collection[str]) -> bool:
    return any(map(claims, ast.walk(function))) or not called(function).isdisjoint(helpers)


def places(subject: str) -> tuple[str, ...]:
    if subject in ROOMS:
        return ROOMS[subject]
    shared = tuple(f"tests/controllers/test_{name}.py" for name in ("faults", "two_runs", "safety"))
    return shared if subject == "all" else (f"tests/controllers/{subject}", f"e2e/test_{subject}.py", *shared)


@pytest.mark.parametrize(("prefix", "subject"), list(rows()))
def test_the_row_has_its_test(prefix: str, subject: str) -> None:
    assert subject in (*ROOMS, *BUNDLED, "all")
    found = [test for place in places(subject) for test in collected(place) if test.name.startswith(prefix)]
    assert found
    assert [test.name for test in found if not can_fail(test, asserting())] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_f01_x(): pass", False),
        ("def test_f01_x(): 'assert x'", False),
        ("def test_f01_x(): assert True", False),
        ("def test_f01_x(): run(1)", False),
        ("def test_f01_x(): assert run(1)", True),
        ("def test_f01_x():\n    def body():\n        assert run(1)\n    run(body)", True),
        ("def test_f01_x():\n    with pytest.raises(ValueError): run(1)", True),
        ("def test_f01_x(): it.holds()", True),
    ],
)
def test_tests_that_cannot_fail_are_recognized(text: str, expected: bool) -> None:
    (function,) = ast.parse(text).body
    assert isinstance(function, Function)
    assert can_fail(function, {"holds"}) == expected


def test_every_row_is_parsed() -> None:
    text = (REPOSITORY / "docs/faults.md").read_text()
    assert len(ROW.findall(text)) == len(re.findall(r"^\| [FMS]\d", text, re.MULTILINE)) == 92
