"""Debug aid: finds who changes cached objects, which are shared and must not be changed.

Each object is remembered as text when it comes in and compared from time to time. That costs as much as the cache
itself, so it is on only where it was asked for.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable

from kubectl_ctrl.clock import Clock
from kubectl_ctrl.model.diffs import Difference, diff
from kubectl_ctrl.model.objects import Obj, key_of

_log = logging.getLogger(__name__)

_EVERY = 1.0
_KEPT_FOR = 120.0

Report = Callable[[Obj, tuple[Difference, ...]], None]


class Mutations:
    """Objects of the last two minutes, and what they looked like."""

    def __init__(self, clock: Clock, report: Report) -> None:
        self._clock = clock
        self._report = report  # called once per change with the object as it is now and what is different
        self._kept: deque[tuple[float, Obj, str]] = deque()  # oldest first

    def keep(self, obj: Obj) -> None:
        self._kept.append((self._clock.elapsed(), obj, json.dumps(obj)))

    def check(self) -> None:
        """Compare everything, and forget what is old."""
        for place, (at, obj, text) in enumerate(self._kept):
            now = json.dumps(obj)
            if now != text:
                self._kept[place] = (at, obj, now)
                self._complain(json.loads(text), obj)
        oldest = self._clock.elapsed() - _KEPT_FOR
        while self._kept and self._kept[0][0] < oldest:
            self._kept.popleft()

    async def run(self) -> None:
        while True:
            await self._clock.sleep(_EVERY)
            self.check()

    def _complain(self, before: Obj, obj: Obj) -> None:
        differences = diff(before, obj, ignore=frozenset())
        fields = {"action": "cache.mutated", "object": str(key_of(before)), "paths": [one.path for one in differences]}
        _log.error("A cached object was changed in place; objects that share parts with it changed too.", extra=fields)
        self._report(obj, differences)

    def __repr__(self) -> str:
        return f"Mutations(kept={len(self._kept)})"
