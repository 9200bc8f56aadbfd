"""Which call of ours is the evidence of a fight."""

from __future__ import annotations

from kubectl_ctrl.findings.account import Finding
from kubectl_ctrl.findings.explanation import explain
from kubectl_ctrl.model.record import Recorded
from kubectl_ctrl.model.resources import DEPLOYMENTS
from tests.findings.made import attempt, case, step, why, wrote


def fought(number: int) -> Recorded:
    """An autoscaler's step, answered by a write that hands a field over and one that sets the field back."""
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
