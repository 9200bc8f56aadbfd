from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.render.attempts import attempt_text
from kubectl_ctrl.render.style import Style
from kubectl_ctrl.value import replace
from tests.render.samples import (
    CREATED,
    INITIAL,
    NOON,
    PIPE,
    QUOTA,
    SCALED,
    STATUS,
    TERMINAL,
    attempt,
    changed,
    written,
)

WAITING = Verdict(outcome=Outcome.WAITING, message="rollout 0/1")
RETRY = Verdict(outcome=Outcome.RETRY, delay=5, message=QUOTA, error_id="CTRL-FORBIDDEN")
REFUSED = replace(CREATED, code=403, error=QUOTA)
RETRIED = Cause(kind=CauseKind.RETRY, at=NOON, attempt="r7f3-11", count=2, detail="Conflict (409)")
TIMER = Cause(kind=CauseKind.TIMER, at=NOON, attempt="r7f3-11", detail="30s")

HEAD = "2026-01-01T12:00:00.000+00:00 default/web r7f3-12  "


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (
            attempt(INITIAL, verdict=WAITING, calls=(CREATED, STATUS)),
            "initial list | create Deployment/web 201, apply Foo/web/status 200 | 41ms waiting: rollout 0/1",
        ),
        (attempt(SCALED), "spec.replicas 1→3 by kubectl-edit | no writes | 41ms done"),
        (
            attempt(SCALED, INITIAL, total=9),
            "spec.replicas 1→3 by kubectl-edit +8 more | no writes | 41ms done",
        ),
        (
            attempt(RETRIED, verdict=RETRY, calls=(REFUSED,)),
            "retry 2 after Conflict (409) | create Deployment/web 403 | 41ms FAILED, retry in 5s: " + QUOTA,
        ),
        (
            attempt(TIMER, verdict=Verdict(outcome=Outcome.TERMINAL, message="spec.deploymentName is empty.")),
            "timer, 30s requested by r7f3-11 | no writes | 41ms FAILED, no retry: spec.deploymentName is empty.",
        ),
        (
            attempt(TIMER, verdict=Verdict(outcome=Outcome.TERMINAL, delay=7200, message="Denied by policy.")),
            "timer, 30s requested by r7f3-11 | no writes | 41ms FAILED, again in 2h: Denied by policy.",
        ),
        (
            attempt(
                replace(INITIAL, kind=CauseKind.DELETED, resource=DEPLOYMENTS), verdict=Verdict(outcome=Outcome.AGAIN)
            ),
            "Deployment/web deleted | no writes | 41ms again immediately",
        ),
        (
            attempt(SCALED, verdict=Verdict(outcome=Outcome.AFTER, delay=90), calls=(replace(CREATED, code=None),)),
            "spec.replicas 1→3 by kubectl-edit | create Deployment/web outcome unknown | 41ms again in 1m30s",
        ),
        (
            attempt(SCALED, verdict=Verdict(outcome=Outcome.DROPPED)),
            "spec.replicas 1→3 by kubectl-edit | no writes | 41ms canceled",
        ),
        (
            attempt(replace(SCALED, relisted=True)),
            "spec.replicas 1→3 (several versions not seen) | no writes | 41ms done",
        ),
    ],
)
def test_a_line_in_a_pipe(shown: RecordedAttempt, text: str) -> None:
    assert attempt_text(shown, PIPE) == HEAD + text


def test_successful_reads_and_dry_runs_are_not_shown() -> None:
    calls = (replace(CREATED, verb="get", code=200), replace(CREATED, dry_run=True))
    assert attempt_text(attempt(SCALED, calls=calls), PIPE).split(" | ")[1] == "no writes"


def test_failed_reads_and_dry_runs_are_shown() -> None:
    calls = (replace(CREATED, verb="get", code=500, error="no"), replace(CREATED, dry_run=True, code=422, error="no"))
    assert (
        attempt_text(attempt(SCALED, calls=calls), PIPE).split(" | ")[1]
        == "get Deployment/web 500, create Deployment/web 422 (dry run)"
    )


LONG = Request("default", "a-name-that-is-long-enough-to-be-in-the-way-of-everything-else")


