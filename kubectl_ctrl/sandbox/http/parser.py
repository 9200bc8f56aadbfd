"""Parses the bytes of a connection into requests, however they are split.

Stricter than a general server: a request that two programs could read as different requests is refused, so that nothing
can be smuggled through a proxy in front.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from kubectl_ctrl.value import Unshown, Value, replace

LARGEST_HEAD = (1 << 20) + 4096
_LONGEST_CHUNK_HEAD = 4096
# A larger body than allowed is read to its end, because a client that still sends does not see an early answer.
_MOST_DISCARDED = 64 << 20

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_START = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x7e]+) HTTP/1\.([01])")
_OTHER_VERSION = re.compile(_TOKEN + rb" [\x21-\x7e]+ HTTP/[0-9]\.[0-9]")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_BARE = re.compile(rb"(?<!\r)\n")
_ABSOLUTE = re.compile(r"https?://([^/?#]+)(.*)", re.IGNORECASE)
_LENGTH = re.compile(r"[0-9]{1,18}")


class ReceivedRequest(Value, kw_only=True):
    """One complete request; header names are lower-case, and values of a repeated header are joined by commas.

    Requests of one connection may share their headers, which nobody changes.
    """

    method: str
    target: str  # path and query
    host: str | None
    headers: dict[str, str]
    body: Unshown[bytes] = b""
    minor: int = 1  # of the version HTTP/1.x
    too_large: bool = False  # the body was discarded

    @property
    def keeps(self) -> bool:
        """Whether the connection stays open after the answer."""
        return self.minor == 1 and "close" not in words(self.headers.get("connection", ""))


class Malformed(Exception):
    """The bytes are not a request, or not one that is served; the connection ends after this status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def words(value: str) -> list[str]:
    """The members of a list header, in lower case."""
    return [word.strip().lower() for word in value.split(",")]


