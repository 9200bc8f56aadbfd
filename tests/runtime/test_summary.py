from __future__ import annotations

import pytest

from kubectl_ctrl.errors import NotInstalled, Refused, TimedOut
from kubectl_ctrl.runtime.summary import Reason, Summary, Unmet


@pytest.mark.parametrize("reason", [Reason.STOPPED, Reason.CUT, Reason.ONCE, Reason.IDLE])
def test_a_run_that_did_what_it_was_meant_to_has_no_problem(reason: Reason) -> None:
    assert Summary(reason=reason).problem() is None


def test_a_timeout_names_what_was_waited_for() -> None:
    problem = Summary(reason=Reason.TIMEOUT, unmet=(Unmet("a waits", 1.0), Unmet("b runs", 2.0))).problem()
    assert isinstance(problem, TimedOut)
    assert str(problem) == "The run timed out: a waits (and 1 more)."
    assert "still running" in str(Summary(reason=Reason.TIMEOUT).problem())


def test_a_missing_type_says_what_to_install() -> None:
    problem = Summary(reason=Reason.NOT_INSTALLED, unmet=(Unmet("foos are not installed", 1.0),)).problem()
    assert isinstance(problem, NotInstalled)
    assert str(problem) == "Nothing was reconciled: foos are not installed."


def test_what_ended_it_is_its_problem() -> None:
    error = Refused("Another cluster.")
    assert Summary(reason=Reason.FATAL, error=error).problem() is error
