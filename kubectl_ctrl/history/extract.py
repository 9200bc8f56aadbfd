"""Copies runs or attempts, with their objects, into a recording of their own.

The copy is one file without a WAL, to be sent to somebody. The readable part of a corrupt recording is copied too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kubectl_ctrl import files
from kubectl_ctrl.errors import RecordingError
from kubectl_ctrl.history import database
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.value import Value

# Objects come last: those of the copied links and bodies.
_TABLES = ("run", "deleted", "type", "attempt", "about", "subject", "link", "sent", "later", "moment", "body", "object")


class RowSelection(Value, kw_only=True):
    """The rows to copy: all, runs by name, or attempts by RUN-N; of one cluster or of all."""

    every: bool = False
    runs: tuple[str, ...] = ()
    attempts: tuple[str, ...] = ()
    cluster: str = ""


class CopyResult(Value, kw_only=True):
    runs: int
    attempts: int
    size: int
    damaged: tuple[str, ...] = ()  # tables with unreadable rows


def copy(source: Path, target: Path, chosen: RowSelection) -> CopyResult:
    """Create the file `target`, which must not exist, readable by its owner alone."""
    with _unreadable(source):
        connection = database.readable(source)
    with closing(connection) as reading:
        create(target)
        try:
            with database.mapped(target), closing(database.writable(target)) as writing:
                found = _Copy(source, reading, writing)
                found.run(chosen)
                # A checkpoint, and no WAL beside the file.
                writing.execute("PRAGMA journal_mode = DELETE")
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return CopyResult(
        runs=found.rows["run"],
        attempts=found.rows["attempt"],
        size=target.stat().st_size,
        damaged=tuple(found.damaged),
    )


@contextmanager
def _unreadable(source: Path) -> Iterator[None]:
    """If not even the runs are readable, the usual advice, to copy the readable part, would lead here again."""
    try:
        yield
    except RecordingError as error:
        cause = error.__cause__
        if not database.is_damage(cause):
            raise
        raise RecordingError(
            f"Nothing in {str(source)!r} is readable: {cause}.", next_step="there is nothing to save"
        ) from cause


def create(path: Path, content: bytes = b"") -> None:
    """Create a new file, readable by its owner alone."""
    try:
        files.create(path, content)
    except FileExistsError:
        raise RecordingError(f"The file {str(path)!r} already exists.", next_step="choose a new name") from None
    except OSError as error:
        raise RecordingError(
            f"The file {str(path)!r} cannot be created: {error.strerror}.",
            next_step=files.remedy(error) or "choose a folder that you can write to",
        ) from error


class _Copy:
    """One copy; rows keep their ids."""

    def __init__(self, source: Path, reading: sqlite3.Connection, writing: sqlite3.Connection) -> None:
        self._source = source
        self._reading = reading
        self._writing = writing
        self.rows: dict[str, int] = {}
        self.damaged: list[str] = []

    def run(self, chosen: RowSelection) -> None:
        # One snapshot of all tables, while runs continue to write.
        self._reading.execute("BEGIN")
        try:
            with _unreadable(self._source), database.mapped(self._source):
                values = {
                    "cluster": chosen.cluster,
                    "every": chosen.every,
                    "runs": json.dumps(chosen.runs),
                    "attempts": json.dumps(chosen.attempts),
                }
                for name in ("make_chosen", "make_chosen_run", "choose_runs", "choose_attempts", "choose_runs_of"):
                    self._reading.execute(query(name), values)
            with database.transaction(self._writing):
                objects: set[int] = set()
                for table in _TABLES:
                    self.rows[table] = self._table(table, objects)
        finally:
            self._reading.execute("ROLLBACK")

    def _table(self, table: str, objects: set[int]) -> int:
        count = 0
        for row in self._read(table, objects):
            marks = ", ".join("?" * len(row))
            self._writing.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608
            count += 1
            if table == "body":
                objects.add(row[1])
        return count

    def _read(self, table: str, objects: set[int]) -> Iterator[tuple[Any, ...]]:
        """The rows before the first unreadable page."""
        try:
            yield from self._reading.execute(query(f"copy_{table}"), {"objects": json.dumps(sorted(objects))})
        except sqlite3.DatabaseError as error:
            if not database.is_damage(error):
                raise
            self.damaged.append(table)
