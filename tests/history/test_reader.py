from __future__ import annotations

from pathlib import Path

from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.attempt import Attempt, Outcome, Started, Verdict
from kubectl_ctrl.model.record import told
from tests.history.made import FOOS, NOON, recording
from tests.render.samples import CREATED, INITIAL, SCALED, STATUS, WEB


def started(number: int = 12) -> Started:
    return Started(
        id=f"r7f3-{number}",
        controller="foo",
        request=WEB,
        causes=(INITIAL, SCALED),
        causes_total=2,
        queued_at=NOON,
        started=NOON + number,
        waited=0.001,
        try_no=1,
    )


def attempt(number: int = 12) -> Attempt:
    done = Verdict(outcome=Outcome.DONE)
    return Attempt(start=started(number), took=0.04, verdict=done, calls=(CREATED, STATUS), reads=())


def test_what_was_told_is_read_back(tmp_path: Path) -> None:
    with Recording.open(recording(tmp_path, started(), attempt())) as read:
        assert read.attempts(cluster="c1", resource=FOOS, key=WEB) == [told(attempt())]
