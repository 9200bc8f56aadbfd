"""An asyncio event loop on virtual time: when nothing is ready, time jumps to the next timer.

A test of an hour of back-off takes milliseconds, and the same program runs the same way every time: callbacks in the
order they were scheduled, timers by their time and then in the order they were set. Nothing waits for the outside:
sockets and subprocesses are not offered, and executor functions run in threads of which the loop waits for one at a
time: until it ends, or hands the loop a coroutine and waits for that (`asyncio.run_coroutine_threadsafe`).

A test that would hang is told so instead: `Deadlock` when nothing is ready and no timer is set, `TimeRanOut` when
timers keep going past the limit, `Spinning` when callbacks keep going while time stands still. Each names the tasks
that wait.
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
    """The program under test will never get any further; the message names every task that waits, and where."""


class Deadlock(Stuck):
    """Nothing is ready and no timer is set."""


class TimeRanOut(Stuck):
    """Timers go on, but the program did not end within the virtual time it was given."""


class Spinning(Stuck):
    """Callbacks keep scheduling callbacks and time cannot move on."""


class LeakedTasks(Exception):
    """The main coroutine ended and left tasks behind that nobody waits for."""


class Unhandled(Exception):
    """A callback or a task failed and nobody looked at its error."""


def waiting(tasks: set[asyncio.Task[Any]]) -> str:
    """Each task's name and the line on which it waits, innermost frame, in a stable order."""
    lines = sorted(f"  {task.get_name()}: {_where(task)}" for task in tasks if not task.done())
    return "\n".join(lines) if lines else "  (no task)"


def _where(task: asyncio.Task[Any]) -> str:
    # Task.get_stack() stops at the outermost frame; the await chain is followed to the one that really waits.
    spot = "not started"
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "ag_frame", None)
        if frame is not None:
            spot = f"{frame.f_code.co_qualname} at {frame.f_code.co_filename}:{frame.f_lineno}"
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "ag_await", None)
    return spot


class _NoSelector:
    """What the base loop asks for I/O: there is none, so this is where due timers become ready and time moves."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[asyncio.TimerHandle]:
        return self._loop.due(idle=timeout is None)


class VirtualLoop(asyncio.BaseEventLoop):
    """See the module; `time()` starts at `start` and `limit` is how many virtual seconds the loop may live."""

    def __init__(self, *, start: float = START, limit: float = _LONGEST) -> None:
        super().__init__()
        self._selector = _NoSelector(self)
        self._now = start
        self._end = start + limit
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._settling: list[asyncio.Future[None]] = []
        self._set = 0  # timers ever set: the tie-break of equal times
        self._turns = 0  # since time last moved
        self._hands = threading.Condition()  # guards the two below
        self._threads: dict[threading.Thread, int] = {}  # what each has handed over and is not done; none: it is busy
        self._posted: list[asyncio.Handle] = []  # by threads, in order
        self._poster: threading.Thread | None = None  # handed over what runs now, and waits for the task that it makes
        self.unhandled: list[str] = []  # errors that nobody looked at, as the loop was told of them
        self.set_exception_handler(_note_unhandled)

    def time(self) -> float:
        return self._now

    if TYPE_CHECKING:  # of the base class, which keeps them to itself and its subclasses
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
        """The timers whose time has come; when the loop is idle, time is first moved to the next one."""
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
            self._turns = 0  # so that the tasks can be cancelled in peace
            raise Spinning(self._describe(f"{_MOST_TURNS} turns of the loop went by while time stood still"))
        ready: list[asyncio.TimerHandle] = []
        while self._timers and self._timers[0][0] <= self._now:
            ready.append(heapq.heappop(self._timers)[2])
        return ready

    def settled(self) -> asyncio.Future[None]:
        """Done once nothing else is ready, before time moves."""
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
            raise TimeRanOut(self._describe("The program did not end within the loop's limit"))
        self._now, self._turns = when, 0

    def _drop_cancelled(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)

    def _describe(self, what: str) -> str:
        return f"{what} (virtual time {self._now:.3f} s). Tasks that wait:\n{waiting(asyncio.all_tasks(self))}"

    def _process_events(self, event_list: list[asyncio.TimerHandle]) -> None:
        for handle in event_list:
            if not handle.cancelled():
                self._ready.append(handle)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers leave when their time comes up."""

    def _write_to_self(self) -> None:
        """Only a real selector needs waking."""

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run the function in a thread, in a turn of its own; one that blocks blocks the whole program."""
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
        """In a thread: it goes on, or waits for what the loop makes of the callback; nobody can tell which."""
        self._check_closed()
        thread = threading.current_thread()
        if thread not in self._threads:  # one that an executor function started, which waits for it
            thread = min(self._threads, key=self._threads.__getitem__)
        handle = asyncio.Handle(self._run_posted, (thread, callback, args), self, context)
        self._posted.append(handle)
        self._threads[thread] += 1
        self._hands.notify_all()
        return handle

    def _run_posted(self, thread: threading.Thread, callback: Callable[[*Ts], object], args: tuple[*Ts]) -> None:
        """A thread that left no task is waiting for nothing, so it goes on."""
        self._poster = thread
        try:
            callback(*args)
        finally:
            if self._poster is not None:
                self._poster = None
                self._hand_back(thread)

    def _hand_back(self, thread: threading.Thread) -> None:
        with self._hands:
            if thread in self._threads:  # it may have ended before
                self._threads[thread] -= 1

    def _wait_for_threads(self) -> bool:
        """Until none is busy; whether that made anything ready."""
        with self._hands:
            self._hands.wait_for(lambda: all(self._threads.values()))
            handed, self._posted = self._posted, []
        self._ready.extend(handed)
        return bool(handed)

    def __repr__(self) -> str:
        return f"VirtualLoop(now={self._now:.3f}, timers={len(self._timers)})"


def _outcome(future: asyncio.Future[T], func: Callable[[*Ts], T], args: tuple[*Ts]) -> Callable[[], None]:
    """Runs the function; the answer settles the future on the loop's thread, unless nobody waits any more."""
    error: BaseException
    try:
        result = func(*args)
    except StopIteration as stop:  # a future refuses it
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
    """Let everything run that can run now, until all others wait for each other or for time."""
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

    Raises LeakedTasks when it left tasks running, and Unhandled when a callback or task failed unseen.
    """
    loop = VirtualLoop(start=start, limit=limit)
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        result = runner.run(main if isinstance(main, Coroutine) else main())
        runner.run(_check_leaks())
    if loop.unhandled:
        raise Unhandled("Errors that nobody looked at:\n  " + "\n  ".join(loop.unhandled))
    return result


async def _check_leaks() -> None:
    """Whoever was just cancelled or woken may finish; whoever still waits then is a leak."""
    await settle()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        raise LeakedTasks(f"The main coroutine ended and these tasks did not:\n{waiting(left)}")
