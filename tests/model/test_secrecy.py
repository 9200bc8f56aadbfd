from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kubectl_ctrl.errors import StatusCause
from kubectl_ctrl.model.attempt import (
    Call,
    Intent,
    ObjectRead,
    Outcome,
    OutsideResult,
    RaisedError,
    Verdict,
    WriteRequest,
)
from kubectl_ctrl.model.cause import CauseKind
from kubectl_ctrl.model.diffs import Difference
from kubectl_ctrl.model.masking import LAST_APPLIED, MASK, MASKED
from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.record import Changes, RecordedAttempt, RecordedCall, RecordedCause, to_recorded
from kubectl_ctrl.model.resources import CONFIGMAPS, SECRETS
from kubectl_ctrl.model.secrecy import Secrecy, secrets_in
from kubectl_ctrl.value import replace
from tests.history.made import begun, done

CANARY = 'canary "of" the mine/4711'
PEM = "-----BEGIN X-----\nMIIEowIBAAKCAQEA7\n-----END X-----\n"


def secret(value: str = CANARY) -> Obj:
    data = {"a": base64.b64encode(value.encode()).decode()}
    return {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": data}


def secrecy(*secrets: Any) -> Secrecy:
    found = Secrecy()
    found.learn(secrets or [secret()])
    return found


@pytest.mark.parametrize(
    "spelled",
    [
        CANARY,
        json.dumps(CANARY),
        repr(CANARY),
        base64.b64encode(CANARY.encode()).decode(),
        "canary%20%22of%22%20the%20mine%2F4711",
    ],
)
def test_a_value_is_found_in_every_spelling(spelled: str) -> None:
    assert MASK in secrecy().text(f"It said {spelled} and failed.")
    assert "4711" not in secrecy().text(f"It said {spelled} and failed.")


@pytest.mark.parametrize(
    "source",
    [
        secret(),
        {"kind": "Secret", "metadata": {}, "stringData": {"a": CANARY}},
        {"metadata": {"annotations": {LAST_APPLIED: json.dumps(secret())}}},
        [{"op": "add", "path": "/data/a", "value": base64.b64encode(CANARY.encode()).decode()}],
        [{"op": "add", "path": "/stringData", "value": {"a": CANARY}}],
    ],
)
def test_values_are_learned_from_wherever_a_secret_has_them(source: Any) -> None:
    assert secrecy(source).text(CANARY) == MASK


def test_each_line_of_a_key_is_hidden_for_itself() -> None:
    assert secrecy(secret(PEM)).text("near MIIEowIBAAKCAQEA7 there") == f"near {MASK} there"


def test_short_values_are_words_and_names_stay_in_objects() -> None:
    assert secrecy(secret("on")).text("turned on") == "turned on"
    known = secrecy(secret("postgres"))
    assert known.text("no user postgres") == f"no user {MASK}"
    obj = {"metadata": {"name": "postgres"}, "image": "postgres:17"}
    assert known.kept(obj) is obj


def test_an_object_with_a_copied_value_is_kept_without_it_and_marked() -> None:
    obj = {"metadata": {"name": "c", "uid": "u"}, "data": {"x": f"pre {CANARY} post", "y": "z"}}
    assert secrecy().kept(obj) == {
        "metadata": {"name": "c", "uid": "u", MASKED: True},
        "data": {"x": f"pre {MASK} post", "y": "z"},
    }


def test_nothing_of_an_attempt_holds_it() -> None:
    call = Call(id="r1-1.1", verb="patch", resource=CONFIGMAPS, started=0.0, error=CANARY)
    changes = Changes(shown=(Difference(path="data.x", old=CANARY, new={"y": [CANARY]}),), total=1)
    raised = RaisedError(error="Invalid", message=CANARY, causes=(StatusCause(reason="r", message=CANARY, field="f"),))
    wish = WriteRequest(verb="ensure", resource=SECRETS, key=Key("a", "b"), body=json.dumps(secret()), raised=raised)
    recorded = RecordedAttempt(
        id="r1-1",
        controller="foo",
        request=Key("a", "b"),
        causes=(RecordedCause(kind=CauseKind.RETRY, at=0.0, detail=CANARY, changes=changes),),
        causes_total=1,
        queued_at=0.0,
        started=0.0,
        waited=0.0,
        try_no=1,
        verdict=Verdict(outcome=Outcome.RETRY, message=CANARY),
        calls=(RecordedCall(call=call, changes=changes),),
        reads=(ObjectRead(verb="live", resource=SECRETS, query="a/b", found=(), raised=raised),),
        wishes=(wish, replace(wish, resource=CONFIGMAPS, body=json.dumps({"data": {"z": CANARY}}))),
        intents=(Intent(type="Normal", reason="R", message=CANARY, about=Key("a", "b")),),
        skipped=(CANARY,),
        outside=(OutsideResult(name="vault", value=json.dumps({"a": [CANARY]})),),
        traceback=f"ValueError: {CANARY!r}",
    )
    shown = secrecy().attempt(recorded)
    bodies = [wish.body for wish in shown.wishes] + [one.value for one in shown.outside]
    everything = [repr(shown), *bodies, shown.traceback]
    assert not [text for text in everything if "4711" in text]
    assert (shown.id, shown.request, len(shown.calls)) == (recorded.id, recorded.request, 1)


@pytest.mark.parametrize(
    "body", [CANARY, [CANARY], [[CANARY]], {"metadata": {"annotations": {LAST_APPLIED: [CANARY]}}}, None, 1, [1]]
)
def test_a_body_that_is_no_secret_is_kept_without_what_it_holds(body: Any) -> None:
    wish = WriteRequest(verb="create", resource=SECRETS, key=Key("a", "b"), body=json.dumps(body))
    verdict = Verdict(outcome=Outcome.RETRY, message=f"Refused: {CANARY}")
    attempt = replace(done(begun(1)), wishes=(wish,), verdict=verdict)
    known = Secrecy()
    known.learn(secrets_in(attempt))
    kept = known.attempt(to_recorded(attempt))
    assert "4711" not in kept.wishes[0].body
    assert kept.verdict is not None
    assert ("4711" in kept.verdict.message) == ("4711" not in wish.body)
