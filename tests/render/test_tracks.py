from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.render.trace.tracks import grouped, laid, span_of
from kubectl_ctrl.value import replace
from tests.render.samples import NOON
from tests.render.stories import story

MS = 1000
SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)))


@given(SPANS)
def test_nothing_overlaps_on_a_track_and_no_track_is_wasted(pairs: list[tuple[int, int]]) -> None:
    spans = [(begin * MS, (begin + took) * MS) for begin, took in pairs]
    found = laid(spans)
    assert [span for _, span in found] == spans
    for first, (track, one) in enumerate(found):
        assert all(one[1] <= other[0] or other[1] <= one[0] for lane, other in found[:first] if lane == track)
    at_once = max((sum(begin <= at * MS < end for begin, end in spans) for at in range(71)), default=0)
    assert {track for track, _ in found} == set(range(at_once))


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 300))))
def test_nothing_overlaps_where_clocks_differ(pairs: list[tuple[int, int]]) -> None:
    found = laid([(begin, begin + took) for begin, took in pairs])
    for first, (track, one) in enumerate(found):
        assert one[0] < one[1]
        assert all(one[1] <= other[0] or other[1] <= one[0] for lane, other in found[:first] if lane == track)


def test_attempts_in_sequence_stay_on_one_track_if_clocks_differ() -> None:
    assert laid([(0, 40_080), (40_000, 50_000)]) == [(0, (0, 40_000)), (0, (40_000, 50_000))]
    assert laid([(0, 40_100), (40_000, 50_000)]) == [(0, (0, 40_100)), (1, (40_000, 50_000))]


def test_as_many_workers_are_found_as_there_were() -> None:
    attempts = story(400, objects=6).attempts
    assert {track for track, _ in laid([span_of(attempt) for attempt in attempts])} == {0, 1}


def test_an_attempt_without_an_end_ends_at_its_last_recorded_moment() -> None:
    attempt = next(one for one in story(20).attempts if one.calls)
    last = attempt.calls[-1].call
    begin, end = span_of(replace(attempt, took=None))
    assert (begin, end) == (round(attempt.started * 1e6), round((last.started + last.took) * 1e6))
    assert span_of(replace(attempt, took=None, calls=())) == (begin, begin + 1)


def test_runs_and_controllers_have_their_own_workers() -> None:
    first, second, third = (replace(one, started=NOON) for one in story(3).attempts)
    found = grouped([first, replace(second, controller="bar"), replace(third, id="r9aa-1")])
    assert [(key, len(group)) for key, group in found.items()] == [
        (("r7f3", "foo"), 1),
        (("r7f3", "bar"), 1),
        (("r9aa", "foo"), 1),
    ]
