"""The one writer of a run's recording: takes what is observed on the loop, and writes it on a thread of its own.

On the loop nothing but a list grows. The thread encodes and commits what has come within 100 ms, in one transaction,
while it holds the lock beside the file. Whatever goes wrong there is said once and tried again; the run goes on. What
waits meanwhile is bounded: beyond that it is dropped, counted, and the count is recorded as the run's gaps.
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
from kubectl_ctrl.history.pruning import Caps, Keeper
from kubectl_ctrl.history.raw_json import loaded
from kubectl_ctrl.history.rows import Store
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.model.attempt import Attempt, Called, Observed, Started
from kubectl_ctrl.model.record import Known, Run
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)

# How long it gathers before it writes, and how much longer beginnings wait for their end; with the writing itself it
# stays within 100 ms.
_GATHER = 0.04
# So much may wait to be written; what comes beyond is dropped and counted.
_MOST_WAITING = 10_000
# In one transaction, so that others who write to the same file come in between.
_MOST_AT_ONCE = 500
# After something went wrong with the file.
_TRY_AGAIN = 5.0
# How often the caps are looked at, and whether the file is still there.
_LOOK_EVERY = 10.0
# How long an ending run waits for what is still to be written.
_LAST_WORDS = 5.0

_DEFAULT_CAPS = Caps()


class File(Value, kw_only=True):
    """A file that can be recorded to."""

    runs: frozenset[str]  # names of the runs in it
    clusters: Mapping[tuple[str, str], tuple[str, ...]]  # the keys by server and hash of its CA, newest first
    too_open: str  # what others may do with it, as a sentence; "" when nothing


def prepare(path: Path) -> File:
    """Make the file if there is none, and look whether it can be written; RecordingError when not."""
    database.create(path)
    lock = WriteLock(path)
    try:
        with database.mapped(path), lock, closing(database.writable(path)) as connection:
            runs = frozenset(name for (name,) in connection.execute(query("name_runs")))
            return File(runs=runs, clusters=_clusters(connection), too_open=database.too_open(path))
    finally:
        lock.close()


def _clusters(connection: sqlite3.Connection) -> dict[tuple[str, str], tuple[str, ...]]:
    found: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for key, document in connection.execute(query("place_runs")):
        run = loaded(document)
        found[run["server"], run.get("ca", "")][key] = None
    return {place: tuple(keys) for place, keys in found.items()}


class Recorder:
    """One run's recording. Give `observe` to the run; `close` it after the run has told everything."""

    def __init__(self, path: Path, run: Run, *, clock: Clock, caps: Caps = _DEFAULT_CAPS) -> None:
        self.path = path
        self.gaps = 0  # values that were dropped
        self._waiting: deque[Observed] = deque()
        self._known: deque[Known] = deque()
        self._held: list[Observed] = []  # beginnings that wait for their end
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._clock = clock
        self._session = _Session(path, run, caps)
        self._complained = False
        self._looked = clock.elapsed()
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    # On the loop.

    def observe(self, value: Observed) -> None:
        """Never waits."""
        if len(self._waiting) >= _MOST_WAITING:
            self.gaps += 1
            return
        self._waiting.append(value)
        if not self._wake.is_set():
            self._wake.set()

    def know(self, known: Iterable[Known]) -> None:
        """The names that resource types go by."""
        self._known.extend(known)
        self._wake.set()

    def close(self) -> None:
        """Write what is left and that the run has ended, within a few seconds."""
        self._closing.set()
        self._wake.set()
        self._thread.join(_LAST_WORDS)

    def __repr__(self) -> str:
        return f"Recorder({self._session!r}, waiting={len(self._waiting)}, gaps={self.gaps})"

    # On the thread.

    def _work(self) -> None:
        self._write([])
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(_GATHER)
            self._wake.clear()
            if not self._drain():
                # What is already dropped stays dropped; what comes now waits for the file to become well again.
                self._closing.wait(_TRY_AGAIN)
                self._wake.set()
            self._look()
        if not self._drain(last=True):  # the end may fit where all of this did not
            self.gaps += len(self._waiting)
            self._waiting.clear()
        self._write([], ended=self._clock.now())
        self._session.close()

    def _drain(self, *, last: bool = False) -> bool:
        """Write what waits; False when the file does not take it now, and then it waits on."""
        values = [*self._held, *(self._waiting.popleft() for _ in range(len(self._waiting)))]
        ready, self._held = _parted(values, [] if last else values[len(self._held) :])
        while ready or self._known:
            left = self._write(ready[:_MOST_AT_ONCE])
            if left is not None:
                self._waiting.extendleft(reversed([*left, *ready[_MOST_AT_ONCE:]]))
                return False
            ready = ready[_MOST_AT_ONCE:]
        if self._held:
            self._wake.set()
        return True

    def _write(self, values: Sequence[Observed], *, ended: float | None = None) -> Sequence[Observed] | None:
        """One transaction; when the file does not take it now, what is left. What no file would take is dropped."""
        known = list(self._known)
        try:
            self._session.commit(values, known, seen=self._clock.now(), gaps=self.gaps, ended=ended)
        except (RecordingError, OSError, sqlite3.Error, UnicodeDecodeError) as error:
            if not _is_of_the_data(error):
                self._failed(error)
                return values
            return self._one_by_one(values, error)
        except Exception as error:  # noqa: BLE001  # a value that cannot be written must not end the recording
            return self._one_by_one(values, error)
        for _ in known:
            self._known.popleft()
        self._went_well()
        return None

    def _one_by_one(self, values: Sequence[Observed], error: Exception) -> Sequence[Observed] | None:
        """Something among them cannot be written: all the others are."""
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

    def _went_well(self) -> None:
        if self._complained:
            self._complained = False
            missing = f"; {self.gaps} values are missing" if self.gaps else ""
            extra = {"action": "recording.resumed", "file": str(self.path)}
            _log.warning("Recording resumed%s.", missing, extra=extra)

    def _failed(self, error: Exception) -> None:
        self._session.disconnect()
        if not self._complained:
            self._complained = True
            said = error if isinstance(error, RecordingError) else database.unusable(self.path, error)
            _log.warning(
                "Recording stopped: %s The controllers continue, and recording is retried. Next: %s",
                said.message,
                said.next_step,
                extra={"action": "recording.failed", "file": str(self.path)},
            )

    def _look(self) -> None:
        """Now and then: is the file still there, and not too big?"""
        if self._clock.elapsed() - self._looked < _LOOK_EVERY:
            return
        self._looked = self._clock.elapsed()
        try:
            self._session.check()
            while self._session.prune(self._clock.now()) and not self._closing.is_set() and self._drain():
                pass
        except (RecordingError, OSError, sqlite3.Error) as error:
            self._failed(error)


