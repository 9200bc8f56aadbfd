"""An asyncio event loop on virtual time: when nothing is ready, time jumps to the next timer.

A test of an hour of back-off takes milliseconds, and the same program runs the same way every time: callbacks in the
order they were scheduled, timers by their time and then in the order they were set. Nothing waits for the outside:
there are no sockets and subprocesses, and executor functions run in threads of which the loop waits for one at a
time: until it ends, or hands the loop a coroutine and waits for that (`asyncio.run_coroutine_threadsafe`).

Instead of hanging, a test fails: with `Deadlock` when nothing is ready and no timer is set, `TimeRanOut` when timers
continue past the limit, `Spinning` when callbacks continue while time does not move. Each names the waiting tasks.
"""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from contextvars import Context
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

DAY = 86_400.0
START = 1_000.0  # not zero: code that takes 0.0 for "never" must not pass by luck
_LONGEST = 400 * DAY
_MOST_TURNS = 1_000_000  # at one moment; tens of thousands of events in one go stay far below


class Stuck(Exception):
    """The program under test cannot continue; the message names every waiting task and its line."""


class Deadlock(Stuck):
    """Nothing is ready and no timer is set."""


class TimeRanOut(Stuck):
    """Timers continue, but the program did not end within its virtual time."""


class Spinning(Stuck):
    """Callbacks keep scheduling callbacks and time cannot move on."""


class LeakedTasks(Exception):
    """The main coroutine ended before tasks that it started."""


class Unhandled(Exception):
    """A callback or a task failed and nothing retrieved its exception."""


def waiting(tasks: set[asyncio.Task[Any]]) -> str:
    """Each task's name and the line where it waits (innermost frame), in a stable order."""
    lines = sorted(f"  {task.get_name()}: {_where(task)}" for task in tasks if not task.done())
    return "\n".join(lines) if lines else "  (no task)"


def _where(task: asyncio.Task[Any]) -> str:
    # Task.get_stack() stops at the outermost frame; follow the chain of awaits to the innermost one.
    spot = "not started"
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            spot = f"{frame.f_code.co_qualname} at {frame.f_code.co_filename}:{frame.f_lineno}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return spot


class _NoSelector:
    """The selector of the base loop: there is no I/O, so this is where due timers become ready and time moves."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[asyncio.TimerHandle]:
        return self._loop.due(idle=timeout is None)


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module; `time()` starts at `start`, and the loop may run for `limit` virtual seconds."""

    def __init__(self, *, start: float = START, limit: float = _LONGEST) -> None:
        super().__init__()
        self._selector = _NoSelector(self)
        self._now = start
        self._end = start + limit
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._settling: list[asyncio.Future[None]] = []
        self._set = 0  # number of timers so far: the tie-break of equal times
        self._turns = 0  # since time last moved
        self._hands = threading.Condition()  # guards the two below
        # The number of unfinished coroutines that each thread handed over; a thread without one is busy.
        self._threads: dict[threading.Thread, int] = {}
        self._posted: list[asyncio.Handle] = []  # by threads, in order
        self._poster: threading.Thread | None = None  # handed over the current callback, and waits for its task
        self.unhandled: list[str] = []  # exceptions that nothing retrieved, as reported to the loop
        self.set_exception_handler(_note_unhandled)

    def time(self) -> float:
        return self._now

    if TYPE_CHECKING:  # private to the base class and its subclasses
        _ready: deque[asyncio.Handle]
        _thread_id: int | None

        def _check_closed(self) -> None: ...

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._check_closed()
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._set += 1
        heapq.heappush(self._timers, (when, self._set, handle))
        return handle

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def due(self, *, idle: bool) -> list[asyncio.TimerHandle]:
        """The due timers; when the loop is idle, time first moves to the next one."""
        idle = not self._wait_for_threads() and idle
        self._drop_cancelled()
        self._turns += 1
        if idle and self._settling and not (self._timers and self._timers[0][0] <= self._now):
            self._wake_settled()
        elif idle and not self._timers:
            raise Deadlock(self._describe("Nothing is ready and no timer is set"))
        elif idle and self._timers[0][0] > self._now:
            self._jump(self._timers[0][0])
        elif self._turns > _MOST_TURNS:
            self._turns = 0  # so that the tasks can be cancelled
            raise Spinning(self._describe(f"{_MOST_TURNS} iterations of the loop passed while time did not move"))
        ready: list[asyncio.TimerHandle] = []
        while self._timers and self._timers[0][0] <= self._now:
            ready.append(heapq.heappop(self._timers)[2])
        return ready

    def settled(self) -> asyncio.Future[None]:
        """Completes once nothing else is ready, before time moves."""
        future: asyncio.Future[None] = self.create_future()
        self._settling.append(future)
        return future

    def _wake_settled(self) -> None:
        woken, self._settling = self._settling, []
        for future in woken:
            if not future.done():
                future.set_result(None)

    def _jump(self, when: float) -> None:
        if when > self._end:
            raise TimeRanOut(self._describe("The program did not end within the limit of the loop"))
        self._now, self._turns = when, 0

    def _drop_cancelled(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)

    def _describe(self, what: str) -> str:
        return f"{what} (virtual time {self._now:.3f} s). Waiting tasks:\n{waiting(asyncio.all_tasks(self))}"

    def _process_events(self, event_list: list[asyncio.TimerHandle]) -> None:
        for handle in event_list:
            if not handle.cancelled():
                self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are dropped when they are due."""

    def _write_to_self(self) -> None:
        """Only a real selector needs a wake-up."""

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run the function in a thread, one thread at a time; if it blocks, the whole program blocks."""
        self._check_closed()
        future: asyncio.Future[T] = self.create_future()
        self.call_soon(self._start_thread, future, func, args)
        return future

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if threading.get_ident() != self._thread_id:
            with self._hands:
                if self._threads:
                    return self._post(callback, args, context)
        return super().call_soon_threadsafe(callback, *args, context=context)

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = super().create_task(coro, **options)
        if self._poster is not None:
            thread, self._poster = self._poster, None
            task.add_done_callback(lambda _: self._hand_back(thread))
        return task

    def _start_thread(self, future: asyncio.Future[T], func: Callable[[*Ts], T], args: tuple[*Ts]) -> None:
        if future.cancelled():
            return

        def work() -> None:
            settled = _outcome(future, func, args)
            with self._hands:
                del self._threads[thread]
                self._posted.append(asyncio.Handle(settled, (), self))
                self._hands.notify_all()

        thread = threading.Thread(target=work, name="executor of a VirtualLoop", daemon=True)
        with self._hands:
            self._threads[thread] = 0
        thread.start()
        self._wait_for_threads()

    def _post(self, callback: Callable[[*Ts], object], args: tuple[*Ts], context: Context | None) -> asyncio.Handle:
        """Called in a thread, which then continues or waits for the callback's result; the loop cannot know which."""
        self._check_closed()
        thread = threading.current_thread()
        if thread not in self._threads:  # started by an executor function, which waits for it
            thread = min(self._threads, key=self._threads.__getitem__)
        handle = asyncio.Handle(self._run_posted, (thread, callback, args), self, context)
        self._posted.append(handle)
        self._threads[thread] += 1
        self._hands.notify_all()
        return handle

    def _run_posted(self, thread: threading.Thread, callback: Callable[[*Ts], object], args: tuple[*Ts]) -> None:
        """A thread without an unfinished task waits for nothing, so it continues."""
        self._poster = thread
        try:
            callback(*args)
        finally:
            if self._poster is not None:
                self._poster = None
                self._hand_back(thread)

    def _hand_back(self, thread: threading.Thread) -> None:
        with self._hands:
            if thread in self._threads:  # it may have ended already
                self._threads[thread] -= 1

    def _wait_for_threads(self) -> bool:
        """Wait until no thread is busy; whether that made anything ready."""
        with self._hands:
            self._hands.wait_for(lambda: all(self._threads.values()))
            handed, self._posted = self._posted, []
        self._ready.extend(handed)
        return bool(handed)

    def __repr__(self) -> str:
        return f"VirtualLoop(now={self._now:.3f}, timers={len(self._timers)})"


