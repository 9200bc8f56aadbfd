"""Keeps a recording within its caps: deletes the oldest attempts, and all rows that no attempt refers to any more.

Transactions are short, so that running controllers can write between them. The newest run is never deleted, but may
lose its oldest attempts to the cap on size.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from kubectl_ctrl.history import database
from kubectl_ctrl.history.bodies import USED_FOR
from kubectl_ctrl.history.disk import WriteLock
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.value import Value

DAY = 86_400.0
EVERYTHING = float("inf")

_AT_ONCE = 500
# Pruning stops at this share of the cap, or the next commit would exceed it again.
_DOWN_TO = 0.9
# An attempt without an end that is older than this was interrupted.
_LOST_AFTER = 7 * DAY
# A run with a sign of life since then may continue, also one without attempts. A run records one every few seconds.
_LATELY = DAY
_JUST_NOW = 60.0
# The number of calls without an attempt that are kept for each run.
_MOST_APART = 1_000


class Caps(Value, kw_only=True):
    size: int = 200_000_000  # bytes
    age: float = 7 * DAY


class PruneSelection(Value, kw_only=True):
    """The attempts to delete: those started before a time, of one cluster or of all; `newest` spares the newest run.

    With `runs`, names of runs that are over, their attempts alone, and then the runs themselves.
    """

    before: float
    cluster: str = ""
    newest: bool = True
    runs: tuple[str, ...] = ()


class Pruned(Value, kw_only=True):
    attempts: int = 0
    runs: int = 0
    size_before: int = 0
    size_after: int = 0


def prune(path: Path, doomed: PruneSelection, now: float) -> Pruned:
    """Delete these attempts of a recording, which runs may be writing to, and shrink the file."""
    lock = WriteLock(path)
    try:
        with database.mapped(path), closing(_opened(path, lock)) as connection:
            runs, size_before = _runs(connection), file_size(path)
            pruner = Pruner(connection)
            attempts, removed = 0, _AT_ONCE
            while removed == _AT_ONCE:
                with lock:
                    removed = pruner.step(doomed, now, sweep=True)
                attempts += removed
            with lock:
                pruner.shrink()
            gone = runs - _runs(connection)
            return Pruned(attempts=attempts, runs=gone, size_before=size_before, size_after=file_size(path))
    finally:
        lock.close()


def file_size(path: Path) -> int:
    """Bytes of the file and its WAL."""
    beside = (path, path.with_name(path.name + "-wal"))
    return sum(one.stat().st_size for one in beside if one.exists())


def _opened(path: Path, lock: WriteLock) -> sqlite3.Connection:
    with lock:
        return database.writable(path)


def _runs(connection: sqlite3.Connection) -> int:
    count: int = connection.execute(query("count_runs")).fetchone()[0]
    return count


class Pruner:
    """Deletes rows step by step. The caller holds the write lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def step(self, doomed: PruneSelection, now: float, *, sweep: bool, most: int = _AT_ONCE) -> int:
        """One transaction; returns the number of deleted attempts. `sweep`: also delete rows without references."""
        with database.transaction(self._connection):
            values = {
                "before": doomed.before,
                "cluster": doomed.cluster,
                "newest": doomed.newest,
                # An attempt without an end in a run that is over was interrupted.
                "lost": EVERYTHING if doomed.runs else now - _LOST_AFTER,
                "lately": now - _LATELY,
                "most": most,
                "runs": json.dumps(doomed.runs),
            }
            ids = [row for (row,) in self._connection.execute(query("doomed_attempts"), values)]
            self._remove(ids)
            if doomed.runs:
                self._connection.execute(query("drop_empty_runs"), {"runs": values["runs"]})
            if sweep or 0 < len(ids) < most:
                self._sweep(now, now - (_JUST_NOW if doomed.before == EVERYTHING else _LATELY))
        return len(ids)

    def _remove(self, ids: Iterable[int]) -> None:
        rows = [(one,) for one in ids]
        for name in ("drop_later_of", "drop_about_of", "drop_link_of", "drop_sent", "drop_attempt"):
            self._connection.executemany(query(name), rows)
        if rows:
            self._connection.execute(query("count_pruned"))

    def _sweep(self, now: float, lately: float) -> None:
        values = {"now": now, "slack": USED_FOR, "lately": lately, "most": _MOST_APART}
        for name in ("drop_bodies", "drop_runs", "drop_moments", "drop_later", "drop_subjects", "drop_objects"):
            self._connection.execute(query(name), values)
        for name in ("drop_types", "drop_deleted"):
            self._connection.execute(query(name))
        self._connection.execute(query("count_pruned"))

    def used(self) -> int:
        """Bytes in use, without free pages."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        count: int = (pages - free) * size
        return count

    def shrink(self) -> None:
        """Give free pages back to the file system."""
        # Each step of the statement frees one page, and `execute` takes only one step.
        self._connection.executescript("PRAGMA incremental_vacuum")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def __repr__(self) -> str:
        return f"Pruner(used={self.used()})"


class CapEnforcer:
    """Prunes a recording that exceeds its caps, step by step."""

    def __init__(self, connection: sqlite3.Connection, caps: Caps) -> None:
        self._connection = connection
        self._pruner = Pruner(connection)
        self._caps = caps
        self._pruning = False

    def step(self, now: float) -> bool:
        """At most one short transaction; True if there is more to do. The caller holds the write lock."""
        removed = self._pruner.step(PruneSelection(before=now - self._caps.age), now, sweep=False)
        if not removed and self._pruner.used() > self._caps.size * (_DOWN_TO if self._pruning else 1):
            removed = self._shortened(now)
        if not removed and self._pruning:
            self._pruner.shrink()
        self._pruning = removed > 0
        return self._pruning

    def _shortened(self, now: float) -> int:
        """Delete the oldest attempts in proportion to the excess; those of the newest run only if no others exist."""
        share = 1 - self._caps.size * _DOWN_TO / self._pruner.used()
        (attempts,) = self._connection.execute(query("count_attempts")).fetchone()
        most = min(_AT_ONCE, 1 + int(attempts * share))
        for newest in (True, False):
            if removed := self._pruner.step(PruneSelection(before=now, newest=newest), now, sweep=True, most=most):
                return removed
        return 0

    def __repr__(self) -> str:
        return f"CapEnforcer({self._caps.size} bytes, {self._pruner!r})"
