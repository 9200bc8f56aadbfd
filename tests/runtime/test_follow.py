from __future__ import annotations

import pytest

from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.runtime.follow import follow, pause
from kubectl_ctrl.workqueue.values import LIVE, After, Again, Retry


def follows(verdict: Verdict, agains: int = 0) -> object:
    return follow(verdict, "r7f3-1", at=5.0, agains=agains)


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.TERMINAL, Outcome.WAITING])
def test_what_needs_something_new_gets_no_timer(outcome: Outcome) -> None:
    assert follows(Verdict(outcome=outcome)) is None


@pytest.mark.parametrize("outcome", [Outcome.AFTER, Outcome.WAITING])
def test_a_time_is_a_timer_that_says_who_asked_for_it(outcome: Outcome) -> None:
    after = follows(Verdict(outcome=outcome, delay=90, message="rain"))
    assert isinstance(after, After)
    assert (after.delay, after.priority) == (90, LIVE)
    assert (after.cause.kind, after.cause.attempt, after.cause.detail) == (CauseKind.TIMER, "r7f3-1", "1m30s")


def test_a_failure_is_a_retry_that_says_what_failed_and_how_often() -> None:
    retry = follows(Verdict(outcome=Outcome.RETRY, delay=7, message="no wheels"))
    assert isinstance(retry, Retry)
    cause = retry.cause_of(3, 20.0)
    assert (retry.at_least, cause.kind, cause.count, cause.detail) == (7, CauseKind.RETRY, 3, "no wheels")


def test_what_was_cut_runs_again_as_soon_as_it_may() -> None:
    again = follows(Verdict(outcome=Outcome.DROPPED, message="the lease was lost"))
    assert isinstance(again, Again)
    assert (again.cause.kind, again.cause.detail) == (CauseKind.RETRY, "the lease was lost")


def test_the_first_pass_asked_for_is_at_once_and_a_row_of_them_is_spread() -> None:
    assert isinstance(follows(Verdict(outcome=Outcome.AGAIN)), Again)
    later = follows(Verdict(outcome=Outcome.AGAIN), agains=3)
    assert isinstance(later, After)
    assert later.delay == 0.04
    assert [pause(agains) for agains in (1, 2, 50, 10**6)] == [0.01, 0.02, 10.0, 10.0]
