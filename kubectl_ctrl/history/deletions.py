"""Notes in a recording that a cluster of ours was deleted, so that what is told of it later says so."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from kubectl_ctrl.history import database
from kubectl_ctrl.history.disk import WriteLock
from kubectl_ctrl.history.raw_json import loaded
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.value import Value


class Deleted(Value, kw_only=True):
    """A cluster that is gone: what it was called, what made it, and by what runs knew it."""

    name: str
    provider: str
    at: float  # wall time
    uid: str = ""  # of its namespace kube-system
    server: str
    ca: str  # SHA-256 of its certificate authority


def note_deleted(path: Path, deleted: Deleted) -> bool:
    """Note it where something is recorded of the cluster; whether that is so. The first note of several stays."""
    if not path.exists():
        return False
    lock = WriteLock(path)
    try:
        with database.mapped(path), lock, closing(database.writable(path)) as connection:
            places = connection.execute(query("place_runs")).fetchall()
            keys = {key for key, document in places if key == deleted.uid or _is_at(loaded(document), deleted)}
            with database.transaction(connection):
                for key in sorted(keys):
                    values = {"cluster": key, "name": deleted.name, "provider": deleted.provider, "at": deleted.at}
                    connection.execute(query("add_deleted"), values)
            return bool(keys)
    finally:
        lock.close()


def _is_at(run: dict[str, object], deleted: Deleted) -> bool:
    """Whether the run reached the cluster where TLS let nobody else answer."""
    return bool(deleted.ca) and (run.get("server"), run.get("ca", "")) == (deleted.server, deleted.ca)
