from __future__ import annotations

import json

import pytest

from kubectl_ctrl.model.attempt import Outcome, Verdict, WaitingRequest
from kubectl_ctrl.render.summary import summary_fields, summary_lines
from kubectl_ctrl.runtime.summary import FailedRequest, Reason, Summary, UndoneRequest, Unmet
from tests.render.samples import NOON, PIPE, TERMINAL, WEB


def left(state: str, *, due: float | None = None, failures: int = 0) -> UndoneRequest:
    return UndoneRequest(
        controller="foo", entry=WaitingRequest(request=WEB, state=state, since=NOON, due=due, failures=failures)
    )


FAILED = FailedRequest(
    controller="foo", request=WEB, verdict=Verdict(outcome=Outcome.TERMINAL, message="Its name is bad\x07.")
)


@pytest.mark.parametrize("reason", [Reason.IDLE, Reason.UNTIL])
def test_a_run_that_reached_its_goal_has_nothing_unfinished(reason: Reason) -> None:
    summary = Summary(reason=reason, left=(left("timer", due=NOON + 3600),))
    assert summary_lines(summary, TERMINAL) == []
    assert len(summary_fields(summary)["left"]) == 1


def test_a_run_without_unfinished_objects_prints_nothing() -> None:
    assert summary_lines(Summary(reason=Reason.STOPPED), TERMINAL) == []


def test_unfinished_and_failed_objects() -> None:
    summary = Summary(
        reason=Reason.CUT,
        left=(
            left("ready"),
            left("running"),
            left("backoff", due=NOON + 60, failures=3),
            left("backoff", due=NOON + 60, failures=1),
            left("timer", due=NOON + 3600),
        ),
        failed=(FAILED,),
    )
    assert summary_lines(summary, TERMINAL) == [
        "unfinished at exit: 5",
        "  foo default/web  in the queue since 12:00:00",
        "  foo default/web  running since 12:00:00",
        "  foo default/web  3 failures in a row, next retry due 12:01:00",
        "  foo default/web  1 failure, next retry due 12:01:00",
        "  foo default/web  next reconcile due 13:00:00",
        "failed in the last attempt: 1",
        "  foo default/web  FAILED, no retry: Its name is bad\\x07.",
    ]


def test_a_timeout_names_every_condition_and_since_when() -> None:
    unmet = (Unmet("foos are not installed", NOON), Unmet("foo default/web waits for rollout 0/1", NOON + 1))
    assert summary_lines(Summary(reason=Reason.TIMEOUT, unmet=unmet), PIPE) == [
        "waited for: 2",
        "  foos are not installed (since 2026-01-01T12:00:00.000+00:00)",
        "  foo default/web waits for rollout 0/1 (since 2026-01-01T12:00:01.000+00:00)",
    ]
    assert summary_lines(Summary(reason=Reason.NOT_INSTALLED, unmet=unmet), PIPE) == []


def test_a_long_list_is_cut_and_counted() -> None:
    lines = summary_lines(Summary(reason=Reason.CUT, left=(left("ready"),) * 30), TERMINAL)
    assert (lines[0], len(lines), lines[-1]) == ("unfinished at exit: 30", 22, "  and 10 more")


def test_the_json_has_everything() -> None:
    summary = Summary(
        reason=Reason.TIMEOUT, left=(left("ready"),) * 30, failed=(FAILED,), unmet=(Unmet("x is not y", NOON),)
    )
    fields = json.loads(json.dumps(summary_fields(summary)))
    assert (fields["reason"], len(fields["left"])) == ("timeout", 30)
    assert fields["left"][0] == {
        "controller": "foo",
        "object": "default/web",
        "state": "ready",
        "since": NOON,
        "due": None,
        "failures": 0,
    }
    assert fields["failed"][0]["message"] == "Its name is bad\x07."
    assert fields["unmet"] == [{"what": "x is not y", "since": NOON}]
