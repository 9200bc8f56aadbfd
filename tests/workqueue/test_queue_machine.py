"""The queue against the naive one, step by step, under any order of calls and any passing of time."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubectl_ctrl.testing.clock import FakeClock
from kubectl_ctrl.workqueue.queue import Queue
from kubectl_ctrl.workqueue.values import After, Again, DoneResult, KeyStage, KeyWork, QueueEntry, Retry
from tests.workqueue.naive import AGING, KEEP, Key, NaiveQueue, limiter

KEYS: list[Key] = [(lane, name) for lane in "abc" for name in "xyz"]

keys = st.sampled_from(KEYS)
priorities = st.sampled_from([0, 0, 0, -100, -100, 50])
maybe_priorities = st.one_of(st.none(), priorities)
# Whole numbers, so that both queues do the same arithmetic; 0 and less mean at once.
delays = st.sampled_from([-1.0, 0.0, 1.0, 2.0, 3.0, 8.0, 30.0])
endings = st.sampled_from(["nothing", "after", "again", "retry"])


class Machine(RuleBasedStateMachine):
    """Every rule does the same to both; every invariant compares all that can be seen."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock(start=0.0)
        self.queue: Queue[Key, str] = Queue(
            name="test", clock=self.clock, limiter=limiter(), lane=lambda key: key[0], keep=KEEP, aging=AGING
        )
        self.naive = NaiveQueue()
        self.works: dict[Key, KeyWork[Key, str]] = {}
        self.finished: list[KeyWork[Key, str]] = []
        self.made = 0

    def cause(self, text: str = "c") -> str:
        self.made += 1
        return f"{text}{self.made}"

    @rule(key=keys, priority=priorities, echo=st.booleans())
    def add(self, key: Key, priority: int, echo: bool) -> None:
        cause = self.cause("echo" if echo else "c")
        self.queue.add(key, cause, priority=priority)
        self.naive.add(key, cause, priority)

    @precondition(lambda self: self.works)
    @rule(data=st.data(), priority=priorities, echo=st.booleans())
    def add_what_runs(self, data: st.DataObject, priority: int, echo: bool) -> None:
        self.add(data.draw(st.sampled_from(sorted(self.works))), priority, echo)

    @rule()
    def take(self) -> None:
        work = self.queue.take()
        key = self.naive.take()
        if work is None or key is None:
            assert (work, key) == (None, None)
            return
        run = self.naive.running[key]
        assert (work.key, work.causes, work.total, work.priority) == (key, run.kept, run.total, run.priority)
        assert (work.queued_at, work.ready_at, work.taken_at) == (run.first_at, run.ready_at, run.taken_at)
        assert work.failures == run.failures
        assert key not in self.works, "two workers have one key"
        self.works[key] = work

    @rule(seconds=st.sampled_from([0.5, 1.0, 4.0, 11.0]))
    def advance(self, seconds: float) -> None:
        self.clock.suspend(seconds)
        self.naive.advance(seconds)

    @precondition(lambda self: self.works)
    @rule(data=st.data(), drops=st.booleans(), ending=endings, delay=delays, failed=st.booleans())
    def done(self, data: st.DataObject, drops: bool, ending: str, delay: float, failed: bool) -> None:
        priority = data.draw(maybe_priorities)
        key = data.draw(st.sampled_from(sorted(self.works)))
        work = self.works.pop(key)
        cause = self.cause()
        settled = self.queue.done(
            work,
            drop=(lambda cause: cause.startswith("echo")) if drops else None,
            then=self.ending(ending, delay, cause, priority),
            failed=failed,
        )
        self.finished.append(work)
        dropped = self.naive.drop(key, lambda cause: cause.startswith("echo")) if drops else ()
        self.naive.done(key)
        then = work.priority if priority is None else priority
        self.follow(key, ending, delay, cause, then)
        asked = (self.naive.now + max(delay, 0.0), cause, then) if ending == "after" else None
        self.naive.keep_schedule(key, asked, failed=failed, taken_at=work.taken_at)
        assert settled.dropped == dropped
        assert settled.ready == (key in self.naive.ready_at)

    def ending(
        self, ending: str, delay: float, cause: str, priority: int | None
    ) -> After[str] | Again[str] | Retry[str] | None:
        match ending:
            case "after":
                return After(delay, cause, priority=priority)
            case "again":
                return Again(cause, priority=priority)
            case "retry":
                return Retry(lambda failures, delay: cause, priority=priority)
        return None

    def follow(self, key: Key, ending: str, delay: float, cause: str, priority: int) -> None:
        if self.naive.closed:
            return
        match ending:
            case "after":
                self.naive.delay(key, cause, delay, priority)
            case "again":
                self.naive.add(key, cause, priority)
            case "retry":
                self.naive.retry(key, cause, priority)

    @precondition(lambda self: self.finished)
    @rule(data=st.data())
    def done_once_more(self, data: st.DataObject) -> None:
        work = data.draw(st.sampled_from(self.finished))
        assert self.queue.done(work, drop=lambda cause: True, then=Again("stray")) == DoneResult()

    @rule(key=keys)
    def forget(self, key: Key) -> None:
        self.queue.forget(key)
        self.naive.limiter.forget(key)

    # Rarely: after it only what is there is worked off.
    @precondition(lambda self: self.made > 60)
    @rule()
    def close(self) -> None:
        self.queue.close()
        self.naive.close()

    @invariant()
    def the_same_to_look_at(self) -> None:
        self.naive.catch_up()
        naive = self.naive
        assert len(self.queue) == len(naive.order)
        assert self.queue.closed == naive.closed
        assert self.seen() == self.expected()
        counts = self.queue.counts
        assert (counts.adds, counts.retries, counts.running) == (naive.adds, naive.retries, len(naive.running))
        assert counts.ready == tuple(
            (level, sum(1 for other, _, _ in naive.order if other == level)) for level in naive.levels()
        )
        lanes = Counter(key[0] for _, _, key in naive.order)
        seen, count = self.queue.lanes(9)
        assert ({lane.name: lane.ready for lane in seen}, count) == (lanes, len(lanes))
        assert [lane.ready for lane in seen] == sorted(lanes.values(), reverse=True)
        assert counts.backoff == sum(1 for timer in naive.timers.values() if timer.backoff)
        assert counts.backoff + counts.timers == len(naive.timers)
        runs = [naive.now - run.taken_at for run in naive.running.values()]
        assert (counts.longest_running, counts.unfinished) == (max(runs, default=0.0), sum(runs))

    def seen(self) -> dict[Key, tuple[KeyStage, int, float | None]]:
        entries: list[QueueEntry[Key]] = self.queue.snapshot()
        assert len({entry.key for entry in entries}) == len(entries)
        return {entry.key: (entry.state, entry.causes, entry.due) for entry in entries}

    def expected(self) -> dict[Key, tuple[KeyStage, int, float | None]]:
        naive = self.naive
        found: dict[Key, tuple[KeyStage, int, float | None]] = {
            key: (KeyStage.BACKOFF if timer.backoff else KeyStage.TIMER, len(timer.pile.causes), timer.due)
            for key, timer in naive.timers.items()
        }
        for key, pile in naive.dirty.items():
            found[key] = (KeyStage.READY, len(pile.causes), None)
        for key in naive.running:
            found[key] = (KeyStage.RUNNING, len(naive.dirty[key].causes) if key in naive.dirty else 0, None)
        return found

    @invariant()
    def wq1_ready_is_dirty_and_not_running(self) -> None:
        ready = {key for _, _, key in self.naive.order}
        assert ready == self.naive.dirty.keys() - self.naive.running.keys()

    def teardown(self) -> None:
        """All comes to an end: closed, what is left is handed out once, and then nothing is known any more."""
        self.close()
        while True:
            self.take()
            if not self.works:
                break
            work = self.works.pop(next(iter(self.works)))
            self.queue.done(work)
            self.naive.done(work.key)
        assert len(self.queue) == 0
        assert self.queue.snapshot() == []
        assert not self.queue._items, "the queue remembers keys of which there is nothing to know"


Machine.TestCase.settings = settings(max_examples=25, stateful_step_count=150)
test_queue_behaves_like_the_naive_one = Machine.TestCase
