"""Tells observers how a controller stands: soon after something changed, not too often, and always as a sign of life.

Who looks at a queue from another terminal sees what is told here. A look at whether something moved costs the same
however long the queue is; what is told of a long one is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.attempt import Observed, Started
from kubectl_ctrl.runtime.member import Member
from kubectl_ctrl.runtime.observers import Observers

_LOOK_EVERY = 0.5
_STATE_EVERY = 2.0
_TALLY_EVERY = 10.0
# Looks come a little late or early.
_SOON = _LOOK_EVERY / 2


class Reports:
    """Of all controllers of a run, for its observers."""

    def __init__(self, members: Iterable[Member], observers: Observers, clock: Clock) -> None:
        self._reports = tuple(_Report(member, observers, clock) for member in members)
        self._clock = clock
        self._stirred = asyncio.Event()
        observers.add(self._hear)

    async def run(self) -> None:
        """Tell how they stand, for as long as they run; also the sign that this process lives.

        Where nothing waits and nothing runs, nothing moves before an attempt begins: then one look tells the state.
        """
        while True:
            self._stirred.clear()
            moving = [report for report in self._reports if report.look()]
            if moving or await self._stirs_within(_STATE_EVERY):
                await self._clock.sleep(_LOOK_EVERY)

    async def _stirs_within(self, seconds: float) -> bool:
        try:
            async with self._clock.timeout(seconds):
                return await self._stirred.wait()
        except TimeoutError:
            return False

    def close(self) -> None:
        """Tell how they stand in the end."""
        for report in self._reports:
            report.close()

    def _hear(self, value: Observed) -> None:
        if isinstance(value, Started):
            self._stirred.set()

    def __repr__(self) -> str:
        return f"Reports({', '.join(map(repr, self._reports))})"


class _Report:
    """Of one controller."""

    def __init__(self, member: Member, observers: Observers, clock: Clock) -> None:
        self._member = member
        self._observers = observers
        self._clock = clock
        self._pulse: object = None
        self._told = 0.0  # elapsed time of the last state
        self._held = member.controller.held_back
        self._tallied = clock.elapsed()

    def look(self) -> bool:
        """Tell what is worth it; whether more may move before an attempt begins."""
        now, member = self._clock.elapsed(), self._member
        obstacles = tuple(member.obstacles())
        pulse = (member.controller.pulse, member.leading, obstacles)
        if pulse != self._pulse or now - self._told > _STATE_EVERY - _SOON:
            self._pulse, self._told = pulse, now
            self._observers.tell(member.state())
        # "Why did it not run" is asked at once, so what was held back is told soon.
        held = member.controller.held_back
        if held != self._held or now - self._tallied > _TALLY_EVERY - _SOON:
            self._held, self._tallied = held, now
            self._observers.tell(member.tally())
        return bool(obstacles) or member.controller.busy

    def close(self) -> None:
        """Tell how it stands in the end."""
        self._observers.tell(self._member.tally())
        self._observers.tell(self._member.state())

    def __repr__(self) -> str:
        return f"Report({self._member.spec.name}, told={self._told:.1f})"
