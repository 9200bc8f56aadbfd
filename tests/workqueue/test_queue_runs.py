"""What follows a run, waiting for one, and what can be seen of the queue."""

from __future__ import annotations

import asyncio

import pytest

from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import settle
from kubectl_ctrl.workqueue.values import BULK, Again, DoneResult, KeyStage, Lane, QueueEntry, Retry
from tests.workqueue.drive import Q, later, retry, states, take, taken

# The end of a run.


async def test_retry_waits_as_the_limiter_says_and_tells_why(queue: Q) -> None:
    queue.add("k", "event")
    told = []
    for _ in range(4):
        work = await queue.get()
        told.append((work.causes, work.failures))
        settled = queue.done(work, then=retry())
    assert told == [
        (("event",), 0),
        (("retry 1 after 1",), 1),
        (("retry 2 after 1",), 2),
        (("retry 3 after 1",), 3),
    ]
    assert (settled.delay, states(queue)) == (60.0, {"k": KeyStage.BACKOFF})
    queue.forget("k")
    assert queue.failures("k") == 0


async def test_an_event_during_a_failed_run_does_not_wait_for_its_backoff(queue: Q, clock: FakeClock) -> None:
    queue.add("k", "one")
    work = await queue.get()
    queue.add("k", "two")
    assert queue.done(work, then=retry()) == DoneResult(delay=1.0, ready=True)
    again = await queue.get()
    assert (again.causes, again.failures) == (("two",), 1)
    queue.done(again)
    clock.suspend(60)
    assert queue.take() is None, "the run was the retry as well"


async def test_again_runs_behind_those_that_are_ready(queue: Q) -> None:
    queue.add("a/k", "x")
    queue.add("a/other", "x")
    assert queue.done(take(queue), then=Again("more")) == DoneResult(delay=0.0, ready=True)
    assert taken(queue) == ["a/other", "a/k"]


async def test_the_next_timer_is_the_workers_to_set_or_to_leave(queue: Q) -> None:
    later(queue, "k", "old plan", 10)
    queue.add("k", "event")
    queue.done(take(queue))
    assert queue.snapshot() == []


async def test_echoes_among_what_piled_up_are_dropped(queue: Q) -> None:
    queue.add("k", "x")
    work = await queue.get()
    queue.add("k", "echo 1")
    queue.add("k", "echo 2")
    settled = queue.done(work, drop=lambda cause: cause.startswith("echo"))
    assert settled == DoneResult(dropped=("echo 1", "echo 2"), ready=False)
    assert queue.snapshot() == []


async def test_a_foreign_cause_between_echoes_stays(queue: Q) -> None:
    queue.add("k", "x")
    work = await queue.get()
    for cause in ("echo 1", "foreign", "echo 2"):
        queue.add("k", cause)
    settled = queue.done(work, drop=lambda cause: cause.startswith("echo"))
    assert settled == DoneResult(dropped=("echo 1", "echo 2"), ready=True)
    again = take(queue)
    assert (again.causes, again.total) == (("foreign",), 1)


async def test_nothing_is_dropped_when_not_every_cause_was_kept(queue: Q) -> None:
    queue.add("k", "x")
    work = await queue.get()
    for number in range(5):  # one more than is kept
        queue.add("k", f"echo {number}")
    assert queue.done(work, drop=lambda cause: True) == DoneResult(ready=True)
    again = take(queue)
    assert (again.causes, again.total) == (("echo 0", "echo 1", "echo 2", "echo 4"), 5)


async def test_an_error_in_a_callback_leaves_the_work_running(queue: Q) -> None:
    queue.add("k", "x")
    work = await queue.get()
    queue.add("k", "y")
    with pytest.raises(ZeroDivisionError):
        queue.done(work, drop=lambda cause: bool(1 / 0))
    with pytest.raises(ZeroDivisionError):
        queue.done(work, then=Retry(lambda failures, delay: str(1 / 0)))
    assert states(queue) == {"k": KeyStage.RUNNING}
    queue.done(work)
    assert take(queue).causes == ("y",)


# Waiting for work.


async def test_get_waits_for_the_next_key(queue: Q, clock: FakeClock) -> None:
    getter = asyncio.create_task(queue.get())
    await clock.sleep(100)
    queue.add("k", "x")
    assert (await getter).key == "k"


