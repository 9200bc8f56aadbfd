"""Reports the state of controllers to observers: soon after a change, not too often, and always as a sign of life.

`kubectl ctrl queue` in another terminal shows these reports. The check for changes takes the same time whatever the
length of the queue; reports of a long queue are bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.attempt import AttemptStarted, Observed
from kubectl_ctrl.runtime.member import Member
from kubectl_ctrl.runtime.observers import Observers

_LOOK_EVERY = 0.5
_STATE_EVERY = 2.0
_TALLY_EVERY = 10.0
# Checks come a little late or early.
_SOON = _LOOK_EVERY / 2


class Reports:
    """The reports of all controllers of a run."""

    def __init__(self, members: Iterable[Member], observers: Observers, clock: Clock) -> None:
        self._reports = tuple(_Report(member, observers, clock) for member in members)
        self._clock = clock
        self._stirred = asyncio.Event()
        observers.add(self._hear)

    async def run(self) -> None:
        """Report until cancelled; also the sign that this process lives.

        While nothing waits and nothing runs, nothing changes before an attempt begins: then one check is enough.
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
        """Report the last state."""
        for report in self._reports:
            report.close()

    def _hear(self, value: Observed) -> None:
        if isinstance(value, AttemptStarted):
            self._stirred.set()

    def __repr__(self) -> str:
        return f"Reports({', '.join(map(repr, self._reports))})"


class _Report:
    """The reports of one controller."""

    def __init__(self, member: Member, observers: Observers, clock: Clock) -> None:
        self._member = member
        self._observers = observers
        self._clock = clock
        self._fingerprint: object = None
        self._told = 0.0  # elapsed time of the last state
        self._held = member.controller.held_back
        self._tallied = clock.elapsed()

    def look(self) -> bool:
        """Report changes; returns whether more may change before an attempt begins."""
        now, member = self._clock.elapsed(), self._member
        obstacles = tuple(member.obstacles())
        fingerprint = (member.controller.fingerprint, member.leading, obstacles)
        if fingerprint != self._fingerprint or now - self._told > _STATE_EVERY - _SOON:
            self._fingerprint, self._told = fingerprint, now
            self._observers.tell(member.state())
        # Users ask "why did it not run" at once, so filtered changes are reported soon.
        held = member.controller.held_back
        if held != self._held or now - self._tallied > _TALLY_EVERY - _SOON:
            self._held, self._tallied = held, now
            self._observers.tell(member.tally())
        return bool(obstacles) or member.controller.busy

    def close(self) -> None:
        """Report the last state."""
        self._observers.tell(self._member.tally())
        self._observers.tell(self._member.state())

    def __repr__(self) -> str:
        return f"Report({self._member.spec.name}, told={self._told:.1f})"
