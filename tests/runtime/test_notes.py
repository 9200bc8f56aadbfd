from __future__ import annotations

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.attempt import Call, CallProgress, Observed, Outcome, Verdict
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.value import replace
from tests.objects import started
from tests.runtime.toy import TOYS

START = started("r7f3-12", controller="toy", request=Key("default", "bear"), causes_total=1)
SENT = Call(id="r7f3-12.1", verb="create", resource=TOYS, started=0.0)
ANSWERED = replace(SENT, code=201, uid="u", new_version="5")


def test_a_call_is_noted_when_it_leaves_and_again_when_it_is_answered() -> None:
    told: list[Observed] = []
    notes = Notes(START, Observers([told.append]), seed=3)
    notes.call(SENT, False)
    interrupted = notes.finished(Verdict(outcome=Outcome.DROPPED), took=1.0, echoes=0, traceback="")
    assert interrupted.calls == (SENT,)  # whatever became of it: no answer
    notes.call(ANSWERED, True)
    assert notes.finished(Verdict(outcome=Outcome.DONE), took=1.0, echoes=2, traceback="").calls == (ANSWERED,)
    assert told == [
        CallProgress(attempt="r7f3-12", call=SENT, answered=False),
        CallProgress(attempt="r7f3-12", call=ANSWERED, answered=True),
    ]


@pytest.mark.parametrize(
    "call",
    [
        replace(ANSWERED, dry_run=True),
        replace(ANSWERED, verb="get", code=200),
        replace(ANSWERED, code=None, reason="FoundByReading"),
        replace(ANSWERED, code=409),
        replace(ANSWERED, new_version="6"),
        replace(ANSWERED, uid="v"),
    ],
)
def test_only_an_answered_write_proves_its_version(call: Call) -> None:
    notes = Notes(START, Observers(), seed=3)
    notes.call(call, True)
    assert not notes.answered_by_write("u", "5")
    notes.call(ANSWERED, True)
    assert notes.answered_by_write("u", "5")


def test_closed_notes_refuse_and_say_what_to_do() -> None:
    notes = Notes(START, Observers(), seed=3)
    notes.check_open()
    notes.close()
    with pytest.raises(ControllerError, match="'r7f3-12' has ended") as caught:
        notes.check_open()
    assert "Await everything" in caught.value.next_step
    assert repr(notes) == "Notes(r7f3-12, closed, calls=0, reads=0)"
