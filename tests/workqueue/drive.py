"""A queue on virtual time for a test, and short words to drive it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import run_virtual
from kubectl_ctrl.workqueue.queue import Queue
from kubectl_ctrl.workqueue.values import LIVE, After, Retry, Stage, Work
from tests.workqueue.fastslow import FastSlow

Q = Queue[str, str]

_FIRST = 1_000_000


def virtual(test: Callable[[Q, FakeClock], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that gets a queue and its clock, on virtual time. Keys like `a/x` have the lane `a`."""

    async def main() -> None:
        clock = FakeClock()
        limiter = FastSlow[str](fast=1.0, slow=60.0, fast_attempts=3)
        await test(
            Queue(name="foo", clock=clock, limiter=limiter, lane=lambda key: key.partition("/")[0], keep=4), clock
        )

    def run() -> None:
        run_virtual(main)

    return run


def take(queue: Q) -> Work[str, str]:
    work = queue.take()
    assert work is not None, "nothing is ready"
    return work


def later(queue: Q, key: str, cause: str, delay: float, *, priority: int = LIVE) -> None:
    """Let the key run now, before all others, and ask for its next run after a delay."""
    queue.add(key, "first run", priority=_FIRST)
    queue.done(take(queue), then=After(delay, cause, priority=priority))


def taken(queue: Q) -> list[str]:
    """All that is ready, in order, each handed back at once."""
    found = []
    while (work := queue.take()) is not None:
        found.append(work.key)
        queue.done(work)
    return found


def states(queue: Q) -> dict[str, Stage]:
    return {entry.key: entry.state for entry in queue.snapshot()}


def retry(text: str = "retry") -> Retry[str]:
    return Retry(lambda failures, delay: f"{text} {failures} after {delay:g}")
