"""State of the scaler that is on no object: the problems already reported, and how often replicas were reverted.

A problem is reported once. A note of that on the object would change an object that must stay as it is, so it is kept
in memory, and a restart may report the problem once more.
"""

from __future__ import annotations

from collections import deque
from typing import Any

_MOST_REVERTS = 5
_WITHIN = 600.0
_KEPT = 4096  # objects; the problem of an older one may be reported again


class Memory:
    """The state of one process."""

    def __init__(self) -> None:
        self._reported: dict[str, str] = {}  # by UID
        self._reverts: dict[str, deque[float]] = {}  # by UID, wall times

    def is_news(self, uid: str, problem: str) -> bool:
        """Whether this differs from the last problem reported about the object; it counts as reported from now on."""
        news = self._reported.get(uid) != problem
        self._reported[uid] = problem
        _forget_oldest(self._reported)
        return news

    def knows(self, uid: str) -> bool:
        return uid in self._reported

    def forget(self, uid: str) -> None:
        """The problem or the object no longer exists."""
        self._reported.pop(uid, None)

    def resumes(self, uid: str, now: float) -> float | None:
        """The time of the next permitted revert after too many in a short time; else None, and this one counts."""
        times = self._reverts.setdefault(uid, deque())
        _forget_oldest(self._reverts)
        while times and not now - _WITHIN < times[0] <= now:
            times.popleft()
        if len(times) >= _MOST_REVERTS:
            return times[0] + _WITHIN
        times.append(now)
        return None

    def __repr__(self) -> str:
        return f"Memory(reported={len(self._reported)}, reverted={len(self._reverts)})"


def _forget_oldest(known: dict[str, Any]) -> None:
    if len(known) > _KEPT:
        del known[next(iter(known))]
