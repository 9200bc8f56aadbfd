"""Waiting for a condition that another thread or process makes true."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from kubectl_ctrl.clock import SystemClock

T = TypeVar("T")


def until(condition: Callable[[], T], *, deadline: float = 120) -> T:
    """The first true value of the condition."""
    clock, pause = SystemClock(), threading.Event()
    end = clock.elapsed() + deadline
    while not (value := condition()):
        assert clock.elapsed() < end, f"not within {deadline:g} s; the last value: {value!r}"
        pause.wait(0.01)
    return value
