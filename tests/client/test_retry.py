from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.client.order import Order, WhenLost
from kubectl_ctrl.client.retry import (
    MOST_SENDS,
    NextAction,
    RetryStep,
    SendResult,
    casts_doubt,
    decide,
    pause,
    version_is_ahead,
)
from kubectl_ctrl.errors import (
    AlreadyExists,
    ApiError,
    BadAnswer,
    CallError,
    CallSite,
    Conflict,
    DeadlinePassed,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    Replaced,
    ServerError,
    StatusCause,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from tests.client.rig import an_order

SITE = CallSite("get", "x")

READ = an_order()
APPLY = an_order(verb="apply")
CREATE = an_order(verb="create", when_lost=WhenLost.READ)
PATCH = an_order(verb="patch", when_lost=WhenLost.READ, old_version="7")
BLIND = an_order(verb="patch", when_lost=WhenLost.UNKNOWN)
DELETE = an_order(verb="delete")
DELETE_VERSION = an_order(verb="delete", old_version="7")
DRY = an_order(verb="create", dry_run=True)
ONCE = an_order(verb="list", resend=False)


def lost(error: type[CallError] = Unreachable) -> SendResult:
    return SendResult(error=error("Lost.", site=SITE), lost=True)


def unsent() -> SendResult:
    return SendResult(error=Unreachable("Refused.", site=SITE))


def refused(kind: type[ApiError], code: int = 0, **more: Any) -> SendResult:
    return SendResult(error=kind("No.", site=SITE, code=code, **more))


def step(order: Order, sent: SendResult, *, sends: int = 1, doubted: bool = False, left: float = 20.0) -> RetryStep:
    return decide(order, sent, sends=sends, doubted=doubted, left=left)


@pytest.mark.parametrize("order", [READ, APPLY, CREATE, PATCH, BLIND, DELETE, DRY, ONCE])
def test_an_answer_is_an_answer(order: Order) -> None:
    for doubted in (False, True):
        assert step(order, SendResult(), doubted=doubted, left=0.0) == RetryStep(NextAction.DONE)


@pytest.mark.parametrize("order", [READ, APPLY, CREATE, PATCH, BLIND, DELETE, DRY])
def test_what_never_left_fails_at_once(order: Order) -> None:
    assert step(order, unsent()) == RetryStep(NextAction.FAIL)


@pytest.mark.parametrize("order", [APPLY, CREATE, PATCH, DELETE])
def test_but_after_a_lost_send_there_is_still_something_to_find_out(order: Order) -> None:
    assert step(order, unsent(), sends=2, doubted=True).next is NextAction.RESEND
    assert step(order, unsent(), sends=2, doubted=True, left=0.1) == RetryStep(NextAction.UNKNOWN)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (APPLY, NextAction.RESEND),
        (DELETE, NextAction.RESEND),
        (CREATE, NextAction.READ),
        (PATCH, NextAction.READ),
        (BLIND, NextAction.UNKNOWN),
        (READ, NextAction.RESEND),
        (DRY, NextAction.RESEND),
        (ONCE, NextAction.FAIL),
    ],
)
@pytest.mark.parametrize("error", [Unreachable, DeadlinePassed])
def test_a_lost_answer(order: Order, expected: NextAction, error: type[CallError]) -> None:
    assert step(order, lost(error)).next is expected


@pytest.mark.parametrize(
    ("order", "expected"),
    [(APPLY, NextAction.RESEND), (CREATE, NextAction.READ), (BLIND, NextAction.UNKNOWN), (READ, NextAction.FAIL)],
)
def test_garbage_after_a_write_is_a_lost_answer_and_after_a_read_an_error(order: Order, expected: NextAction) -> None:
    assert step(order, lost(BadAnswer)).next is expected


def test_reads_are_repeated_a_few_times_only() -> None:
    assert [step(READ, lost(), sends=sends).next for sends in (1, 2, 3)] == [
        NextAction.RESEND,
        NextAction.RESEND,
        NextAction.FAIL,
    ]


def test_repeating_ends_with_the_time_and_with_the_count() -> None:
    assert step(APPLY, lost(), left=pause(1)) == RetryStep(NextAction.UNKNOWN)
    assert step(APPLY, lost(), sends=MOST_SENDS) == RetryStep(NextAction.UNKNOWN)
    assert step(READ, lost(), left=0.1) == RetryStep(NextAction.FAIL)


