from __future__ import annotations

from datetime import timedelta

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.runtime.contract import Ensured, How, Result
from tests.runtime.toy import TOYS, made


@pytest.mark.parametrize(("after", "seconds"), [(None, None), (2.5, 2.5), (timedelta(minutes=2), 120.0)], ids=str)
def test_a_delay_is_seconds_or_a_timedelta(after: float | timedelta | None, seconds: float | None) -> None:
    assert Result(after).seconds == seconds


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), timedelta(seconds=-1)], ids=str)
def test_a_time_that_is_not_ahead_is_refused_where_it_is_said(after: float | timedelta) -> None:
    with pytest.raises(ControllerError, match="must be a time above 0"):
        Result(after)


@pytest.mark.parametrize("waiting_for", ["", "rain"])
@pytest.mark.parametrize("after", [0, 0.0, timedelta()], ids=str)
def test_a_delay_of_zero_is_refused_with_what_to_return_instead(after: float | timedelta, waiting_for: str) -> None:
    with pytest.raises(ControllerError, match=r"or never: return Result\(again=True\) .* None when"):
        Result(after, waiting_for=waiting_for)


def test_another_pass_at_once_takes_no_delay_and_no_reason_to_wait() -> None:
    for extra in ({"after": 1.0}, {"waiting_for": "rain"}):
        with pytest.raises(ControllerError, match="runs at once"):
            Result(again=True, **extra)


def test_an_error_beside_a_schedule_needs_the_schedule() -> None:
    error = ValueError("No.")
    assert Result(5, failed=error).failed is error
    for extra in ({}, {"after": 5.0, "waiting_for": "rain"}):
        with pytest.raises(ControllerError, match="without a schedule, raise it"):
            Result(failed=error, **extra)  # type: ignore[arg-type]


def test_everything_but_a_foreign_child_is_ours() -> None:
    toy = made(TOYS, "bear")
    assert [how for how in How if not Ensured(toy, how).ours] == [How.FOREIGN]
