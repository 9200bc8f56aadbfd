"""SIGINT, SIGTERM and SIGHUP: the first asks to drain, the second ends the run, also while the event loop is blocked.

What is no run, but work with an end of its own, is cancelled by the first: that lets it leave things in order.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kubectl_ctrl.value import Struct

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# After the first signal: the time in which a loop that is not blocked has turned.
_A_MOMENT = 1.0
# After the second signal: time to say what was left, for a loop that still turns.
LAST_WORDS = 2.0
# Who says why it ends may be kept from it, as by a pipe that nobody reads.
_NO_LONGER = 1.0


def _nothing() -> None: ...


class Signals(Struct):
    """Which signals came so far; what is to be said is called from threads of its own."""

    count: int = 0
    last: int = 0
    heard: int = 0  # of how many the loop knows
    unheard: Callable[[], None] = _nothing  # the first came, and the loop does not turn
    forced: Callable[[], None] = _nothing  # the second came a while ago, and the process is about to be ended

    @property
    def blocked(self) -> bool:
        """Whether the loop has not turned since the last of them."""
        return self.heard < self.count

    def hear(self, count: int) -> None:
        self.heard = count

    @property
    def exit_code(self) -> int:
        return 128 + self.last


@contextmanager
def interrupts(stop: Callable[[], None]) -> Iterator[Signals]:
    """For the block: call `stop` at the first and second signal; a third, or a block that goes on, ends the process.

    Plain handlers rather than the loop's own: those wait for a turn of the loop, and a stuck reconciler gives none.
    """
    loop, seen = asyncio.get_running_loop(), Signals()
    timers: list[threading.Timer] = []

    def later(seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, act)  # not the last of the list: signals interrupt this too
        timers.append(timer)
        timer.daemon = True
        timer.start()

    def end() -> None:
        os._exit(seen.exit_code)

    def look() -> None:
        if seen.blocked and seen.count == 1:
            seen.unheard()

    def force() -> None:
        later(_NO_LONGER, end)
        try:
            seen.forced()
        finally:
            end()

    def handle(number: int, _frame: FrameType | None) -> None:
        seen.count, seen.last = seen.count + 1, number
        if seen.count > 2:
            end()
        if seen.count == 2:
            later(LAST_WORDS, force)
        else:
            later(_A_MOMENT, look)
        loop.call_soon_threadsafe(seen.hear, seen.count)
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


def leave_within(seconds: float, code: int) -> None:
    """End the process after so long if it has not ended by itself, as when a task or a thread cannot be stopped."""

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


async def cancellable(
    work: Coroutine[Any, Any, None], *, stopping: Callable[[str], None], forced: Callable[[], None] = _nothing
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
