"""The ready keys, and a limit on those that may hang.

A key that hung until its timeout often hangs again. As many such keys as there are workers would occupy them all until
the next timeout, and every other key would wait. So keys in doubt get a limited number of slots, one less than there
are workers: the last worker is for all others. A key in doubt without a slot waits in line, behind those that came
before it, and keeps its causes. It is in doubt until it finishes in time.
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
    """Levels, and the line of keys that wait for a slot. Without `slots` no key is ever in doubt."""

    def __init__(self, aging: float, slots: int | None) -> None:
        self._levels: Levels[K, C] = Levels(aging)
        self._slots = slots
        self._doubted: set[K] = set()
        self._running: set[K] = set()  # keys taken while in doubt; never more than there are slots
        # While a key waits here, every slot is taken, or a key in doubt is in the levels and takes the next.
        self._line: OrderedDict[K, Item[K, C]] = OrderedDict()

    def __len__(self) -> int:
        return self._levels.count + len(self._line)

    def __iter__(self) -> Iterator[Item[K, C]]:
        return chain(self._levels, self._line.values())

    @property
    def takeable(self) -> bool:
        """A pop may find a key."""
        return self._levels.count > 0

    def depths(self) -> tuple[tuple[int, int], ...]:
        if not self._line:
            return self._levels.depths()
        depths = Counter(dict(self._levels.depths()))
        depths.update(item.queued for item in self._line.values() if item.queued is not None)
        return tuple(sorted(depths.items(), reverse=True))

    def lanes(self) -> Iterator[tuple[int, Item[K, C]]]:
        """(Number of keys, the first key) of a lane; a lane may come up several times."""
        return chain(self._levels.lanes(), ((1, item) for item in self._line.values()))

    def push(self, item: Item[K, C], priority: int, now: float) -> None:
        if self._must_wait(item.key):
            self._line_up(item, priority)
        else:
            self._levels.push(item, priority, now)

    def raise_to(self, item: Item[K, C], priority: int, now: float) -> None:
        if item.key not in self._line:
            self._levels.raise_to(item, priority, now)
        elif item.queued is not None:
            item.queued = max(item.queued, priority)

    def pop(self, now: float) -> Item[K, C] | None:
        """Take the next key, if one may run."""
        while self._levels.count:
            item = self._levels.pop(now)
            if self._must_wait(item.key):
                self._line_up(item, item.pile.priority)
                continue
            if item.key in self._doubted:
                self._running.add(item.key)
            return item
        return None

    def done(self, key: K, now: float) -> int:
        """A taken key is done; returns how many keys left the line."""
        self._running.discard(key)
        return self._admit(now)

    def doubt(self, key: K) -> None:
        """It hung; this counts from its next run on."""
        if self._slots is not None:
            self._doubted.add(key)

    def trust(self, key: K, now: float) -> int:
        """It finished in time; returns how many keys left the line."""
        self._doubted.discard(key)
        item = self._line.pop(key, None)
        if item is not None and item.queued is not None:
            self._levels.push(item, item.queued, now)
        return self._admit(now) + (item is not None)

    def clear(self) -> None:
        self._levels.clear()
        for item in self._line.values():
            item.queued = None
        self._line.clear()

    def _must_wait(self, key: K) -> bool:
        return self._slots is not None and key in self._doubted and len(self._running) >= self._slots

    def _line_up(self, item: Item[K, C], priority: int) -> None:
        item.queued = priority
        self._line[item.key] = item

    def _admit(self, now: float) -> int:
        free = 0 if self._slots is None else min(len(self._line), self._slots - len(self._running))
        for _ in range(free):
            _, item = self._line.popitem(last=False)
            assert item.queued is not None
            self._levels.push(item, item.queued, now)
        return free

    def __repr__(self) -> str:
        return f"Ready({self._levels.count}, in line={len(self._line)}, in doubt={len(self._doubted)})"
