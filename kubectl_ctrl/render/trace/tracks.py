"""The workers of attempts, inferred from their times: attempts that overlap ran in different workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from kubectl_ctrl.model.record import RecordedAttempt

Span = tuple[int, int]  # begin and end in microseconds; the end is not part of it


def micros(at: float) -> int:
    """Wall time in whole microseconds, which compare exactly."""
    return round(at * 1_000_000)


def span_of(attempt: RecordedAttempt) -> Span:
    """From its start to its end, or to its last recorded moment; at least 1 µs."""
    begin = micros(attempt.started)
    return begin, max(begin + 1, micros(attempt.end))


def laid(spans: Sequence[Span]) -> list[tuple[int, Span]]:
    """For each span the lowest track that is free at its start, and the span, shortened so that it overlaps no other.

    Starts are wall time and durations are monotonic time. The two clocks drift apart, so a span may seem to reach a
    little into the next one of its worker; it then ends where that begins, instead of taking a further track.
    """
    taken: list[tuple[int, int, int]] = []  # (time at which its track is free, track, place)
    free: list[tuple[int, int]] = []  # (track, place of the last one on it)
    result: list[tuple[int, Span]] = [(0, span) for span in spans]
    count = 0
    for place in sorted(range(len(spans)), key=lambda place: spans[place]):
        begin, end = spans[place]
        while taken and taken[0][0] <= begin:
            heappush(free, heappop(taken)[1:])
        if free:
            track, last = heappop(free)
            result[last] = track, (spans[last][0], min(spans[last][1], begin))
        else:
            track, count = count, count + 1
        result[place] = track, (begin, end)
        slack = 50 + (end - begin) // 1000
        heappush(taken, (max(end - slack, begin + 1), track, place))
    return result


def grouped(attempts: Iterable[RecordedAttempt]) -> dict[tuple[str, str], list[RecordedAttempt]]:
    """By run and controller, which share no workers, in the order of first appearance."""
    found: dict[tuple[str, str], list[RecordedAttempt]] = {}
    for attempt in attempts:
        found.setdefault((attempt.run, attempt.controller), []).append(attempt)
    return found
