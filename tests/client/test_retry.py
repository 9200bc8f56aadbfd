from __future__ import annotations

from typing import Any

import pytest

from kubectl_ctrl.client.order import Order, WhenLost
from kubectl_ctrl.client.retry import MOST_SENDS, Next, Sent, Step, casts_doubt, decide, pause, version_is_ahead
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


def lost(error: type[CallError] = Unreachable) -> Sent:
    return Sent(error=error("Lost.", site=SITE), lost=True)


def unsent() -> Sent:
    return Sent(error=Unreachable("Refused.", site=SITE))


def refused(kind: type[ApiError], code: int = 0, **more: Any) -> Sent:
    return Sent(error=kind("No.", site=SITE, code=code, **more))


def step(order: Order, sent: Sent, *, sends: int = 1, doubted: bool = False, left: float = 20.0) -> Step:
    return decide(order, sent, sends=sends, doubted=doubted, left=left)


@pytest.mark.parametrize("order", [READ, APPLY, CREATE, PATCH, BLIND, DELETE, DRY, ONCE])
def test_an_answer_is_an_answer(order: Order) -> None:
    for doubted in (False, True):
        assert step(order, Sent(), doubted=doubted, left=0.0) == Step(Next.DONE)


@pytest.mark.parametrize("order", [READ, APPLY, CREATE, PATCH, BLIND, DELETE, DRY])
def test_what_never_left_fails_at_once(order: Order) -> None:
    assert step(order, unsent()) == Step(Next.FAIL)


@pytest.mark.parametrize("order", [APPLY, CREATE, PATCH, DELETE])
def test_but_after_a_lost_send_there_is_still_something_to_find_out(order: Order) -> None:
    assert step(order, unsent(), sends=2, doubted=True).next is Next.RESEND
    assert step(order, unsent(), sends=2, doubted=True, left=0.1) == Step(Next.UNKNOWN)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (APPLY, Next.RESEND),
        (DELETE, Next.RESEND),
        (CREATE, Next.READ),
        (PATCH, Next.READ),
        (BLIND, Next.UNKNOWN),
        (READ, Next.RESEND),
        (DRY, Next.RESEND),
        (ONCE, Next.FAIL),
    ],
)
@pytest.mark.parametrize("error", [Unreachable, DeadlinePassed])
def test_a_lost_answer(order: Order, expected: Next, error: type[CallError]) -> None:
    assert step(order, lost(error)).next is expected


@pytest.mark.parametrize(
    ("order", "expected"), [(APPLY, Next.RESEND), (CREATE, Next.READ), (BLIND, Next.UNKNOWN), (READ, Next.FAIL)]
)
def test_garbage_after_a_write_is_a_lost_answer_and_after_a_read_an_error(order: Order, expected: Next) -> None:
    assert step(order, lost(BadAnswer)).next is expected


def test_reads_are_repeated_a_few_times_only() -> None:
    assert [step(READ, lost(), sends=sends).next for sends in (1, 2, 3)] == [Next.RESEND, Next.RESEND, Next.FAIL]


def test_repeating_ends_with_the_time_and_with_the_count() -> None:
    assert step(APPLY, lost(), left=pause(1)) == Step(Next.UNKNOWN)
    assert step(APPLY, lost(), sends=MOST_SENDS) == Step(Next.UNKNOWN)
    assert step(READ, lost(), left=0.1) == Step(Next.FAIL)


@pytest.mark.parametrize("order", [READ, APPLY, CREATE, PATCH, BLIND, DELETE, DRY])
@pytest.mark.parametrize("kind", [(TooManyRequests, 429), (ServerError, 503), (ServerError, 500)])
def test_retry_after_is_honoured_for_every_verb(order: Order, kind: tuple[type[ApiError], int]) -> None:
    error, code = kind
    assert step(order, refused(error, code, retry_after=3.0)) == Step(Next.RESEND, 3.0)
    assert step(order, refused(error, code, retry_after=3.0), sends=MOST_SENDS) == Step(Next.FAIL)
    assert step(order, refused(error, code, retry_after=30.0)) == Step(Next.FAIL)
    assert step(order, refused(error, code)) == Step(Next.FAIL)


