"""The order of ready keys: by priority with aging, then round robin over lanes, then first come, first served."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic

from kubectl_ctrl.workqueue.piles import Item
from kubectl_ctrl.workqueue.values import C, K

# Of this many picks in a row, at least one goes to an overdue key, if there is one.
AGING_TURN = 4


class Level(Generic[K, C]):
    """The ready keys of one priority. Every operation takes the same short time, however many there are."""

    __slots__ = ("_lanes", "last_turn", "order", "priority")

    def __init__(self, priority: int, last_turn: int) -> None:
        self.priority = priority
        self.last_turn = last_turn  # the pick of its last aging turn, or at which it was created
        # Lanes that have keys, the one whose turn it is first; a lane's keys in the order in which they came.
        self._lanes: OrderedDict[object, OrderedDict[K, Item[K, C]]] = OrderedDict()
        # The same keys over all lanes, in the order in which they came. So the first is also the first of its lane.
        self.order: OrderedDict[K, Item[K, C]] = OrderedDict()

    def push(self, item: Item[K, C]) -> None:
        lane = self._lanes.get(item.lane)
        if lane is None:
            lane = self._lanes[item.lane] = OrderedDict()
        lane[item.key] = item
        self.order[item.key] = item

    def remove(self, item: Item[K, C]) -> None:
        lane = self._lanes[item.lane]
        del lane[item.key]
        del self.order[item.key]
        if not lane:
            del self._lanes[item.lane]

    def next(self) -> Item[K, C]:
        """Take the first key of the lane whose turn it is; the turn passes to the next lane."""
        name, lane = next(iter(self._lanes.items()))
        key, item = lane.popitem(last=False)
        del self.order[key]
        if lane:
            self._lanes.move_to_end(name)
        else:
            del self._lanes[name]
        return item

    def lanes(self) -> Iterator[tuple[int, Item[K, C]]]:
        """(Number of keys, the first key) of each lane."""
        for lane in self._lanes.values():
            yield len(lane), next(iter(lane.values()))

    def oldest(self) -> Item[K, C]:
        """The key that came first; it stays."""
        return next(iter(self.order.values()))


class Levels(Generic[K, C]):
    """All ready keys.

    A key that has been in its level for `aging` seconds is overdue. Of AGING_TURN picks in a row one goes to an overdue
    key, if there is one: to the oldest of the level whose last such turn is longest ago. So a key waits at most

        T(p) = aging + AGING_TURN * levels * (ahead + 1) picks

    after it entered the level of priority p, with `levels` the number of levels that have overdue keys, and `ahead` the
    number of keys of level p that came before it. Keys that arrive later, in any number, priority and lane, do not
    lengthen it. And however many keys are overdue, three of four picks go by priority.
    """

    def __init__(self, aging: float) -> None:
        self._aging = aging
        self._levels: list[Level[K, C]] = []  # highest priority first
        self.count = 0  # of all keys, over all levels
        self._picks = 0
        self._last_turn = -AGING_TURN  # the pick that was the last aging turn

    def __iter__(self) -> Iterator[Item[K, C]]:
        for level in self._levels:
            yield from level.order.values()

    def depths(self) -> tuple[tuple[int, int], ...]:
        return tuple((level.priority, len(level.order)) for level in self._levels if level.order)

    def lanes(self) -> Iterator[tuple[int, Item[K, C]]]:
        """(Number of keys, the first key) of each lane of each level."""
        for level in self._levels:
            yield from level.lanes()

    def push(self, item: Item[K, C], priority: int, now: float) -> None:
        """Put a key at the end of its lane in the level of that priority."""
        item.queued = priority
        item.since = now
        self._level(priority).push(item)
        self.count += 1

    def raise_to(self, item: Item[K, C], priority: int, now: float) -> None:
        """Move a key to the end of a higher level."""
        assert item.queued is not None
        if priority > item.queued:
            self._level(item.queued).remove(item)
            self.count -= 1
            self.push(item, priority, now)

    def pop(self, now: float) -> Item[K, C]:
        """Take the next key; there must be one."""
        self._picks += 1
        self.count -= 1
        level = self._overdue(now)
        if level is None:
            item = self._highest().next()
        else:
            self._last_turn = level.last_turn = self._picks
            item = level.oldest()
            level.remove(item)
        item.queued = None
        return item

    def clear(self) -> None:
        for item in self:
            item.queued = None
        self._levels.clear()
        self.count = 0

    def _overdue(self, now: float) -> Level[K, C] | None:
        """The level whose aging turn this pick is, if any."""
        if self._picks - self._last_turn < AGING_TURN:
            return None
        chosen: Level[K, C] | None = None
        for level in self._levels:
            late = level.order and now - level.oldest().since >= self._aging
            if late and (chosen is None or level.last_turn < chosen.last_turn):
                chosen = level
        return chosen

    def _highest(self) -> Level[K, C]:
        for level in self._levels:
            if level.order:
                return level
        raise LookupError("No key is ready.")

    def _level(self, priority: int) -> Level[K, C]:
        for level in self._levels:
            if level.priority == priority:
                return level
        # Empty levels stay until another is created: usually the same few come back, and unused ones do not pile up.
        made: Level[K, C] = Level(priority, self._picks)
        used = [level for level in self._levels if level.order]
        self._levels = sorted([made, *used], key=lambda level: -level.priority)
        return made
