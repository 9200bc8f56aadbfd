"""When a failed key may run again: rate limiters, and ways to combine them.

A limiter never waits; it returns the delay and counts it as taken.
"""

from __future__ import annotations

import random
from typing import Protocol, TypeVar

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.value import Struct

K_contra = TypeVar("K_contra", contravariant=True)
K = TypeVar("K")

# 2.0 ** 1024 does not fit a float; any delay meets its cap far before that.
_MOST_DOUBLINGS = 512


class Limiter(Protocol[K_contra]):
    """Gives the delay before a failed key runs again."""

    def when(self, key: K_contra) -> float:
        """Seconds until the key may run again; every call counts as one more failure."""

    def forget(self, key: K_contra) -> None:
        """The key succeeded: its next failure is its first, and it takes no memory."""

    def failures(self, key: K_contra) -> int:
        """The number of calls of `when` for the key since it was forgotten."""


class _Streak(Struct):
    failures: int
    share: float  # of the full delay, drawn once


class KeyBackoff(Limiter[K]):
    """Per key: base, 2 * base, 4 * base ... up to the cap, each key a fixed share of it, between `1 - jitter` and 1.

    The share is drawn at the first failure of a key and stays until it is forgotten. So keys that fail together spread,
    more with every failure and also at the cap, while the delays of one key never shrink.
    """

    def __init__(self, *, rng: random.Random, base: float = 0.005, cap: float = 1000.0, jitter: float = 0.5) -> None:
        if not (0 < base <= cap and 0 <= jitter < 1):
            raise UsageError(
                "A backoff needs 0 < base <= cap and 0 <= jitter < 1,"
                f" not base={base!r}, cap={cap!r} and jitter={jitter!r}."
            )
        self._rng = rng
        self._base = base
        self._cap = cap
        self._jitter = jitter
        self._streaks: dict[K, _Streak] = {}

    def when(self, key: K) -> float:
        streak = self._streaks.get(key)
        if streak is None:
            streak = self._streaks[key] = _Streak(0, 1 - self._jitter * self._rng.random())
        full = min(self._cap, self._base * 2.0 ** min(streak.failures, _MOST_DOUBLINGS))
        streak.failures += 1
        return full * streak.share

    def forget(self, key: K) -> None:
        self._streaks.pop(key, None)

    def failures(self, key: K) -> int:
        streak = self._streaks.get(key)
        return streak.failures if streak else 0

    def __repr__(self) -> str:
        return f"<KeyBackoff: {len(self._streaks)} failing>"


class TokenBucket(Limiter[object]):
    """For all keys together: `burst` at once, then `rate` per second; a token is taken when the delay begins."""

    def __init__(self, *, clock: Clock, rate: float = 10.0, burst: int = 100) -> None:
        if not (rate > 0 and burst >= 1):
            raise UsageError(
                f"A token bucket needs a rate above 0 and a burst of 1 or more, not {rate!r} and {burst!r}."
            )
        self._clock = clock
        self._rate = rate
        self._burst = float(burst)
        self._tokens = self._burst  # below zero: taken in advance
        self._filled_at = clock.elapsed()

    def when(self, key: object) -> float:
        now = self._clock.elapsed()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate) - 1
        self._filled_at = now
        return max(0.0, -self._tokens / self._rate)

    def forget(self, key: object) -> None:
        """A bucket has no state for each key."""

    def failures(self, key: object) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<TokenBucket: {self._tokens:.0f} of {self._burst:.0f} tokens>"


class MaxOf(Limiter[K]):
    """The longest delay of several limiters; each counts every failure."""

    def __init__(self, *limiters: Limiter[K]) -> None:
        if not limiters:
            raise UsageError("A MaxOf needs at least one limiter.")
        self._limiters = limiters

    def when(self, key: K) -> float:
        return max([limiter.when(key) for limiter in self._limiters])

    def forget(self, key: K) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: K) -> int:
        return max([limiter.failures(key) for limiter in self._limiters])

    def __repr__(self) -> str:
        return f"<MaxOf {' '.join(map(repr, self._limiters))}>"


def default_limiter(*, clock: Clock, rng: random.Random) -> Limiter[K]:
    """As client-go pairs them: each key has its backoff, and all keys together a burst of 100 and then ten a second.

    Without the second, keys that fail together, as behind a webhook that is down, would each be retried within
    milliseconds at first.
    """
    return MaxOf(KeyBackoff(rng=rng), TokenBucket(clock=clock))
