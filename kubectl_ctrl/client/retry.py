"""The next step after one send of a call: done, failed, send again, or read the object. Pure.

Two facts decide: whether the server may have acted on an earlier send (`doubted`), and how the order may be repeated. A
call is sent again only if the server requests it (Retry-After), if its response was lost and it is idempotent, or if a
read has shown that the lost request was not carried out. All other errors are for the caller, which has its own
backoff.
"""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.client.order import Order, WhenLost
from kubectl_ctrl.errors import (
    AlreadyExists,
    ApiError,
    BadAnswer,
    CallError,
    Conflict,
    Invalid,
    NotFound,
    Replaced,
    ServerError,
    TooManyRequests,
)
from kubectl_ctrl.value import Value

MOST_SENDS = 10
_READ_SENDS = 3
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 5.0
_LEAST_PACE = (0.1, 1.0)  # the least pause grows in this range: a server may send `Retry-After: 0` for ever

# The first send of a write may take this share of the call's time; the rest is for a read after a lost response.
FIRST_SHARE = 0.75

_VERSION_AHEAD = "ResourceVersionTooLarge"


class NextAction(StrEnum):
    DONE = "done"
    GONE = "gone"  # done: the object of a repeated delete does not exist
    FAIL = "fail"  # with the error of the send
    UNKNOWN = "unknown"  # fail: it is unknown whether the write took effect
    RESEND = "resend"
    READ = "read"


class RetryStep(Value):
    next: NextAction
    pause: float = 0.0  # RESEND: seconds to wait first


class SendResult(Value, kw_only=True):
    """The result of one send; `lost` if the server may have acted on it without a readable response."""

    error: CallError | None = None
    lost: bool = False


def decide(order: Order, sent: SendResult, *, sends: int, doubted: bool, left: float) -> RetryStep:
    """The next step after the `sends`-th send.

    `doubted`: the server may have acted on an earlier one. `left`: the call's remaining time in seconds.
    """
    if sent.error is None:
        return RetryStep(NextAction.DONE)
    step = _refused(order, sent.error, sends, doubted) if isinstance(sent.error, ApiError) else None
    if step is None:
        step = _unanswered(order, sent, sends, doubted)
    if step.next is NextAction.RESEND and (step.pause >= left or not order.resend or sends >= MOST_SENDS):
        return RetryStep(NextAction.UNKNOWN if order.write and (doubted or sent.lost) else NextAction.FAIL)
    return step


def casts_doubt(order: Order, sent: SendResult) -> bool:
    """Whether the server may have acted on this send: no response, or a 5xx, which a proxy may have sent."""
    return order.write and (sent.lost or isinstance(sent.error, ServerError))


def pause(sends: int) -> float:
    """Seconds after the `sends`-th send."""
    return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (sends - 1)))


def version_is_ahead(error: CallError | None) -> bool:
    """Whether the server is behind the requested version, perhaps for ever, as after a restore of etcd."""
    return isinstance(error, ApiError) and any(cause.reason == _VERSION_AHEAD for cause in error.causes)


def _unanswered(order: Order, sent: SendResult, sends: int, doubted: bool) -> RetryStep:
    """After a timeout, a broken connection, or an unreadable response."""
    again = RetryStep(NextAction.RESEND, pause(sends))
    if not order.write:
        few = sent.lost and sends < _READ_SENDS and not isinstance(sent.error, BadAnswer)
        return again if few else RetryStep(NextAction.FAIL)
    if not sent.lost:  # never reached the server
        return again if doubted else RetryStep(NextAction.FAIL)
    match order.when_lost:
        case WhenLost.REPEAT:
            return again
        case WhenLost.READ:
            return RetryStep(NextAction.READ)
    return RetryStep(NextAction.UNKNOWN)


def _refused(order: Order, error: ApiError, sends: int, doubted: bool) -> RetryStep:
    # The server, or a proxy, stopped waiting for a write that may still be carried out.
    timed_out = order.write and (error.code in {502, 504} or error.reason in {"Timeout", "ServerTimeout"})
    if timed_out and order.when_lost is WhenLost.UNKNOWN:
        return RetryStep(NextAction.UNKNOWN)
    # As in client-go, 429 and 5xx with a Retry-After are retried for all verbs.
    retriable = error.retry_after is not None and isinstance(error, TooManyRequests | ServerError)
    if retriable and not version_is_ahead(error):
        least, most = _LEAST_PACE
        return RetryStep(NextAction.RESEND, max(error.retry_after or 0.0, min(most, least * 2 ** (sends - 1))))
    if timed_out:
        return RetryStep(NextAction.READ if order.when_lost is WhenLost.READ else NextAction.FAIL)
    return _in_doubt(order, error) if doubted else RetryStep(NextAction.FAIL)


def _in_doubt(order: Order, error: ApiError) -> RetryStep:
    """An earlier send may have been carried out, and may be the reason for this error."""
    if order.verb == "delete" and isinstance(error, NotFound | Conflict):
        exact = isinstance(error, NotFound) or not order.old_version
        return RetryStep(NextAction.GONE if exact else NextAction.READ)
    if order.verb == "create" and isinstance(error, AlreadyExists):
        return RetryStep(NextAction.READ)
    if order.when_lost is WhenLost.READ and isinstance(error, Conflict | Invalid) and not isinstance(error, Replaced):
        return RetryStep(NextAction.READ)
    if isinstance(error, ServerError | TooManyRequests):
        return RetryStep(NextAction.UNKNOWN)
    return RetryStep(NextAction.FAIL)
