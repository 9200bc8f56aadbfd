"""The file of a recording: made with the right modes, opened for writing or for reading, and judged before it is used.

Every way in which a file cannot be used ends as RecordingError here: with the path, the reason, and what to do.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from kubectl_ctrl import files
from kubectl_ctrl.errors import NotRecorded, RecordingError
from kubectl_ctrl.history import sql
from kubectl_ctrl.history.disk import on_network
from kubectl_ctrl.history.raw_json import Damaged
from kubectl_ctrl.model.suggestions import command, ctrl

VERSION = 2
APPLICATION = 1801680498  # "kctr"

# Waited for inside SQLite; writers wait for each other at our own lock, so that this is for readers' checkpoints only.
_BUSY_MS = 1000


def create(path: Path) -> None:
    """Make the file and its folder, if they are not there, readable by their owner alone."""
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
    """Raise for what is not to be opened at all: somebody else's file behind a link, a folder, a device."""
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
    """What others may do with the file or its folder, as a sentence; "" when nothing."""
    for one, most in ((path, 0o600), (path.parent, 0o755)):
        mode = stat.S_IMODE(one.stat().st_mode)
        if mode & ~most & 0o7777 & ~stat.S_ISVTX:
            told = f"{str(one)!r} has mode {mode:04o}, so other users can read or change the recording"
            return f"{told}: {command('chmod', 'go=', one)}"
    return ""


def writable(path: Path) -> sqlite3.Connection:
    """A connection that writes, to a file of this version's schema; an empty or older file becomes one."""
    create(path)
    check(path)
    with mapped(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000, check_same_thread=False)
    try:
        with mapped(path):
            _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = _judged(connection, path)
    if version == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # A WAL needs memory that all its users share, which a network file system does not have.
    if on_network(path):
        connection.execute("PRAGMA journal_mode = TRUNCATE")
    else:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA temp_store = MEMORY")
    _migrate(connection, path)


def _judged(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the schema in the file, 0 for an empty one."""
    with _one_moment(connection):
        application: int = connection.execute("PRAGMA application_id").fetchone()[0]
        version: int = connection.execute("PRAGMA user_version").fetchone()[0]
        empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    if (application, version) == (0, 0) and empty:
        return 0
    if application != APPLICATION:
        raise RecordingError(
            f"The file {str(path)!r} is a database, but not a recording.", next_step=("choose another file")
        )
    if version > VERSION:
        raise RecordingError(
            f"The recording {str(path)!r} was created by a newer kubectl-ctrl (its schema is {version}; this version "
            f"supports {VERSION}).",
            next_step="use that version, or record to another file with --record FILE",
        )
    return version


@contextmanager
def _one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """What the block reads was all there at once, though another process makes the schema meanwhile."""
    within = connection.in_transaction
    if not within:
        connection.execute("BEGIN")
    try:
        yield
    finally:
        if not within and connection.in_transaction:
            connection.execute("ROLLBACK")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """To the schema of this version, in one transaction; whoever comes second finds it done."""
    with transaction(connection):
        version = _judged(connection, path)
        if version == 0:
            _run(connection, sql.schema())
            return
        for number, script in sorted(sql.migrations().items()):
            if number > version:
                _run(connection, script)


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Statement by statement: `executescript` would commit the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def readable(path: Path) -> sqlite3.Connection:
    """A connection that only reads, also from an older version; NotRecorded when there is no file."""
    with mapped(path):  # a folder that may not be looked into does not say whether there is a file
        there = path.is_symlink() or path.exists()
    if not there:
        raise NotRecorded(
            f"There is no recording yet: {str(path)!r} does not exist.",
            next_step=("create one with kubectl ctrl run CONTROLLER"),
        )
    check(path)
    connection = _opened(path)
    try:
        with mapped(path):
            version = _judged(connection, path)
    except BaseException:
        connection.close()
        raise
    if not version:
        connection.close()
        raise NotRecorded(
            f"The recording {str(path)!r} is empty.", next_step=("create one with kubectl ctrl run CONTROLLER")
        )
    with mapped(path):
        for missing in range(version + 1, VERSION + 1):
            connection.execute(sql.query(f"stand_in_{missing}"))
    return connection


def _uri(path: Path) -> str:
    # Path.as_uri loads urllib.request, and ssl with it, since Python 3.14: too slow while a shell waits for candidates.
    return f"file://{quote(bytes(path.absolute()))}"


def _opened(path: Path) -> sqlite3.Connection:
    with mapped(path):
        try:
            return _tried(f"{_uri(path)}?mode=ro")
        except sqlite3.OperationalError as error:
            # Without the right to write beside the file its WAL cannot be used. Every other error stays one: to an
            # immutable file nothing is ever added, so the reader of a busy one would see none of what comes.
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            log = path.with_name(path.name + "-wal")
            if log.exists() and log.stat().st_size:
                return _copied(path, log)
            return _tried(f"{_uri(path)}?mode=ro&immutable=1")


def _copied(*files: Path) -> sqlite3.Connection:
    """A connection to a copy, which is gone from its folder at once and from the disk with the connection."""
    # Seldom needed, and what answers at once cannot wait for it.
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


# SQLite quotes a damaged schema in its message, and Python then fails to read the message.
_DAMAGED = (Damaged, UnicodeDecodeError)


@contextmanager
def mapped(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system, as ours."""
    try:
        yield
    except (sqlite3.Error, OSError, *_DAMAGED) as error:
        raise unusable(path, error) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """The block's changes, all or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has ended it already.
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
    """Whether the file is not as it was left there."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if isinstance(error, sqlite3.OperationalError) and code in (0, sqlite3.SQLITE_ERROR):
        return True  # text that is no UTF-8, which has no code, and a schema that our statements do not fit
    return isinstance(error, _DAMAGED) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def unusable(path: Path, error: Exception) -> RecordingError:
    """Why a recording cannot be used, and what to do about it."""
    if isinstance(error, OSError):
        return RecordingError(
            f"The recording {str(path)!r} cannot be used: {error.strerror or error}.",
            next_step=files.remedy(error) or "make the file and its folder readable and writable",
        )
    told = "it is corrupt" if is_damage(error) else str(error)
    reason, advice = _ADVICE.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, (told, ""))
    if is_damage(error):
        advice = _rescue(path)
    return RecordingError(f"The recording {str(path)!r} cannot be used: {reason}.", next_step=advice)


def _rescue(path: Path) -> str:
    """How to move a damaged recording away, with what lies beside it, and save what can be read."""
    folder = path.parent / "damaged"
    away = f"{command('mkdir', folder)}; mv {command(path)}* {command(folder)}"
    saved = ctrl("record", "export", "--all", f"--from={folder / path.name}", "--to=saved.db")
    return f"{away}   (the next run creates a new one); to save its readable part: {saved}"
