"""Names of runs and attempts, and the log context that carries them.

A run is one process, `r7f3`; its attempts are numbered over all objects and controllers, `r7f3-12`; the client
numbers an attempt's calls, `r7f3-12.3`. The same names are in logs, Audit-IDs, recordings and on the command line.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from logging import Logger, LoggerAdapter
from random import Random

_ATTEMPT: ContextVar[str] = ContextVar("kubectl_ctrl_attempt", default="")


def new_run(rng: Random, taken: Container[str] = frozenset()) -> str:
    """A run id that is not taken; after 4,096 runs ids get longer."""
    digits = 3
    while True:
        for _ in range(16):
            run = f"r{rng.getrandbits(4 * digits):0{digits}x}"
            if run not in taken:
                return run
        digits += 1


class AttemptIds:
    """Numbers the attempts of one run."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._numbers = count(1)
        self.given = 0

    def next(self) -> str:
        self.given = next(self._numbers)
        return f"{self.run}-{self.given}"

    def __repr__(self) -> str:
        return f"AttemptIds({self.run}, given={self.given})"


def current_attempt() -> str:
    """The id of the attempt that runs this code, or ""."""
    return _ATTEMPT.get()


@contextmanager
def attempt_context(attempt: str) -> Iterator[None]:
    """Code in this block, and tasks started in it, log with the id of this attempt."""
    token = _ATTEMPT.set(attempt)
    try:
        yield
    finally:
        _ATTEMPT.reset(token)


def attempt_log(controller: str, attempt: str, request: object) -> LoggerAdapter[Logger]:
    """`ctx.log`."""
    logger = logging.getLogger(f"kubectl_ctrl.controller.{controller}")
    extra = {"controller": controller, "attempt": attempt, "request": str(request)}
    return LoggerAdapter(logger, extra)
