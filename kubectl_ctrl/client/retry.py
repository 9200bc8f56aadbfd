"""What to do after one send of a call: done, failed, send again, or read what became of it. Pure.

Two facts decide: whether the server may have acted on an earlier send (`doubted`), and how the order may be repeated.
A call is sent again only when the server asked for it (Retry-After), when its answer was lost and repeating is
harmless, or when reading showed that the lost one did nothing. All else is for the caller, who has a pace of its own.
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
_LEAST_PACE = (0.1, 1.0)  # growing so far: a server that says `Retry-After: 0` for ever is not to be hammered

# A first send of a write may take this share of the call's time; the rest is for finding out what a lost answer did.
FIRST_SHARE = 0.75

_VERSION_AHEAD = "ResourceVersionTooLarge"


class Next(StrEnum):
    DONE = "done"
    GONE = "gone"  # the object of a delete that was sent before is not there any more: done
    FAIL = "fail"  # with the error at hand
    UNKNOWN = "unknown"  # fail: nobody can tell whether the write took effect
    AGAIN = "again"
    LOOK = "look"


class Step(Value):
    next: Next
    pause: float = 0.0  # AGAIN: seconds to wait first


class Sent(Value, kw_only=True):
    """How one send ended: with an error, or without; `lost` when the server may have acted and we cannot know."""

    error: CallError | None = None
    lost: bool = False


def decide(order: Order, sent: Sent, *, sends: int, doubted: bool, left: float) -> Step:
    """The next step after the `sends`-th send.

    `doubted`: the server may have acted on one before it. `left`: the call's remaining time in seconds.
    """
    if sent.error is None:
        return Step(Next.DONE)
    step = _refused(order, sent.error, sends, doubted) if isinstance(sent.error, ApiError) else None
    if step is None:
        step = _unanswered(order, sent, sends, doubted)
    if step.next is Next.AGAIN and (step.pause >= left or not order.resend or sends >= MOST_SENDS):
        return Step(Next.UNKNOWN if order.write and (doubted or sent.lost) else Next.FAIL)
    return step


def casts_doubt(order: Order, sent: Sent) -> bool:
    """Whether the server may have acted on this send without saying so: no answer, or one by somebody in between."""
    return order.write and (sent.lost or isinstance(sent.error, ServerError))


def pause(sends: int) -> float:
    """The wait before the send after the `sends`-th."""
    return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (sends - 1)))


def version_is_ahead(error: CallError | None) -> bool:
    """Whether the server has not reached the version that was asked for, as after a restore: waiting may never help."""
    return isinstance(error, ApiError) and any(cause.reason == _VERSION_AHEAD for cause in error.causes)


def _unanswered(order: Order, sent: Sent, sends: int, doubted: bool) -> Step:
    """After silence, a broken connection, or an answer that cannot be read."""
    again = Step(Next.AGAIN, pause(sends))
    if not order.write:
        few = sent.lost and sends < _READ_SENDS and not isinstance(sent.error, BadAnswer)
        return again if few else Step(Next.FAIL)
    if not sent.lost:  # never reached the server
        return again if doubted else Step(Next.FAIL)
    match order.when_lost:
        case WhenLost.REPEAT:
            return again
        case WhenLost.LOOK:
            return Step(Next.LOOK)
    return Step(Next.UNKNOWN)


def _refused(order: Order, error: ApiError, sends: int, doubted: bool) -> Step:
    timed_out = order.write and _timed_out(error)
    if timed_out and order.when_lost is WhenLost.UNKNOWN:
        return Step(Next.UNKNOWN)
    if _paced(error):
        least, most = _LEAST_PACE
        return Step(Next.AGAIN, max(error.retry_after or 0.0, min(most, least * 2 ** (sends - 1))))
    if timed_out:
        return Step(Next.LOOK if order.when_lost is WhenLost.LOOK else Next.FAIL)
    return _in_doubt(order, error) if doubted else Step(Next.FAIL)


def _in_doubt(order: Order, error: ApiError) -> Step:
    """An earlier send may have been carried out: then this refusal may be its echo."""
    if order.verb == "delete" and isinstance(error, NotFound | Conflict):
        exact = isinstance(error, NotFound) or not order.old_version
        return Step(Next.GONE if exact else Next.LOOK)
    if order.verb == "create" and isinstance(error, AlreadyExists):
        return Step(Next.LOOK)
    if order.when_lost is WhenLost.LOOK and isinstance(error, Conflict | Invalid) and not isinstance(error, Replaced):
        return Step(Next.LOOK)
    if isinstance(error, ServerError | TooManyRequests):
        return Step(Next.UNKNOWN)
    return Step(Next.FAIL)


def _paced(error: ApiError) -> bool:
    """Whether the server asked to be asked again, as client-go reads it: any verb whose body can be sent twice."""
    hinted = error.retry_after is not None and isinstance(error, TooManyRequests | ServerError)
    return hinted and not version_is_ahead(error)


def _timed_out(error: ApiError) -> bool:
    """Whether the server, or a proxy, gave up waiting for something that may still have happened."""
    return error.code in {502, 504} or error.reason in {"Timeout", "ServerTimeout"}
