"""The promises of the queue one by one, under the names that reference pages give them: WQ of the work queue, DQ of the
delaying one, PQ of the one with priorities. What holds in any order of calls is for test_queue_machine."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from kubectl_ctrl.errors import QueueClosed
from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.testing.loop import settle
from kubectl_ctrl.workqueue.values import BULK, LIVE, After, Again, DoneResult, KeyStage, Retry
from tests.workqueue.drive import Q, later, retry, states, take, taken

# The work queue.


async def test_wq1_a_key_is_in_the_queue_once(queue: Q) -> None:
    queue.add("k", "one")
    queue.add("k", "two", priority=50)
    queue.add("k", "three", priority=BULK)
    assert (len(queue), taken(queue)) == (1, ["k"])


async def test_wq2_adds_before_get_give_one_run_with_all_causes(queue: Q, clock: FakeClock) -> None:
    for cause in ("one", "two", "three"):
        queue.add("k", cause)
        clock.suspend(1)
    work = await queue.get()
    assert (work.key, work.causes, work.total) == ("k", ("one", "two", "three"), 3)
    assert queue.take() is None
    assert work.queued_at == clock.now() - 3
    assert (work.ready_at, work.taken_at) == (clock.elapsed() - 3, clock.elapsed())


async def test_wq3_adds_during_a_run_give_one_more_run_at_the_tail(queue: Q) -> None:
    queue.add("a/k", "one")
    work = await queue.get()
    queue.add("a/k", "two")
    queue.add("a/other", "x")
    queue.add("a/k", "three")
    assert queue.done(work) == DoneResult(ready=True)
    other, again = await queue.get(), await queue.get()
    assert (other.key, again.key, again.causes) == ("a/other", "a/k", ("two", "three"))
    queue.done(again)
    assert queue.take() is None


async def test_wq4_a_running_key_is_handed_to_nobody_else(queue: Q, clock: FakeClock) -> None:
    queue.add("k", "one")
    work = await queue.get()
    queue.add("k", "two", priority=50)
    clock.suspend(10)
    assert queue.take() is None
    queue.done(work)
    assert take(queue).causes == ("two",)


async def test_wq5_an_add_at_any_moment_of_a_run_is_followed_by_a_run(queue: Q, clock: FakeClock) -> None:
    async def work_once() -> tuple[str, ...]:
        work = await queue.get()
        await clock.sleep(1)
        queue.done(work)
        return work.causes

    queue.add("k", "before")
    worker = asyncio.create_task(work_once())
    await clock.sleep(1)
    queue.add("k", "at the very end")  # the worker's own sleep ends at this time too
    assert await worker == ("before",)
    assert await work_once() == ("at the very end",)


async def test_wq6_a_key_that_adds_itself_lets_all_others_run_between(queue: Q) -> None:
    for key in ("a/self", "a/x", "a/y", "a/z"):
        queue.add(key, "first")
    order = []
    for _ in range(8):
        work = await queue.get()
        order.append(work.key)
        queue.add(work.key, "again")
        queue.done(work)
    assert order == ["a/self", "a/x", "a/y", "a/z"] * 2


async def test_wq7_stray_done_of_a_ready_key_pushes_no_duplicate(queue: Q) -> None:
    queue.add("k", "one")
    first = await queue.get()
    queue.add("k", "two")
    queue.done(first)
    assert queue.done(first, then=Again("stray")) == DoneResult()
    assert (len(queue), taken(queue)) == (1, ["k"])


async def test_wq7_stray_done_during_the_next_run_does_not_end_it(queue: Q) -> None:
    queue.add("k", "one")
    first = await queue.get()
    queue.add("k", "two")
    queue.done(first)
    second = await queue.get()
    queue.add("k", "three")
    assert queue.done(first, drop=lambda cause: True) == DoneResult()
    assert queue.take() is None, "a second worker would have the key too"
    assert queue.done(second) == DoneResult(ready=True)


async def test_wq8_close_ignores_adds_and_hands_out_what_is_ready(queue: Q) -> None:
    queue.add("ready", "x")
    queue.add("runs twice", "x")
    ready = await queue.get()
    running = await queue.get()
    queue.add("runs twice", "y")
    queue.add("waits", "x")
    queue.close()
    queue.close()
    queue.add("late", "x")
    assert queue.done(ready, then=Again("ignored")) == DoneResult()
    assert queue.done(running, then=After(1, "ignored")) == DoneResult(ready=True)
    assert queue.closed
    assert states(queue) == {"waits": KeyStage.READY, "runs twice": KeyStage.READY}
    assert [(await queue.get()).key for _ in range(2)] == ["waits", "runs twice"]
    for _ in range(2):
        with pytest.raises(QueueClosed, match="'foo' is closed"):
            await queue.get()


async def test_wq8_close_releases_all_who_wait(queue: Q) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.close()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert [type(result) for result in results] == [QueueClosed] * 3


async def test_wq9_an_abandoned_queue_lists_what_is_left_and_gives_nothing_out(queue: Q) -> None:
    queue.add("stuck", "x")
    queue.add("never taken", "x")
    work = await queue.get()
    queue.close()
    left = queue.abandon()
    assert [(entry.key, entry.state) for entry in left] == [
        ("stuck", KeyStage.RUNNING),
        ("never taken", KeyStage.READY),
    ]
    with pytest.raises(QueueClosed):
        await queue.get()
    queue.done(work)
    assert not queue._items


async def test_wq10_len_counts_what_is_ready(queue: Q, clock: FakeClock) -> None:
    later(queue, "delayed", "x", 60)
    for key in ("ready", "running", "both"):
        queue.add(key, "x")
    for _ in range(2):
        queue.take()
    queue.add("both", "y")
    assert len(queue) == 1
    clock.suspend(60)
    assert len(queue) == 2


# The delaying queue.


async def test_dq1_no_delay_is_an_add(queue: Q) -> None:
    for delay in (0.0, -5.0, float("nan")):
        later(queue, "k", "now", delay)
        assert taken(queue) == ["k"]
    assert queue.snapshot() == []


async def test_dq2_of_a_retry_and_a_schedule_the_earlier_wins_and_has_both_causes(queue: Q, clock: FakeClock) -> None:
    began = clock.elapsed()
    later(queue, "k", "schedule", 10)
    queue.add("k", "event")
    queue.done(take(queue), then=Retry(lambda failures, delay: "retry", at_least=20), failed=True)
    work = await queue.get()
    assert clock.elapsed() - began == pytest.approx(10)
    assert work.causes == ("retry", "schedule")
    queue.done(work)
    assert queue.snapshot() == []


async def test_dq3_never_early_and_on_time(queue: Q, clock: FakeClock) -> None:
    began = clock.elapsed()
    delays = [0.1 * number + 1 / 3 for number in range(200)]
    for delay in reversed(delays):
        later(queue, f"a/{delay}", "x", delay)
    for delay in delays:
        work = await queue.get()
        queue.done(work)
        assert work.key == f"a/{delay}"
        assert began + delay <= clock.elapsed() < began + delay + 1e-5


async def test_dq3_not_a_moment_early(queue: Q, clock: FakeClock) -> None:
    due = clock.elapsed() + 10
    later(queue, "k", "x", 10)
    clock.suspend(9.999)
    assert queue.take() is None
    clock.suspend(2)
    assert take(queue).ready_at == due


async def test_dq3_after_a_suspend_within_five_seconds(queue: Q, clock: FakeClock) -> None:
    later(queue, "k", "x", 3600)
    getter = asyncio.create_task(queue.get())
    await clock.sleep(2)
    clock.suspend(86_400)
    woken_at = clock.elapsed()
    await getter
    assert clock.elapsed() - woken_at <= 5


async def test_dq3_an_earlier_timer_set_while_somebody_waits_is_on_time(queue: Q, clock: FakeClock) -> None:
    began = clock.elapsed()
    later(queue, "late", "x", 4)
    getter = asyncio.create_task(queue.get())
    await clock.sleep(1)
    later(queue, "early", "x", 1)
    assert (await getter).key == "early"
    assert clock.elapsed() - began == pytest.approx(2)


async def test_dq4_a_plain_add_and_a_timer_give_one_run(queue: Q, clock: FakeClock) -> None:
    """The add is not delayed by the timer, and taking the key takes the timer away: no second run without a reason."""
    later(queue, "k", "timer", 10)
    queue.add("k", "event")
    work = await queue.get()
    assert work.causes == ("event",)
    queue.done(work)
    clock.suspend(3600)
    assert queue.take() is None


async def test_dq4_a_timer_that_is_due_before_the_key_is_taken_adds_its_causes(queue: Q, clock: FakeClock) -> None:
    later(queue, "k", "timer", 10)
    queue.add("k", "event")
    clock.suspend(11)
    work = await queue.get()
    assert (work.causes, work.ready_at) == (("event", "timer"), clock.elapsed() - 11)


async def test_dq5_timers_are_dropped_when_it_closes_but_not_those_that_are_due(queue: Q, clock: FakeClock) -> None:
    later(queue, "due", "x", 10)
    later(queue, "pending", "x", 60)
    assert states(queue) == {"due": KeyStage.TIMER, "pending": KeyStage.TIMER}
    clock.suspend(30)
    queue.close()
    assert states(queue) == {"due": KeyStage.READY}
    clock.suspend(3600)
    assert taken(queue) == ["due"]


# Priorities; aging and lanes are in test_levels.


async def test_pq1_higher_priority_first_then_ready_order(queue: Q) -> None:
    for key, priority in (("a/1", BULK), ("a/2", LIVE), ("a/3", 50), ("a/4", LIVE), ("a/5", BULK)):
        queue.add(key, "x", priority=priority)
    assert taken(queue) == ["a/3", "a/2", "a/4", "a/1", "a/5"]


async def test_pq2_a_raise_moves_to_the_tail_of_the_new_level_and_keeps_the_ready_time(
    queue: Q, clock: FakeClock
) -> None:
    queue.add("a/bulk", "x", priority=BULK)
    queue.add("a/low", "x", priority=BULK)
    clock.suspend(1)
    queue.add("a/live", "x")
    queue.add("a/low", "y", priority=LIVE)
    queue.add("a/low", "z", priority=BULK)
    assert take(queue).key == "a/live"
    work = take(queue)
    assert (work.key, work.priority, work.ready_at) == ("a/low", LIVE, clock.elapsed() - 1)
    assert take(queue).key == "a/bulk"


async def test_pq3_a_delayed_key_stands_where_it_became_ready_and_blocks_nobody(queue: Q, clock: FakeClock) -> None:
    later(queue, "a/delayed", "x", 10, priority=50)
    queue.add("a/now", "x", priority=BULK)
    assert taken(queue) == ["a/now"]
    queue.add("a/before", "x", priority=50)
    later(queue, "a/other", "x", 9, priority=50)
    clock.suspend(20)
    queue.add("a/after", "x", priority=50)
    queue.add("a/low", "x", priority=BULK)
    assert taken(queue) == ["a/before", "a/other", "a/delayed", "a/after", "a/low"]


async def test_pq4_a_running_key_is_skipped_not_waited_for(queue: Q) -> None:
    queue.add("a/first", "x", priority=50)
    work = await queue.get()
    queue.add("a/first", "y", priority=50)
    queue.add("a/second", "x")
    assert take(queue).key == "a/second"
    queue.done(work)
    assert take(queue).key == "a/first"


async def test_pq5_priority_survives_what_the_worker_asks_for_unless_it_says_another(
    queue: Q, clock: FakeClock
) -> None:
    queue.add("k", "x", priority=BULK)
    asked: list[tuple[After[str] | Again[str] | Retry[str], int]] = [
        (Again("x"), BULK),
        (After(1, "x"), BULK),
        (retry(), BULK),
        (Again("x", priority=7), 7),
        (After(1, "x", priority=BULK), BULK),
        (Retry(lambda failures, delay: "x", priority=8), 8),
    ]
    for then, expected in asked:
        queue.done(await queue.get(), then=then)
        clock.suspend(60)
        assert queue.counts.ready == ((expected, 1),)


async def test_pq6_of_limiter_and_explicit_delay_the_smaller_wins(queue: Q) -> None:
    def ended(at_least: float = 0.0, at_most: float = 1e9) -> float | None:
        queue.add("k", "x")
        then = Retry(lambda failures, delay: "retry", at_least=at_least, at_most=at_most)
        return queue.done(take(queue), then=then).delay

    assert [ended(), ended(at_most=0.5), ended(at_most=5), ended(at_most=5)] == [1.0, 0.5, 1.0, 5.0]
    assert [ended(), ended(at_least=90), ended(at_least=90, at_most=5)] == [60.0, 90.0, 90.0]


# Overload.


async def test_f53_ten_thousand_keys_that_change_for_ever_keep_to_their_memory(queue: Q, clock: FakeClock) -> None:
    def changed(times: int) -> int:
        """The bytes that are held after so many more changes of each key, of which nobody takes one."""
        for _ in range(times):
            for number in range(10_000):
                queue.add(f"key {number}", f"cause {clock.elapsed()}")
            clock.suspend(1)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first = changed(12)
        assert changed(8) < 1.1 * first
    finally:
        tracemalloc.stop()
    assert len(queue) == 10_000
    work = await queue.get()
    assert (work.total, work.causes[-1]) == (20, f"cause {clock.elapsed() - 1}")
    queue.done(work)
