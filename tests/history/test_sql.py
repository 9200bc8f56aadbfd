from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kubectl_ctrl.history import database, sql


def test_no_two_queries_have_one_name() -> None:
    folder = Path(sql.__file__).parent
    names = [
        name
        for file in ("queries.sql", "copies.sql")
        for name in re.findall(r"^-- name: (\w+)$", (folder / file).read_text(), re.MULTILINE)
    ]
    assert sorted(names) == sorted(sql.queries())


@pytest.mark.parametrize("name", sorted(sql.queries()))
def test_every_query_fits_the_schema(name: str, tmp_path: Path) -> None:
    with closing(database.writable(tmp_path / "x.db")) as connection:
        for table in ("make_chosen", "make_chosen_run"):
            if table != name:
                connection.execute(sql.query(table))
        try:
            connection.execute("EXPLAIN " + sql.query(name))
        except sqlite3.ProgrammingError as error:
            assert "Incorrect number of bindings" in str(error)  # that comes after it was understood  # noqa: PT017


def test_s07_every_value_is_bound() -> None:
    """The only parts inserted into statements are our names of tables."""
    folder = Path(sql.__file__).parent
    made = [
        f"{file.name}: {line.strip()}"
        for file in sorted(folder.glob("*.py"))
        for line in file.read_text().splitlines()
        if re.search(r"execute(many)?\(\s*f?[\"'].*[{%]", line)
    ]
    assert made == [
        'extract.py: self._writing.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608',
        'pruning.py: self._connection.execute(f"PRAGMA {name}").fetchone()[0]',
    ]
    assert not re.search(r"\bLIKE\b|\bGLOB\b", "".join(sql.queries().values()), re.IGNORECASE)
