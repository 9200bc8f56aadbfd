"""The seam under the client: one request in, one response or one stream of lines out.

The network is one transport; an in-process server is another. A transport authenticates, and reloads credentials once
on a 401, so nothing above it ever holds a secret. It does not retry otherwise and does not know what Kubernetes is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from kubectl_ctrl.value import Unshown, Value, field


class HttpRequest(Value, kw_only=True):
    """One request; `path` is percent-encoded and `query` is not."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Unshown[bytes | None] = None
    deadline: float | None = None  # seconds for the whole answer, or until a stream's first byte
    silence: float | None = None  # streams: the longest time without a byte before it counts as dead


class HttpResponse(Value, kw_only=True):
    """A whole answer; header names are lower-case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Unshown[bytes] = b""


class HttpStream(Protocol):
    """An answer that goes on: lines as they come, until the server ends it."""

    status: int
    headers: Mapping[str, str]

    def batches(self) -> AsyncIterator[list[bytes]]:
        """Whole lines without their line ends, as many at once as arrived together, never an empty list.

        Ends when the server closes cleanly. A last line without a line end raises NoAnswer, silence raises TooSlow.
        """

    async def read(self) -> bytes:
        """The whole body, for a stream whose status says that it is an error; at most 1 MiB of it."""

    async def close(self) -> None:
        """End it now; twice is fine."""


class Transport(Protocol):
    """Beside its faults a transport may raise CredentialsError, when there are no credentials to send right now, and
    Refused, when they turn out to be for another cluster: that one is final.
    """

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The answer, whatever its status. Raises NoAnswer or TooSlow."""

    async def open(self, request: HttpRequest) -> HttpStream:
        """The answer's head, whatever its status. Raises NoAnswer or TooSlow."""

    async def close(self) -> None: ...


class TransportFault(Exception):
    """No usable answer. `sent` is False only when it is certain that the server never saw the request.

    `remedy` is the command that helps, where one is known.
    """

    def __init__(self, message: str, *, sent: bool, remedy: str = "") -> None:
        super().__init__(message)
        self.sent = sent
        self.remedy = remedy


class NoAnswer(TransportFault):
    """Refused, reset, closed early, TLS failure, name not found."""


class NotTrusted(NoAnswer):
    """The server was reached, and there is no TLS between it and the kubeconfig; trying again does not help."""


class TooSlow(TransportFault):
    """The deadline passed, or a stream was silent for too long."""