async def test_a_cancelled_get_loses_no_key(queue: Q) -> None:
    cancelled, other = (asyncio.create_task(queue.get()) for _ in range(2))
    await settle()
    queue.add("k", "x")  # wakes the first
    cancelled.cancel()
    assert (await other).key == "k"
    with pytest.raises(asyncio.CancelledError):
        await cancelled


async def test_a_cancelled_get_that_took_part_in_nothing_leaves_the_key_ready(queue: Q) -> None:
    getter = asyncio.create_task(queue.get())
    await settle()
    queue.add("k", "x")
    getter.cancel()
    await settle()
    assert taken(queue) == ["k"]


async def test_nobody_waits_nothing_rings(queue: Q) -> None:
    """A timer holds the loop only while a worker waits for it: else a stopped program would not end."""
    later(queue, "k", "x", 3)
    getter = asyncio.create_task(queue.get())
    await settle()
    assert queue._alarm is not None
    getter.cancel()
    await settle()
    assert queue._alarm is None


# To look at.


async def test_snapshot_and_counts_tell_what_is_where(queue: Q, clock: FakeClock) -> None:
    began = clock.now()
    queue.add("running", "x")
    work = await queue.get()
    queue.add("failing", "x")
    queue.done(take(queue), then=retry())
    clock.suspend(0.25)
    queue.add("running", "y")
    later(queue, "live", "y", 7)
    queue.add("live", "x")
    queue.add("bulk", "x", priority=BULK)
    later(queue, "timer", "x", 60, priority=BULK)
    assert queue.snapshot() == [
        QueueEntry(key="running", state=KeyStage.RUNNING, since=began, due=None, failures=0, causes=1, priority=0),
        QueueEntry(key="live", state=KeyStage.READY, since=began + 0.25, due=None, failures=0, causes=1, priority=0),
        QueueEntry(key="bulk", state=KeyStage.READY, since=began + 0.25, due=None, failures=0, causes=1, priority=BULK),
        QueueEntry(key="failing", state=KeyStage.BACKOFF, since=began, due=began + 1, failures=1, causes=1, priority=0),
        QueueEntry(
            key="timer",
            state=KeyStage.TIMER,
            since=began + 0.25,
            due=began + 60.25,
            failures=0,
            causes=1,
            priority=-100,
        ),
    ]
    assert [entry.key for entry in queue.snapshot(1)] == ["running", "live", "failing"]
    assert [entry.key for entry in queue.snapshot(0)] == ["running"]
    assert queue.snapshot(2) == queue.snapshot()
    counts = queue.counts
    assert (counts.adds, counts.retries) == (7, 1)
    assert (counts.ready, counts.running, counts.backoff, counts.timers) == (((0, 1), (BULK, 1)), 1, 1, 2)
    assert (counts.longest_running, counts.unfinished) == (0.25, 0.25)
    assert repr(queue) == "<Queue 'foo': 2 ready, 1 running, 3 timers>"
    queue.close()
    assert repr(queue) == "<Queue 'foo': 2 ready, 1 running, 0 timers, closed>"
    queue.done(work)


async def test_lanes_tell_how_many_wait_where_and_since_when(queue: Q, clock: FakeClock) -> None:
    began = clock.now()
    for key in ("a/1", "a/2", "b/1", "c/1"):
        queue.add(key, "x")
    clock.suspend(2)
    queue.add("b/2", "x", priority=BULK)
    queue.add("b/3", "x")
    later(queue, "d/1", "x", 60)
    assert take(queue).key == "a/1"
    fullest = [
        Lane(name="b", ready=3, since=began),
        Lane(name="c", ready=1, since=began),
        Lane(name="a", ready=1, since=began),
    ]
    assert queue.lanes(9) == (fullest, 3)
    assert queue.lanes(1) == (fullest[:1], 3)


async def test_a_quiet_queue_remembers_nothing(queue: Q) -> None:
    for number in range(1000):
        later(queue, f"a/{number}", "x", 3600)
        queue.add(f"a/{number}", "x")
        queue.done(take(queue))
    assert not queue._items
    assert len(queue._timers._heap) < 100
