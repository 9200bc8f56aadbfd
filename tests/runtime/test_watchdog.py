"""A loop that does not turn, seen from beside it. Here the real clock and a real block are the point."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from kubectl_ctrl.clock import SystemClock
from kubectl_ctrl.runtime.watchdog import Watchdog

pytestmark = pytest.mark.real_loop


def block_until(event: threading.Event) -> None:
    assert event.wait(20)


class LookedAt(SystemClock):
    """Counts how often it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def elapsed(self) -> float:
        self.looks += 1
        return super().elapsed()


class Reported(logging.Handler):
    """Sets an event when something was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.happened = threading.Event()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        self.happened.set()


@pytest.fixture
def reported() -> Reported:
    return Reported()


def test_a_blocked_loop_is_reported_with_attempt_and_line(reported: Reported) -> None:
    log = logging.getLogger("kubectl_ctrl.runtime.watchdog")

    async def main() -> Watchdog:
        with Watchdog(clock=SystemClock(), must_end=lambda: False, end=lambda: None, who=lambda: "r1-7") as dog:
            block_until(reported.happened)
        return dog

    log.addHandler(reported)
    try:
        dog = asyncio.run(main())
    finally:
        log.removeHandler(reported)
    (record,) = reported.records
    assert record.__dict__["attempt"] == "r1-7"
    assert "block_until" in record.getMessage()
    assert dog.lag.longest >= 1


async def test_a_loop_blocked_past_its_lease_ends_the_process(caplog: pytest.LogCaptureFixture) -> None:
    """A program that logs at level CRITICAL reads this, and nothing else, before it ends."""
    ended = threading.Event()
    with (
        caplog.at_level(logging.CRITICAL, logger="kubectl_ctrl"),
        Watchdog(clock=SystemClock(), must_end=lambda: not ended.is_set(), end=ended.set, who=lambda: ""),
    ):
        block_until(ended)
    (record,) = caplog.records
    assert (record.levelname, record.__dict__["action"]) == ("CRITICAL", "loop.ended")


async def test_a_loop_that_turns_is_left_alone() -> None:
    """It is looked at more often than one that is blocked before its process ends."""
    ended, clock = threading.Event(), LookedAt()
    with Watchdog(clock=clock, must_end=lambda: True, end=ended.set, who=lambda: ""):
        while clock.looks < 6 and not ended.is_set():
            await SystemClock().sleep(0.01)
    assert not ended.is_set()