@pytest.mark.parametrize("order", [READ, APPLY, CREATE, PATCH, BLIND, DELETE, DRY])
@pytest.mark.parametrize("kind", [(TooManyRequests, 429), (ServerError, 503), (ServerError, 500)])
def test_retry_after_is_honoured_for_every_verb(order: Order, kind: tuple[type[ApiError], int]) -> None:
    error, code = kind
    assert step(order, refused(error, code, retry_after=3.0)) == RetryStep(NextAction.RESEND, 3.0)
    assert step(order, refused(error, code, retry_after=3.0), sends=MOST_SENDS) == RetryStep(NextAction.FAIL)
    assert step(order, refused(error, code, retry_after=30.0)) == RetryStep(NextAction.FAIL)
    assert step(order, refused(error, code)) == RetryStep(NextAction.FAIL)


def test_retry_after_zero_is_no_tight_loop() -> None:
    waits = [step(READ, refused(TooManyRequests, 429, retry_after=0.0), sends=n, left=99).pause for n in range(1, 10)]
    assert waits == sorted(waits)
    assert waits[0] == 0.1
    assert waits[-1] == 1.0


def test_a_version_ahead_of_the_server_is_not_waited_for() -> None:
    causes = (StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version"),)
    error = refused(ServerError, 504, retry_after=1.0, causes=causes)
    assert step(READ, error) == RetryStep(NextAction.FAIL)
    assert version_is_ahead(error.error)
    assert not version_is_ahead(refused(ServerError, 504).error)
    assert not version_is_ahead(None)


@pytest.mark.parametrize(
    ("code", "reason"), [(502, ""), (504, ""), (504, "Timeout"), (500, "ServerTimeout"), (500, "Timeout")]
)
def test_a_timeout_somewhere_leaves_a_write_open(code: int, reason: str) -> None:
    error = refused(ServerError, code, reason=reason)
    assert step(CREATE, error) == RetryStep(NextAction.READ)
    assert step(PATCH, error) == RetryStep(NextAction.READ)
    assert step(BLIND, error) == RetryStep(NextAction.UNKNOWN)
    assert step(APPLY, error) == RetryStep(NextAction.FAIL)
    assert step(READ, error) == RetryStep(NextAction.FAIL)
    assert step(DRY, error) == RetryStep(NextAction.FAIL)
    hinted = refused(ServerError, code, reason=reason, retry_after=2.0)
    assert step(CREATE, hinted) == RetryStep(NextAction.RESEND, 2.0)
    assert step(BLIND, hinted) == RetryStep(NextAction.UNKNOWN)


@pytest.mark.parametrize("code", [500, 503])
def test_a_plain_failure_is_a_failure(code: int) -> None:
    for order in (CREATE, PATCH, BLIND, APPLY, READ):
        assert step(order, refused(ServerError, code)) == RetryStep(NextAction.FAIL)


@pytest.mark.parametrize(
    ("order", "kind", "expected"),
    [
        (CREATE, AlreadyExists, NextAction.READ),
        (PATCH, Conflict, NextAction.READ),
        (PATCH, Invalid, NextAction.READ),
        (PATCH, Replaced, NextAction.FAIL),
        (PATCH, NotFound, NextAction.FAIL),
        (DELETE, NotFound, NextAction.GONE),
        (DELETE, Replaced, NextAction.GONE),
        (DELETE, Conflict, NextAction.GONE),
        (DELETE_VERSION, NotFound, NextAction.GONE),
        (DELETE_VERSION, Conflict, NextAction.READ),
        (APPLY, Conflict, NextAction.FAIL),
        (APPLY, Replaced, NextAction.FAIL),
        (APPLY, Forbidden, NextAction.FAIL),
        (CREATE, Forbidden, NextAction.FAIL),
        (CREATE, ServerError, NextAction.UNKNOWN),
        (APPLY, TooManyRequests, NextAction.UNKNOWN),
    ],
)
def test_a_refusal_in_doubt_may_be_an_echo_and_without_doubt_is_none(
    order: Order, kind: type[ApiError], expected: NextAction
) -> None:
    assert step(order, refused(kind, 400), sends=2, doubted=True).next is expected
    assert step(order, refused(kind, 400)).next is NextAction.FAIL


def test_definite_refusals_are_final() -> None:
    for kind in (Unauthorized, Forbidden, Expired, Invalid):
        for order in (READ, APPLY, CREATE):
            assert step(order, refused(kind, 400)) == RetryStep(NextAction.FAIL)


@pytest.mark.parametrize("sent", [lost(), lost(BadAnswer), refused(ServerError, 503)])
def test_what_casts_doubt(sent: SendResult) -> None:
    assert casts_doubt(CREATE, sent)
    assert not casts_doubt(READ, sent)
    assert not casts_doubt(DRY, sent)


@pytest.mark.parametrize("sent", [unsent(), SendResult(), refused(TooManyRequests, 429), refused(Conflict, 409)])
def test_what_does_not(sent: SendResult) -> None:
    assert not casts_doubt(CREATE, sent)


def test_pauses_grow_to_a_bound() -> None:
    assert [pause(sends) for sends in range(1, 8)] == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
