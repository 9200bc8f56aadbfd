"""Tells observers how a controller stands: soon after something changed, not too often, and always as a sign of life.

Who looks at a queue from another terminal sees what is told here. A look at whether something moved costs the same
however long the queue is; what is told of a long one is bounded.
"""

from __future__ import annotations

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.runtime.member import Member
from kubectl_ctrl.runtime.observers import Observers

LOOK_EVERY = 0.5
_STATE_EVERY = 2.0
_TALLY_EVERY = 10.0
# Looks come a little late or early.
_SOON = LOOK_EVERY / 2


class Report:
    """Of one controller, for the observers of its run."""

    def __init__(self, member: Member, observers: Observers, clock: Clock) -> None:
        self._member = member
        self._observers = observers
        self._clock = clock
        self._pulse: object = None
        self._told = 0.0  # elapsed time of the last state
        self._held = member.controller.held_back
        self._tallied = clock.elapsed()

    def look(self) -> None:
        """Tell what is worth it."""
        now, member = self._clock.elapsed(), self._member
        pulse = (member.controller.pulse, member.leading, tuple(member.obstacles()))
        if pulse != self._pulse or now - self._told > _STATE_EVERY - _SOON:
            self._pulse, self._told = pulse, now
            self._observers.tell(member.state())
        # "Why did it not run" is asked at once, so what was held back is told soon.
        held = member.controller.held_back
        if held != self._held or now - self._tallied > _TALLY_EVERY - _SOON:
            self._held, self._tallied = held, now
            self._observers.tell(member.tally())

    def close(self) -> None:
        """Tell how it stands in the end."""
        self._observers.tell(self._member.tally())
        self._observers.tell(self._member.state())

    def __repr__(self) -> str:
        return f"Report({self._member.spec.name}, told={self._told:.1f})"
