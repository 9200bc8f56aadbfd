"""FIGHTING: two managers set one field in turn."""

from __future__ import annotations

import pytest

from kubectl_ctrl.findings.account import Finding
from kubectl_ctrl.findings.explanation import explain
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.value import replace
from tests.findings.made import OURS, attempt, case, step, why, wrote
from tests.history.made import NOON


def theirs(number: int, *, old: int = 3, new: int = 5, by: str = "hpa-bot") -> RecordedAttempt:
    cause = why(
        at=number,
        by=by,
        resource=DEPLOYMENTS,
        uid="uid-deployment",
        new_version=f"{number}0",
        changes=step("spec.replicas", old, new),
    )
    back = wrote(f"{number}.1", at=number + 0.1, new_version=f"{number}1")
    return attempt(number, cause, at=number + 0.05, calls=(back,))


def test_fighting_over_a_field_that_two_managers_set_in_turn() -> None:
    account = explain(case(theirs(10), theirs(20), theirs(30)))
    assert (account.finding, account.since) == (Finding.FIGHTING, NOON + 10)
    text = "hpa-bot and kubectl-ctrl-foo set Deployment/web spec.replicas alternately, 3 times each within 20s"
    assert account.why[0].text == text
    assert [(turn.who, turn.value, turn.ours) for turn in account.turns[:2]] == [
        ("hpa-bot", 5, False),
        (OURS, 3, True),
    ]
    assert account.gap == ()  # ours is the last write
    assert account.next[0].text == "the next write by hpa-bot, every 10s so far"
    [gap] = explain(case(theirs(10), theirs(20), replace(theirs(30), calls=()))).gap
    assert (gap.want, gap.live, gap.owners) == (3, 5, ("hpa-bot",))


def test_its_chain_begins_with_the_first_change_of_theirs_although_the_attempt_had_an_earlier_cause() -> None:
    rolled = why(at=9, by="kube", resource=DEPLOYMENTS, uid="uid-deployment", changes=step("status.replicas", 0, 3))
    first = theirs(10)
    account = explain(case(attempt(5), replace(first, causes=(rolled, *first.causes)), theirs(20), theirs(30)))
    assert account.finding is Finding.FIGHTING
    assert [one.cause for one in account.chain] == [first.causes[0]]


def test_its_chain_leads_into_the_attempt_of_another_recorded_controller() -> None:
    edit = why(at=1)
    rival = attempt(1, edit, controller="bar", calls=(wrote("1.1", at=9.9, new_version="100"),))
    writers = {("uid-deployment", "100"): (rival.id, "r7f3-1.1")}
    fight = case(theirs(10), theirs(20), theirs(30), writers=writers, others={rival.id: rival})
    account = explain(fight)
    assert account.finding is Finding.FIGHTING
    assert [one.cause for one in account.chain] == [edit, theirs(10).causes[0]]


@pytest.mark.parametrize(
    "attempts",
    [
        pytest.param([theirs(10), theirs(20)], id="two changes"),
        pytest.param([theirs(at, old=at, new=at + 1) for at in (10, 20, 30, 40)], id="a growing field"),
        pytest.param([theirs(at, by=f"manager-{at}") for at in (10, 20, 30)], id="several managers"),
        pytest.param(
            [*(theirs(at, by=f"manager-{at}") for at in (10, 20, 30)), theirs(40, by="")], id="and an unknown"
        ),
        pytest.param([replace(theirs(at), calls=()) for at in (10, 20, 30)], id="changes that nobody reverts"),
    ],
)
def test_no_fight(attempts: list[RecordedAttempt]) -> None:
    assert explain(case(*attempts)).finding is Finding.CONVERGED


def test_a_fight_is_over_after_a_quiet_time() -> None:
    assert explain(case(theirs(10), theirs(20), theirs(30), now=400)).finding is Finding.CONVERGED


@pytest.mark.parametrize(("by", "shown"), [("", "?"), (f"hpa-bot or {OURS}", f"hpa-bot or {OURS}")])
def test_a_change_without_one_known_manager_is_shown_and_not_counted(by: str, shown: str) -> None:
    account = explain(case(theirs(10), theirs(11, by=by), theirs(20), theirs(30)))
    assert account.finding is Finding.FIGHTING
    assert shown in [turn.who for turn in account.turns]
    assert explain(case(theirs(10), theirs(11, by=by), theirs(12, by=by), theirs(20))).finding is Finding.CONVERGED


def fought(number: int) -> RecordedAttempt:
    """A change by an autoscaler, followed by a write that hands a field over and one that sets the field back."""
    theirs = why(
        at=number,
        by="kube-controller-manager",
        resource=DEPLOYMENTS,
        uid="uid-deployment",
        new_version=f"{number}0",
        changes=step("spec.replicas", 1, 3),
    )
    hands_over = wrote(f"{number}.1", "patch", at=number + 0.1, new_version=f"{number}1")
    sets_back = wrote(f"{number}.2", at=number + 0.2, new_version=f"{number}2", changes=step("spec.replicas", 3, 1))
    return attempt(number, theirs, at=number + 0.05, calls=(hands_over, sets_back))


def test_the_evidence_is_the_write_that_set_the_field_back() -> None:
    account = explain(case(fought(10), fought(20), fought(30)))
    assert account.finding is Finding.FIGHTING
    assert [turn.attempt for turn in account.turns if turn.ours] == ["r7f3-10.2", "r7f3-20.2", "r7f3-30.2"]
    assert "call #10.2 answered with version 102" in account.evidence[0].text
