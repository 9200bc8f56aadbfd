"""Decides what follows a failed list or the end of a watch: resume, list again, or wait. No I/O."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.client.watch import EndKind, WatchEnd
from kubectl_ctrl.errors import (
    ApiError,
    BadRequest,
    CtrlError,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    ServerError,
    TooManyRequests,
)
from kubectl_ctrl.value import Value

# A watch that ends sooner is not worth its request.
SHORTEST = 1.0

_SILENCES = 2
_MOST_SILENCES = 16
# After this many broken watches without an event, the version itself may be what breaks them.
_FAILURES = 3


class InformerState(StrEnum):
    STARTING = "starting"
    SYNCED = "synced"
    RETRYING = "retrying"
    MISSING = "missing"  # the server has no such resource type (any more)
    FORBIDDEN = "forbidden"
    # By kubectl ctrl: the credentials are for another cluster now, whose objects must not get into this cache.
    REFUSED = "refused"


class Pace(StrEnum):
    NOW = "now"
    STEADY = "steady"  # at most one request per second
    BACKOFF = "backoff"


class Recovery(Value, kw_only=True):
    """The next step of a reflector."""

    relist: bool = False
    paged: bool = False  # list in pages, because this server does not stream lists
    pace: Pace = Pace.BACKOFF
    at_least: float = 0.0  # seconds, from Retry-After
    state: InformerState | None = None  # None: nothing is wrong
    message: str = ""


class FailureCounter:
    """Counts failures in a row, to distinguish a bad moment from a version that never gets an answer.

    The first silence may be a dead connection, so the watch resumes. The second may be a version in the future of the
    server, which gets no answer either, so a list follows. A server without bookmarks is silent whenever nothing
    happens: if silence follows such a list again, twice as many silences pass before the next one.
    """

    def __init__(self) -> None:
        self._silences = 0
        self._failures = 0
        self._patience = _SILENCES

    def heard(self) -> None:
        """The watch delivered an event."""
        self._silences = self._failures = 0
        self._patience = _SILENCES

    def ended(self, end: WatchEnd) -> bool:
        """Returns whether to list again, whatever else follows."""
        if end.kind is EndKind.SILENT:
            self._silences += 1
            if self._silences < self._patience:
                return False
            self._silences, self._patience = 0, min(2 * self._patience, _MOST_SILENCES)
            return True
        if end.kind is EndKind.BROKEN or isinstance(end.error, ServerError):
            self._failures += 1
            return self._failures % _FAILURES == 0
        return False

    def __repr__(self) -> str:
        return f"FailureCounter(silences={self._silences}/{self._patience}, failures={self._failures})"


def after_watch(end: WatchEnd, *, listing: bool) -> Recovery:
    """`listing`: the stream was a list that ended before it was complete."""
    match end.kind:
        case EndKind.CLOSED if listing:
            return Recovery(
                relist=True, paged=True, state=InformerState.RETRYING, message="The streamed list ended early."
            )
        case EndKind.CLOSED:
            return _closed(end)
        case EndKind.SILENT:
            # A server sends no bookmark while the version of a type stays the same, so silence alone is no failure. If
            # the server is gone, the next request fails.
            message = "The server sent nothing for too long."
            state = InformerState.RETRYING if listing else None
            return Recovery(relist=listing, paged=listing, pace=Pace.NOW, state=state, message=message)
        case EndKind.EXPIRED:
            return Recovery(relist=True, state=InformerState.RETRYING, message=_message(end.error))
    if listing and isinstance(end.error, Invalid | BadRequest):
        return Recovery(relist=True, paged=True, pace=Pace.NOW)
    return _refused(end.error, end.retry_after, listing=listing)


def after_list(error: CtrlError) -> Recovery:
    """A list in pages failed; none of it was used."""
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    return _refused(error, retry_after, listing=True)


def _closed(end: WatchEnd) -> Recovery:
    if end.lasted >= SHORTEST:
        return Recovery(pace=Pace.NOW)
    if end.events:
        return Recovery(pace=Pace.STEADY)
    return Recovery(state=InformerState.RETRYING, message="The server closes watches as soon as they begin.")


def _refused(error: CtrlError | None, retry_after: float | None, *, listing: bool) -> Recovery:
    state: InformerState | None = InformerState.RETRYING
    relist = listing or isinstance(error, Expired) or _is_ahead(error)
    if isinstance(error, NotFound):
        # A type that comes back is a new one, whose versions cannot be compared with the old.
        state, relist = InformerState.MISSING, True
    elif isinstance(error, Forbidden):
        return Recovery(
            relist=relist,
            state=InformerState.FORBIDDEN,
            message=" ".join(filter(None, (error.message, error.next_step))),
        )
    elif isinstance(error, Refused):
        state = InformerState.REFUSED
    elif _is_initializing(error):
        state = None
    return Recovery(relist=relist, at_least=retry_after or 0.0, state=state, message=_message(error))


def _is_initializing(error: CtrlError | None) -> bool:
    """The server has just installed the type and is not ready for it yet: not a failure."""
    return isinstance(error, TooManyRequests) and "initializing" in error.message


def _is_ahead(error: CtrlError | None) -> bool:
    """The version lies in the server's future: it was restored from a backup, and only a list has its version."""
    return isinstance(error, ApiError) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)


def _message(error: CtrlError | None) -> str:
    return error.message if error is not None else "The connection broke."
