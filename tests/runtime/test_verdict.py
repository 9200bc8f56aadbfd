from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kubectl_ctrl import errors
from kubectl_ctrl.errors import ApiError, CallError, CallSite
from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.runtime.contract import Context, Result
from kubectl_ctrl.runtime.verdict import (
    NOT_INSTALLED_RETRY,
    SLOW_RETRY,
    AttemptTimeout,
    judge_error,
    judge_result,
    where_raised,
)

SITE = CallSite("patch", "toys default/bear")


def api(kind: type[ApiError], code: int = 400, retry_after: float | None = None) -> ApiError:
    return kind("It said no.", site=SITE, code=code, retry_after=retry_after)


def call(kind: type[CallError], retry_after: float | None = None) -> CallError:
    return kind("It did not work.", site=SITE, retry_after=retry_after)


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (None, Verdict(outcome=Outcome.DONE)),
        (Result(), Verdict(outcome=Outcome.DONE)),
        (Result(again=True), Verdict(outcome=Outcome.AGAIN)),
        (Result(30), Verdict(outcome=Outcome.AFTER, delay=30)),
        (Result(waiting_for="rollout 3/5"), Verdict(outcome=Outcome.WAITING, message="rollout 3/5")),
        (Result(5, waiting_for="a\nb"), Verdict(outcome=Outcome.WAITING, delay=5, message="a b")),
    ],
    ids=str,
)
def test_what_a_reconcile_returned(result: Result | None, verdict: Verdict) -> None:
    assert judge_result(result) == verdict


def test_returning_anything_else_is_a_mistake_that_no_retry_mends() -> None:
    verdict = judge_result(True)
    assert (verdict.outcome, verdict.error_id) == (Outcome.TERMINAL, "CTRL-CONTROLLER")
    assert "returned True" in verdict.message


# Every class of the error tree stands here: a new one needs a decision.
FATES: dict[type[errors.CtrlError], tuple[Outcome, float]] = {
    errors.CtrlError: (Outcome.RETRY, 0),
    errors.UsageError: (Outcome.TERMINAL, 0),
    errors.ConfigError: (Outcome.RETRY, 0),
    errors.CredentialsError: (Outcome.RETRY, 0),
    errors.PrerequisiteMissing: (Outcome.RETRY, 0),
    errors.ProgramFailed: (Outcome.RETRY, 0),
    errors.ClusterError: (Outcome.RETRY, 0),
    errors.NoCluster: (Outcome.RETRY, 0),
    errors.Refused: (Outcome.TERMINAL, 0),
    errors.NotInstalled: (Outcome.WAITING, NOT_INSTALLED_RETRY),
    errors.TimedOut: (Outcome.RETRY, 0),
    errors.NotRecorded: (Outcome.RETRY, 0),
    errors.RecordingError: (Outcome.RETRY, 0),
    errors.QueueClosed: (Outcome.RETRY, 0),
    errors.ControllerError: (Outcome.TERMINAL, 0),
    errors.ReadOnlyObject: (Outcome.TERMINAL, 0),
    errors.TerminalError: (Outcome.TERMINAL, 0),
    errors.CallError: (Outcome.RETRY, 0),
    errors.Unreachable: (Outcome.RETRY, 0),
    errors.Untrusted: (Outcome.RETRY, 0),
    errors.DeadlinePassed: (Outcome.RETRY, 0),
    errors.OutcomeUnknown: (Outcome.RETRY, 0),
    errors.NotLeading: (Outcome.DROPPED, 0),
    errors.BadAnswer: (Outcome.RETRY, 0),
    errors.ApiError: (Outcome.RETRY, 0),
    errors.BadRequest: (Outcome.RETRY, 0),
    errors.Unauthorized: (Outcome.RETRY, 0),
    errors.Forbidden: (Outcome.RETRY, SLOW_RETRY),
    errors.NamespaceTerminating: (Outcome.WAITING, 0),
    errors.NotFound: (Outcome.RETRY, 0),
    errors.NotServed: (Outcome.WAITING, NOT_INSTALLED_RETRY),
    errors.Replaced: (Outcome.RETRY, 0),
    errors.MethodNotAllowed: (Outcome.RETRY, 0),
    errors.Conflict: (Outcome.RETRY, 0),
    errors.AlreadyExists: (Outcome.RETRY, 0),
    errors.Expired: (Outcome.RETRY, 0),
    errors.Invalid: (Outcome.TERMINAL, 0),
    errors.TooManyRequests: (Outcome.RETRY, 0),
    errors.ServerError: (Outcome.RETRY, 0),
}


def _tree(kind: type[errors.CtrlError]) -> list[type[errors.CtrlError]]:
    return [kind] + [inner for child in kind.__subclasses__() for inner in _tree(child)]


def _made(kind: type[errors.CtrlError]) -> errors.CtrlError:
    if kind is errors.ProgramFailed:
        return errors.ProgramFailed("It did not work.", argv=("toy",), outcome="exited with code 1", code=1)
    if issubclass(kind, ApiError):
        return api(kind)
    return call(kind) if issubclass(kind, CallError) else kind("It did not work.")


def test_every_error_of_the_tree_has_a_decided_fate() -> None:
    own = [kind for kind in _tree(errors.CtrlError) if kind.__module__ == errors.__name__]
    judged = {kind: judge_error(_made(kind)) for kind in own}
    assert {kind: (verdict.outcome, verdict.delay) for kind, verdict in judged.items()} == FATES
    assert all(verdict.error_id == kind.id for kind, verdict in judged.items())


