"""A clock for tests: elapsed time follows the virtual loop, wall time can be stepped, the machine can be suspended.

Several clocks on one loop are several machines, each with its own wall time. `freeze` pauses one of them while the
others continue. `suspend` is for a test with one machine: its time jumps.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kubectl_ctrl.clock import rfc3339_micro

START_OF_2026 = 1_767_225_600.0

# The real clock splits a wait into naps of this length; after a suspend a wait ends with its current nap, as here.
_NAP = 5.0


class FakeClock:
    """Implements kubectl_ctrl.clock.Clock over the running loop's time.

    Outside a loop only `suspend` and `step` move its time; on another loop it continues where it was.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, start: float = START_OF_2026) -> None:
        self._loop = loop or _running()
        self._ahead = 0.0  # elapsed time minus loop time
        self._wall = start - self.elapsed()  # wall time minus elapsed time
        self._frozen_until = -math.inf  # loop time
        self._alarms: dict[int, _Alarm] = {}
        self._made = 0
        self._cpu = 0.0

    def now(self) -> float:
        return self._wall + self.elapsed()

    def elapsed(self) -> float:
        running = _running()
        if running is not None and running is not self._loop:
            self._ahead += self._loop_time() - running.time()
            self._loop = running
        return self._loop_time() + self._ahead

    def cpu(self) -> float:
        return self._cpu

    def work(self, seconds: float) -> None:
        """Use CPU time; elapsed and wall time do not move."""
        self._cpu += seconds

    def _loop_time(self) -> float:
        return self._loop.time() if self._loop is not None else 0.0

    def step(self, seconds: float) -> None:
        """Move only wall time, forward or back, as NTP or a user does."""
        self._wall += seconds

    def suspend(self, seconds: float) -> None:
        """Suspend the machine: elapsed and wall time jump, timers stay; waits notice it at the end of their nap."""
        self.elapsed()
        self._ahead += seconds
        for alarm in self._alarms.values():
            self._arm(alarm)

    def freeze(self, seconds: float) -> None:
        """Pause only this machine: waits on this clock do not end for so long, while time goes on everywhere.

        Waits for anything but time (an answer, another task) are not delayed.
        """
        self.elapsed()
        self._frozen_until = max(self._frozen_until, self._loop_time() + seconds)
        for alarm in self._alarms.values():
            self._arm(alarm)

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._set_alarm(seconds, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            self._drop(alarm)

    @asynccontextmanager
    async def timeout(self, seconds: float | None) -> AsyncIterator[None]:
        if seconds is None:
            yield
            return
        async with asyncio.Timeout(None) as scope:
            alarm = self._set_alarm(seconds, lambda: scope.reschedule(self._loop_time()))
            try:
                yield
            finally:
                self._drop(alarm)

    def _set_alarm(self, seconds: float, ring: Callable[[], None]) -> _Alarm:
        seconds = max(0.0, seconds)
        deadline = self.elapsed() + seconds
        self._made += 1
        alarm = _Alarm(self._made, self._loop_time(), seconds, deadline, ring)
        self._alarms[alarm.number] = alarm
        self._arm(alarm)
        return alarm

    def _arm(self, alarm: _Alarm) -> None:
        assert self._loop is not None
        if alarm.handle is not None:
            alarm.handle.cancel()
        alarm.handle = self._loop.call_at(self._next_check(alarm), self._ring, alarm)

    def _ring(self, alarm: _Alarm) -> None:
        if self._alarms.pop(alarm.number, None) is not None:
            alarm.ring()

    def _drop(self, alarm: _Alarm) -> None:
        self._alarms.pop(alarm.number, None)
        if alarm.handle is not None:
            alarm.handle.cancel()

    def _next_check(self, alarm: _Alarm) -> float:
        """The loop time at which this wait ends, or notices that it ended during a suspend."""
        exact = alarm.deadline - self._ahead
        while exact + self._ahead < alarm.deadline:  # rounding must not end a wait too early
            exact = math.nextafter(exact, math.inf)
        loop_time = self._loop_time()
        if exact >= loop_time:
            return max(exact, self._frozen_until)
        naps = (loop_time - alarm.since) // _NAP + 1
        return max(loop_time, self._frozen_until, alarm.since + min(naps * _NAP, alarm.seconds))

    def __repr__(self) -> str:
        return f"FakeClock(now={rfc3339_micro(self.now())}, elapsed={self.elapsed():.3f}, waits={len(self._alarms)})"


class _Alarm:
    """One wait: its start on the loop, its length, its end in elapsed time, and its callback."""

    def __init__(self, number: int, since: float, seconds: float, deadline: float, ring: Callable[[], None]) -> None:
        self.number = number
        self.since = since
        self.seconds = seconds
        self.deadline = deadline
        self.ring = ring
        self.handle: asyncio.TimerHandle | None = None


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
