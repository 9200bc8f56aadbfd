"""SIGINT, SIGTERM and SIGHUP: the first drains a run, the second ends it, also while the event loop is blocked.

Other work is cancelled by the first signal (`cancellable`), so that it can clean up.
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
# After the first signal: an event loop that has not handled it by then is blocked.
_BLOCKED_AFTER = 1.0
# After the second signal: time for the run to print its summary and exit.
FORCE_AFTER = 2.0
# Printing the last message may block, for example on a pipe that nobody reads.
_EXIT_AFTER = 1.0


def _nothing() -> None: ...


class Signals(Struct):
    """The signals so far. The callbacks run in threads of their own, since the event loop may be blocked."""

    count: int = 0
    last: int = 0
    heard: int = 0  # signals that the event loop has handled
    unheard: Callable[[], None] = _nothing  # after the first, if the event loop is blocked
    forced: Callable[[], None] = _nothing  # before the process exits, if it still runs after the second

    @property
    def blocked(self) -> bool:
        """Whether the event loop has not run since the last signal."""
        return self.heard < self.count

    def hear(self, count: int) -> None:
        self.heard = count

    @property
    def exit_code(self) -> int:
        return 128 + self.last


@contextmanager
def interrupts(stop: Callable[[], None]) -> Iterator[Signals]:
    """For the block: call `stop` on the first and second signal. A third one ends the process, as does a timeout.

    These are plain signal handlers. Those of the event loop would never run while a reconciler blocks it.
    """
    loop, seen = asyncio.get_running_loop(), Signals()
    timers: list[threading.Timer] = []

    def later(seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, act)  # do not use timers[-1]: another signal may interrupt this function
        timers.append(timer)
        timer.daemon = True
        timer.start()

    def end() -> None:
        os._exit(seen.exit_code)

    def check() -> None:
        if seen.blocked and seen.count == 1:
            seen.unheard()

    def force() -> None:
        later(_EXIT_AFTER, end)
        try:
            seen.forced()
        finally:
            end()

    def handle(number: int, _frame: FrameType | None) -> None:
        seen.count, seen.last = seen.count + 1, number
        if seen.count > 2:
            end()
        if seen.count == 2:
            later(FORCE_AFTER, force)
        else:
            later(_BLOCKED_AFTER, check)
        loop.call_soon_threadsafe(seen.hear, seen.count)
        stop()

    # nohup ignores SIGHUP; keep it ignored.
    handled = [one for one in _SIGNALS if one != signal.SIGHUP or signal.getsignal(one) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield seen
    finally:
        for timer in timers:
            timer.cancel()
        for number, previous in before.items():
            signal.signal(number, previous)


def leave_within(seconds: float, code: int) -> None:
    """End the process after so long if it still runs, for example because a task or a thread cannot be stopped."""

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
    """Await the work: 0, or the exit code of the signal that cancelled it.

    `stopping` gets the name of the first signal. `forced` is called on the second, which ends the process.
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
