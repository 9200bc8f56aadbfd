"""The sandbox answers every scenario of e2e/parity as the recorded real server did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.parity import record
from e2e.parity.asks import Scenario
from e2e.parity.record import SCENARIOS, Answers
from hack.sandbox_page import PAGE, sandbox_page
from kubectl_ctrl.sandbox.kinds.checks.table import CHECKS
from kubectl_ctrl.testing.clock import FakeClock


@pytest.fixture(scope="module")
def answers() -> Mapping[str, Answers]:
    return record.recorded()


@pytest.mark.parametrize("scenario", [pytest.param(scenario, id=scenario.name) for scenario in SCENARIOS])
async def test_the_sandbox_answers_as_the_real_server(scenario: Scenario, answers: Mapping[str, Answers]) -> None:
    record.check(scenario, answers[scenario.name], await record.sandbox_answers(scenario, FakeClock()))


def test_the_page_lists_what_is_checked_and_the_known_differences() -> None:
    assert PAGE.read_text() == sandbox_page(), "run hack/update"
    rows = sandbox_page().partition("## What it checks")[2].partition("<!-- end")[0]
    assert [kind for kind in CHECKS if not re.search(rf"^\|.*\b{kind}\b.*\|.*\|$", rows, re.MULTILINE)] == []


def test_no_two_scenarios_have_one_name() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


def test_a_record_of_other_scenarios_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answers.jsonl.xz"
    record.write_record({scenario.name: [] for scenario in SCENARIOS}, path)
    assert set(record.recorded(path)) == {scenario.name for scenario in SCENARIOS}
    monkeypatch.setattr(record, "digest", lambda: "another")
    with pytest.raises(AssertionError, match="record again: hack/e2e"):
        record.recorded(path)
