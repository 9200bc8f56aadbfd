"""The recorder with failing files: the run continues, writable values are recorded, and the others are counted."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.errors import CtrlError, NotRecorded, RecordingError
from kubectl_ctrl.history import database, sql, writer
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.history.writer import Recorder, prepare
from kubectl_ctrl.model.attempt import Attempt, Outcome
from kubectl_ctrl.model.record import to_recorded
from kubectl_ctrl.value import replace
from tests.history.made import FOOS, FOR_EVER, RUN, begun, done, owned, read_of, recording
from tests.rights import unprivileged
from tests.waiting import until


@contextmanager
def recorder(path: Path) -> Iterator[Recorder]:
    made = Recorder(path, RUN, clock=SystemClock(), caps=FOR_EVER)
    try:
        yield made
    finally:
        made.close()


def count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT count(*) FROM attempt WHERE outcome IS NOT NULL").fetchone()[0]
    return found


def attempt(number: int) -> Attempt:
    return done(begun(number))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def limit(monkeypatch: pytest.MonkeyPatch, pragma: str) -> list[str]:
    """Run the pragma of the returned list on every connection for writing."""
    pragmas, writable = [pragma], database.writable

    def limited(path: Path) -> sqlite3.Connection:
        connection = writable(path)
        connection.execute(f"PRAGMA {pragmas[0]}")
        return connection

    monkeypatch.setattr(database, "writable", limited)
    return pragmas


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry soon."""
    monkeypatch.setattr(writer, "_RETRY_AFTER", 0.02)
    monkeypatch.setattr(writer, "_CHECK_EVERY", 0.0)
    monkeypatch.setattr("kubectl_ctrl.history.disk._PATIENCE", 0.02)


def test_values_are_in_the_file_soon_and_during_the_run(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    with recorder(path) as made:
        made.observe(attempt(1))
        until(lambda: path.exists() and _readable(path) and count(path) == 1)
        with Recording.open(path) as read:
            [run] = read.runs()
            assert run.ended is None
    with Recording.open(path) as read:
        assert read.runs()[0].ended is not None


def _readable(path: Path) -> bool:
    try:
        Recording.open(path).__exit__(None, None, None)
    except CtrlError:
        return False
    return True


def test_s05_files_and_folders_are_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ctrl" / "history.db"
    before = os.umask(0)
    try:
        with recorder(path) as made:
            made.observe(attempt(1))
            files = [path, *(path.with_name(f"history.db{tail}") for tail in ("-wal", "-shm", ".lock"))]
            until(lambda: all(one.exists() for one in files))
            assert {one.name: stat.S_IMODE(one.stat().st_mode) for one in files} == {one.name: 0o600 for one in files}
            assert [stat.S_IMODE(one.stat().st_mode) for one in (path.parent, path.parent.parent)] == [0o700, 0o700]
    finally:
        os.umask(before)
    assert prepare(path).too_open == ""


@pytest.mark.parametrize(("mode", "folder"), [(0o644, 0o700), (0o600, 0o777)])
def test_s05_access_of_other_users_is_a_warning(tmp_path: Path, mode: int, folder: int) -> None:
    path = tmp_path / "state" / "history.db"
    assert prepare(path).too_open == ""
    path.chmod(mode)
    path.parent.chmod(folder)
    assert "other users can read or change" in prepare(path).too_open


def test_the_command_that_closes_a_file_quotes_its_path(tmp_path: Path) -> None:
    path = tmp_path / "Application Support" / "history.db"
    database.create(path)
    path.chmod(0o644)
    assert database.too_open(path).endswith(f": chmod go= '{path}'")


def _link(path: Path) -> None:
    path.with_name("elsewhere").write_bytes(b"")
    path.symlink_to(path.with_name("elsewhere"))


def _of_something_else(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (a)")
        connection.commit()


def _newer(path: Path) -> None:
    recording(path.parent)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {database.VERSION + 1}")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.mkdir(), "is a folder"),
        (_link, "is a symbolic link"),
        (os.mkfifo, "is not a regular file"),
        (
            lambda path: path.write_text("This is no database, and long enough to be told from one." * 20),
            "not a recording",
        ),
        (_of_something_else, "a database, but not a recording"),
        (_newer, "created by a newer kubectl-ctrl"),
    ],
)
def test_f50_an_unusable_file_is_reported_once_and_not_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, impatient: None, spoil: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "history.db"
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(RecordingError, match=said) as raised:
        prepare(path)
    assert raised.value.next_step
    assert str(path) in raised.value.message
    with recorder(path) as made:
        for number in range(1, 50):
            made.observe(attempt(number))
        until(lambda: bool(warnings(caplog)))
    assert [said in text for text in warnings(caplog)] == [True]
    if path.is_file():
        assert path.read_bytes() == before
    with pytest.raises(RecordingError):
        Recording.open(path)


