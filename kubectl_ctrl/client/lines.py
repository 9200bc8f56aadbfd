"""Cutting a byte stream into lines, in time linear in its bytes however they are cut into pieces on the way."""

from __future__ import annotations

# Far above any object that an API server stores; a stream of something else must not fill the memory.
LONGEST = 64 << 20


class LineTooLong(Exception):
    """A line is longer than anything that an API server sends."""


class Lines:
    """Takes pieces, gives whole lines; empty lines are left out."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # the beginning of a line, joined only when its end is there
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that end in this piece, without their line ends."""
        if b"\n" not in piece:
            self._keep(piece)
            return []
        lines = piece.split(b"\n")
        if self._parts:
            lines[0] = b"".join((*self._parts, lines[0]))
        self._parts, self._size = [], 0
        self._keep(lines.pop())
        return lines if all(lines) else [line for line in lines if line]

    @property
    def unfinished(self) -> int:
        """How many bytes of a line without an end are held."""
        return self._size

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._parts.append(piece)
            self._size += len(piece)
        if self._size > LONGEST:
            raise LineTooLong
