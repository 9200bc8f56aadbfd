"""The signs on an object, and nothing that its fields do not show."""

from __future__ import annotations

from typing import Any

from kubectl_ctrl.clock import parse_rfc3339
from kubectl_ctrl.findings.account import Finding
from kubectl_ctrl.findings.inference import Evidence, InferredState, Sign, infer, unrecorded
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import FactSource
from kubectl_ctrl.model.resources import DEPLOYMENTS
from tests.history.made import NOON

T0 = "2026-01-01T12:00:00Z"
T1 = "2026-01-01T12:00:05Z"


def entry(manager: str, at: str, fields: Obj, **more: str) -> Obj:
    return {"manager": manager, "operation": "Update", "time": at, "fieldsV1": fields, **more}


def look(obj: Obj, *events: Obj) -> InferredState:
    meta = {"name": "web", "uid": "u", "generation": 3, **obj.pop("metadata", {})}
    return infer(
        DEPLOYMENTS, Key("default", "web"), {"metadata": meta, **obj}, events, context="kind", at=9.0, lacking=()
    )


def signs(obj: Obj, *events: Obj) -> list[Sign]:
    return list(look(obj, *events).signs)


def event(**more: Any) -> Obj:
    return {"metadata": {"name": "e", "creationTimestamp": T0}, "reason": "Scaled", "message": "up", **more}


def test_each_entry_of_managed_fields_is_the_last_write_of_its_manager() -> None:
    fields: Obj = {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:a": {}, "f:b": {}}}},
    }
    [sign] = signs({"metadata": {"managedFields": [entry("kubectl-edit", T0, fields)]}})
    assert (sign.evidence, sign.by, sign.verb, sign.at) == (
        Evidence.FIELDS,
        ("kubectl-edit",),
        "update",
        parse_rfc3339(T0),
    )
    assert sign.wrote == "metadata.labels, spec.replicas, spec.template"


def test_many_fields_are_counted_and_not_listed() -> None:
    fields: Obj = {"f:spec": {f"f:{name}": {} for name in "abcdef"}, "f:status": {"f:x": {}}}
    [sign] = signs({"metadata": {"managedFields": [entry("m", T0, fields, subresource="status")]}})
    assert (sign.wrote, sign.subresource) == ("spec.a, spec.b, spec.c, 4 more", "status")


def test_a_condition_has_its_last_transition_and_its_owner() -> None:
    key = 'k:{"type":"Available"}'
    owned: Obj = {"f:status": {"f:conditions": {".": {}, key: {".": {}, "f:status": {}}}}}
    odd: Obj = {"f:status": {"f:conditions": {'k:{"type":"Odd"}': {".": {}}}}}
    condition = {"type": "Available", "status": "True", "reason": "Enough", "message": "ok", "lastTransitionTime": T1}
    found = look(
        {
            "metadata": {"managedFields": [entry("kcm", T0, owned), entry("other", T0, odd)]},
            "status": {"conditions": [condition, {"type": "Odd"}], "observedGeneration": 2},
        }
    )
    sign = found.signs[-1]
    assert (sign.came, sign.message, sign.by, sign.at) == ("Available=True", "Enough ok", ("kcm",), parse_rfc3339(T1))
    assert (found.generation, found.observed) == (3, 2)
    assert found.standing == (("Available", "True", parse_rfc3339(T1)), ("Odd", "None", None))
    assert len(found.signs) == 3, "a condition without a time tells of nothing that happened"


def test_repeated_events_are_one_sign_with_the_last_time() -> None:
    classic = event(
        count=4, firstTimestamp=T0, lastTimestamp=T1, source={"component": "deployment-controller"}, type="Warning"
    )
    [sign] = signs({}, classic)
    assert (sign.at, sign.first, sign.count) == (parse_rfc3339(T1), parse_rfc3339(T0), 4)
    assert (sign.by, sign.came, sign.message, sign.warning) == (("deployment-controller",), "Scaled", "up", True)
    new = event(eventTime=T0, series={"count": 2, "lastObservedTime": T1}, reportingComponent="kubelet")
    [sign] = signs({}, new)
    assert (sign.at, sign.first, sign.count, sign.by) == (parse_rfc3339(T1), parse_rfc3339(T0), 2, ("kubelet",))


def test_signs_are_in_order_of_time_and_writes_come_first() -> None:
    obj: Obj = {
        "metadata": {"managedFields": [entry("late", T1, {}), entry("early", T0, {})]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": T1}]},
    }
    found = signs(obj, event(lastTimestamp=T1), event())
    assert [(one.evidence, one.by) for one in found] == [
        (Evidence.FIELDS, ("early",)),
        (Evidence.EVENT, ()),
        (Evidence.FIELDS, ("late",)),
        (Evidence.CONDITION, ()),
        (Evidence.EVENT, ()),
    ]


def test_an_entry_without_a_valid_time_is_no_sign() -> None:
    obj: Obj = {"metadata": {"managedFields": [{"manager": "m", "operation": "Apply"}, entry("n", "yesterday", {})]}}
    assert signs(obj) == []


def test_values_that_look_like_secrets_are_masked() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
    condition = {"type": "Ready", "status": "False", "message": f"no {token}", "lastTransitionTime": T0}
    found = signs({"status": {"conditions": [condition]}}, event(message=f"bearer {token}"))
    assert len(found) == 2
    assert token not in repr(found)


# The account of an unrecorded object.

STATUS = Sign(
    at=NOON + 5, evidence=Evidence.FIELDS, by=("kube-controller-manager",), wrote="status.ready", verb="update"
)
SCALED = Sign(
    at=NOON + 7, evidence=Evidence.EVENT, by=("deployment-controller",), came="Scaled", message="to 3", count=2
)


def of(**said: object) -> InferredState:
    known: dict[str, object] = {
        "resource": DEPLOYMENTS,
        "key": Key("default", "web"),
        "uid": "u",
        "context": "kind-dev",
        "at": NOON + 9,
        "signs": (STATUS, SCALED),
        "standing": (("Available", "False", NOON + 6),),
    }
    return InferredState(**{**known, **said})  # type: ignore[arg-type]


def test_all_facts_are_inferred_or_live_and_name_the_probable_controller() -> None:
    account = unrecorded(of(), "deploy", ("--namespace=default",))
    assert (account.finding, account.source, account.good) == (Finding.NEVER_RAN, FactSource.INFERRED, False)
    texts = [fact.text for fact in account.why]
    assert "kube-controller-manager probably manages it: it was the last to write the status" in texts
    assert "it reports Available=False" in texts
    assert account.evidence[0].text == "event: Scaled to 3 x2 by deployment-controller"
    assert {fact.source for fact in account.evidence} == {FactSource.INFERRED}
    assert account.tries[0].command == "kubectl ctrl trace deploy/web --namespace=default"


def test_an_old_generation_and_a_deletion_are_reported() -> None:
    texts = [fact.text for fact in unrecorded(of(generation=4, observed=3, deleting=True), "deploy", ()).why]
    assert any("status.observedGeneration is 3 of 4" in text for text in texts)
    assert any("its deletion was requested" in text for text in texts)
