"""A limiter whose delays a reader of a test can tell at once."""

from __future__ import annotations

from kubectl_ctrl.workqueue.limits import K, Limiter


class FastSlow(Limiter[K]):
    """Per key: a short delay for the first few failures, then a long one."""

    def __init__(self, *, fast: float, slow: float, fast_attempts: int) -> None:
        self._fast = fast
        self._slow = slow
        self._fast_attempts = fast_attempts
        self._failures: dict[K, int] = {}

    def when(self, key: K) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return self._fast if failures <= self._fast_attempts else self._slow

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def __repr__(self) -> str:
        return f"<FastSlow: {len(self._failures)} failing>"
