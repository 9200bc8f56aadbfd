"""Golden files: outputs in files that a test compares, and that `pytest --update-golden` writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

# Compares a text with golden/NAME.txt beside the test.
Golden = Callable[[str, str], None]

_CHANGED = pytest.StashKey[dict[Path, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing them")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_CHANGED] = {}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The guard around each test prevents writes into the checkout."""
    for file, text in session.config.stash[_CHANGED].items():
        file.write_text(text, encoding="utf-8")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    def compare(name: str, text: str) -> None:
        file = request.path.parent / "golden" / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            request.config.stash[_CHANGED][file] = text
        else:
            assert text == file.read_text(encoding="utf-8"), "Is the change intended? Then run --update-golden."

    return compare
