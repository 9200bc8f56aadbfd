"""SIGINT and SIGTERM: the first asks to drain, the second ends the run, also while the event loop is blocked."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# After the second signal: time to say what was left, for a loop that still turns.
_LAST_WORDS = 2.0


@dataclass(slots=True)
class Signals:
    """Which signals came so far."""

    count: int = 0
    last: int = 0

    @property
    def exit_code(self) -> int:
        return 128 + self.last


@contextmanager
def interrupts(stop: Callable[[], None]) -> Iterator[Signals]:
    """For the block: call `stop` at the first and second signal; a third, or a block that goes on, ends the process.

    Plain handlers rather than the loop's own: those wait for a turn of the loop, and a stuck reconciler gives none.
    """
    seen = Signals()
    timers: list[threading.Timer] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        seen.count, seen.last = seen.count + 1, number
        if seen.count > 2:
            os._exit(seen.exit_code)
        if seen.count == 2:
            timers.append(threading.Timer(_LAST_WORDS, os._exit, (seen.exit_code,)))
            timers[0].daemon = True
            timers[0].start()
        stop()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield seen
    finally:
        for timer in timers:
            timer.cancel()
        for number, previous in before.items():
            signal.signal(number, previous)
