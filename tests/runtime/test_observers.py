from __future__ import annotations

import logging

import pytest

from kubectl_ctrl.model.attempt import Observed, Tally
from kubectl_ctrl.runtime.observers import Observers


def tally(at: float) -> Tally:
    return Tally(controller="toy", at=at, filtered=(), versions=())


def test_each_observer_hears_each_value_in_order() -> None:
    first: list[Observed] = []
    second: list[Observed] = []
    observers = Observers([first.append, second.append])
    for at in (1.0, 2.0):
        observers.tell(tally(at))
    assert first == second == [tally(1.0), tally(2.0)]


def test_an_observer_that_raises_is_removed_and_logged_and_the_others_hear_on(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Observed] = []
    calls: list[Observed] = []

    def broken(value: Observed) -> None:
        calls.append(value)
        raise RuntimeError("disk full")

    observers = Observers([broken, heard.append])
    with caplog.at_level(logging.ERROR):
        observers.tell(tally(1.0))
        observers.tell(tally(2.0))
    assert (len(calls), len(heard)) == (1, 2)
    assert repr(observers) == "Observers(1, removed=1)"
    assert "disk full" in caplog.text
