"""Keeps a recording within its caps: the oldest attempts go first, and with them whatever nobody refers to any more.

Done in short transactions, so that others who write come in between. The newest run is never taken away, though it may
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
# A cap on size is undercut by so much, or there would be something to prune with every commit.
_DOWN_TO = 0.9
# An attempt without an end that is older than this will never have one.
_LOST_AFTER = 7 * DAY
# A run that was heard of so lately may go on, also when it has no attempts; a run says every few seconds that it lives.
_LATELY = DAY
_JUST_NOW = 60.0
# Calls that belong to no attempt are kept for each run, so many of them.
_MOST_APART = 1_000


class Caps(Value, kw_only=True):
    """How much is kept."""

    size: int = 200_000_000  # bytes
    age: float = 7 * DAY


class Doomed(Value, kw_only=True):
    """Which attempts go: those that began before a time, of one cluster or of all; `newest` spares the newest run.

    With `runs`, names of runs that are over, theirs alone; and the runs themselves when nothing of them is left.
    """

    before: float
    cluster: str = ""
    newest: bool = True
    runs: tuple[str, ...] = ()


class Pruned(Value, kw_only=True):
    """What went, and how big the file was and is."""

    attempts: int = 0
    runs: int = 0
    size_before: int = 0
    size_after: int = 0


def prune(path: Path, doomed: Doomed, now: float) -> Pruned:
    """Take these attempts out of a recording that others may be writing to, and give the room back."""
    lock = WriteLock(path)
    try:
        with database.mapped(path), closing(_connected(path, lock)) as connection:
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
    """Bytes of the file and of what SQLite keeps beside it."""
    beside = (path, path.with_name(path.name + "-wal"))
    return sum(one.stat().st_size for one in beside if one.exists())


def _connected(path: Path, lock: WriteLock) -> sqlite3.Connection:
    with lock:
        return database.writable(path)


def _runs(connection: sqlite3.Connection) -> int:
    count: int = connection.execute(query("count_runs")).fetchone()[0]
    return count


class Pruner:
    """Takes rows away, a step at a time; each is to be called while the lock beside the file is held."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def step(self, doomed: Doomed, now: float, *, sweep: bool, most: int = _AT_ONCE) -> int:
        """One transaction; how many attempts it removed. `sweep`: also what nobody refers to any more."""
        with database.transaction(self._connection):
            values = {
                "before": doomed.before,
                "cluster": doomed.cluster,
                "newest": doomed.newest,
                # What a run that is over has not ended will not end any more.
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
        """Bytes in use, without the pages that are free."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        count: int = (pages - free) * size
        return count

    def count(self) -> int:
        """Attempts that are there."""
        count: int = self._connection.execute(query("count_attempts")).fetchone()[0]
        return count

    def shrink(self) -> None:
        """Give free pages back to the file system."""
        # A page with each step of the statement, and `execute` takes only one.
        self._connection.executescript("PRAGMA incremental_vacuum")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def __repr__(self) -> str:
        return f"Pruner(used={self.used()})"


class Keeper:
    """Looks whether a recording is within its caps, and takes one step when it is not."""

    def __init__(self, connection: sqlite3.Connection, caps: Caps) -> None:
        self._pruner = Pruner(connection)
        self._caps = caps
        self._pruning = False

    def step(self, now: float) -> bool:
        """At most one short transaction, while the lock is held; whether there is more to do."""
        removed = self._pruner.step(Doomed(before=now - self._caps.age), now, sweep=False)
        if not removed and self._pruner.used() > self._caps.size * (_DOWN_TO if self._pruning else 1):
            removed = self._shortened(now)
        if not removed and self._pruning:
            self._pruner.shrink()
        self._pruning = removed > 0
        return self._pruning

    def _shortened(self, now: float) -> int:
        """Take as many of the oldest attempts as are too much; of the newest run only when there are no others."""
        share = 1 - self._caps.size * _DOWN_TO / self._pruner.used()
        most = min(_AT_ONCE, 1 + int(self._pruner.count() * share))
        for newest in (True, False):
            if removed := self._pruner.step(Doomed(before=now, newest=newest), now, sweep=True, most=most):
                return removed
        return 0

    def __repr__(self) -> str:
        return f"Keeper({self._caps.size} bytes, {self._pruner!r})"
