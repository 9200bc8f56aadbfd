from __future__ import annotations

from kubectl_ctrl.findings.explanation import explain
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import FactSource
from kubectl_ctrl.model.resources import DEPLOYMENTS
from kubectl_ctrl.value import replace
from tests.findings.made import (
    OURS,
    attempt,
    case,
    step,
    why,
    wrote,
)
from tests.history.made import FOOS


def test_a_chain_follows_the_write_of_a_version() -> None:
    edit = attempt(1, why(at=0.5), calls=(wrote("1.1", at=1.01, new_version="77"),))
    woken = attempt(
        2, why(at=1.5, by=OURS, resource=DEPLOYMENTS, uid="uid-deployment", new_version="77"), outcome=Outcome.WAITING
    )
    account = explain(case(edit, woken, writers={("uid-deployment", "77"): ("r7f3-1", "r7f3-1.1")}))
    assert [(one.attempt.number, one.link) for one in account.chain] == [(1, None), (2, FactSource.RECORDED)]
    assert account.evidence[0].text == (
        "#2 was triggered by Deployment/web version 77 (uid uid-deployment), which call #1.1 wrote"
    )


def test_a_status_change_after_a_write_is_linked_by_inference() -> None:
    edit = attempt(1, why(at=0.5), calls=(wrote("1.1", at=1.01),))
    rollout = why(
        at=3,
        by="kube-controller-manager",
        resource=DEPLOYMENTS,
        uid="uid-deployment",
        changes=step("status.availableReplicas", 3, 4),
    )
    status = wrote("4.1", at=4.01, resource=FOOS, uid="uid-web", subresource="status")
    account = explain(case(edit, attempt(4, rollout, calls=(status,))))
    assert [one.link for one in account.chain] == [None, FactSource.INFERRED]


def test_the_chain_of_a_converged_object_ends_at_the_last_write() -> None:
    edit = attempt(1, why(at=0.5), calls=(wrote("1.1", at=1.01),))
    account = explain(case(edit, attempt(2, why(at=2, by="labeler", changes=step("metadata.labels.a", 1, 2)))))
    assert [one.attempt.number for one in account.chain] == [1]
    assert any("reconcile #2 found nothing to change" in fact.text for fact in account.why)


def test_a_chain_that_begins_at_other_controllers_comes_with_the_last_edit() -> None:
    edit = attempt(1, why(at=0.5), calls=(wrote("1.1", at=1.01),))
    pod = why(CauseKind.DELETED, at=3, resource=DEPLOYMENTS, key=Key("default", "pod"), uid="uid-pod")
    account = explain(case(edit, attempt(4, pod, calls=(wrote("4.1", at=4.01),))))
    assert [one.attempt.number for one in account.chain] == [4]
    assert account.edited is not None
    assert account.edited.attempt.number == 1
    assert account.edited.cause is not None
    assert account.edited.cause.writers == ("kubectl-edit",)
    assert explain(case(edit)).edited is None  # the chain contains it


def test_an_edit_before_the_run_is_not_the_last_edit() -> None:
    before = replace(attempt(1, why(at=0.5), calls=(wrote("1.1", at=1.01),)), id="r111-1")
    listed = attempt(4, why(CauseKind.INITIAL, at=4), calls=(wrote("4.1", at=4.01),))
    assert explain(case(before, listed)).edited is None  # the run did not see any edit