@pytest.mark.parametrize("kind", [errors.TooManyRequests, errors.ServerError, errors.Conflict])
def test_a_server_that_names_a_time_is_not_asked_before_it(kind: type[ApiError]) -> None:
    assert judge_error(api(kind, retry_after=7)).delay == 7


def test_a_server_that_asks_for_a_day_is_asked_again_in_minutes() -> None:
    assert judge_error(api(errors.TooManyRequests, 429, retry_after=86_400)).delay == 300
    assert judge_error(api(errors.Forbidden, 403, retry_after=86_400)).delay == 300


def test_a_refusal_is_retried_slowly_and_not_before_the_time_it_names() -> None:
    assert judge_error(api(errors.Forbidden, 403, retry_after=1)).delay == SLOW_RETRY
    assert judge_error(api(errors.Forbidden, 403, retry_after=90)).delay == 90


@pytest.mark.parametrize(
    ("kind", "verb", "target", "outcome"),
    [
        (errors.NotFound, "apply", "toys.example.com default/bear/status", Outcome.DONE),
        (errors.Replaced, "patch", "toys.example.com default/bear", Outcome.DONE),
        (errors.NotFound, "patch", "toys.example.com default/bear-2", Outcome.RETRY),
        (errors.NotFound, "apply", "configmaps default/bear", Outcome.RETRY),
        (errors.NotFound, "create", "toys.example.com default/bear/status", Outcome.RETRY),
        (errors.NotServed, "apply", "toys.example.com default/bear/status", Outcome.WAITING),
        (errors.Conflict, "apply", "toys.example.com default/bear", Outcome.RETRY),
    ],
)
def test_that_the_object_itself_is_gone_is_no_error(
    kind: type[ApiError], verb: str, target: str, outcome: Outcome
) -> None:
    error = kind("It did not work.", site=errors.CallSite(verb, target), code=404)
    assert judge_error(error, about="toys.example.com default/bear").outcome is outcome


def test_an_error_of_the_reconcilers_own_is_retried_and_named_by_its_type() -> None:
    verdict = judge_error(ValueError("no such\n  colour"))
    assert (verdict.outcome, verdict.error_id) == (Outcome.RETRY, "ValueError")
    assert verdict.message == "ValueError: no such colour"
    assert judge_error(ValueError()).message == "ValueError"


def test_a_cut_attempt_is_dropped_and_a_timed_out_one_retried() -> None:
    assert judge_error(asyncio.CancelledError()).outcome is Outcome.DROPPED
    timed_out = judge_error(AttemptTimeout(60))
    assert (timed_out.outcome, timed_out.message) == (
        Outcome.RETRY,
        "The attempt was canceled after its timeout of 60 s.",
    )


def test_of_several_errors_at_once_the_most_hopeful_decides() -> None:
    terminal, plain = errors.TerminalError("Broken."), ValueError("x")
    slow = api(errors.Forbidden, 403)
    group = ExceptionGroup("many", [terminal, ExceptionGroup("more", [plain, slow])])
    verdict = judge_error(group, "toy/reconciler.py:3")
    assert (verdict.outcome, verdict.delay, verdict.where) == (Outcome.RETRY, SLOW_RETRY, "toy/reconciler.py:3")
    assert verdict.message == "It said no. (and 2 more)"
    assert judge_error(ExceptionGroup("one", [terminal])).outcome is Outcome.TERMINAL


@pytest.mark.parametrize(
    ("others", "outcome"),
    [
        ([], Outcome.DONE),
        (
            [errors.NotFound("Gone.", site=errors.CallSite("patch", "toys.example.com default/bear"), code=404)],
            Outcome.DONE,
        ),
        ([errors.TerminalError("Broken.")], Outcome.TERMINAL),
        ([ValueError("x")], Outcome.RETRY),
    ],
    ids=["alone", "twice", "beside a terminal error", "beside an error"],
)
def test_the_objects_own_end_is_no_error_in_a_group_either(others: list[Exception], outcome: Outcome) -> None:
    gone = errors.NotFound("Gone.", site=errors.CallSite("apply", "toys.example.com default/bear/status"), code=404)
    group = ExceptionGroup("many", [ExceptionGroup("unhandled errors in a TaskGroup", [gone]), *others])
    verdict = judge_error(group, about="toys.example.com default/bear")
    assert verdict.outcome is outcome
    if outcome is Outcome.DONE:
        assert verdict.message == "The object was deleted during the reconcile."


def test_a_long_message_is_cut() -> None:
    message = judge_error(ValueError("x" * 5000)).message
    assert (len(message), message[-3:]) == (1000, "...")


def test_only_retries_and_terminal_errors_are_failures() -> None:
    failed = [outcome for outcome in Outcome if Verdict(outcome=outcome).failed]
    assert failed == [Outcome.RETRY, Outcome.TERMINAL]


async def _reconcile(ctx: Context, request: Request) -> None:
    _deeper()


def _deeper() -> None:
    json.loads("")  # raises inside the standard library


class _Object:
    async def __call__(self, ctx: Context, request: Request) -> None:
        _deeper()


@pytest.mark.parametrize("reconciler", [_reconcile, _Object()])
def test_where_is_the_innermost_line_of_the_reconcilers_own_code(reconciler: Any) -> None:
    with pytest.raises(ValueError, match="Expecting value") as caught:
        reconciler(None, None).send(None)
    line = _deeper.__code__.co_firstlineno + 1
    assert where_raised(caught.value, reconciler) == f"runtime/test_verdict.py:{line}"


def test_an_error_that_never_passed_the_reconciler_has_no_place() -> None:
    assert where_raised(ValueError(), _reconcile) == ""
