"""Keys in doubt never hold the last worker, nobody is forgotten, and the others do not notice."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import run_virtual, settle
from kubectl_ctrl.workqueue.queue import Queue
from kubectl_ctrl.workqueue.values import KeyWork
from tests.workqueue.drive import Q, states, take, taken
from tests.workqueue.fastslow import FastSlow

KEYS = "abcdefg"
STEPS = st.lists(st.tuples(st.sampled_from(["add", "take", "done", "doubt", "trust"]), st.sampled_from(KEYS)))


def limited(slots: int | None) -> Q:
    limiter = FastSlow[str](fast=1.0, slow=60.0, fast_attempts=3)
    return Queue(name="foo", clock=FakeClock(), limiter=limiter, doubtful_slots=slots)


def doubtful(keys: str) -> Q:
    """A queue with one slot for these keys, all of which are in doubt."""
    queue = limited(1)
    for key in keys:
        queue.doubt(key)
        queue.add(key, "x")
    return queue


@given(steps=STEPS, slots=st.integers(1, 3))
def test_no_more_than_the_slots_run_in_doubt_and_all_others_go_on(steps: list[tuple[str, str]], slots: int) -> None:
    async def main() -> None:
        queue = limited(slots)
        doubted: set[str] = set()
        counted: set[str] = set()  # taken while in doubt
        running: dict[str, KeyWork[str, str]] = {}
        dirty: set[str] = set()

        def check_take() -> KeyWork[str, str] | None:
            work = queue.take()
            ready = dirty - running.keys()
            if work is None:
                assert ready <= doubted, "only keys in doubt may be kept waiting"
                assert not ready or len(counted) == slots, "and only for want of a slot"
                return None
            dirty.discard(work.key)
            running[work.key] = work
            if work.key in doubted:
                counted.add(work.key)
            assert len(counted) <= slots
            return work

        for what, key in steps:
            match what:
                case "add":
                    queue.add(key, what)
                    dirty.add(key)
                case "take":
                    check_take()
                case "done" if key in running:
                    queue.done(running.pop(key))
                    counted.discard(key)
                case "doubt":
                    queue.doubt(key)
                    doubted.add(key)
                case "trust":
                    queue.trust(key)
                    doubted.discard(key)
            assert len(queue) == len(dirty - running.keys())
            assert sum(count for _, count in queue.counts.ready) == len(queue)
        while running or dirty:  # nobody is forgotten
            while check_take() is not None:
                pass
            key = min(running)
            queue.done(running.pop(key))
            counted.discard(key)
        assert states(queue) == {}

    run_virtual(main)


async def test_those_in_line_come_in_their_order_and_with_their_causes() -> None:
    queue = limited(1)
    for key in "abc":
        queue.doubt(key)
        queue.add(key, f"{key}1")
    first = take(queue)
    assert queue.take() is None
    queue.add("b", "b2", priority=5)
    queue.add("z", "z1")
    assert taken(queue) == ["z"], "who is not in doubt does not wait"
    assert list(states(queue)) == ["a", "b", "c"]
    queue.done(first)
    second = take(queue)
    assert (second.key, second.causes, second.priority) == ("b", ("b1", "b2"), 5)
    queue.trust("c")
    assert take(queue).key == "c"


async def test_a_worker_that_waits_is_woken_for_who_stood_in_line() -> None:
    queue = doubtful("ab")
    first = take(queue)
    waiting = asyncio.create_task(queue.get())
    await settle()
    assert not waiting.done()
    queue.done(first)
    assert (await waiting).key == "b"


async def test_a_slot_that_nobody_needs_any_more_goes_to_the_next_in_line() -> None:
    queue = doubtful("abc")
    first = take(queue)
    assert queue.take() is None
    queue.done(first)
    queue.trust("b")
    assert [take(queue).key for _ in "bc"] == ["b", "c"]


async def test_a_worker_that_waits_is_woken_for_who_is_trusted_again() -> None:
    queue = doubtful("ab")
    take(queue)
    waiting = asyncio.create_task(queue.get())
    await settle()
    queue.trust("b")
    assert (await waiting).key == "b"


async def test_what_is_abandoned_is_left_and_told() -> None:
    queue = doubtful("abc")
    first = take(queue)
    assert queue.take() is None
    assert [entry.key for entry in queue.abandon()] == ["a", "b", "c"]
    queue.done(first)
    assert (queue.take(), len(queue)) == (None, 0)


async def test_without_slots_nobody_is_in_doubt() -> None:
    queue = limited(None)
    for key in "abc":
        queue.doubt(key)
        queue.add(key, "x")
    assert [take(queue).key for _ in "abc"] == ["a", "b", "c"]
