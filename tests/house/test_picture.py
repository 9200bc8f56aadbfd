"""The picture of the README: small enough for a page, and drawn from a reproducible recording."""

from __future__ import annotations

from pathlib import Path

from hack.picture import MOST, WIDTH, record
from kubectl_ctrl.history.reader import Recording
from kubectl_ctrl.model.attempt import Outcome
from tests.house.checkout import REPOSITORY


def test_picture_is_small_and_of_the_stated_width() -> None:
    picture = (REPOSITORY / "docs/trace.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= MOST
    assert int.from_bytes(picture[16:20], "big") == WIDTH


def test_recording_has_an_edit_failures_and_their_end(tmp_path: Path) -> None:
    file = tmp_path / "foo.db"
    record(file)
    with Recording.open(file) as recording:
        attempts = recording.of_controller(cluster="ctrl", controller="foo")
    outcomes = [one.verdict.outcome for one in attempts if one.verdict is not None]
    assert outcomes.count(Outcome.RETRY) == 3
    assert outcomes[-1] is Outcome.DONE
