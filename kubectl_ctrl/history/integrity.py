"""The health of a recording: readable to the last page, its size, and the access of other users."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kubectl_ctrl.history import database
from kubectl_ctrl.history.disk import on_network
from kubectl_ctrl.history.pruning import file_size
from kubectl_ctrl.value import Value

# Steps of SQLite's virtual machine between two checks of the time.
_CHECK_AFTER = 10_000


class RecordingHealth(Value, kw_only=True):
    size: int  # bytes, with the WAL
    version: int  # of its schema
    whole: bool  # False: the time was too short to read it to the end
    network: bool  # on a network file system
    open_to: str  # a warning if other users can read or change it


def health(path: Path, in_time: Callable[[], bool]) -> RecordingHealth:
    """Read the whole recording as long as `in_time` is true; raises RecordingError, also for a corrupt one."""
    with closing(database.readable(path)) as connection, database.mapped(path):
        return RecordingHealth(
            size=file_size(path),
            version=connection.execute("PRAGMA user_version").fetchone()[0],
            whole=_check(connection, in_time),
            network=on_network(path),
            open_to=database.too_open(path),
        )


def _check(connection: sqlite3.Connection, in_time: Callable[[], bool]) -> bool:
    connection.set_progress_handler(lambda: not in_time(), _CHECK_AFTER)
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return False
        raise
    if answer != "ok":
        raise database.Damaged(str(answer))
    return True
