"""The transport interface: one request in, one response or one stream of lines out.

The network is one transport, the in-process server of the tests another. A transport adds the credentials, and renews
them once after a 401, so nothing above it has a secret. It does not retry otherwise, and knows nothing of Kubernetes.
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
    deadline: float | None = None  # seconds for the whole response, or until a stream's header
    silence: float | None = None  # streams: seconds without a byte after which the connection counts as dead


class HttpResponse(Value, kw_only=True):
    """A complete response; header names are lower-case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Unshown[bytes] = b""


class HttpStream(Protocol):
    """A streamed response."""

    status: int
    headers: Mapping[str, str]

    def batches(self) -> AsyncIterator[list[bytes]]:
        """Complete lines without line ends, as many at once as arrived together, never an empty list.

        Stops when the server ends the stream. An incomplete last line raises NoAnswer, silence raises TooSlow.
        """

    async def read(self) -> bytes:
        """The body of an error response, at most 1 MiB."""

    async def close(self) -> None:
        """Close the stream; may be called twice."""


class Transport(Protocol):
    """Besides TransportFault, both methods may raise CredentialsError, and Refused if the kubeconfig has changed to
    another cluster, which is final.
    """

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The response of any status, or NoAnswer or TooSlow."""

    async def open(self, request: HttpRequest) -> HttpStream:
        """The response of any status once its header has arrived, or NoAnswer or TooSlow."""

    async def close(self) -> None: ...


class TransportFault(Exception):
    """No usable response. `sent` is False only if the server has certainly not received the request.

    `remedy` is the command that helps, if one is known.
    """

    def __init__(self, message: str, *, sent: bool, remedy: str = "") -> None:
        super().__init__(message)
        self.sent = sent
        self.remedy = remedy


class NoAnswer(TransportFault):
    """Connection refused, reset or closed early, TLS failure, name not found."""


class NotTrusted(NoAnswer):
    """TLS with the server failed; a retry does not help."""


class TooSlow(TransportFault):
    """The deadline passed, or a stream was silent for too long."""