class _Session:
    """The connection, and what belongs to it; made when it is needed, and again after it was lost."""

    def __init__(self, path: Path, run: Run, caps: Caps) -> None:
        self._path = path
        self._run = run
        self._caps = caps
        self._lock = WriteLock(path)
        self._connection: sqlite3.Connection | None = None
        self._store: Store | None = None
        self._keeper: Keeper | None = None
        self._place = (0, 0)  # of the file on its disk

    def commit(
        self, values: Sequence[Observed], known: Iterable[Known], *, seen: float, gaps: int, ended: float | None
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
        """One step towards the caps; whether there are more."""
        with self._lock:
            return self._opened()[2].step(now)

    def check(self) -> None:
        """Let go of a file that was moved or deleted: what is written to it would be seen by nobody."""
        try:
            there = _place(self._path)
        except FileNotFoundError:
            there = (0, 0)
        if there != self._place:
            self.disconnect()
            self._lock.close()

    def _opened(self) -> tuple[sqlite3.Connection, Store, Keeper]:
        if self._connection is None or self._store is None or self._keeper is None:
            self._connection = database.writable(self._path)
            self._store = Store(self._connection, self._run)
            self._keeper = Keeper(self._connection, self._caps)
            self._place = _place(self._path)
        return self._connection, self._store, self._keeper

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._store = self._keeper = None

    def close(self) -> None:
        try:
            with self._lock:  # the last one to close makes a checkpoint
                self.disconnect()
        except (RecordingError, OSError, sqlite3.Error):
            self.disconnect()
        self._lock.close()

    def __repr__(self) -> str:
        return f"{self._run.id}, {'open' if self._connection else 'closed'}"


def _parted(values: list[Observed], young: list[Observed]) -> tuple[list[Observed], list[Observed]]:
    """What is to be written, and what may wait: most attempts end soon, and then only the end need be written."""
    ended = {value.id for value in values if isinstance(value, Attempt)}
    held = (
        {id(value): value for value in young if (begun := _attempt_begun(value)) is not None and begun not in ended}
        if young
        else {}
    )
    return [value for value in values if id(value) not in held], list(held.values())


def _attempt_begun(value: Observed) -> str | None:
    if isinstance(value, Started):
        return value.id
    return value.attempt if isinstance(value, Called) else None


def _is_of_the_data(error: Exception) -> bool:
    """Whether it lies with what was to be written, and not with the file."""
    return isinstance(error, sqlite3.DataError | sqlite3.InterfaceError | sqlite3.ProgrammingError)


def _place(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino
