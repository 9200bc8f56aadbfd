"""The keys that are ready, and how many of those that hang may run at a time.

A key that was cut off because it hung will often hang again. As many such keys as there are workers would hold them all
until the next cut, and everybody else would wait for that. So keys in doubt hold at most so many workers as the slots
given here, one less than there are: the last worker is for keys that nothing is known against. A key in doubt that
finds no slot waits in line, behind those in doubt that came before it, and keeps its causes. It is in doubt until it
was done in time.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import Generic

from kubectl_ctrl.workqueue.levels import Levels
from kubectl_ctrl.workqueue.piles import Item
from kubectl_ctrl.workqueue.values import C, K


class Ready(Generic[K, C]):
    """Levels, and beside them the line of those that wait for a slot. Without `slots` nobody is ever in doubt."""

    def __init__(self, aging: float, slots: int | None) -> None:
        self._levels: Levels[K, C] = Levels(aging)
        self._slots = slots
        self._doubted: set[K] = set()
        self._running: set[K] = set()  # those that were taken while in doubt; never more than there are slots
        # While somebody stands here every slot is taken, or somebody in doubt is in the levels and takes the next.
        self._line: OrderedDict[K, Item[K, C]] = OrderedDict()

    def __len__(self) -> int:
        return self._levels.count + len(self._line)

    def __iter__(self) -> Iterator[Item[K, C]]:
        return chain(self._levels, self._line.values())

    @property
    def takeable(self) -> bool:
        """Whether a pop may find something."""
        return self._levels.count > 0

    def depths(self) -> tuple[tuple[int, int], ...]:
        if not self._line:
            return self._levels.depths()
        depths = Counter(dict(self._levels.depths()))
        depths.update(item.queued for item in self._line.values() if item.queued is not None)
        return tuple(sorted(depths.items(), reverse=True))

    def lanes(self) -> Iterator[tuple[int, Item[K, C]]]:
        """(How many, the first of them) of keys of one lane; a lane comes up several times."""
        return chain(self._levels.lanes(), ((1, item) for item in self._line.values()))

    def push(self, item: Item[K, C], priority: int, now: float) -> None:
        if self._must_wait(item.key):
            self._stand(item, priority)
        else:
            self._levels.push(item, priority, now)

    def raise_to(self, item: Item[K, C], priority: int, now: float) -> None:
        if item.key not in self._line:
            self._levels.raise_to(item, priority, now)
        elif item.queued is not None:
            item.queued = max(item.queued, priority)

    def pop(self, now: float) -> Item[K, C] | None:
        """Take the key that goes next, if one may go."""
        while self._levels.count:
            item = self._levels.pop(now)
            if self._must_wait(item.key):
                self._stand(item, item.pile.priority)
                continue
            if item.key in self._doubted:
                self._running.add(item.key)
            return item
        return None

    def done(self, key: K, now: float) -> int:
        """What was taken was given back; how many that stood in line may go now."""
        self._running.discard(key)
        return self._let_in(now)

    def doubt(self, key: K) -> None:
        """It hung; it counts from its next run on."""
        if self._slots is not None:
            self._doubted.add(key)

    def trust(self, key: K, now: float) -> int:
        """It was done in time; how many that stood in line may go now."""
        self._doubted.discard(key)
        item = self._line.pop(key, None)
        if item is not None and item.queued is not None:
            self._levels.push(item, item.queued, now)
        return self._let_in(now) + (item is not None)

    def clear(self) -> None:
        self._levels.clear()
        for item in self._line.values():
            item.queued = None
        self._line.clear()

    def _must_wait(self, key: K) -> bool:
        return self._slots is not None and key in self._doubted and len(self._running) >= self._slots

    def _stand(self, item: Item[K, C], priority: int) -> None:
        item.queued = priority
        self._line[item.key] = item

    def _let_in(self, now: float) -> int:
        free = 0 if self._slots is None else min(len(self._line), self._slots - len(self._running))
        for _ in range(free):
            _, item = self._line.popitem(last=False)
            assert item.queued is not None
            self._levels.push(item, item.queued, now)
        return free

    def __repr__(self) -> str:
        return f"Ready({self._levels.count}, in line={len(self._line)}, in doubt={len(self._doubted)})"
