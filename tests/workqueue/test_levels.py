"""Who goes next: no ready key starves, whatever comes in, and lanes take turns."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from kubectl_ctrl.workqueue.levels import AGING_TURN, Levels
from kubectl_ctrl.workqueue.piles import Item
from kubectl_ctrl.workqueue.values import BULK, LIVE

AGING = 10.0
L = Levels[str, str]


def push(levels: L, key: str, priority: int = LIVE, now: float = 0.0) -> Item[str, str]:
    """Keys like `a/x` have the lane `a`."""
    item: Item[str, str] = Item(key, key.partition("/")[0])
    levels.push(item, priority, now)
    return item


def popped(levels: L, now: float = 0.0) -> list[str]:
    found = []
    while levels.count:
        found.append(levels.pop(now).key)
    return found


def picks_until(key: str, levels: L, arrivals: list[int], *, step: float = 0.0) -> int:
    """How many picks it takes from when it is overdue, while so many live keys in ever new lanes come before each."""
    for picks in range(500):
        now = AGING + picks * step
        for number in range(arrivals[picks % len(arrivals)]):
            push(levels, f"new {picks}/{number}", LIVE, now)
        if levels.pop(now).key == key:
            return picks + 1
    raise AssertionError(f"{key} starves")


@given(
    ahead=st.integers(0, 12),
    others=st.lists(st.sampled_from([50, -5, -50]), max_size=8),
    early=st.lists(st.integers(0, 5), max_size=12),
    late=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    step=st.sampled_from([0.0, 0.5, 20.0]),
)
@settings(max_examples=200)
def test_a_ready_key_runs_within_its_bound_under_arrivals_at_any_rate(
    ahead: int, others: list[int], early: list[int], late: list[int], step: float
) -> None:
    """T(p) as the docstring of Levels states it; before every pick at least one key of a higher priority arrives."""
    levels: L = Levels(AGING)
    for number in range(ahead):
        push(levels, f"bulk {number}/k", BULK)
    push(levels, "lane/target", BULK)
    for number, priority in enumerate(others):
        push(levels, f"other {number}/k", priority)
    for picks, count in enumerate(early):  # before it is overdue: anything may have been picked
        for number in range(count):
            push(levels, f"early {picks}/{number}", LIVE, now=1.0)
        if levels.pop(1.0).key == "lane/target":
            return
    overdue = len({BULK, LIVE, *others})
    assert picks_until("lane/target", levels, late, step=step) <= AGING_TURN * overdue * (ahead + 1)


@given(lanes=st.integers(1, 5), depth=st.integers(1, 10), arrivals=st.lists(st.integers(1, 4), min_size=1, max_size=5))
@settings(max_examples=100)
def test_a_key_deep_in_its_lane_is_not_starved_by_ever_new_lanes(lanes: int, depth: int, arrivals: list[int]) -> None:
    levels: L = Levels(AGING)
    for number in range(depth):
        for lane in range(lanes):
            push(levels, f"{lane}/{number}")
    assert picks_until(f"{lanes - 1}/{depth - 1}", levels, arrivals) <= AGING_TURN * lanes * depth


def test_without_help_a_low_key_would_starve() -> None:
    levels: L = Levels(AGING)
    push(levels, "low/k", BULK)
    for number in range(1000):
        push(levels, f"live/{number}")
        assert levels.pop(AGING - 0.001).key != "low/k"


@given(waiting=st.integers(1, 40))
def test_three_of_four_picks_go_by_priority_however_many_are_overdue(waiting: int) -> None:
    levels: L = Levels(AGING)
    for number in range(waiting):
        push(levels, f"low/{number}", BULK)
        push(levels, f"live/{number}", LIVE, now=AGING)
    first = [levels.pop(AGING).key.partition("/")[0] for _ in range(waiting)]
    assert first.count("low") <= waiting // AGING_TURN + 1


def test_one_of_four_picks_goes_to_those_that_wait_too_long() -> None:
    levels: L = Levels(AGING)
    for number in range(5):
        push(levels, f"low/{number}", BULK)
        for copy in range(4):
            push(levels, f"live/{number}.{copy}", LIVE, now=AGING)
    order = [levels.pop(AGING).key.partition("/")[0] for _ in range(8)]
    assert order == ["low", "live", "live", "live"] * 2


def test_levels_that_wait_too_long_take_turns() -> None:
    levels: L = Levels(AGING)
    for priority in (-1, -2, -3):
        for number in range(3):
            push(levels, f"{priority}/{number}", priority)
    for number in range(100):
        push(levels, f"live/{number}", LIVE, now=AGING)
    order = [levels.pop(AGING).key for _ in range(AGING_TURN * 6)]
    assert sorted(key.partition("/")[0] for key in order[::AGING_TURN]) == ["-1", "-1", "-2", "-2", "-3", "-3"]


def test_a_level_that_is_new_stands_behind_the_others() -> None:
    """Or ever new levels would hold up the old ones."""
    levels: L = Levels(AGING)
    for priority in (-1, -2):
        for number in range(3):
            push(levels, f"{priority}/{number}", priority)
    for number in range(100):
        push(levels, f"live/{number}", LIVE, now=AGING)
    assert [levels.pop(AGING).key for _ in range(2 * AGING_TURN)][::AGING_TURN] == ["-1/0", "-2/0"]
    push(levels, "new/0", -3, now=AGING)
    order = [levels.pop(2 * AGING).key for _ in range(4 * AGING_TURN)][::AGING_TURN]
    assert [key.partition("/")[0] for key in order] == ["live", "-1", "-2", "new"]


def test_lanes_take_turns_and_keys_of_a_lane_keep_their_order() -> None:
    levels: L = Levels(AGING)
    for key in ("flood/1", "flood/2", "flood/3", "flood/4", "b/1", "b/2", "c/1"):
        push(levels, key)
    assert popped(levels) == ["flood/1", "b/1", "c/1", "flood/2", "b/2", "flood/3", "flood/4"]


def test_a_lane_that_comes_back_stands_behind_the_others() -> None:
    levels: L = Levels(AGING)
    for key in ("a/1", "b/1", "b/2"):
        push(levels, key)
    assert levels.pop(0.0).key == "a/1"
    push(levels, "a/2")
    assert popped(levels) == ["b/1", "a/2", "b/2"]


def test_an_aging_turn_takes_the_oldest_of_all_lanes() -> None:
    levels: L = Levels(AGING)
    for key in ("a/1", "a/2", "a/3", "a/4", "a/5", "b/1", "b/2"):
        push(levels, key)
    # The first and the fifth pick are aging turns; the lanes' own turns go on between them as if nothing had been.
    assert popped(levels, now=AGING) == ["a/1", "a/2", "b/1", "a/3", "a/4", "b/2", "a/5"]


def test_raising_goes_up_and_never_down() -> None:
    levels: L = Levels(AGING)
    low = push(levels, "a/low", BULK)
    live = push(levels, "a/live", LIVE)
    levels.raise_to(live, BULK, 0.0)
    assert levels.depths() == ((LIVE, 1), (BULK, 1))
    levels.raise_to(low, LIVE, 0.0)
    assert (levels.depths(), levels.count) == (((LIVE, 2),), 2)
    assert popped(levels) == ["a/live", "a/low"]
    assert low.queued is None


def test_ever_new_priorities_leave_nothing_behind() -> None:
    levels: L = Levels(AGING)
    for number in range(1000):
        push(levels, "a/k", number)
        levels.pop(0.0)
    assert len(levels._levels) < 5


def test_clear_empties_all() -> None:
    levels: L = Levels(AGING)
    items = [push(levels, "a/1"), push(levels, "b/1", BULK)]
    levels.clear()
    assert (levels.count, levels.depths(), [item.queued for item in items]) == (0, (), [None, None])
