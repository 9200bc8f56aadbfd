"""Finds words of unfinished work, and sleeps in tests: `words.py ROOT`."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# One letter of each is in brackets, so that this file does not match.
UNFINISHED = re.compile(
    r"\b(TO[D]O|FIX[M]E|XX[X]|for no[w]|simplifie[d]|not implemented ye[t]|placeholde[r])\b", re.IGNORECASE
)
FOLDERS = ("kubectl_ctrl", "tests", "e2e", "hack", "bin", ".ci")
SUFFIXES = ("", ".py", ".sh", ".sql", ".yaml", ".toml")

# The one place of e2e that waits: it polls a condition under a deadline.
MAY_SLEEP = ("e2e/kube.py",)


def problems(root: Path) -> Iterator[str]:
    files = (file for folder in FOLDERS for file in sorted((root / folder).rglob("*")))
    for file in files:
        if not file.is_file() or file.is_symlink() or file.suffix not in SUFFIXES:
            continue
        name, text = file.relative_to(root).as_posix(), file.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            if found := UNFINISHED.search(line):
                yield f"{name}:{number}: {found[0]!r} marks unfinished work."
        if file.suffix == ".py" and name.startswith(("tests/", "e2e/")) and name not in MAY_SLEEP:
            yield from (f"{name}:{line}: Sleeps; wait for a condition, or use a FakeClock." for line in sleeps(text))


def sleeps(text: str) -> Iterator[int]:
    """Lines that call time.sleep, or asyncio.sleep with another argument than 0, which only yields."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep", "sleep"}:
            yields = ast.unparse(node.func) == "asyncio.sleep" and [ast.unparse(word) for word in node.args] == ["0"]
            if not yields:
                yield node.lineno


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(bool(found))
