"""Stops processes of kubectl ctrl: sends signals, waits for the exit, and kills on request."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError, TimedOut
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.runs import holder
from kubectl_ctrl.value import Value

_PACE = 0.1
# From SIGKILL to the exit of a process; one that hangs in the kernel never exits.
_KILL_TIMEOUT = 10.0


class LiveProcess(Value, kw_only=True):
    """A process of kubectl ctrl that runs controllers or is starting."""

    pid: int
    controllers: tuple[str, ...]
    asked: bool = False  # to stop: a second signal would cancel its running reconciles

    def __str__(self) -> str:
        return f"{', '.join(self.controllers)} (process {self.pid})"


class _Process:
    """A process with an open pidfd, where the system has them: until it is closed, the pid cannot be reused."""

    def __init__(self, live: LiveProcess) -> None:
        self.live = live
        self._asked = False
        self._handle: int | None = None
        with suppress(AttributeError, OSError):
            self._handle = os.pidfd_open(live.pid)

    def __repr__(self) -> str:
        return f"_Process({self.live})"

    @property
    def alive(self) -> bool:
        if self._handle is None:
            return holder.runs(self.live.pid)
        return not select.select([self._handle], [], [], 0)[0]

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            if self._handle is None:
                os.kill(self.live.pid, number)
            else:
                signal.pidfd_send_signal(self._handle, number)

    def ask(self) -> None:
        """Ask it once to stop, as Ctrl-C does. A stopped process handles signals only after SIGCONT."""
        if not self._asked:
            self._asked = True
            if not self.live.asked:
                self.send(signal.SIGTERM)
            self.send(signal.SIGCONT)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)


async def ended(
    find: Callable[[], Iterable[LiveProcess]], patience: float, clock: Clock, note: Callable[[str], None], *, kill: bool
) -> list[LiveProcess]:
    """Stop all processes that `find` returns, now and while waiting; returns them after their exit.

    Processes that still run after `patience` seconds are killed; without `kill`, TimedOut names them.
    """
    start, reported = clock.elapsed(), ""
    opened: dict[int, _Process] = {}
    with ExitStack() as held:
        while True:
            _open_new(find, opened, held)
            left = [one for one in opened.values() if one.alive]
            if not left:
                return [one.live for one in opened.values()]
            late = clock.elapsed() - start - patience
            for one in left:
                one.send(signal.SIGKILL) if kill and late > 0 else one.ask()
            if reported != (reported := f"waiting for {', '.join(str(one.live) for one in left)}"):
                note(reported)
            if late > (_KILL_TIMEOUT if kill else 0):
                raise _stays(left, patience, kill=kill)
            await clock.sleep(_PACE)


def _open_new(find: Callable[[], Iterable[LiveProcess]], opened: dict[int, _Process], held: ExitStack) -> None:
    """Open the new processes. A pid may be reused between find and open, so a second find must return it too."""
    new = {live.pid: live for live in find() if live.pid not in opened and live.pid != os.getpid()}
    if not new:
        return
    for live in new.values():
        opened[live.pid] = _Process(live)
        held.callback(opened[live.pid].close)
    for pid in set(new) - {live.pid for live in find()}:
        del opened[pid]


def _stays(left: Iterable[_Process], patience: float, *, kill: bool) -> CtrlError:
    names = ", ".join(str(one.live) for one in left)
    if kill:
        return CtrlError(f"SIGKILL does not stop {names}.", next_step="check the state of the process with ps")
    return TimedOut(
        f"{names} did not exit within {format_duration(patience)}: running reconciles may finish.",
        next_step="use a longer --timeout, or --force to kill it after the timeout",
    )
