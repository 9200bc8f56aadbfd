"""Checks from its own thread that the event loop runs, and reports the line that blocks it.

A blocked loop cannot renew a Lease, and no code on it can report that. If it stays blocked until another process may
hold the Lease, this process exits: it must not become a second leader that continues in the middle of a write.
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
    """Seconds for which the loop has been blocked, now and at most."""

    now: float = 0.0
    longest: float = 0.0


class Watchdog:
    """Start it on the loop's thread. While the loop is blocked, `must_end` decides whether the process has to exit."""

    def __init__(
        self, *, clock: Clock, must_end: Callable[[], bool], end: Callable[[], None], who: Callable[[], str]
    ) -> None:
        self._clock = clock
        self._must_end = must_end
        self._end = end
        self._who = who
        self._thread_id = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._answered = 0.0  # the time of the last question that the loop answered
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
            # Several checks and not time alone: after a suspend much time has passed, and the loop is about to run.
            if looks >= _REPORT_AFTER / _LOOK_EVERY:
                self._look(silent, first=looks == _REPORT_AFTER / _LOOK_EVERY)

    def _look(self, silent: float, *, first: bool) -> None:
        if first:
            _log.warning(
                "The event loop is blocked: some code does not await. Run it with ctx.in_thread.\n%s",
                self._stack(),
                extra={"action": "loop.blocked", "seconds": round(silent, 1), "attempt": self._who()},
            )
        if self._must_end():
            _log.critical(
                "The event loop is blocked, and another process may hold the Lease by now; this process exits.",
                extra={"action": "loop.ended", "seconds": round(silent, 1)},
            )
            self._end()

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - the only way to see another thread
        return "".join(traceback.format_stack(frame)[-6:]) if frame else ""
