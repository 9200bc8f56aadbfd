"""The deletion of a managed cluster: noted once, read with its runs, deleted with the last of them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kubectl_ctrl.errors import RecordingError
from kubectl_ctrl.history import database, sql
from kubectl_ctrl.history.deletions import DeletedCluster, note_deleted
from kubectl_ctrl.history.extract import RowSelection, copy
from kubectl_ctrl.history.pruning import EVERYTHING, PruneSelection, prune
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.value import replace
from tests.history.made import FOOS, NOON, RUN, begun, done, recording

LATER = NOON + 3600
GONE = DeletedCluster(name="ctrl", provider="kind", at=LATER, uid="c1", server=RUN.server, ca=RUN.ca)


def ends(path: Path) -> dict[str, tuple[str, str, float | None]]:
    with Recording.open(path) as read:
        return {one.key: (one.name, one.provider, one.ended) for one in read.clusters()}


def test_a_cluster_is_found_by_its_uid_and_by_every_key_of_its_runs(tmp_path: Path) -> None:
    path = recording(tmp_path)
    recording(tmp_path, run=replace(RUN, id="r2", cluster="hash-of-it"))  # by a user who may not read kube-system
    recording(
        tmp_path, run=replace(RUN, id="r3", cluster="other", ca="ca2")
    )  # another cluster later had the same server address
    tunnel = replace(GONE, server="https://localhost:7777", ca="")
    assert note_deleted(recording(tmp_path / "tunnel"), tunnel)
    assert ends(tmp_path / "tunnel" / "history.db") == {"c1": ("ctrl", "kind", LATER)}
    assert note_deleted(path, GONE)
    assert ends(path) == {
        "c1": ("ctrl", "kind", LATER),
        "hash-of-it": ("ctrl", "kind", LATER),
        "other": ("", "", None),
    }


def test_the_first_note_stays(tmp_path: Path) -> None:
    path = recording(tmp_path)
    for at in (LATER, LATER + 60):
        assert note_deleted(path, replace(GONE, at=at))
    assert ends(path)["c1"] == ("ctrl", "kind", LATER)


def test_the_deletion_of_an_unrecorded_cluster_is_not_noted(tmp_path: Path) -> None:
    assert not note_deleted(tmp_path / "history.db", GONE)
    assert not (tmp_path / "history.db").exists()
    path = recording(tmp_path)
    assert not note_deleted(path, replace(GONE, uid="u", server="https://127.0.0.1:9"))
    # Without a certificate authority, any server may have had that address.
    recording(tmp_path, run=replace(RUN, id="r2", cluster="c2", ca=""))
    assert not note_deleted(path, replace(GONE, uid="u", ca=""))
    assert [end for *_, end in ends(path).values()] == [None, None]


def test_an_unwritable_recording_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(RecordingError):
        note_deleted(path, GONE)


def test_copies_keep_the_deletion_and_pruning_deletes_it_with_the_last_run(tmp_path: Path) -> None:
    start = begun(1)
    path = recording(tmp_path, start, done(start))
    recording(tmp_path, run=replace(RUN, id="r2", cluster="c2", ca="ca2", began=NOON + 60))
    note_deleted(path, GONE)
    copy(path, tmp_path / "one.db", RowSelection(attempts=("r7f3-1",)))
    copy(path, tmp_path / "other.db", RowSelection(runs=("r2",)))
    assert ends(tmp_path / "one.db") == {"c1": ("ctrl", "kind", LATER)}
    assert ends(tmp_path / "other.db") == {"c2": ("", "", None)}
    prune(path, PruneSelection(before=EVERYTHING, newest=False, cluster="c1"), LATER + 1e9)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT cluster FROM run").fetchall() == [("c2",)]
        assert connection.execute("SELECT * FROM deleted").fetchall() == []


def old(path: Path) -> Path:
    """The same recording as version 1 wrote it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE deleted")
        connection.execute("PRAGMA user_version = 1")
    return path


def test_a_recording_of_version_1_is_readable_and_a_writer_migrates_it(tmp_path: Path) -> None:
    start = begun(1)
    path = old(recording(tmp_path, start, done(start)))
    before = path.read_bytes()
    assert ends(path) == {"c1": ("", "", None)}
    with Recording.open(path) as read:
        assert len(read.attempts(cluster="c1", resource=FOOS, key=start.request)) == 1
    copy(path, tmp_path / "copy.db", RowSelection(every=True))
    assert ends(tmp_path / "copy.db") == {"c1": ("", "", None)}
    path.chmod(0o400)
    assert ends(path) == {"c1": ("", "", None)}
    assert path.read_bytes() == before, "reading changed it"
    path.chmod(0o600)
    with Recording.open(path) as held:  # by a `trace -w` that started before
        note_deleted(path, GONE)
        assert [one.ended for one in held.clusters()] == [None]
    assert ends(path)["c1"] == ("ctrl", "kind", LATER)


def test_every_older_version_has_temporary_tables_for_reading() -> None:
    assert {name for name in sql.queries() if name.startswith("stand_in")} == {
        f"stand_in_{version}" for version in range(2, database.VERSION + 1)
    }
    assert max(sql.migrations()) == database.VERSION
