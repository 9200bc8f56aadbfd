"""The delay before a failed list or watch is retried: client-go's, so that servers have no more load than from it."""

from __future__ import annotations

from random import Random

from kubectl_ctrl.clock import Clock

FIRST = 0.8
LONGEST = 30.0
# After this long without a failure, the next one counts as the first.
QUIET = 120.0


class WatchBackoff:
    """0.8 s, doubled each time up to 30 s, and a random share of up to as much again: at most 7 tries a minute."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._step = FIRST
        self._waited_until = clock.elapsed()
        self._forgave = clock.elapsed() - QUIET

    def next(self) -> float:
        """The delay after one more failure."""
        now = self._clock.elapsed()
        if now - self._waited_until >= QUIET:
            self._step = FIRST
        delay = self._rng.uniform(self._step, 2 * self._step)
        self._step = min(2 * self._step, LONGEST)
        self._waited_until = now + delay
        return delay

    def reset(self) -> None:
        """Count the next failure as the first: the obstacle is reported to be gone."""
        self._step = FIRST

    def forgive(self) -> None:
        """The server is back, although it refused: reset, at most once in two minutes."""
        now = self._clock.elapsed()
        if now - self._forgave >= QUIET:
            self._forgave = now
            self.reset()

    def __repr__(self) -> str:
        return f"WatchBackoff(next={self._step:g}..{2 * self._step:g})"
