"""Writes the recording of a run, on a thread of its own.

The event loop only appends to a queue. The thread encodes and commits the new values within 100 ms, in one transaction,
holding the write lock. An error is logged once and the commit is retried; the run continues. The queue is bounded:
further values are dropped and counted, and the count is recorded as the gaps of the run.

kill -9 loses the values of the last 100 ms; the rest is committed. An attempt that was written when it began has no end
then, and readers report it as interrupted because the process of its run is gone.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import RecordingError
from kubectl_ctrl.history import database
from kubectl_ctrl.history.disk import WriteLock
from kubectl_ctrl.history.pruning import CapEnforcer, Caps
from kubectl_ctrl.history.rows import RowWriter
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.model.attempt import Attempt, AttemptStarted, CallProgress, Observed
from kubectl_ctrl.model.record import RecordedRun, RecordedType
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)

# The delay before a commit. The start of an attempt may wait twice, for its end; with the commit this is below 100 ms.
_GATHER = 0.04
# The length of the queue; further values are dropped.
_MOST_WAITING = 10_000
# Values in one transaction, so that other processes can write between two.
_MOST_AT_ONCE = 500
# The delay after an error of the file.
_RETRY_AFTER = 5.0
# The interval of checks that the file still exists and is within its caps.
_CHECK_EVERY = 10.0
# The time that a stopping run waits for the last commit.
_CLOSE_WITHIN = 5.0

_DEFAULT_CAPS = Caps()


class File(Value, kw_only=True):
    """A writable recording."""

    runs: frozenset[str]  # names
    clusters: Mapping[tuple[str, str], tuple[str, ...]]  # the keys by server and hash of its CA, newest first
    too_open: str  # a warning if other users can read or change it


def prepare(path: Path) -> File:
    """Create the file if it is missing, and check that it is writable; raises RecordingError."""
    database.create(path)
    lock = WriteLock(path)
    try:
        with database.mapped(path), lock, closing(database.writable(path)) as connection:
            runs = frozenset(name for (name,) in connection.execute(query("name_runs")))
            found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
            for key, document in connection.execute(query("place_runs")):
                run = database.loaded(document)
                found[run["server"], run.get("ca", "")][key] = None
            clusters = {place: tuple(keys) for place, keys in found.items()}
            return File(runs=runs, clusters=clusters, too_open=database.too_open(path))
    finally:
        lock.close()


class Recorder:
    """The recording of one run. The run calls `observe` with every value; `close` it after the last one."""

    def __init__(self, path: Path, run: RecordedRun, *, clock: Clock, caps: Caps = _DEFAULT_CAPS) -> None:
        self.path = path
        self.gaps = 0  # dropped values
        self._waiting: deque[Observed] = deque()
        self._known: deque[RecordedType] = deque()
        self._held: list[Observed] = []  # starts of attempts that wait for their end
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._clock = clock
        self._session = _Session(path, run, caps)
        self._failing = False
        self._checked = clock.elapsed()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    # Called by the event loop.

    def observe(self, value: Observed) -> None:
        """Append the value; never waits."""
        if len(self._waiting) >= _MOST_WAITING:
            self.gaps += 1
            return
        self._waiting.append(value)
        if not self._wake.is_set():
            self._wake.set()

    def know(self, known: Iterable[RecordedType]) -> None:
        """Record the names of resource types."""
        self._known.extend(known)
        self._wake.set()

    def close(self) -> None:
        """Write the remaining values and the end of the run, within a few seconds."""
        self._closing.set()
        self._wake.set()
        self._thread.join(_CLOSE_WITHIN)

    def __repr__(self) -> str:
        return f"Recorder({self._session!r}, waiting={len(self._waiting)}, gaps={self.gaps})"

    # On the writer's thread.

    def _work(self) -> None:
        self._write([])
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(_GATHER)
            self._wake.clear()
            if not self._drain():
                self._closing.wait(_RETRY_AFTER)
                self._wake.set()
            self._check()
        if not self._drain(last=True):  # on a full disk the end of the run may still fit
            self.gaps += len(self._waiting)
            self._waiting.clear()
        self._write([], ended=self._clock.now())
        self._session.close()

    def _drain(self, *, last: bool = False) -> bool:
        """Write the queue; False if the file is not writable now, and the values wait."""
        values = [*self._held, *(self._waiting.popleft() for _ in range(len(self._waiting)))]
        ready, self._held = _parted(values, [] if last else values[len(self._held) :])
        while ready or self._known:
            left = self._write(ready[:_MOST_AT_ONCE])
            if left is not None:
                # Starts go behind ended attempts: the rows of an object must be in the order of its attempts.
                self._waiting.extendleft(reversed([*left, *ready[_MOST_AT_ONCE:], *self._held]))
                self._held = []
                return False
            ready = ready[_MOST_AT_ONCE:]
        if self._held:
            self._wake.set()
        return True

    def _write(self, values: Sequence[Observed], *, ended: float | None = None) -> Sequence[Observed] | None:
        """One transaction; returns the values that could not be written now, None if all are done."""
        known = list(self._known)
        try:
            self._session.commit(values, known, seen=self._clock.now(), gaps=self.gaps, ended=ended)
        except (sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError) as error:
            return self._one_by_one(values, error)  # an error of a value, not of the file
        except (RecordingError, OSError, sqlite3.Error, UnicodeDecodeError) as error:
            self._failed(error)
            return values
        except Exception as error:  # noqa: BLE001  # a value that cannot be written must not stop the recording
            return self._one_by_one(values, error)
        for _ in known:
            self._known.popleft()
        if self._failing:
            self._failing = False
            missing = f"; {self.gaps} values are missing" if self.gaps else ""
            extra = {"action": "recording.resumed", "file": str(self.path)}
            _log.warning("Recording resumed%s.", missing, extra=extra)
        return None

    def _one_by_one(self, values: Sequence[Observed], error: Exception) -> Sequence[Observed] | None:
        """Write them one at a time, and drop the one that cannot be written."""
        if len(values) > 1:
            for at in range(len(values)):
                if self._write(values[at : at + 1]) is not None:
                    return values[at:]
            return None
        self.gaps += len(values)
        self._known.clear()
        _log.error(
            "A value could not be recorded and is omitted.",
            extra={"action": "recording.dropped", "value": type(values[0]).__name__ if values else ""},
            exc_info=error,
        )
        return None

    def _failed(self, error: Exception) -> None:
        self._session.disconnect()
        if not self._failing:
            self._failing = True
            shown = error if isinstance(error, RecordingError) else database.unusable(self.path, error)
            _log.warning(
                "Recording stopped: %s The controllers continue, and recording is retried. Next: %s",
                shown.message,
                shown.next_step,
                extra={"action": "recording.failed", "file": str(self.path)},
            )

    def _check(self) -> None:
        """From time to time, check that the file still exists, and prune it."""
        if self._clock.elapsed() - self._checked < _CHECK_EVERY:
            return
        self._checked = self._clock.elapsed()
        try:
            self._session.check()
            while self._session.prune(self._clock.now()) and not self._closing.is_set() and self._drain():
                pass
        except (RecordingError, OSError, sqlite3.Error) as error:
            self._failed(error)


class _Session:
    """The connection and the objects on it, opened when needed and again after an error."""

    def __init__(self, path: Path, run: RecordedRun, caps: Caps) -> None:
        self._path = path
        self._run = run
        self._caps = caps
        self._lock = WriteLock(path)
        self._connection: sqlite3.Connection | None = None
        self._store: RowWriter | None = None
        self._keeper: CapEnforcer | None = None
        self._place = (0, 0)  # device and inode of the open file

    def commit(
        self, values: Sequence[Observed], known: Iterable[RecordedType], *, seen: float, gaps: int, ended: float | None
    ) -> None:
        if self._connection is None:
            database.create(self._path)  # the lock lies beside it
        with self._lock:
            connection, store, _ = self._opened()
            try:
                with database.transaction(connection):
                    store.know(known)
                    store.put(values)
                    store.touch(seen=seen, gaps=gaps, ended=ended)
            except BaseException:
                store.forget()
                raise

    def prune(self, now: float) -> bool:
        """One step of pruning; True if there are more."""
        with self._lock:
            return self._opened()[2].step(now)

    def check(self) -> None:
        """Disconnect from a file that was moved or deleted: no reader would see what is written to it."""
        try:
            there = _place(self._path)
        except FileNotFoundError:
            there = (0, 0)
        if there != self._place:
            self.disconnect()
            self._lock.close()

    def _opened(self) -> tuple[sqlite3.Connection, RowWriter, CapEnforcer]:
        if self._connection is None or self._store is None or self._keeper is None:
            self._connection = database.writable(self._path)
            self._store = RowWriter(self._connection, self._run)
            self._keeper = CapEnforcer(self._connection, self._caps)
            self._place = _place(self._path)
        return self._connection, self._store, self._keeper

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._store = self._keeper = None

    def close(self) -> None:
        try:
            with self._lock:  # the last connection to be closed makes a checkpoint
                self.disconnect()
        except (RecordingError, OSError, sqlite3.Error):
            self.disconnect()
        self._lock.close()

    def __repr__(self) -> str:
        return f"{self._run.id}, {'open' if self._connection else 'closed'}"


def _parted(values: list[Observed], young: list[Observed]) -> tuple[list[Observed], list[Observed]]:
    """The values to write now, and those that may wait: most attempts end soon, and their end contains their start."""
    ended = {value.id for value in values if isinstance(value, Attempt)}
    held = {}
    for value in young:
        begun = (
            value.id
            if isinstance(value, AttemptStarted)
            else value.attempt
            if isinstance(value, CallProgress)
            else None
        )
        if begun is not None and begun not in ended:
            held[id(value)] = value
    return [value for value in values if id(value) not in held], list(held.values())


def _place(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
