"""What the scaler knows beside what objects say: which problems were told, and how often a count was reverted.

A problem is told once. Writing that down on the object would be a write at rest, on an object that is to stay as it is;
so it is kept here, and a restart may tell it once more.
"""

from __future__ import annotations

from collections import deque
from typing import Any

_MOST_REVERTS = 5
_WITHIN = 600.0
_KEPT = 4096  # objects; of older ones a problem may be told again


class Memory:
    """Of one process."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}  # by UID
        self._reverts: dict[str, deque[float]] = {}  # by UID, wall times

    def is_news(self, uid: str, problem: str) -> bool:
        """Whether this is not what was told last about the object; it counts as told from now on."""
        news = self._told.get(uid) != problem
        self._told[uid] = problem
        _forget_oldest(self._told)
        return news

    def knows(self, uid: str) -> bool:
        return uid in self._told

    def forget(self, uid: str) -> None:
        """The problem is gone, or the object is."""
        self._told.pop(uid, None)

    def resumes(self, uid: str, now: float) -> float | None:
        """When the count may be reverted again if it was reverted too often of late; else this is one more time."""
        times = self._reverts.setdefault(uid, deque())
        _forget_oldest(self._reverts)
        while times and not now - _WITHIN < times[0] <= now:
            times.popleft()
        if len(times) >= _MOST_REVERTS:
            return times[0] + _WITHIN
        times.append(now)
        return None

    def __repr__(self) -> str:
        return f"Memory(told={len(self._told)}, reverted={len(self._reverts)})"


def _forget_oldest(known: dict[str, Any]) -> None:
    if len(known) > _KEPT:
        del known[next(iter(known))]