class RequestParser:
    """Takes bytes by `feed`; `take` returns the next request, or None while it is incomplete."""

    def __init__(self, largest_body: int, largest_head: int = LARGEST_HEAD) -> None:
        self._largest_body = largest_body
        self._largest_head = largest_head
        self._buffer = bytearray()
        self._scanned = 0  # up to here the buffer has no end of a header
        self._steps = self._requests()
        self._failure: Malformed | None = None
        self._block, self._fields = b"", dict[str, str]()  # of the last request
        self.awaits_continue = False  # the client sends the body only after an answer 100

    @property
    def buffered(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def take(self) -> ReceivedRequest | None:
        if self._failure is not None:
            raise self._failure
        try:
            return next(self._steps)
        except Malformed as failure:
            self._failure = failure
            raise

    def _requests(self) -> Iterator[ReceivedRequest | None]:
        """Yields None where more bytes are needed."""
        while True:
            start, _, block = (yield from self._head()).partition(b"\r\n")
            if block != self._block:  # most clients repeat their headers
                self._fields, self._block = _fields(block), block
            request = _understood(start, self._fields)
            length = _body_length(request)
            self._check_expectation(request)
            body = (yield from self._chunks()) if length is None else (yield from self._sized(length))
            self.awaits_continue = False
            yield request if body == b"" else replace(request, body=body or b"", too_large=body is None)

    def _head(self) -> Generator[None, None, bytes]:
        """The lines before the body or, after a chunked body, those of its trailer."""
        while True:
            start = max(0, self._scanned - 3)
            end = self._buffer.find(b"\r\n\r\n", start, self._largest_head)
            stop = min(len(self._buffer), self._largest_head) if end < 0 else end
            if _BARE.search(self._buffer, start, stop):
                raise Malformed(400, "a line of the header ends without CR")
            if end >= 0:
                head = bytes(self._buffer[:end])
                del self._buffer[: end + 4]
                self._scanned = 0
                return head
            if len(self._buffer) >= self._largest_head:
                raise Malformed(431, "the header is too large")
            self._scanned = len(self._buffer)
            yield

    def _check_expectation(self, request: ReceivedRequest) -> None:
        expected = request.headers.get("expect")
        if expected is None or request.minor == 0:
            return
        if expected.lower() != "100-continue":
            raise Malformed(417, "the expectation is not known")
        self.awaits_continue = True

    def _sized(self, length: int) -> Generator[None, None, bytes | None]:
        """The body; None if it was too large and discarded."""
        fits = length <= self._largest_body
        if not fits and (self.awaits_continue or length > _MOST_DISCARDED):
            raise Malformed(413, "the body is too large")
        body = yield from self._bytes(length, keep=fits)
        return body if fits else None

    def _chunks(self) -> Generator[None, None, bytes | None]:
        body, total = bytearray(), 0
        while size := (yield from self._chunk_size()):
            total += size
            if total > _MOST_DISCARDED:
                raise Malformed(413, "the body is too large")
            body += yield from self._bytes(size, keep=total <= self._largest_body)
            if (yield from self._bytes(2)) != b"\r\n":
                raise Malformed(400, "a chunk is longer than its size")
        yield from self._trailer()
        return bytes(body) if total <= self._largest_body else None

    def _chunk_size(self) -> Generator[None, None, int]:
        while (end := self._buffer.find(b"\n", 0, _LONGEST_CHUNK_HEAD)) < 0:
            if len(self._buffer) >= _LONGEST_CHUNK_HEAD:
                raise Malformed(400, "the size of a chunk is not a number")
            yield
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise Malformed(400, "the size of a chunk is not a number")
        return int(found[1], 16)

    def _trailer(self) -> Generator[None, None, None]:
        """Fields after the last chunk are checked, and have no meaning here."""
        while len(self._buffer) < 2:
            yield
        if self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]
            return
        _fields((yield from self._head()))

    def _bytes(self, size: int, *, keep: bool = True) -> Generator[None, None, bytes]:
        kept = bytearray()
        while size:
            part = self._buffer[:size]
            del self._buffer[:size]
            size -= len(part)
            if keep:
                kept += part
            if size:
                yield
        return bytes(kept)


def _understood(line: bytes, headers: dict[str, str]) -> ReceivedRequest:
    start = _START.fullmatch(line)
    if start is None:
        if _OTHER_VERSION.fullmatch(line):
            raise Malformed(505, "the version is not HTTP/1.1")
        raise Malformed(400, "the request line is not valid")
    target, minor = start[2].decode(), int(start[3])
    host = headers.get("host")
    if ("," in host) if host is not None else minor == 1:
        raise Malformed(400, "there is not one Host header")
    if absolute := _ABSOLUTE.fullmatch(target):
        host, target = absolute[1], absolute[2]
        target = target if target.startswith("/") else f"/{target}"
    if not target.startswith("/"):
        raise Malformed(400, "the request line has no path")
    return ReceivedRequest(method=start[1].decode(), target=target, host=host, headers=headers, minor=minor)


def _fields(block: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in block.split(b"\r\n") if block else ():
        found = _FIELD.fullmatch(line)
        if found is None:
            raise Malformed(400, "a line of the header is not valid")
        name, value = found[1].decode().lower(), found[2].rstrip(b" \t").decode(errors="replace")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body_length(request: ReceivedRequest) -> int | None:
    """None if the body comes in chunks."""
    coding, length = request.headers.get("transfer-encoding"), request.headers.get("content-length")
    if coding is not None:
        if length is not None or request.minor == 0:
            raise Malformed(400, "Transfer-Encoding excludes Content-Length and HTTP/1.0")
        if coding.lower() != "chunked":
            raise Malformed(501, "the transfer encoding is not supported")
        return None
    if length is not None and not _LENGTH.fullmatch(length):
        raise Malformed(400, "the Content-Length is not one number")
    return int(length or 0)
