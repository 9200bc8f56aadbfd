"""What follows when a list failed or a watch ended: go on, list again, or wait. No I/O, so every case can be tabled."""

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
# So many watches that a server broke before they delivered anything, and the version itself may be what breaks them.
_FAILURES = 3


class State(StrEnum):
    """How an informer is, as seen from outside."""

    STARTING = "starting"
    SYNCED = "synced"
    RETRYING = "retrying"
    MISSING = "missing"  # the server has no such resource type (any more)
    FORBIDDEN = "forbidden"
    REFUSED = "refused"  # by ourselves: the credentials lead to another cluster now, and nothing may be taken from it


class Pace(StrEnum):
    NOW = "now"
    STEADY = "steady"  # at most one request per second
    BACKOFF = "backoff"


class Recovery(Value, kw_only=True):
    """The next step of a reflector."""

    relist: bool = False
    paged: bool = False  # the list comes in pages, because this server does not stream it
    pace: Pace = Pace.BACKOFF
    at_least: float = 0.0  # seconds that the server asked for
    state: State | None = None  # None: nothing is wrong
    message: str = ""


class Doubts:
    """What went wrong in a row, to tell a bad moment from a version that leads nowhere.

    The first silence may be a dead connection, so it resumes. A second one may be a version in the server's future,
    which is answered with silence too, so it lists again. A server that sends no bookmarks is silent whenever nothing
    happens; each list that silence led to and that silence follows again makes the next one wait twice as long.
    """

    def __init__(self) -> None:
        self._silences = 0
        self._failures = 0
        self._patience = _SILENCES

    def heard(self) -> None:
        """The watch delivered something."""
        self._silences = self._failures = 0
        self._patience = _SILENCES

    def ended(self, end: WatchEnd) -> bool:
        """Whether to list again, whatever else this end leads to."""
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
        return f"Doubts(silences={self._silences}/{self._patience}, failures={self._failures})"


def after_watch(end: WatchEnd, *, listing: bool) -> Recovery:
    """`listing`: the stream was a list, and ended before it was complete."""
    match end.kind:
        case EndKind.CLOSED if listing:
            return Recovery(relist=True, paged=True, state=State.RETRYING, message="The streamed list ended early.")
        case EndKind.CLOSED:
            return _closed(end)
        case EndKind.SILENT:
            # No bookmark comes while a type's version stands still, so silence alone is no failure: if the server is
            # not there, the next request says so.
            message = "Nothing was heard from the server for too long."
            state = State.RETRYING if listing else None
            return Recovery(relist=listing, paged=listing, pace=Pace.NOW, state=state, message=message)
        case EndKind.EXPIRED:
            return Recovery(relist=True, state=State.RETRYING, message=_said(end.error))
    if listing and isinstance(end.error, Invalid | BadRequest):
        return Recovery(relist=True, paged=True, pace=Pace.NOW)
    return _refused(end.error, end.retry_after, listing=listing)


def after_list(error: CtrlError) -> Recovery:
    """A list in pages failed; nothing of it was used."""
    retry_after = error.retry_after if isinstance(error, ApiError) else None
    return _refused(error, retry_after, listing=True)


def _closed(end: WatchEnd) -> Recovery:
    if end.lasted >= SHORTEST:
        return Recovery(pace=Pace.NOW)
    if end.events:
        return Recovery(pace=Pace.STEADY)
    return Recovery(state=State.RETRYING, message="The server ends watches as soon as they begin.")


def _refused(error: CtrlError | None, retry_after: float | None, *, listing: bool) -> Recovery:
    state: State | None = State.RETRYING
    relist = listing or isinstance(error, Expired) or _is_ahead(error)
    if isinstance(error, NotFound):
        # When the type comes back it is another one, whose versions say nothing about ours.
        state, relist = State.MISSING, True
    elif isinstance(error, Forbidden):
        return Recovery(
            relist=relist, state=State.FORBIDDEN, message=" ".join(filter(None, (error.message, error.next_step)))
        )
    elif isinstance(error, Refused):
        state = State.REFUSED
    elif _begins(error):
        state = None
    return Recovery(relist=relist, at_least=retry_after or 0.0, state=state, message=_said(error))


def _begins(error: CtrlError | None) -> bool:
    """Whether the server has the type for a moment only, and says that it is not ready for it yet: nothing is wrong."""
    return isinstance(error, TooManyRequests) and "initializing" in error.message


def _is_ahead(error: CtrlError | None) -> bool:
    """Whether our version lies in the server's future: it was restored, and only a list tells where it is now."""
    return isinstance(error, ApiError) and any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)


def _said(error: CtrlError | None) -> str:
    return error.message if error is not None else "The connection broke."
