"""Piles keep the first causes and the last; the timers' heap forgets what was cancelled."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from kubectl_ctrl.workqueue.piles import Item, Pile, Timers


def pile_of(causes: list[int], keep: int, *, at: float = 0.0) -> Pile[int]:
    pile: Pile[int] = Pile()
    for cause in causes:
        pile.add(cause, keep, cause, at)
    return pile


@given(st.integers(0, 30), st.integers(1, 6))
def test_the_first_and_the_last_are_kept_and_all_are_counted(count: int, keep: int) -> None:
    causes = list(range(count))
    pile = pile_of(causes, keep)
    assert pile.kept == (causes if count <= keep else [*causes[: keep - 1], causes[-1]])
    assert pile.total == count


@given(st.integers(0, 12), st.integers(1, 12), st.integers(1, 6))
def test_a_merged_pile_counts_all_and_keeps_first_and_last(early: int, late: int, keep: int) -> None:
    pile = pile_of(list(range(early)), keep, at=5.0)
    pile.merge(pile_of(list(range(early, early + late)), keep, at=3.0), keep)
    assert pile.total == early + late
    assert len(pile.kept) == min(keep, early + min(late, keep))
    assert pile.kept[-1] == early + late - 1
    assert (pile.priority, pile.first_at) == (early + late - 1, 3.0)


def test_a_full_pile_drops_nothing() -> None:
    pile = pile_of([1, 2, 3], 3)
    assert pile.without(lambda cause: cause == 2) == (2,)
    assert (pile.kept, pile.total) == ([1, 3], 2)
    full = pile_of([1, 2, 3, 4], 3)
    assert full.without(lambda cause: True) == ()
    assert full.total == 4


def item(name: str) -> Item[str, str]:
    return Item(name, None)


def test_equal_times_come_in_the_order_in_which_they_were_set() -> None:
    timers: Timers[str, str] = Timers()
    for name in "cab":
        timers.set(item(name), 5.0, backoff=False)
    assert [timer.item.key for timer in timers.take_due(5.0)] == ["c", "a", "b"]
    assert timers.live == 0


def test_a_timer_is_never_taken_early() -> None:
    timers: Timers[str, str] = Timers()
    timers.set(item("k"), 5.0, backoff=False)
    assert list(timers.take_due(4.999)) == []
    assert timers.next_due() == 5.0


def test_a_backoff_is_counted_until_it_is_gone() -> None:
    timers: Timers[str, str] = Timers()
    key = item("k")
    timers.set(key, 5.0, backoff=False)
    timers.set(key, 9.0, backoff=True)
    timers.set(key, 2.0, backoff=False)
    assert (timers.live, timers.backoffs) == (1, 1)
    assert timers.next_due() == 2.0
    timers.cancel(key)
    timers.cancel(key)
    assert (timers.live, timers.backoffs, timers.next_due()) == (0, 0, None)


def test_many_cancelled_timers_do_not_pile_up() -> None:
    timers: Timers[str, str] = Timers()
    keys = [item(str(number)) for number in range(10)]
    for number in range(10_000):
        timers.set(keys[number % 10], 1e6 - number, backoff=False)
    assert (timers.live, len(timers.earliest(100))) == (10, 10)
    assert len(timers._heap) <= 2 * 10 + 65


def test_clear_gives_the_keys_in_the_order_of_their_times() -> None:
    timers: Timers[str, str] = Timers()
    keys = [item(name) for name in "abc"]
    for key, due in zip(keys, (3.0, 1.0, 2.0), strict=True):
        timers.set(key, due, backoff=True)
    assert [key.key for key in timers.clear()] == ["b", "c", "a"]
    assert (timers.live, timers.backoffs, timers.next_due()) == (0, 0, None)
    assert [key.timer for key in keys] == [None] * 3
