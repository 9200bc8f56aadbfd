"""Looks from a thread of its own whether the event loop still turns, and says which line holds it up.

A loop that is blocked cannot renew a lease, and nothing on it can tell. If it stays blocked until the lease may pass to
somebody else, the process ends: better gone than a second leader that wakes up in the middle of a write.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.value import Struct

_log = logging.getLogger(__name__)

_LOOK_EVERY = 0.25
_REPORT_AFTER = 1.0


class Lag(Struct):
    """How long the loop has not turned, and the longest that it ever did not."""

    now: float = 0.0
    longest: float = 0.0


class Watchdog:
    """Start it on the loop's thread. `must_end` is asked, while the loop is blocked, whether the process has to go."""

    def __init__(
        self, *, clock: Clock, must_end: Callable[[], bool], end: Callable[[], None], who: Callable[[], str]
    ) -> None:
        self._clock = clock
        self._must_end = must_end
        self._end = end
        self._who = who
        self._thread_id = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._answered = 0.0  # the newest question that the loop has come to
        self._over = threading.Event()
        self.lag = Lag()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def __repr__(self) -> str:
        return f"Watchdog(lag={self.lag.now:.3f}, longest={self.lag.longest:.3f})"

    def _ask(self) -> float:
        now = self._clock.elapsed()
        self._loop.call_soon_threadsafe(self._answer, now)
        return now

    def _answer(self, question: float) -> None:
        self._answered = question

    def _watch(self) -> None:
        asked, looks = self._ask(), 0
        while not self._over.wait(_LOOK_EVERY):
            if self._answered >= asked:
                self.lag = Lag(now=0.0, longest=self.lag.longest)
                asked, looks = self._ask(), 0
                continue
            looks += 1
            silent = self._clock.elapsed() - asked
            self.lag = Lag(now=silent, longest=max(silent, self.lag.longest))
            # Several looks and not time alone: after a suspend much time has passed, and the loop is about to turn.
            if looks >= _REPORT_AFTER / _LOOK_EVERY:
                self._look(silent, first=looks == _REPORT_AFTER / _LOOK_EVERY)

    def _look(self, silent: float, *, first: bool) -> None:
        if first:
            _log.warning(
                "The event loop is blocked: something does not await. ctx.in_thread is for such work.\n%s",
                self._stack(),
                extra={"action": "loop.blocked", "seconds": round(silent, 1), "attempt": self._who()},
            )
        if self._must_end():
            _log.critical(
                "The event loop stayed blocked until the lease may have passed to another; the process ends.",
                extra={"action": "loop.ended", "seconds": round(silent, 1)},
            )
            self._end()

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - the only way to see another thread
        return "".join(traceback.format_stack(frame)[-6:]) if frame else ""
