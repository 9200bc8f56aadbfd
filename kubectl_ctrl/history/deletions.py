"""Notes in a recording that a managed cluster was deleted, so that trace and explain can report it later."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from kubectl_ctrl.history import database
from kubectl_ctrl.history.disk import WriteLock
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.value import Value


class DeletedCluster(Value, kw_only=True):
    """A deleted cluster, and the identity under which runs recorded it."""

    name: str
    provider: str
    at: float  # wall time
    uid: str = ""  # of the namespace kube-system
    server: str
    ca: str  # SHA-256 of its certificate authority


def note_deleted(path: Path, deleted: DeletedCluster) -> bool:
    """Note it if runs on the cluster are recorded, and return True then. An earlier note stays."""
    if not path.exists():
        return False
    lock = WriteLock(path)
    try:
        with database.mapped(path), lock, closing(database.writable(path)) as connection:
            places = connection.execute(query("place_runs")).fetchall()
            keys = {key for key, document in places if key == deleted.uid or _is_at(database.loaded(document), deleted)}
            with database.transaction(connection):
                for key in sorted(keys):
                    values = {"cluster": key, "name": deleted.name, "provider": deleted.provider, "at": deleted.at}
                    connection.execute(query("add_deleted"), values)
            return bool(keys)
    finally:
        lock.close()


def _is_at(run: dict[str, object], deleted: DeletedCluster) -> bool:
    """The run reached that server under a certificate authority, so no other cluster can have answered."""
    return bool(deleted.ca) and (run.get("server"), run.get("ca", "")) == (deleted.server, deleted.ca)
