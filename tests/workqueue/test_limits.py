"""The rate limiters, under their names of the reference: RL1-RL5."""

from __future__ import annotations

import math
import random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.workqueue.limits import KeyBackoff, Limiter, MaxOf, TokenBucket, default_limiter
from tests.workqueue.fastslow import FastSlow


def backoff(*, seed: int = 1, base: float = 0.005, cap: float = 1000.0, jitter: float = 0.5) -> KeyBackoff[str]:
    return KeyBackoff(rng=random.Random(seed), base=base, cap=cap, jitter=jitter)


def delays(limiter: Limiter[str], count: int, key: str = "k") -> list[float]:
    return [limiter.when(key) for _ in range(count)]


def test_rl1_doubles_from_base_to_cap() -> None:
    found = delays(backoff(jitter=0.0), 20)
    assert found[:4] == [0.005, 0.01, 0.02, 0.04]
    assert (found[17], found[18], found[19]) == (0.005 * 2**17, 1000.0, 1000.0)
    assert sum(found[:18]) == pytest.approx(1311, abs=1)


def test_rl1_never_overflows() -> None:
    limiter = backoff(base=1e300, cap=1e308, jitter=0.0)
    assert delays(limiter, 5000)[-1] == 1e308
    assert limiter.failures("k") == 5000


def test_rl2_bucket_gives_a_burst_and_then_a_rate() -> None:
    clock = FakeClock()
    bucket = TokenBucket(clock=clock, rate=10.0, burst=100)
    found = delays(bucket, 103)
    assert found[:100] == [0.0] * 100
    assert found[100:] == pytest.approx([0.1, 0.2, 0.3])


def test_rl2_tokens_are_taken_when_asked_for() -> None:
    """What was promised is not promised again: after a second ten more fit, behind those already promised."""
    clock = FakeClock()
    bucket = TokenBucket(clock=clock, rate=10.0, burst=1)
    assert delays(bucket, 21)[-1] == pytest.approx(2.0)
    clock.suspend(1.0)
    assert bucket.when("k") == pytest.approx(1.1)
    clock.suspend(100.0)
    assert delays(bucket, 2) == pytest.approx([0.0, 0.1])


@given(st.lists(st.floats(0, 5), max_size=25), st.floats(0.1, 100), st.integers(1, 20))
def test_rl2_no_window_gets_more_than_burst_and_rate(gaps: list[float], rate: float, burst: int) -> None:
    clock = FakeClock()
    bucket = TokenBucket(clock=clock, rate=rate, burst=burst)
    times = []
    for gap in gaps:
        clock.suspend(gap)
        times.append(clock.elapsed() + bucket.when("k"))
    for first in range(len(times)):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + (times[last] - times[first]) * rate + 1e-6


@given(st.integers(0, 2**32), st.floats(0, 0.99), st.integers(1, 60))
def test_rl3_delays_never_shrink_until_forgotten(seed: int, jitter: float, count: int) -> None:
    found = delays(backoff(seed=seed, jitter=jitter), count)
    assert found == sorted(found)
    assert all(0 < delay <= 1000.0 for delay in found)


def test_rl3_forget_starts_again_and_frees_the_key() -> None:
    limiter = backoff(jitter=0.0)
    delays(limiter, 5)
    delays(limiter, 3, key="other")
    limiter.forget("k")
    limiter.forget("never seen")
    assert (limiter.failures("k"), limiter.failures("other")) == (0, 3)
    assert repr(limiter) == "<KeyBackoff: 1 failing>"
    assert delays(limiter, 1) == [0.005]


def test_rl3_keys_are_independent() -> None:
    limiter = backoff(jitter=0.0)
    delays(limiter, 10)
    assert limiter.when("other") == 0.005


def test_rl4_max_of_asks_every_limiter_each_time() -> None:
    first, second = FastSlow[str](fast=1, slow=9, fast_attempts=1), FastSlow[str](fast=5, slow=6, fast_attempts=1)
    both = MaxOf(first, second)
    assert delays(both, 2) == [5, 9]
    assert (first.failures("k"), second.failures("k"), both.failures("k")) == (2, 2, 2)
    both.forget("k")
    assert (first.failures("k"), second.failures("k")) == (0, 0)


def test_the_default_limiter_is_a_backoff_for_each_key_and_a_rate_for_all() -> None:
    limiter: Limiter[str] = default_limiter(clock=FakeClock(), rng=random.Random(1))
    first = [limiter.when(str(key)) for key in range(101)]
    assert all(0.0025 <= delay <= 0.005 for delay in first[:100])
    assert first[100] == pytest.approx(0.1)
    assert delays(limiter, 17, key="0")[-1] > 100


@pytest.mark.parametrize("failures", [1, 8, 19, 40])
def test_rl5_ten_thousand_keys_that_fail_together_spread(failures: int) -> None:
    """At every stage, the cap included: no hundredth of the range holds more than three times its share."""
    limiter = backoff()
    found = [delays(limiter, failures, key=str(number))[-1] for number in range(10_000)]
    full = min(1000.0, 0.005 * 2 ** (failures - 1))
    buckets = [0] * 100
    for delay in found:
        assert full / 2 <= delay <= full
        buckets[min(99, math.floor((delay / full - 0.5) * 200))] += 1
    assert max(buckets) <= 300
    assert min(buckets) >= 30


def test_the_same_seed_gives_the_same_delays() -> None:
    assert delays(backoff(seed=7), 9) == delays(backoff(seed=7), 9)
    assert delays(backoff(seed=7), 9) != delays(backoff(seed=8), 9)


def test_values_that_cannot_be_meant_are_refused() -> None:
    for base, jitter in ((0.0, 0.0), (2000.0, 0.0), (1.0, 1.0), (1.0, -0.1)):
        with pytest.raises(UsageError, match="A backoff needs"):
            backoff(base=base, jitter=jitter)
    for rate, burst in ((0.0, 1), (1.0, 0)):
        with pytest.raises(UsageError, match="A token bucket needs"):
            TokenBucket(clock=FakeClock(), rate=rate, burst=burst)
    with pytest.raises(UsageError, match="at least one limiter"):
        MaxOf()


def test_reprs_tell_the_state() -> None:
    bucket = TokenBucket(clock=FakeClock(), burst=5)
    bucket.when("k")
    assert repr(MaxOf(bucket, backoff())) == "<MaxOf <TokenBucket: 4 of 5 tokens> <KeyBackoff: 0 failing>>"
