"""Processes of ours come to their end: asked, waited for, killed where that is wanted, and seen to be gone."""

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
# From SIGKILL until a process is gone; one that hangs in the kernel stays.
_LAST = 10.0


class Live(Value, kw_only=True):
    """A process of ours that runs controllers, or is about to."""

    pid: int
    controllers: tuple[str, ...]
    asked: bool = False  # to end: a second time would cut short what it finishes

    def __str__(self) -> str:
        return f"{', '.join(self.controllers)} (process {self.pid})"


class _Grip:
    """A process that is held: while it is, its number means no other."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self._asked = False
        self._handle: int | None = None
        with suppress(AttributeError, OSError):
            self._handle = os.pidfd_open(live.pid)

    def __repr__(self) -> str:
        return f"_Grip({self.live})"

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
        """As Ctrl-C does; one that is stopped has to go on to hear it."""
        if not self._asked:
            self._asked = True
            if not self.live.asked:
                self.send(signal.SIGTERM)
            self.send(signal.SIGCONT)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)


async def ended(
    find: Callable[[], Iterable[Live]], patience: float, clock: Clock, note: Callable[[str], None], *, kill: bool
) -> list[Live]:
    """All that `find` finds, and whatever it finds meanwhile, has ended; gives them.

    Those that have not ended when the patience has run out are killed, or else TimedOut names them.
    """
    start, told = clock.elapsed(), ""
    grips: dict[int, _Grip] = {}
    with ExitStack() as held:
        while True:
            _take_hold(find, grips, held)
            left = [grip for grip in grips.values() if grip.alive]
            if not left:
                return [grip.live for grip in grips.values()]
            late = clock.elapsed() - start - patience
            for grip in left:
                grip.send(signal.SIGKILL) if kill and late > 0 else grip.ask()
            if told != (told := f"waiting for {', '.join(str(grip.live) for grip in left)}"):
                note(told)
            if late > (_LAST if kill else 0):
                raise _stays(left, patience, kill=kill)
            await clock.sleep(_PACE)


def _take_hold(find: Callable[[], Iterable[Live]], grips: dict[int, _Grip], held: ExitStack) -> None:
    """Of what is new. What was found and then held may be another by then, unless it is found again."""
    new = {live.pid: live for live in find() if live.pid not in grips and live.pid != os.getpid()}
    if not new:
        return
    for live in new.values():
        grips[live.pid] = _Grip(live)
        held.callback(grips[live.pid].close)
    for pid in set(new) - {live.pid for live in find()}:
        del grips[pid]


def _stays(left: Iterable[_Grip], patience: float, *, kill: bool) -> CtrlError:
    names = ", ".join(str(grip.live) for grip in left)
    if kill:
        return CtrlError(f"Not even SIGKILL ends {names}.", next_step="look at what the machine does with them: ps")
    return TimedOut(
        f"{names} was asked to end, and finishes what is under way for longer than {format_duration(patience)}.",
        next_step="wait with a longer --timeout, or add --force to kill it then",
    )
