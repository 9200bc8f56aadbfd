"""Short functions to drive the queue of a test."""

from __future__ import annotations

from kubectl_ctrl.workqueue.queue import Queue
from kubectl_ctrl.workqueue.values import LIVE, After, KeyStage, KeyWork, Retry

Q = Queue[str, str]

_FIRST = 1_000_000


def take(queue: Q) -> KeyWork[str, str]:
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


def states(queue: Q) -> dict[str, KeyStage]:
    return {entry.key: entry.state for entry in queue.snapshot()}


def retry(text: str = "retry") -> Retry[str]:
    return Retry(lambda failures, delay: f"{text} {failures} after {delay:g}")
