"""The one writer of a run's recording: takes what is observed on the loop, and writes it on a thread of its own.

On the loop nothing but a list grows. The thread encodes and commits what has come within 100 ms, in one transaction,
while it holds the lock beside the file. Whatever goes wrong there is said once, and tried again; the run goes on.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import RecordingError
from kubectl_ctrl.history import database
from kubectl_ctrl.history.places import WriteLock
from kubectl_ctrl.history.sql import query
from kubectl_ctrl.history.store import Store
from kubectl_ctrl.model.attempt import Observed
from kubectl_ctrl.model.record import Known, Run

_log = logging.getLogger(__name__)

# How long it gathers before it writes; with the writing itself it stays within 100 ms.
_GATHER = 0.05
# So much may wait to be written; what comes beyond is dropped and counted.
_MOST_WAITING = 20_000
# In one transaction, so that others who write to the same file come in between.
_MOST_AT_ONCE = 500
# After something went wrong.
_TRY_AGAIN = 5.0
# How long an ending run waits for what is still to be written.
_LAST_WORDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file that can be recorded to."""

    runs: frozenset[str]  # names of the runs in it
    too_open: str  # what others may do with it, as a sentence; "" when nothing


def prepare(path: Path) -> File:
    """Make the file if there is none, and look whether it can be written; RecordingError when not."""
    database.create(path)
    lock = WriteLock(path)
    try:
        with database.mapped(path), lock, closing(database.writable(path)) as connection:
            runs = frozenset(name for (name,) in connection.execute(query("name_runs")))
            return File(runs=runs, too_open=database.too_open(path))
    finally:
        lock.close()


class Recorder:
    """One run's recording. Give `observe` to the run; `close` it after the run has told everything."""

    def __init__(self, path: Path, run: Run, *, clock: Clock) -> None:
        self.path = path
        self.gaps = 0  # rows that were dropped
        self._run = run
        self._clock = clock
        self._waiting: deque[Observed] = deque()
        self._known: deque[Known] = deque()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._connection: sqlite3.Connection | None = None
        self._store: Store | None = None
        self._lock = WriteLock(path)
        self._failed = False
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
        return f"Recorder({self._run.id}, waiting={len(self._waiting)}, gaps={self.gaps})"

    # On the thread.

    def _work(self) -> None:
        self._try(())
        while True:
            self._wake.wait()
            self._closing.wait(_GATHER)
            last = self._closing.is_set()
            self._wake.clear()
            while values := self._taken():
                if not self._try(values):
                    break
            if last:
                break
        self._try((), ended=self._clock.now())
        self._disconnect()
        self._lock.close()

    def _taken(self) -> list[Observed]:
        count = min(len(self._waiting), _MOST_AT_ONCE)
        return [self._waiting.popleft() for _ in range(count)]

    def _try(self, values: Iterable[Observed], *, ended: float | None = None) -> bool:
        """One transaction; whether it stands."""
        values = list(values)
        try:
            self._commit(values, ended)
        except (RecordingError, OSError, sqlite3.Error) as error:
            self.gaps += len(values)
            self._complain(error if isinstance(error, RecordingError) else database.unusable(self.path, error))
            self._disconnect()
            return False
        if self._failed:
            self._failed = False
            _log.info("Recording again.", extra={"action": "recording.resumed", "file": str(self.path)})
        return True

    def _commit(self, values: list[Observed], ended: float | None) -> None:
        with self._lock:
            if self._connection is None or self._store is None:
                self._connection = database.writable(self.path)
                self._store = Store(self._connection, self._run)
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._store.know(self._names())
                self._store.put(values)
                self._store.touch(seen=self._clock.now(), gaps=self.gaps, ended=ended)
                self._connection.execute("COMMIT")
            except BaseException:
                self._store.forget()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _names(self) -> list[Known]:
        return [self._known.popleft() for _ in range(len(self._known))]

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._store = None

    def _complain(self, error: RecordingError) -> None:
        if not self._failed:
            self._failed = True
            _log.warning(
                "Not recorded: %s Next: %s", error.message, error.next_step, extra={"action": "recording.failed"}
            )
