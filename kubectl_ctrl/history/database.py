"""The file of a recording: created with private modes, opened for writing or reading, and checked before it is used.

Every error of the file becomes a RecordingError here: with the path, the reason, and the next step.
"""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from kubectl_ctrl import files
from kubectl_ctrl.errors import NotRecorded, RecordingError
from kubectl_ctrl.history import sql
from kubectl_ctrl.history.disk import on_network
from kubectl_ctrl.model.suggestions import command, ctrl

VERSION = 2
APPLICATION = 1801680498  # "kctr"

# Writers wait for each other at the lock file, so inside SQLite they wait only for the checkpoint of a reader.
_BUSY_MS = 1000


class Damaged(Exception):
    """The document read is not the document written: the disk or another program changed it."""


def loaded(document: bytes | str) -> Any:
    """The JSON of a document, without values of the model: completion has no time to load those."""
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError:
        return json.loads(document)  # it accepts what orjson could not write: invalid Unicode and large numbers


def create(path: Path) -> None:
    """Create the file and its folder if they are missing, readable by their owner alone."""
    try:
        _make_folder(path.parent)
        files.create(path)
    except FileExistsError:
        return
    except OSError as error:
        raise unusable(path, error) from error


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True, mode=0o700)


def check(path: Path) -> None:
    """Raise for a symbolic link, which may point to another user's file, a folder or a device."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise unusable(path, error) from error
    if stat.S_ISLNK(mode):
        raise RecordingError(
            f"The recording {str(path)!r} is a symbolic link, which is not followed.",
            next_step="use the file that it points to",
        )
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise RecordingError(f"The recording {str(path)!r} is {what}.", next_step="name a file")


def too_open(path: Path) -> str:
    """A warning if other users can read or change the file or its folder, else ""."""
    for one, most in ((path, 0o600), (path.parent, 0o755)):
        mode = stat.S_IMODE(one.stat().st_mode)
        if mode & ~most & 0o7777 & ~stat.S_ISVTX:
            warning = f"{str(one)!r} has mode {mode:04o}, so other users can read or change the recording"
            return f"{warning}: {command('chmod', 'go=', one)}"
    return ""


def writable(path: Path) -> sqlite3.Connection:
    """A connection for writing; an empty or older file is migrated to the schema of this version."""
    create(path)
    check(path)
    with mapped(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000, check_same_thread=False)
    try:
        with mapped(path):
            if _version(connection, path) == 0:
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # SQLite ignores it once there is a table
            # Readers and the writer share the index of a WAL in memory, which no network file system can do.
            if on_network(path):
                connection.execute("PRAGMA journal_mode = TRUNCATE")
            else:
                # With NORMAL a commit survives kill -9, as the page cache has it; a power failure may undo the last
                # commits, and never corrupts the file.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA temp_store = MEMORY")
            _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the schema in the file, 0 for an empty one."""
    with _snapshot(connection):
        application: int = connection.execute("PRAGMA application_id").fetchone()[0]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if (application, version) == (0, 0) and empty:
        return 0
    if application != APPLICATION:
        raise RecordingError(
            f"The file {str(path)!r} is a database, but not a recording.", next_step="choose another file"
        )
    if version > VERSION:
        raise RecordingError(
            f"The recording {str(path)!r} was created by a newer kubectl-ctrl (its schema is {version}; this version "
            f"supports {VERSION}).",
            next_step="use that version, or record to another file with --record FILE",
        )
    return version


@contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """The statements of the block see one state of the file, also while another process creates the schema."""
    within = connection.in_transaction
    if not within:
        connection.execute("BEGIN")
    try:
        yield
    finally:
        if not within and connection.in_transaction:
            connection.execute("ROLLBACK")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Migrate to the schema of this version, in one transaction."""
    with transaction(connection):
        version = _version(connection, path)  # again: another process may have migrated before the transaction
        if version == 0:
            _run(connection, sql.schema())
            return
        for number, script in sorted(sql.migrations().items()):
            if number > version:
                _run(connection, script)


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Run it statement by statement: `executescript` would commit the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def readable(path: Path) -> sqlite3.Connection:
    """A connection for reading, also of an older version; NotRecorded if there is no file."""
    with mapped(path):  # an unreadable folder is an error, not a missing file
        there = path.is_symlink() or path.exists()
    if not there:
        raise NotRecorded(
            f"There is no recording yet: {str(path)!r} does not exist.",
            next_step="create one with kubectl ctrl run CONTROLLER",
        )
    check(path)
    connection = _opened(path)
    try:
        with mapped(path):
            version = _version(connection, path)
    except BaseException:
        connection.close()
        raise
    if not version:
        connection.close()
        raise NotRecorded(
            f"The recording {str(path)!r} is empty.", next_step="create one with kubectl ctrl run CONTROLLER"
        )
    with mapped(path):  # temporary tables in place of those that an older version does not have
        for missing in range(version + 1, VERSION + 1):
            connection.execute(sql.query(f"stand_in_{missing}"))
    return connection


def _uri(path: Path) -> str:
    # Since Python 3.14, Path.as_uri loads urllib.request and with it ssl: too slow for shell completion.
    return f"file://{quote(bytes(path.absolute()))}"


def _opened(path: Path) -> sqlite3.Connection:
    with mapped(path):
        try:
            return _tried(f"{_uri(path)}?mode=ro")
        except sqlite3.OperationalError as error:
            # Even a reader writes the -shm file beside a WAL. In a folder without that right SQLite reads the file only
            # as immutable, without its WAL: right if the WAL is empty, otherwise a copy of both is read. All other
            # errors are raised: a reader of an immutable file would never see the commits of a running writer.
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            log = path.with_name(path.name + "-wal")
            if log.exists() and log.stat().st_size:
                return _copied(path, log)
            return _tried(f"{_uri(path)}?mode=ro&immutable=1")


def _copied(*files: Path) -> sqlite3.Connection:
    """A connection to a copy that is deleted at once; its disk space is freed when the connection is closed."""
    # Rarely needed, and slow to load.
    import shutil  # noqa: PLC0415
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    with TemporaryDirectory(prefix="kubectl-ctrl-") as folder:
        copies = [Path(shutil.copyfile(one, Path(folder) / one.name)) for one in files]
        return _tried(_uri(copies[0]))


def _tried(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_MS / 1000)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


# SQLite quotes a corrupt schema in its message, and Python then fails to decode the message.
_DAMAGED = (Damaged, UnicodeDecodeError)


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as RecordingError."""
    try:
        yield
    except (sqlite3.Error, OSError, *_DAMAGED) as error:
        raise unusable(path, error) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the changes of the block, or none of them if it raises."""
    # IMMEDIATE takes the write lock now: a transaction that reads first and then writes may find its snapshot outdated.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself when the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


_ADVICE = {
    sqlite3.SQLITE_FULL: ("the disk is full", "free disk space"),
    sqlite3.SQLITE_READONLY: ("it cannot be written", "make the file and its folder writable"),
    sqlite3.SQLITE_PERM: ("permission denied", "make the file and its folder readable and writable"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "make the file and its folder readable and writable"),
    sqlite3.SQLITE_BUSY: ("another process has locked it", "stop the process that has it open"),
    sqlite3.SQLITE_LOCKED: ("another process has locked it", "stop the process that has it open"),
    sqlite3.SQLITE_NOTADB: ("it is not a recording, or it is corrupt", ""),
    sqlite3.SQLITE_CORRUPT: ("it is corrupt", ""),
    sqlite3.SQLITE_IOERR: ("reading or writing it failed", "check its disk"),
}


def is_damage(error: BaseException | None) -> bool:
    """The error shows that the content of the file is corrupt."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, sqlite3.OperationalError) and code in (0, sqlite3.SQLITE_ERROR):
        return True  # invalid UTF-8, which has no code, or a changed schema
    return isinstance(error, _DAMAGED) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def unusable(path: Path, error: Exception) -> RecordingError:
    if isinstance(error, OSError):
        return RecordingError(
            f"The recording {str(path)!r} cannot be used: {error.strerror or error}.",
            next_step=files.remedy(error) or "make the file and its folder readable and writable",
        )
    text = "it is corrupt" if is_damage(error) else str(error)
    reason, advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, (text, ""))
    if is_damage(error):
        folder = path.parent / "damaged"
        move = f"{command('mkdir', folder)}; mv {command(path)}* {command(folder)}"
        export = ctrl("record", "export", "--all", f"--from={folder / path.name}", "--to=saved.db")
        advice = f"{move}   (the next run creates a new one); to save its readable part: {export}"
    return RecordingError(f"The recording {str(path)!r} cannot be used: {reason}.", next_step=advice)
