"""Conditions: when the transition time moves, and what the API would not take."""

from __future__ import annotations

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.conditions import Condition, find, is_true, merged
from kubectl_ctrl.model.objects import Obj

T1 = 1_767_225_601.5
T2 = 1_767_225_602.5

READY = Condition("Ready", "True", reason="AllUp", message="3/3")
OLD: Obj = {
    "type": "Ready",
    "status": "True",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "AllUp",
    "message": "2/2",
}


def only(conditions: list[Obj]) -> Obj:
    assert len(conditions) == 1
    return conditions[0]


def test_a_new_condition_has_all_fields() -> None:
    assert only(merged([], READY, now=T1, generation=4)) == {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 4,
        "lastTransitionTime": "2026-01-01T00:00:01Z",
        "reason": "AllUp",
        "message": "3/3",
    }


def test_the_transition_time_stays_while_the_status_does() -> None:
    found = only(merged([OLD], READY, now=T2, generation=2))
    assert (found["lastTransitionTime"], found["message"]) == (OLD["lastTransitionTime"], "3/3")


def test_the_transition_time_moves_with_the_status() -> None:
    down = Condition("Ready", "False", reason="Down")
    assert only(merged([OLD], down, now=T2, generation=2))["lastTransitionTime"] == "2026-01-01T00:00:02Z"


def test_an_old_condition_without_a_time_gets_one() -> None:
    assert (
        only(merged([{**OLD, "lastTransitionTime": None}], READY, now=T2, generation=2))["lastTransitionTime"]
        == "2026-01-01T00:00:02Z"
    )


def test_stating_the_same_again_changes_nothing() -> None:
    once = merged([OLD], READY, now=T2, generation=2)
    assert merged(once, READY, now=T2 + 99, generation=2) == once


def test_others_stay_in_their_places_and_new_ones_follow() -> None:
    foreign = {"type": "Theirs", "status": "Unknown", "extra": 1}
    other = Condition("Other", "False", reason="No")
    found = merged([OLD, foreign], other, READY, now=T2, generation=1)
    assert [one["type"] for one in found] == ["Ready", "Theirs", "Other"]
    assert found[1] == foreign


def test_the_input_is_not_changed() -> None:
    before = [dict(OLD)]
    merged(before, Condition("Ready", "False", reason="Down"), now=T2, generation=2)
    assert before == [OLD]


@pytest.mark.parametrize("letter", ["x", "é", "漢"])
def test_a_long_message_is_cut_within_32_kib(letter: str) -> None:
    message = letter * (40_000 // len(letter.encode()))
    text = only(merged([], Condition("A", "True", reason="R", message=message), now=T2, generation=1))["message"]
    assert 32_765 <= len(text.encode()) <= 32_768
    assert text.endswith(letter + "...")


def test_a_message_that_fits_is_not_touched() -> None:
    message = "x" * 32_768
    assert (
        only(merged([], Condition("A", "True", reason="R", message=message), now=T2, generation=1))["message"]
        == message
    )


@pytest.mark.parametrize(
    ("status", "reason"), [("true", "Fine"), ("True", ""), ("True", "not one word"), ("True", "1st")]
)
def test_what_the_api_would_not_take_is_refused(status: str, reason: str) -> None:
    with pytest.raises(ControllerError, match="The condition 'Ready'"):
        Condition("Ready", status, reason=reason)


def test_finding_conditions() -> None:
    obj: Obj = {"status": {"conditions": [OLD, {"type": "Bad", "status": "False"}]}}
    assert find(obj, "Ready") == OLD
    assert [is_true(obj, kind) for kind in ("Ready", "Bad", "Missing")] == [True, False, False]
    assert find({}, "Ready") is None
    assert find({"status": {"conditions": None}}, "Ready") is None
