"""SIGINT, SIGTERM and SIGHUP: the first asks to drain, the second ends the run, also while the event loop is blocked.

What is no run, but work with an end of its own, is cancelled by the first: that lets it leave things in order.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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

    # Under nohup the end of the terminal is to mean nothing.
    meant = [one for one in _SIGNALS if one != signal.SIGHUP or signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in meant}
    try:
        yield seen
    finally:
        for timer in timers:
            timer.cancel()
        for number, previous in before.items():
            signal.signal(number, previous)


async def cancellable(
    work: Coroutine[Any, Any, None], *, stopping: Callable[[str], None], forced: Callable[[], None]
) -> int:
    """Do it to its end: 0, or the exit code of the signal that cancelled it.

    `stopping` is told the name of the first signal; `forced` at the second, which ends the process.
    """
    loop, doing = asyncio.get_running_loop(), asyncio.ensure_future(work)

    def turn() -> None:
        if signals.count > 1:
            forced()
            os._exit(signals.exit_code)
        stopping(signal.Signals(signals.last).name)
        doing.cancel()

    def heard() -> None:
        loop.call_soon_threadsafe(turn)

    with interrupts(heard) as signals:
        try:
            await doing
        except asyncio.CancelledError:
            if not signals.count:
                raise
            return signals.exit_code
    return 0
