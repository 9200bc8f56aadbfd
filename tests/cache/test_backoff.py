from __future__ import annotations

from random import Random

import pytest

from kubectl_ctrl.cache.backoff import WatchBackoff
from kubectl_ctrl.testing.clock import FakeClock


@pytest.mark.parametrize("seed", range(20))
def test_delays_double_up_to_the_cap_and_are_jittered(seed: int) -> None:
    clock = FakeClock()
    backoff = WatchBackoff(clock, Random(seed))
    for step in (0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0):
        delay = backoff.next()
        assert step <= delay <= 2 * step
        clock.suspend(delay)


def test_two_quiet_minutes_start_it_anew_and_waiting_is_not_quiet() -> None:
    clock = FakeClock()
    backoff = WatchBackoff(clock, Random(1))
    for _ in range(10):
        clock.suspend(backoff.next() + 119)
    assert backoff.next() >= 30.0
    clock.suspend(60 + 120)
    assert backoff.next() <= 1.6


def test_whoever_knows_better_may_have_it_begin_anew() -> None:
    backoff = WatchBackoff(FakeClock(), Random(1))
    for _ in range(10):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.6


def test_it_forgives_once_in_two_minutes() -> None:
    clock = FakeClock()
    backoff = WatchBackoff(clock, Random(1))
    for _ in range(10):
        backoff.next()
    backoff.forgive()
    assert backoff.next() <= 1.6
    for _ in range(10):
        backoff.forgive()
        clock.suspend(1)
        backoff.next()
    assert backoff.next() >= 30.0
    clock.suspend(120)
    backoff.forgive()
    assert backoff.next() <= 1.6
