"""A queue that is plain to read and slow: lists, searched from the front. The real one must do the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.workqueue.fastslow import FastSlow

Key = tuple[str, str]  # lane, name

AGING = 10.0
KEEP = 3
TURN = 4  # one of so many picks is for a key that waits too long


def limiter() -> FastSlow[Key]:
    return FastSlow(fast=1.0, slow=7.0, fast_attempts=2)


@dataclass
class Pile:
    """All causes, in order; the real queue keeps a few."""

    priority: int
    first_at: float
    causes: list[str] = field(default_factory=list)

    def add(self, cause: str, priority: int) -> None:
        self.causes.append(cause)
        self.priority = max(self.priority, priority)

    def kept(self) -> tuple[str, ...]:
        return tuple(self.causes if len(self.causes) <= KEEP else [*self.causes[: KEEP - 1], self.causes[-1]])


@dataclass
class Timer:
    due: float
    number: int
    pile: Pile
    backoff: bool


@dataclass
class Run:
    taken_at: float
    priority: int
    kept: tuple[str, ...]
    total: int
    ready_at: float
    first_at: float
    failures: int


class NaiveQueue:
    """State: what must run and why, where the ready ones stand, what runs, what waits for a time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.wall = 0.0
        self.limiter = limiter()
        self.dirty: dict[Key, Pile] = {}
        self.ready_at: dict[Key, float] = {}  # of the keys that are ready
        self.order: list[
            tuple[int, float, Key]
        ] = []  # (priority, since, key) of those, in the order in which they came
        self.turns: list[tuple[int, str]] = []  # (priority, lane), those that have keys; the one whose turn it is first
        self.running: dict[Key, Run] = {}
        self.timers: dict[Key, Timer] = {}
        self.schedules: dict[Key, tuple[float, str, int]] = {}  # when, why, how urgent: what a run asked for
        self.last_aged: dict[int, int] = {}  # per level: the pick at which it was made or had its last aging turn
        self.last_turn = -TURN
        self.picks = 0
        self.adds = 0
        self.retries = 0
        self.numbers = 0
        self.closed = False

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    def catch_up(self) -> None:
        due = sorted((timer.due, timer.number, key) for key, timer in self.timers.items() if timer.due <= self.now)
        for at, _, key in due:
            pile = self.timers.pop(key).pile
            for cause in pile.causes:
                self.put(key, cause, pile.priority, pile.first_at)
            self.place(key, at)

    def put(self, key: Key, cause: str, priority: int, first_at: float) -> None:
        if key not in self.dirty:
            self.dirty[key] = Pile(priority, first_at)
            self.adds += 1
        self.dirty[key].add(cause, priority)
        self.dirty[key].first_at = min(self.dirty[key].first_at, first_at)

    def place(self, key: Key, at: float) -> None:
        """Give a dirty key that does not run its place."""
        if key in self.running:
            return
        priority = self.dirty[key].priority
        present = [level for level, _, other in self.order if other == key]
        if present and present[0] >= priority:
            return
        if present:
            self.leave(key)
        else:
            self.ready_at[key] = at
        if priority not in self.last_aged:
            self.last_aged = {level: pick for level, pick in self.last_aged.items() if level in self.levels()}
            self.last_aged[priority] = self.picks
        self.order.append((priority, at, key))
        if (priority, key[0]) not in self.turns:
            self.turns.append((priority, key[0]))

    def levels(self) -> list[int]:
        return sorted({level for level, _, _ in self.order}, reverse=True)

    def leave(self, key: Key) -> None:
        place = next(place for place, entry in enumerate(self.order) if entry[2] == key)
        level = self.order.pop(place)[0]
        if not any(other[0] == level and other[2][0] == key[0] for other in self.order):
            self.turns.remove((level, key[0]))

    def add(self, key: Key, cause: str, priority: int) -> None:
        if self.closed:
            return
        self.catch_up()
        self.put(key, cause, priority, self.wall)
        self.place(key, self.now)

    def delay(self, key: Key, cause: str, delay: float, priority: int, *, backoff: bool = False) -> None:
        if self.closed:
            return
        if delay <= 0:
            self.add(key, cause, priority)
            return
        timer = self.timers.get(key)
        if timer is None or self.now + delay < timer.due:
            self.numbers += 1
            pile = timer.pile if timer else Pile(priority, self.wall)
            backoff = backoff or (timer is not None and timer.backoff)
            timer = self.timers[key] = Timer(self.now + delay, self.numbers, pile, backoff)
        timer.backoff = timer.backoff or backoff
        timer.pile.add(cause, priority)

    def retry(self, key: Key, cause: str, priority: int) -> None:
        self.retries += 1
        self.delay(key, cause, self.limiter.when(key), priority, backoff=True)

    def keep_schedule(self, key: Key, asked: tuple[float, str, int] | None, *, failed: bool, taken_at: float) -> None:
        """After a run: what it asked for replaces what was asked for before, which a failure leaves as it was."""
        if self.closed:
            return
        before = self.schedules.pop(key, None)
        if asked is not None:
            self.schedules[key] = asked
        elif failed and before is not None and before[0] > taken_at:
            self.schedules[key] = before
            due, cause, priority = before
            if key not in self.timers or due < self.timers[key].due:
                self.delay(key, cause, due - self.now, priority)

    def pick(self) -> tuple[int, float, Key]:
        self.picks += 1
        late = [level for level in self.levels() if self.now - self.oldest(level)[1] >= AGING]
        if late and self.picks - self.last_turn >= TURN:
            level = min(late, key=lambda level: self.last_aged[level])
            self.last_turn = self.last_aged[level] = self.picks
            return self.oldest(level)
        level = self.levels()[0]
        turn = next(turn for turn in self.turns if turn[0] == level)
        self.turns.remove(turn)
        self.turns.append(turn)
        return next(entry for entry in self.order if entry[0] == level and entry[2][0] == turn[1])

    def oldest(self, level: int) -> tuple[int, float, Key]:
        return next(entry for entry in self.order if entry[0] == level)

    def take(self) -> Key | None:
        self.catch_up()
        if not self.order:
            return None
        _, _, key = self.pick()
        self.leave(key)
        self.timers.pop(key, None)
        pile = self.dirty.pop(key)
        self.running[key] = Run(
            taken_at=self.now,
            priority=pile.priority,
            kept=pile.kept(),
            total=len(pile.causes),
            ready_at=self.ready_at.pop(key),
            first_at=pile.first_at,
            failures=self.limiter.failures(key),
        )
        return key

    def drop(self, key: Key, unwanted: Callable[[str], bool]) -> tuple[str, ...]:
        pile = self.dirty.get(key)
        if pile is None or len(pile.causes) > KEEP:
            return ()
        dropped = tuple(cause for cause in pile.causes if unwanted(cause))
        pile.causes = [cause for cause in pile.causes if not unwanted(cause)]
        if not pile.causes:
            del self.dirty[key]
        return dropped

    def done(self, key: Key) -> None:
        self.catch_up()
        del self.running[key]
        if key in self.dirty:
            self.place(key, self.now)

    def close(self) -> None:
        self.catch_up()
        self.closed = True
        self.timers.clear()
