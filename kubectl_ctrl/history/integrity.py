"""How a recording is: whether it can be read to its last page, how big it is, and who else may look into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from kubectl_ctrl.history import database
from kubectl_ctrl.history.disk import on_network
from kubectl_ctrl.history.pruning import file_size
from kubectl_ctrl.history.raw_json import Damaged
from kubectl_ctrl.value import Value

# Steps of SQLite's machine after which it looks at the time.
_LOOK_AFTER = 10_000


class Health(Value, kw_only=True):
    """What was found; an error is for what keeps it from being read at all."""

    size: int  # bytes, with what lies beside it
    version: int  # of its schema
    whole: bool  # it was looked through to the end; else there was no time for that
    network: bool  # on a network file system
    open_to: str  # what others may do with it, as a sentence; "" for nothing


def health(path: Path, in_time: Callable[[], bool]) -> Health:
    """Look through a recording for as long as `in_time` says so; raises as reading does, also for what is damaged."""
    with closing(database.readable(path)) as connection, database.mapped(path):
        return Health(
            size=file_size(path),
            version=connection.execute("PRAGMA user_version").fetchone()[0],
            whole=_looked_through(connection, in_time),
            network=on_network(path),
            open_to=database.too_open(path),
        )


def _looked_through(connection: sqlite3.Connection, in_time: Callable[[], bool]) -> bool:
    connection.set_progress_handler(lambda: not in_time(), _LOOK_AFTER)
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return False
        raise
    if answer != "ok":
        raise Damaged(str(answer))
    return True
