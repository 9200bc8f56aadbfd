"""The SQL of this room, read from its files: the schema, the migrations, and every query by its name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

# Kinds of rows in the table `later`.
BACKGROUND, ECHO = 0, 1

_HERE = Path(__file__).parent
_NAMED = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """The statements of queries.sql and copies.sql by name."""
    parts = _NAMED.split(_text("queries.sql"))[1:] + _NAMED.split(_text("copies.sql"))[1:]
    return {name: statement.strip() for name, statement in zip(parts[::2], parts[1::2], strict=True)}


def query(name: str) -> str:
    return queries()[name]


def schema() -> str:
    return _text("schema.sql")


def migrations() -> dict[int, str]:
    """The scripts that migrate to each version from the one before."""
    return {int(path.stem): path.read_text("utf-8") for path in sorted((_HERE / "migrations").glob("*.sql"))}


def _text(name: str) -> str:
    return (_HERE / name).read_text("utf-8")