def _outcome(future: asyncio.Future[T], func: Callable[[*Ts], T], args: tuple[*Ts]) -> Callable[[], None]:
    """Runs the function; its result is set on the loop's thread, unless nothing waits for it any more."""
    error: BaseException
    try:
        result = func(*args)
    except StopIteration as stop:  # a future does not accept StopIteration
        error = RuntimeError(f"The executor function raised {stop!r}.")
    except BaseException as raised:  # noqa: BLE001  # whatever it is, it belongs to the caller
        error = raised
    else:
        return lambda: None if future.cancelled() else future.set_result(result)
    return lambda: None if future.cancelled() else future.set_exception(error)


def _note_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    assert isinstance(loop, VirtualLoop)
    error = context.get("exception")
    loop.unhandled.append(f"{context['message']}: {error!r}" if error is not None else str(context["message"]))
    loop.default_exception_handler(context)


async def settle() -> None:
    """Run everything that can run now, until all tasks wait for each other or for time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop), "settle() needs a VirtualLoop"
    await loop.settled()


def run_virtual(
    main: Callable[[], Coroutine[Any, Any, T]] | Coroutine[Any, Any, T],
    *,
    start: float = START,
    limit: float = _LONGEST,
) -> T:
    """Run a coroutine (or the coroutine function) to its end on a new VirtualLoop and return its result.

    Raises LeakedTasks if tasks still run, and Unhandled if an exception of a callback or task was never retrieved.
    """
    runner = VirtualRunner(start=start, limit=limit)
    try:
        result = runner.run(main if isinstance(main, Coroutine) else main())
    except BaseException:
        runner.abandon()
        raise
    runner.close()
    return result


class VirtualRunner:
    """A VirtualLoop that runs one coroutine after the other. Tasks wait in between, and time stands still."""

    def __init__(self, *, start: float = START, limit: float = _LONGEST) -> None:
        self.loop = VirtualLoop(start=start, limit=limit)
        self._runner = asyncio.Runner(loop_factory=lambda: self.loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def close(self) -> None:
        """End the loop; raises LeakedTasks and Unhandled."""
        try:
            self._runner.run(_check_leaks())
        finally:
            self.abandon()
        if self.loop.unhandled:
            raise Unhandled("Exceptions that nothing retrieved:\n  " + "\n  ".join(self.loop.unhandled))

    def abandon(self) -> None:
        """End the loop, and cancel what still runs."""
        self._runner.close()

    def __repr__(self) -> str:
        return f"VirtualRunner({self.loop!r})"


async def _check_leaks() -> None:
    """Tasks that were just cancelled or resumed may finish; those that still wait after that are leaks."""
    await settle()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        raise LeakedTasks(f"The main coroutine ended before these tasks:\n{waiting(left)}")