def test_lines_at_a_terminal_of_80_columns() -> None:
    shown = [
        attempt(INITIAL, verdict=WAITING, calls=(CREATED, STATUS)),
        attempt(SCALED),
        attempt(RETRIED, verdict=RETRY, calls=(REFUSED,)),
        attempt(INITIAL, verdict=WAITING, calls=(CREATED, STATUS), request=LONG),
        attempt(SCALED, request=Request("other", "web")),
    ]
    assert [line for one in shown for line in attempt_text(one, TERMINAL).split("\n")] == [
        "12:00:00 web 12  initial list",
        "    create Deployment/web 201, apply Foo/web/status… | 41ms waiting: rollout 0/1",
        "12:00:00 web 12  spec.replicas 1→3 by kubectl-edit | no writes | 41ms done",
        "12:00:00 web 12  retry 2 after Conflict (409)",
        "    create Deployment/web 403 | 41ms FAILED, retry in 5s",
        '    deployments.apps "web" is forbidden: exceeded quota: none, requested:',
        "    count/deployments.apps=1, used: count/deployments.apps=0, limited:",
        "    count/deployments.apps=0.",
        "12:00:00 a-name-that-is-long-enoug… 12  initial list",
        "    create Deployment/web 201, apply Foo/web/status… | 41ms waiting: rollout 0/1",
        "12:00:00 other/web 12  spec.replicas 1→3 by kubectl-edit | no writes | 41ms done",
    ]


def test_a_last_failure_promises_no_retry() -> None:
    last = replace(RETRY, delay=0.0, last=True)
    assert attempt_text(attempt(SCALED, verdict=last), PIPE).endswith(f"41ms FAILED: {QUOTA}")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("request_", [Request("default", "web"), LONG])
@pytest.mark.parametrize("verdict", [WAITING, RETRY, Verdict(outcome=Outcome.DONE)])
def test_no_line_is_wider_than_the_terminal(width: int, request_: Request, verdict: Verdict) -> None:
    shown = attempt(SCALED, verdict=verdict, calls=(CREATED, STATUS), request=request_)
    lines = attempt_text(shown, replace(TERMINAL, width=width)).splitlines()
    assert max(map(len, lines)) <= width
    assert verdict.message == "" or verdict.message in " ".join(line.strip() for line in lines)


def test_ascii_is_enough() -> None:
    shown = attempt(SCALED, verdict=WAITING, calls=(CREATED, STATUS))
    text = attempt_text(shown, replace(TERMINAL, unicode=False, width=60))
    assert text.isascii()
    assert "..." in text
    assert "1->3" in attempt_text(shown, replace(PIPE, unicode=False))


def test_colour_is_for_what_needs_attention() -> None:
    style = replace(PIPE, color=True)
    assert attempt_text(attempt(SCALED, verdict=RETRY), style).endswith(
        f"| \x1b[31m41ms FAILED, retry in 5s: {QUOTA}\x1b[0m"
    )
    assert "\x1b[33m" in attempt_text(attempt(SCALED, verdict=WAITING), style)
    assert "\x1b" not in attempt_text(attempt(SCALED), style)


def test_times_are_in_the_requested_zone() -> None:
    style = replace(TERMINAL, zone=timezone(timedelta(hours=2)))
    assert attempt_text(attempt(SCALED), style).startswith("14:00:00 ")


def test_nothing_of_an_object_drives_the_terminal() -> None:
    bad = "\x1b[2J\nnext\u202e\ud800"
    cause = changed(written({"a": "x"}), written({"a": bad}, manager=bad))
    verdict = Verdict(outcome=Outcome.RETRY, message=bad)
    for style in (PIPE, replace(TERMINAL, width=200)):
        text = attempt_text(attempt(cause, verdict=verdict, request=Request("default", bad)), style)
        assert text.isprintable()
        assert text.encode()
        assert "\\x1b[2J\\x0anext\\u202e\\ud800" in text


def test_long_values_give_way_to_their_path() -> None:
    cause = changed(written({"a": "x", "b": 1}), written({"a": "y" * 100, "b": 2, "c": True}))
    assert attempt_text(attempt(cause), PIPE).split("  ")[1].startswith("spec.a, spec.b 1→2, 1 more by ")


def test_several_controllers_are_told_apart() -> None:
    assert attempt_text(attempt(SCALED), Style(controllers=True)).startswith("12:00:00 foo default/web r7f3-12  ")
