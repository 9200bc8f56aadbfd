"""How long to wait before asking a server again that did not answer well: client-go's pace, so that we cost no more."""

from __future__ import annotations

from random import Random

from kubectl_ctrl.clock import Clock

FIRST = 0.8
LONGEST = 30.0
# After so long without a failure the next one counts as the first.
QUIET = 120.0


class Backoff:
    """0.8 s, doubled each time up to 30 s, each drawn between once and twice of that: at most 7 tries in a minute."""

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
        """Whatever was in the way is said to be gone: the next failure counts as the first."""
        self._step = FIRST

    def forgive(self) -> None:
        """The server is there again, though it said no: begin anew, at most once in two minutes."""
        now = self._clock.elapsed()
        if now - self._forgave >= QUIET:
            self._forgave = now
            self.reset()

    def __repr__(self) -> str:
        return f"Backoff(next={self._step:g}..{2 * self._step:g})"
