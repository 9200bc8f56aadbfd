"""The numbers that Prometheus reads."""

from __future__ import annotations

import re

import pytest

from kubectl_ctrl.client.counters import Counters
from kubectl_ctrl.model.attempt import Attempt, Outcome, Verdict
from kubectl_ctrl.runtime.metrics import Metrics
from tests.objects import started


def attempt(verdict: Verdict, *, took: float = 0.02, waited: float = 0.001) -> Attempt:
    start = started("r1-1", waited=waited)
    return Attempt(start=start, took=took, verdict=verdict, calls=(), reads=())


def series(metrics: Metrics) -> dict[str, float]:
    lines = metrics.text().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def made() -> Metrics:
    return Metrics(["foo"], host="127.0.0.1:6443", counters=Counters())


def test_every_result_is_there_from_the_start() -> None:
    found = series(made())
    for result in ("success", "error", "requeue", "requeue_after"):
        assert found[f'controller_runtime_reconcile_total{{controller="foo",result="{result}"}}'] == 0
    for name in ("reconcile_errors", "terminal_reconcile_errors", "reconcile_panics", "reconcile_timeouts"):
        assert found[f'controller_runtime_{name}_total{{controller="foo"}}'] == 0


@pytest.mark.parametrize(
    ("verdict", "result", "others"),
    [
        (Verdict(outcome=Outcome.DONE), "success", ()),
        (Verdict(outcome=Outcome.WAITING), "success", ()),
        (Verdict(outcome=Outcome.AFTER, delay=5), "requeue_after", ()),
        (Verdict(outcome=Outcome.AGAIN), "requeue", ()),
        (Verdict(outcome=Outcome.RETRY, error_id="CTRL-API"), "error", ("reconcile_errors",)),
        (Verdict(outcome=Outcome.RETRY, error_id="KeyError"), "error", ("reconcile_errors", "reconcile_panics")),
        (
            Verdict(outcome=Outcome.RETRY, error_id="AttemptTimeout"),
            "error",
            ("reconcile_errors", "reconcile_timeouts"),
        ),
        (
            Verdict(outcome=Outcome.TERMINAL, error_id="CTRL-TERMINAL"),
            "error",
            ("reconcile_errors", "terminal_reconcile_errors"),
        ),
    ],
)
def test_each_outcome_counts_where_controller_runtime_counts_it(
    verdict: Verdict, result: str, others: tuple[str, ...]
) -> None:
    metrics = made()
    before = series(metrics)
    metrics(attempt(verdict))
    after = series(metrics)
    changed = {name for name in after if after[name] != before[name] and name.endswith("}") and "_total" in name}
    wanted = {f'controller_runtime_reconcile_total{{controller="foo",result="{result}"}}'}
    assert changed == wanted | {f'controller_runtime_{name}_total{{controller="foo"}}' for name in others}
    assert after['controller_runtime_reconcile_time_seconds_count{controller="foo"}'] == 1
    assert after['workqueue_work_duration_seconds_count{controller="foo",name="foo"}'] == 1


def test_an_attempt_that_was_cut_is_no_result() -> None:
    metrics = made()
    metrics(attempt(Verdict(outcome=Outcome.DROPPED)))
    assert all(value == 0 for name, value in series(metrics).items() if "reconcile_total" in name)


def test_requests_to_the_server_are_counted_by_code_and_method() -> None:
    counters = Counters()
    counters.count("get", "GET", 200)
    counters.count("list", "GET", 200)
    counters.count("patch", "PATCH", None)
    found = series(Metrics(["foo"], host="h:1", counters=counters))
    assert found['rest_client_requests_total{code="200",host="h:1",method="GET"}'] == 2
    assert found['rest_client_requests_total{code="<error>",host="h:1",method="PATCH"}'] == 1


def test_every_name_is_one_that_controller_runtime_uses() -> None:
    names = {re.split(r"[{ ]", line)[0] for line in made().text().decode().splitlines() if not line.startswith("#")}
    prefixes = ("controller_runtime_", "workqueue_", "rest_client_", "leader_election_")
    assert all(name.startswith(prefixes) for name in names)
