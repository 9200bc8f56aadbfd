"""Watch streams: lines from the log, as a watch cache sends them, with the failures of real streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.change import ChangeKind
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.transport import HttpRequest, HttpResponse, NoAnswer, TooSlow
from kubectl_ctrl.sandbox import answers, options, reads
from kubectl_ctrl.sandbox.answers import encode
from kubectl_ctrl.sandbox.encoding.forms import Form
from kubectl_ctrl.sandbox.kinds import structs
from kubectl_ctrl.sandbox.requests import ParsedRequest
from kubectl_ctrl.sandbox.storage import Storage, StoredChange

_BATCH = 500  # most events in one network read
_LONGEST = 1_800.0  # seconds, the default timeout
BOOKMARK_EVERY = 60.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WholeStream:
    """A complete answer: for error statuses, and for streams that are not watches."""

    def __init__(self, response: HttpResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    async def batches(self) -> AsyncIterator[list[bytes]]:
        if lines := self._body.splitlines():
            yield lines

    async def read(self) -> bytes:
        return self._body

    async def close(self) -> None:
        self._body = b""


class OpenWatch:
    """One open watch."""

    def __init__(self, ask: ParsedRequest, request: HttpRequest, storage: Storage, clock: Clock, delay: float) -> None:
        self.ask = ask
        self.status = 200
        self.headers: Mapping[str, str] = answers.JSON
        self.hung = False  # half open: nothing arrives any more, without an error
        self.torn = False  # the next batch's last line is truncated, and the connection breaks
        self.events = 0
        self._request = request
        self._storage = storage
        self._clock = clock
        self._delay = delay
        self._chosen = reads.chooser(ask)
        self._form = Form(ask, clock)
        self._bookmarks = ask.flag("allowWatchBookmarks")
        self._wake = asyncio.Event()
        self._end: Exception | None = None
        self._closed = False
        self._start = clock.elapsed()
        self._timeout = float(options.number(ask, "timeoutSeconds")) or _LONGEST
        self._bookmarked = self._start
        self._garblers: list[Callable[[bytes], bytes]] = []
        self._left = False  # closed by the client
        self._heard = self._start  # time of the last bytes to the client
        self._first, self._version = self._initial()
        self._place = storage.after(ask.kind.table, self._version)
        self._log = storage.logs[ask.kind.table]

    def _initial(self) -> tuple[list[bytes], int]:
        """The initial lines, and the version after which changes are sent."""
        text = self.ask.query.get("resourceVersion", "")
        options.check_watch(self.ask)
        if self.ask.flag("sendInitialEvents"):
            reads.check_version(self._storage, text)
            return self._state(streaming=True), self._storage.version
        if text in ("", "0"):
            # Clients get the bookmark at the end of the initial state even without allowWatchBookmarks.
            return self._state(streaming=not text), self._storage.version
        if not reads.is_version(text):
            raise answers.unparsed(reads.bad_version(text))
        return [], int(text)

    def _state(self, *, streaming: bool) -> list[bytes]:
        rows = self._storage.rows(self.ask.kind.table)
        found = [rows.stored[key] for key in sorted(rows) if self._chosen(rows[key])]
        lines = [_line("ADDED", encode(self._form.of_stored(one))) for one in found]
        if streaming and self._bookmarks:
            lines.append(self._bookmark(self._storage.version, {INITIAL_EVENTS_END: "true"}))
        return lines

    def garble(self, make: Callable[[bytes], bytes]) -> None:
        """Change the next line in transit."""
        self._garblers.append(make)

    def wake(self) -> None:
        self._wake.set()

    def stop(self, error: Exception | None = None) -> None:
        """End it as the server: cleanly, after all changes so far, or with a broken connection."""
        while error is None and not self.hung and (lines := self._news()):
            self._first += lines
        self._closed, self._end = True, error
        self.wake()

    def catch_up(self) -> None:
        """Move to the last version before the next change to send: a compaction up to there does not affect it."""
        left = self._log[self._place : self._place + 1]
        self._version = max(self._version, left[0].version - 1 if left else self._storage.version)

    def rebase(self) -> None:
        """The log was truncated at its start; find the index again."""
        self._place = self._storage.after(self.ask.kind.table, self._version)

    @property
    def closed(self) -> bool:
        return self._closed

    async def batches(self) -> AsyncIterator[list[bytes]]:
        try:
            async for lines in self._batches():
                yield lines
        finally:
            self._closed = True

    async def _batches(self) -> AsyncIterator[list[bytes]]:
        while True:
            lines, last = self._lines()
            if lines and not self.hung:
                if self._delay:
                    await self._clock.sleep(self._delay)
                if self._garblers:
                    lines[0] = self._garblers.pop(0)(lines[0])
                if self.torn and lines[1:]:
                    yield lines[:-1]
                if self.torn:
                    raise NoAnswer("The stream ended in the middle of a line.", sent=True)
                self._heard = self._clock.elapsed()
                yield lines
                if last:
                    return
                continue
            if self._over():
                return
            await self._wait()

    def _over(self) -> bool:
        """Whether the stream has ended cleanly; raises if it broke."""
        if self._left:
            return True
        if self.hung:
            return False
        if self._end is not None:
            raise self._end
        return self._closed or self._clock.elapsed() >= self._start + self._timeout

    def _lines(self) -> tuple[list[bytes], bool]:
        """The lines to send now, and whether they end this watch."""
        if self.hung:
            return [], False
        if self._first:
            lines, self._first = self._first, []
            return lines, False
        if self._version < self._storage.compacted and not self._closed:
            message = f"too old resource version: {self._version} ({self._storage.compacted})"
            return [_line("ERROR", encode(answers.expired(message).body))], True
        if self._left or self._end is not None:
            return [], False
        return self._news() or self._due_bookmark(), False

    def _news(self) -> list[bytes]:
        """The next lines; none if all changes are outside the selection or before the requested version."""
        lines: list[bytes] = []
        while not lines and self._place < len(self._log) and not self._closed:
            steps = self._log[self._place : self._place + _BATCH]
            self._place += len(steps)
            told = [self._told(step) for step in steps if step.version > self._version]
            self._version = max(self._version, steps[-1].version)
            lines = [line for line in told if line is not None]
        self.events += len(lines)
        return lines

    def _told(self, step: StoredChange) -> bytes | None:
        """The step as this watch shows it: an object that enters or leaves the selection is added or deleted."""
        before = step.old is not None and self._chosen(step.old)
        after = step.new is not None and self._chosen(step.new)
        if not before and not after:
            return None
        kind = ("MODIFIED" if before else "ADDED") if after else "DELETED"
        if step.kind is not ChangeKind.DELETED and kind == "DELETED":
            # It left the selection: sent in its last matching state, with the version of the step.
            assert step.old is not None
            left = {**step.old, "metadata": {**step.old["metadata"], "resourceVersion": str(step.version)}}
            return _line(kind, encode(self._form.of(left)))
        return _line(kind, step.encoded if self._form.plain else encode(self._form.of(step.obj)))

    def _due_bookmark(self) -> list[bytes]:
        if self._clock.elapsed() < self._next_bookmark():
            return []
        self._bookmarked = self._clock.elapsed()
        if self._storage.version < self._version:
            return []
        self._version = self._storage.version
        return [self._bookmark(self._version, {})]

    def _next_bookmark(self) -> float:
        """About every minute, and once more shortly before the end."""
        if not self._bookmarks or self._closed:
            return float("inf")
        last = self._start + self._timeout - 2.0
        regular = self._bookmarked + BOOKMARK_EVERY
        return min(regular, last) if self._bookmarked < last else regular

    def _bookmark(self, version: int, annotations: dict[str, str]) -> bytes:
        meta: Obj = {"resourceVersion": str(version)}
        if annotations:
            meta["annotations"] = annotations
        resource = self.ask.resource
        empty = {} if self.ask.kind.custom else structs.empty(self.ask.kind.schema)
        shown = {**empty, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        return _line("BOOKMARK", encode(self._form.of(shown)))

    async def _wait(self) -> None:
        """Wait until there may be something to send. Raises TooSlow on silence."""
        now = self._clock.elapsed()
        silent = float("inf") if self._request.silence is None else self._heard + self._request.silence
        until = silent
        if not self.hung:
            until = min(until, self._start + self._timeout, self._next_bookmark())
        self._wake.clear()
        try:
            async with self._clock.timeout(None if until == float("inf") else until - now):
                await self._wake.wait()
        except TimeoutError:
            if self._clock.elapsed() >= silent and not self._over():
                raise TooSlow(f"No data arrived for {self._request.silence:g} s.", sent=True) from None

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        self._left = True
        self.stop()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "hung" if self.hung else "open"
        return f"OpenWatch({self.ask.resource}, {state}, version={self._version}, events={self.events})"


def _line(kind: str, encoded: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + encoded + b"}"
