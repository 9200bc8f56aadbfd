"""Splitting a byte stream into lines, in linear time whatever the sizes of its chunks."""

from __future__ import annotations

# Far above any object that an API server stores; a stream of anything else must not exhaust the memory.
LONGEST = 64 << 20


class LineTooLong(Exception):
    """A line is longer than any that an API server sends."""


class Lines:
    """Takes chunks and returns complete lines, without empty ones."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of an incomplete line, joined when it is complete
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk, without line ends."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        lines = chunk.split(b"\n")
        if self._parts:
            lines[0] = b"".join((*self._parts, lines[0]))
        self._parts, self._size = [], 0
        self._keep(lines.pop())
        return lines if all(lines) else [line for line in lines if line]

    @property
    def unfinished(self) -> int:
        """The number of bytes of the incomplete line."""
        return self._size

    def _keep(self, chunk: bytes) -> None:
        if chunk:
            self._parts.append(chunk)
            self._size += len(chunk)
        if self._size > LONGEST:
            raise LineTooLong