def test_an_impossible_folder_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "history.db"
    with recorder(path) as made:
        made.observe(attempt(1))
    assert len(warnings(caplog)) == 1
    assert "Not a directory" in warnings(caplog)[0] or "File exists" in warnings(caplog)[0]


def test_without_a_file_nothing_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(NotRecorded):
        Recording.open(tmp_path / "history.db")
    assert not (tmp_path / "history.db").exists()


def test_f50_a_full_disk_is_reported_once_and_recording_resumes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pragma = tmp_path / "history.db", limit(monkeypatch, "max_page_count = 60")
    sent = []
    with recorder(path) as made:
        for number in range(1, 100):
            sent.append(replace(attempt(number), traceback="x" * 2000))
            made.observe(sent[-1])
        until(lambda: bool(warnings(caplog)))
        assert ["the disk is full" in text for text in warnings(caplog)] == [True]
        pragma[0] = "max_page_count = 100000"
        until(lambda: count(path) == 99)
    assert warnings(caplog)[1:] == ["Recording resumed."]
    with Recording.open(path) as read:
        assert [one.id for one in read.attempts(cluster="c1", resource=FOOS, key=sent[0].start.request)] == [
            one.id for one in sent
        ]
        assert read.runs()[0].gaps == 0


def test_f50_values_lost_to_a_full_disk_are_counted_at_the_end(
    tmp_path: Path, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.db"
    limit(monkeypatch, "max_page_count = 60")
    with recorder(path) as made:
        for number in range(1, 100):
            made.observe(replace(attempt(number), traceback="x" * 2000))
    with Recording.open(path) as read:
        [run] = read.runs()
    assert run.ended is not None
    assert run.gaps == 99 - count(path) > 0


def test_f50_a_read_only_database_is_reported_once_and_values_wait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, pragma = recording(tmp_path), limit(monkeypatch, "query_only = ON")
    with recorder(path) as made:
        for number in range(1, 20):
            made.observe(attempt(number))
        until(lambda: bool(warnings(caplog)))
        [said] = warnings(caplog)
        assert f"{str(path)!r} cannot be used: it cannot be written" in said
        assert said.endswith("Next: make the file and its folder writable")
        pragma[0] = "query_only = OFF"
        until(lambda: count(path) == 19)
    assert warnings(caplog)[1:] == ["Recording resumed."]


def test_f50_attempts_that_wait_for_the_file_keep_their_order(
    tmp_path: Path, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the file fails while the first attempt has ended and the second one of that object has begun."""
    path, pragma, tries = recording(tmp_path), limit(monkeypatch, "query_only = ON"), list[Path]()
    limited = database.writable

    def counted(where: Path) -> sqlite3.Connection:
        tries.append(where)
        return limited(where)

    monkeypatch.setattr(database, "writable", counted)
    with recorder(path) as made:
        made.observe(attempt(1))
        made.observe(begun(2))
        before = len(tries)
        until(lambda: len(tries) > before + 3)
        pragma[0] = "query_only = OFF"
        made.observe(attempt(2))
        until(lambda: count(path) == 2)
    with Recording.open(path) as read:
        found = read.attempts(cluster="c1", resource=FOOS, key=attempt(1).start.request)
        assert [one.id for one in found] == ["r7f3-1", "r7f3-2"]


def test_the_queue_is_bounded_and_dropped_values_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_MOST_WAITING", 10)
    path = tmp_path / "history.db"
    path.mkdir()
    with recorder(path) as made:
        until(lambda: bool(warnings(caplog)))
        for number in range(1, 31):
            made.observe(attempt(number))
        until(lambda: made.gaps == 20)
        path.rmdir()
        until(lambda: path.is_file() and _readable(path) and count(path) == 10)
        made.observe(attempt(31))
    assert warnings(caplog)[1:] == ["Recording resumed; 20 values are missing."]
    with Recording.open(path) as read:
        assert read.runs()[0].gaps == 20
        assert read.attempt("r7f3-31").verdict is not None


def test_f50_a_held_lock_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture, impatient: None) -> None:
    path = recording(tmp_path)
    with path.with_name("history.db.lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with recorder(path) as made:
            made.observe(attempt(1))
            until(lambda: bool(warnings(caplog)))
            assert "another process has locked it" in warnings(caplog)[0]
            fcntl.flock(held, fcntl.LOCK_UN)
            until(lambda: count(path) == 1)
    assert warnings(caplog)[1:] == ["Recording resumed."]


def test_f50_a_database_locked_by_another_program_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_BUSY_MS", 20)
    path = recording(tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with recorder(path) as made:
            made.observe(attempt(1))
            until(lambda: bool(warnings(caplog)))
            assert "another process has locked it" in warnings(caplog)[0]
            other.execute("COMMIT")
            until(lambda: count(path) == 1)


def test_a_deleted_file_is_created_again(tmp_path: Path, impatient: None) -> None:
    path = tmp_path / "history.db"
    with recorder(path) as made:
        made.observe(attempt(1))
        until(lambda: path.exists() and _readable(path) and count(path) == 1)
        for one in tmp_path.glob("history.db*"):
            one.unlink()

        def again() -> bool:
            made.observe(attempt(2))
            return path.exists() and _readable(path) and count(path) >= 1

        until(again)
    with Recording.open(path) as read:
        assert read.attempt("r7f3-2").verdict is not None


def test_a_value_that_cannot_be_written_is_dropped_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = replace(attempt(2), took={"no": "number"})  # type: ignore[arg-type]
    path = recording_of(tmp_path, attempt(1), bad, attempt(3))
    assert warnings(caplog) == ["A value could not be recorded and is omitted."]
    with Recording.open(path) as read:
        assert [one.id for one in read.attempts(cluster="c1", resource=FOOS, key=bad.start.request)] == [
            "r7f3-1",
            "r7f3-3",
        ]
        assert read.runs()[0].gaps == 1


def recording_of(folder: Path, *values: Attempt) -> Path:
    path = folder / "history.db"
    with recorder(path) as made:
        for value in values:
            made.observe(value)
    return path


@pytest.mark.parametrize("seed", range(3))
def test_f50_a_corrupt_file_harms_neither_run_nor_reader(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, impatient: None, seed: int
) -> None:
    rng, folder = Random(seed), tmp_path / "whole"
    folder.mkdir()
    objects = [owned("Foo", "web", "u-web", str(version), text="x" * 200) for version in range(60)]
    values = [done(begun(number), reads=(read_of(objects[number]),)) for number in range(1, 60)]
    whole = recording_of(folder, *values)
    content = whole.read_bytes()
    assert not whole.with_name("history.db-wal").exists()
    refused = 0
    for page in range(0, len(content), 4096):
        path = tmp_path / f"{page}.db"
        path.write_bytes(content[:page] + rng.randbytes(4096) + content[page + 4096 :])
        try:
            with Recording.open(path) as read:
                read.clusters(), read.known(), read.moments()
                for one in read.attempts(cluster="c1", resource=FOOS, key=values[0].start.request):
                    read.replayable(one.id)
                read.subjects(cluster="c1")
        except (RecordingError, NotRecorded):
            refused += 1
        with recorder(path) as made:
            made.observe(done(begun(61), outcome=Outcome.RETRY))
        assert path.exists()
        path.unlink()
    assert refused > 3, "the test damages nothing"
    assert not [
        record for record in caplog.records if record.levelno >= logging.ERROR and "left out" not in record.message
    ]


def test_f50_an_older_or_empty_recording_is_migrated(tmp_path: Path) -> None:
    """All older versions migrate to the same schema."""
    fresh = _schema_of(tmp_path / "fresh.db", 0)
    for version in sql.migrations():
        assert _schema_of(tmp_path / f"{version}.db", version) == fresh
    (tmp_path / "empty.db").touch(0o600)
    prepare(tmp_path / "empty.db")
    assert _schema_of(tmp_path / "empty.db", 0) == fresh


def _schema_of(path: Path, version: int) -> tuple[object, ...]:
    with closing(sqlite3.connect(path)) as connection:
        if not path.stat().st_size:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        for number, script in sql.migrations().items():
            if number <= version:
                connection.executescript(script)
    prepare(path)
    with closing(sqlite3.connect(path)) as connection:
        pragmas = [
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("application_id", "user_version", "auto_vacuum", "journal_mode")
        ]
        tables = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        return (*pragmas, *tables)


def test_the_names_of_recorded_runs_are_not_used_again(tmp_path: Path) -> None:
    recording(tmp_path)
    recording(tmp_path, run=replace(RUN, id="rabc"))
    assert prepare(tmp_path / "history.db").runs == {"r7f3", "rabc"}


def test_a_recording_in_a_read_only_folder_is_readable(tmp_path: Path) -> None:
    """As on a read-only medium: without a WAL, and with the WAL of a killed process."""
    path = recording_of(tmp_path, attempt(1))
    with closing(database.writable(path)) as connection:
        connection.execute("UPDATE about SET uid = 'u-9'")
        copies = tmp_path / "left"
        copies.mkdir()
        for one in tmp_path.glob("history.db*"):
            (copies / one.name).write_bytes(one.read_bytes())
    (copies / "history.db-shm").unlink()
    assert (copies / "history.db-wal").stat().st_size
    for folder in (tmp_path, copies):
        for one in (*folder.glob("history.db*"), folder):
            one.chmod(0o500 if one.is_dir() else 0o400)
        with unprivileged(), Recording.open(folder / "history.db") as read:
            assert read.attempt("r7f3-1").uid == "u-9"
        folder.chmod(0o700)


def test_the_told_value_is_the_recorded_value(tmp_path: Path) -> None:
    path = recording_of(tmp_path, attempt(1))
    with Recording.open(path) as read:
        assert read.attempt("r7f3-1") == to_recorded(attempt(1))


def test_a_file_that_becomes_a_recording_during_the_check_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.db"
    with closing(sqlite3.connect(path)) as empty:
        empty.execute("PRAGMA journal_mode = WAL")
    said: list[str] = []

    class Slow(sqlite3.Connection):
        """Another process creates the schema between two statements of the check."""

        def execute(self, statement: str, /, *values: Any) -> sqlite3.Cursor:
            said.append(statement)
            if said.count("PRAGMA user_version") == 1 and statement.startswith("SELECT 1 FROM sqlite_master"):
                monkeypatch.undo()
                database.writable(path).close()
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))
    with pytest.raises(NotRecorded):
        database.readable(path)
    database.readable(path).close()