def test_retry_after_zero_is_no_tight_loop() -> None:
    waits = [step(READ, refused(TooManyRequests, 429, retry_after=0.0), sends=n, left=99).pause for n in range(1, 10)]
    assert waits == sorted(waits)
    assert waits[0] == 0.1
    assert waits[-1] == 1.0


def test_a_version_ahead_of_the_server_is_not_waited_for() -> None:
    causes = (StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version"),)
    error = refused(ServerError, 504, retry_after=1.0, causes=causes)
    assert step(READ, error) == Step(Next.FAIL)
    assert version_is_ahead(error.error)
    assert not version_is_ahead(refused(ServerError, 504).error)
    assert not version_is_ahead(None)


@pytest.mark.parametrize(
    ("code", "reason"), [(502, ""), (504, ""), (504, "Timeout"), (500, "ServerTimeout"), (500, "Timeout")]
)
def test_a_timeout_somewhere_leaves_a_write_open(code: int, reason: str) -> None:
    error = refused(ServerError, code, reason=reason)
    assert step(CREATE, error) == Step(Next.READ)
    assert step(PATCH, error) == Step(Next.READ)
    assert step(BLIND, error) == Step(Next.UNKNOWN)
    assert step(APPLY, error) == Step(Next.FAIL)
    assert step(READ, error) == Step(Next.FAIL)
    assert step(DRY, error) == Step(Next.FAIL)
    hinted = refused(ServerError, code, reason=reason, retry_after=2.0)
    assert step(CREATE, hinted) == Step(Next.RESEND, 2.0)
    assert step(BLIND, hinted) == Step(Next.UNKNOWN)


@pytest.mark.parametrize("code", [500, 503])
def test_a_plain_failure_is_a_failure(code: int) -> None:
    for order in (CREATE, PATCH, BLIND, APPLY, READ):
        assert step(order, refused(ServerError, code)) == Step(Next.FAIL)


@pytest.mark.parametrize(
    ("order", "kind", "expected"),
    [
        (CREATE, AlreadyExists, Next.READ),
        (PATCH, Conflict, Next.READ),
        (PATCH, Invalid, Next.READ),
        (PATCH, Replaced, Next.FAIL),
        (PATCH, NotFound, Next.FAIL),
        (DELETE, NotFound, Next.GONE),
        (DELETE, Replaced, Next.GONE),
        (DELETE, Conflict, Next.GONE),
        (DELETE_VERSION, NotFound, Next.GONE),
        (DELETE_VERSION, Conflict, Next.READ),
        (APPLY, Conflict, Next.FAIL),
        (APPLY, Replaced, Next.FAIL),
        (APPLY, Forbidden, Next.FAIL),
        (CREATE, Forbidden, Next.FAIL),
        (CREATE, ServerError, Next.UNKNOWN),
        (APPLY, TooManyRequests, Next.UNKNOWN),
    ],
)
def test_a_refusal_in_doubt_may_be_an_echo_and_without_doubt_is_none(
    order: Order, kind: type[ApiError], expected: Next
) -> None:
    assert step(order, refused(kind, 400), sends=2, doubted=True).next is expected
    assert step(order, refused(kind, 400)).next is Next.FAIL


def test_definite_refusals_are_final() -> None:
    for kind in (Unauthorized, Forbidden, Expired, Invalid):
        for order in (READ, APPLY, CREATE):
            assert step(order, refused(kind, 400)) == Step(Next.FAIL)


@pytest.mark.parametrize("sent", [lost(), lost(BadAnswer), refused(ServerError, 503)])
def test_what_casts_doubt(sent: Sent) -> None:
    assert casts_doubt(CREATE, sent)
    assert not casts_doubt(READ, sent)
    assert not casts_doubt(DRY, sent)


@pytest.mark.parametrize("sent", [unsent(), Sent(), refused(TooManyRequests, 429), refused(Conflict, 409)])
def test_what_does_not(sent: Sent) -> None:
    assert not casts_doubt(CREATE, sent)


def test_pauses_grow_to_a_bound() -> None:
    assert [pause(sends) for sends in range(1, 8)] == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
