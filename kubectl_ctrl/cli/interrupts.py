"""SIGINT and SIGTERM: the first asks to drain, the second ends at once, also while the event loop is blocked."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts(first: Callable[[], None]) -> Iterator[None]:
    """For the block: call `first` at the first signal, end the process with 128+n at the second.

    Plain handlers rather than the loop's own: those wait for a turn of the loop, and a stuck reconciler gives none.
    """
    asked = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            sys.stderr.flush()
            os._exit(128 + number)
        asked = True
        first()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
