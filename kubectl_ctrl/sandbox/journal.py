"""The data of a server on disk: a file of JSON lines to which each change is appended before it happens in memory.

A change is written when it is made, and durable a little later: `durable` waits for that, one fsync for all that wait.
An answer that shows a change is sent only then. After a kill or a power failure the file may end in the middle of a
line, which nobody has seen.

The first line is {"journal": 1, "version": N}; every other is {"v": version, "t": table, "o": object} or, for a
deletion, {"v": version, "t": table, "d": [namespace, name]}.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from kubectl_ctrl import files, locks
from kubectl_ctrl.model.objects import Key, Obj, key_of
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, HttpStream, NoAnswer, Transport
from kubectl_ctrl.sandbox import answers
from kubectl_ctrl.sandbox.storage import Storage, StoredChange
from kubectl_ctrl.value import Value

_FORMAT = 1
_SMALLEST = 1 << 20  # a smaller file is not compacted while it grows

_Place = tuple[str, Key]


class JournalError(Exception):
    """The file is not a journal, or the disk fails; the message is a sentence for the user."""


class SavedState(Value, kw_only=True):
    """What a journal contains."""

    version: int
    tables: dict[str, dict[Key, Obj]]


class Journal:
    """Appends each change of a storage to its file, which then is all that the storage contains."""

    def __init__(self, path: Path, storage: Storage) -> None:
        self._path = path
        self._storage = storage
        self._sizes: dict[_Place, int] = {}  # of the line of each object
        self._live = 0  # bytes of these lines
        self._length = 0  # bytes of the file
        self._most = 0  # bytes from which the file is compacted
        self._handle = -1
        self._compact()
        self._written = self._synced = 0  # changes
        self._sync: asyncio.Task[None] | None = None
        self._failure = ""
        storage.guards.append(self._append)

    async def durable(self) -> None:
        """Return once all changes so far are on the disk; JournalError if the disk failed."""
        wanted = self._written
        while self._synced < wanted and not self._failure:
            if self._sync is None:
                self._sync = asyncio.create_task(self._write_through())
            await asyncio.shield(self._sync)
        if self._failure:
            raise JournalError(self._failure)

    async def close(self) -> None:
        """The storage may change afterwards, but the file does not."""
        self._storage.guards.remove(self._append)
        try:
            await self.durable()
        finally:
            os.close(self._handle)

    def _append(self, table: str, step: StoredChange) -> None:
        """A guard of the storage: without a whole line in the file there is no change."""
        if self._failure:
            raise _refusal(self._failure)
        line = _line(table, step)
        try:
            files.write(self._handle, line)
        except OSError as error:
            why = _unwritable(self._path, error)
            try:
                os.ftruncate(self._handle, self._length)
                os.lseek(self._handle, self._length, os.SEEK_SET)
            except OSError:
                self._failure = why  # half a line is left, after which nothing may be written
            raise _refusal(why) from error
        self._length += len(line)
        self._written += 1
        place = (table, step.key)
        self._live -= self._sizes.pop(place, 0)
        if step.new is not None:
            self._sizes[place] = len(line)
            self._live += len(line)

    async def _write_through(self) -> None:
        written = self._written
        try:
            await asyncio.to_thread(os.fsync, self._handle)
        except OSError as error:
            # What the disk has is unknown now, and a second fsync would not tell.
            self._failure = _unwritable(self._path, error)
        else:
            self._synced = written
            if self._length > self._most:
                self._shrink()
        finally:
            self._sync = None

    def _shrink(self) -> None:
        try:
            self._compact()
        except OSError as error:
            if not locks.is_at(self._handle, self._path):
                self._failure = _unwritable(self._path, error)  # the name leads to the new file already
            self._most = 2 * self._length  # the disk has no room for a second file
        else:
            self._synced = self._written

    def _compact(self) -> None:
        """Replace the file by one with the live objects only."""
        lines = [answers.encode({"journal": _FORMAT, "version": self._storage.version}) + b"\n"]
        sizes: dict[_Place, int] = {}
        for table, rows in self._storage.tables.items():
            for key, stored in rows.stored.items():
                lines.append(_object_line(table, stored.version, stored.encoded))
                sizes[table, key] = len(lines[-1])
        content = b"".join(lines)
        files.replace(self._path, content)
        handle = locks.opened(self._path)
        os.lseek(handle, 0, os.SEEK_END)
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._sizes = handle, sizes
        self._length = self._live = len(content)
        self._most = max(2 * len(content), _SMALLEST)

    def __repr__(self) -> str:
        return f"Journal(objects={len(self._sizes)}, length={self._length}, live={self._live})"


class DurableTransport:
    """Answers of another transport, each once the changes that it may show are durable."""

    def __init__(self, inner: Transport, journal: Journal) -> None:
        self._inner = inner
        self._journal = journal

    async def send(self, request: HttpRequest) -> HttpResponse:
        response = await self._inner.send(request)
        try:
            await self._journal.durable()
        except JournalError as error:
            return _refusal(str(error)).response()
        return response

    async def open(self, request: HttpRequest) -> HttpStream:
        return _DurableStream(await self._inner.open(request), self._journal)

    async def close(self) -> None:
        await self._inner.close()

    def __repr__(self) -> str:
        return f"DurableTransport({self._inner!r}, {self._journal!r})"


class _DurableStream:
    def __init__(self, inner: HttpStream, journal: Journal) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self._inner = inner
        self._journal = journal

    async def batches(self) -> AsyncIterator[list[bytes]]:
        async for lines in self._inner.batches():
            try:
                await self._journal.durable()
            except JournalError as error:
                raise NoAnswer(str(error), sent=True) from error
            yield lines

    async def read(self) -> bytes:
        return await self._inner.read()

    async def close(self) -> None:
        await self._inner.close()


def read(path: Path) -> SavedState | None:
    """The state in the file, without an incomplete end; None if there is no file. JournalError if it is damaged."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return None
    tables: dict[str, dict[Key, Obj]] = {}
    version = 0
    for number, line in enumerate(lines, 1):
        entry = _entry(line)
        if entry is None or (number == 1) != ("journal" in entry):
            if number == 1 or any(map(_entry, lines[number:])):
                raise JournalError(f"Line {number} of {str(path)!r} is damaged; without the file there is no data.")
            break
        if number == 1:
            version = entry["version"]
        else:
            version = max(version, entry["v"])
            _replay(entry, tables)
    return SavedState(version=version, tables=tables) if lines else None


def _replay(entry: dict[str, Any], tables: dict[str, dict[Key, Obj]]) -> None:
    rows, obj = tables.setdefault(entry["t"], {}), entry.get("o")
    if obj is None:
        rows.pop(Key(*entry["d"]), None)
    else:
        rows[key_of(obj)] = obj


def _entry(line: bytes) -> dict[str, Any] | None:
    """None for anything but a whole line."""
    if not line.endswith(b"\n"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _line(table: str, step: StoredChange) -> bytes:
    if step.new is not None:
        return _object_line(table, step.version, step.encoded)
    return answers.encode({"v": step.version, "t": table, "d": list(step.key)}) + b"\n"


def _object_line(table: str, version: int, encoded: bytes) -> bytes:
    return b'{"v":%d,"t":"%b","o":%b}\n' % (version, table.encode(), encoded)


def _unwritable(path: Path, error: OSError) -> str:
    return f"{str(path)!r} cannot be written: {error.strerror}"


def _refusal(why: str) -> answers.Refusal:
    return answers.failure(500, message=f"Internal error occurred: {why}")
