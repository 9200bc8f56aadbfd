from __future__ import annotations

from kubectl_ctrl.findings.account import Finding
from kubectl_ctrl.findings.inference import Evidence, Inferred, Sign
from kubectl_ctrl.findings.unrecorded import unrecorded
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.record import Source
from kubectl_ctrl.model.resources import DEPLOYMENTS
from tests.history.made import NOON

STATUS = Sign(
    at=NOON + 5, evidence=Evidence.FIELDS, by=("kube-controller-manager",), wrote="status.ready", verb="update"
)
SCALED = Sign(
    at=NOON + 7, evidence=Evidence.EVENT, by=("deployment-controller",), came="Scaled", message="to 3", count=2
)


def of(**said: object) -> Inferred:
    known: dict[str, object] = {
        "resource": DEPLOYMENTS,
        "key": Key("default", "web"),
        "uid": "u",
        "context": "kind-dev",
        "at": NOON + 9,
        "signs": (STATUS, SCALED),
        "standing": (("Available", "False", NOON + 6),),
    }
    return Inferred(**{**known, **said})  # type: ignore[arg-type]


def test_everything_is_told_as_inferred_or_live_with_who_seems_to_look_after_it() -> None:
    account = unrecorded(of(), "deploy", ("--namespace=default",))
    assert (account.finding, account.source, account.good) == (Finding.NEVER_RAN, Source.INFERRED, False)
    texts = [fact.text for fact in account.why]
    assert "kube-controller-manager seems to look after it: it wrote its status last" in texts
    assert "it says Available=False" in texts
    assert account.evidence[0].text == "event: Scaled to 3 x2 by deployment-controller"
    assert {fact.source for fact in account.evidence} == {Source.INFERRED}
    assert account.tries[0].command == "kubectl ctrl trace deploy/web --namespace=default"


def test_one_that_lags_behind_or_is_being_deleted_says_so() -> None:
    texts = [fact.text for fact in unrecorded(of(generation=4, observed=3, deleting=True), "deploy", ()).why]
    assert any("about generation 3, and it is at 4" in text for text in texts)
    assert any("it is being deleted" in text for text in texts)
