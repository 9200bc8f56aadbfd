"""The loop of one controller: from a change to the queue, from the queue to an attempt, from its verdict to the queue.

Workers take requests, and a request never runs twice at a time. An attempt runs in its own task, so one that raises,
hangs, cancels itself or ignores its cancellation affects its own request only: requests that hung before never occupy
the last worker. Observers are called at the start and at the end of every attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from kubectl_ctrl.errors import NotLeading, QueueClosed, Refused
from kubectl_ctrl.model.attempt import (
    AttemptStarted,
    ControllerState,
    Depth,
    DroppedEcho,
    FilteredChange,
    NamespaceQueue,
    Outcome,
    Verdict,
    WaitingRequest,
)
from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.change import Change
from kubectl_ctrl.runtime.attempts import AttemptEnd, Attempts, CancelReason, RunningAttempt
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.echoes import AwaitedEcho, Echoes
from kubectl_ctrl.runtime.follow import follow
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.options import Run
from kubectl_ctrl.runtime.triggers import Watching
from kubectl_ctrl.runtime.verdict import leaves
from kubectl_ctrl.value import Value, replace
from kubectl_ctrl.workqueue.limits import default_limiter
from kubectl_ctrl.workqueue.queue import Queue
from kubectl_ctrl.workqueue.values import BULK, LIVE, After, Again, KeyStage, KeyWork, QueueCounts, QueueEntry, Retry

_log = logging.getLogger(__name__)

Gate = Callable[[], float | None]

_UNHURRIED = (CauseKind.INITIAL, CauseKind.RESYNC, CauseKind.RELOADED)
# A Lease can expire a moment before the elector reports it; meanwhile the gate is checked this often.
_RECHECK = 0.5
# A state lists at most so many ready keys and as many timers, and so many namespaces; it counts the rest.
_MOST_ENTRIES = 200
_MOST_CROWDS = 20
# The state in the summary of a request whose next run the end of the controller prevented.
_STAGES = {After: KeyStage.TIMER, Again: KeyStage.READY, Retry: KeyStage.BACKOFF}


class StandingVerdict(Value):
    """The last verdict of a request that failed or waits, and since when (wall time)."""

    verdict: Verdict
    since: float


class Controller:
    """One controller. Attempts start only while it is open; at first it is not."""

    def __init__(
        self, spec: ControllerSpec, attempts: Attempts, watching: Watching, echoes: Echoes, *, run: Run, gate: Gate
    ) -> None:
        self.spec = spec
        self.standings: dict[Request, StandingVerdict] = {}
        self.left: list[WaitingRequest] = []  # requests left undone when it was stopped
        self._attempts = attempts
        self._watching = watching
        self._echoes = echoes
        self._run = run
        self._clock = run.clock
        self._gate = gate
        self._queue: Queue[Request, Cause] = Queue(
            name=spec.name,
            clock=run.clock,
            limiter=default_limiter(clock=run.clock, rng=run.rng),
            lane=lambda request: request.namespace,
            # Requests that hang must not occupy the last worker, unless there is only one.
            doubtful_slots=run.options.workers - 1 or None,
        )
        self._open = asyncio.Event()
        self._stopping = False
        self._held: dict[Request, KeyWork[Request, Cause]] = {}  # taken, but not started because it is not open
        self._running: dict[Request, RunningAttempt] = {}
        self._agains: Counter[Request] = Counter()

    # From the cache to the queue. The cache calls this, so nothing here waits.

    def changed(self, change: Change) -> None:
        for request, cause in self._watching.requests_of(change, self._clock.now()):
            if not self._is_late_echo(request, cause):
                self._queue.add(request, cause, priority=BULK if cause.kind in _UNHURRIED else LIVE)

    def ask(self, request: Request, detail: str = "") -> None:
        """Run the request without a change, for the API."""
        self._queue.add(request, Cause(kind=CauseKind.MANUAL, at=self._clock.now(), detail=detail))

    def inherit(self, request: Request, causes: tuple[Cause, ...] = ()) -> None:
        """Run a request that the replaced code left undone; `causes` as far as they are known."""
        for cause in causes or (Cause(kind=CauseKind.RELOADED, at=self._clock.now()),):
            self._queue.add(request, cause)

    def _is_late_echo(self, request: Request, cause: Cause) -> bool:
        if request in self._running:
            return False  # decided at the end of that attempt
        written = self._echo(request, cause)
        if written is None:
            return False
        after = self._clock.elapsed() - written.at
        self._run.observers.tell(
            DroppedEcho(attempt=written.attempt, request=request, uid=written.uid, version=written.version, after=after)
        )
        return True

    def _echo(self, request: Request, cause: Cause) -> AwaitedEcho | None:
        try:
            return self._echoes.match(request, cause)
        except Exception:  # noqa: BLE001  # an event that cannot be compared counts as news
            _log.exception("An event could not be compared with own writes.", extra={"action": "echo.failed"})
            return None

    # Whether attempts may start.

    def open(self) -> None:
        if not self._stopping:
            self._open.set()

    def shut(self, cut: CancelReason | None = None) -> None:
        """Start no more attempts; with `cut` also cancel those under way, which run again once it is open."""
        self._open.clear()
        if cut is not None:
            for running in self._running.values():
                running.cut(cut)

    def close(self) -> None:
        """Accept no more requests: ready ones still run, and then the workers end."""
        self._queue.close()

    def stop(self) -> None:
        """Start no more attempts, for good; workers end after those under way. `left` lists the rest."""
        for entry in self._queue.abandon():
            if entry.key not in self._running:
                self.left.append(self._waiting(entry))
            elif entry.causes:  # it was triggered again while it ran
                self.left.append(replace(self._waiting(entry), state=KeyStage.READY))
        self._stopping = True
        self._open.set()  # workers that wait in _admitted return

    def hand_over(self) -> dict[Request, tuple[Cause, ...]]:
        """Stop, and return the requests that are ready with their causes; `left` will have those still running."""
        ready = {request: work.causes for request, work in self._held.items()}
        while (work := self._queue.take()) is not None:
            ready[work.key] = work.causes
            self._queue.done(work)
        self.stop()
        return ready

    async def finished(self) -> None:
        """Wait for all attempts, with those that their workers gave up; no new one may start meanwhile."""
        for running in tuple(self._running.values()):
            await running.joined()

    def abandon(self) -> None:
        """Abandon the attempts that still run: report their end to observers, and list them in `left`."""
        for request, running in self._running.items():
            started = running.notes.start.started
            entry = WaitingRequest(request=request, state=KeyStage.RUNNING, since=started, attempt=running.attempt)
            self.left.append(entry)
            self._report(request, running, running.abandoned(self._clock), echoes=0)
        self._running.clear()

    # Workers.

    async def work(self) -> None:
        """One worker; returns when the queue is closed and empty."""
        while True:
            try:
                work = await self._queue.get()
            except QueueClosed:
                return
            if await self._admitted(work):
                await self._attempt(work)
            else:
                self._queue.done(work)

    async def _admitted(self, work: KeyWork[Request, Cause]) -> bool:
        """Wait until the attempt may start; False when none ever will. The caller must start it without awaiting."""
        self._held[work.key] = work
        try:
            while True:
                await self._open.wait()
                if self._stopping:
                    return False
                if self._leads():
                    return True
                await self._clock.sleep(_RECHECK)
        finally:
            del self._held[work.key]

    def _leads(self) -> bool:
        try:
            self._gate()
        except NotLeading:
            return False
        return True

    async def _attempt(self, work: KeyWork[Request, Cause]) -> None:
        start = self._started(work)
        notes = Notes(start, self._run.observers, seed=self._run.rng.getrandbits(64))
        self._run.observers.tell(start)
        running = self._running[work.key] = self._attempts.start(notes, self._gate)
        try:
            over = await running.wait(self._clock, self._run.options.attempt_timeout)
        except asyncio.CancelledError:  # without the worker nothing would cancel the attempt
            running.cut(CancelReason.STOP)
            raise
        if over:
            self._settle(work, running)
            return
        _log.error(
            "A reconciler ignores its cancellation; its object is not reconciled again before it returns.",
            extra={"action": "attempt.stuck", "attempt": start.id, "request": str(work.key)},
        )
        running.when_over(lambda: self._settle(work, running))

    def _started(self, work: KeyWork[Request, Cause]) -> AttemptStarted:
        return AttemptStarted(
            id=self._run.ids.next(),
            controller=self.spec.name,
            request=work.key,
            causes=work.causes,
            causes_total=work.total,
            queued_at=work.queued_at,
            started=self._clock.now(),
            waited=work.taken_at - work.ready_at,
            try_no=1 + work.failures,
        )

    def _settle(self, work: KeyWork[Request, Cause], running: RunningAttempt) -> None:
        """After the end of an attempt: finish it in the queue, drop its echoes, and call the observers."""
        if self._running.get(work.key) is not running:
            return  # it was abandoned
        ended = running.ended(self._clock, self._run.options.attempt_timeout)
        request, verdict = work.key, ended.verdict
        if verdict.outcome not in (Outcome.RETRY, Outcome.DROPPED):
            self._queue.forget(request)
        if ended.cut is CancelReason.TIMEOUT:
            self._queue.doubt(request)
        elif ended.cut is None:
            self._queue.trust(request)
        agains = self._agains[request]
        if verdict.outcome is Outcome.AGAIN:
            self._agains[request] += 1
        else:
            del self._agains[request]
        then = follow(verdict, running.attempt, at=self._clock.now(), agains=agains, within=ended.within)
        if last := self._run.options.once:
            then = None
        settled = self._queue.done(
            work,
            drop=lambda cause: self._echo(request, cause) is not None,
            then=then,
            failed=verdict.failed or verdict.outcome is Outcome.DROPPED,
        )
        del self._running[request]
        if self._stopping and then is not None:
            self.left.append(WaitingRequest(request=request, state=_STAGES[type(then)], since=self._clock.now()))
        # A closed queue returns no delay; the verdict keeps the requested one.
        verdict = replace(verdict, delay=verdict.delay if settled.delay is None else settled.delay, last=last)
        self._report(request, running, replace(ended, verdict=verdict), echoes=len(settled.dropped))
        self._log_error(ended, running.attempt)

    def _report(self, request: Request, running: RunningAttempt, ended: AttemptEnd, *, echoes: int) -> None:
        self._note_standing(request, ended.verdict)
        self._run.observers.tell(
            running.notes.finished(ended.verdict, took=ended.took, echoes=echoes, traceback=ended.traceback)
        )

    def _note_standing(self, request: Request, verdict: Verdict) -> None:
        before = self.standings.pop(request, None)
        if verdict.failed or verdict.outcome in (Outcome.WAITING, Outcome.DROPPED):
            same = before is not None and before.verdict.message == verdict.message
            since = before.since if before is not None and same else self._clock.now()
            self.standings[request] = StandingVerdict(verdict, since)

    def _log_error(self, ended: AttemptEnd, attempt: str) -> None:
        if ended.error is None:
            return
        fields = {"action": "attempt.failed", "attempt": attempt, "outcome": str(ended.verdict.outcome)}
        _log.debug("An attempt ended with an error.", extra=fields, exc_info=ended.error)
        for error in leaves(ended.error):
            if isinstance(error, Refused):  # the context is for another cluster now: the run must stop
                self._run.on_fatal(error)

    # What can be seen of it.

    @property
    def counts(self) -> QueueCounts:
        return self._queue.counts

    @property
    def under_way(self) -> tuple[str, ...]:
        """The attempts under way."""
        return tuple(running.attempt for running in tuple(self._running.values()))

    @property
    def at_work(self) -> tuple[tuple[str, bool], ...]:
        """The same with their objects, and whether the event loop is in them; may be called from another thread."""
        running = tuple(self._running.items())
        return tuple((f"{one.attempt} ({self.spec.name} {request})", one.holds_loop) for request, one in running)

    @property
    def held_back(self) -> tuple[tuple[str, int], ...]:
        """(Predicate, changes that it filtered out), by name."""
        return tuple(sorted(self._watching.held.items()))

    @property
    def held_objects(self) -> tuple[FilteredChange, ...]:
        """The objects whose last change triggered nothing."""
        return self._watching.back.changes()

    def state(self, *, leading: bool, synced: bool, message: str) -> ControllerState:
        lanes, namespaces = self._queue.lanes(_MOST_CROWDS)
        crowds = (NamespaceQueue(namespace=str(one.name), ready=one.ready, since=one.since) for one in lanes)
        return ControllerState(
            controller=self.spec.name,
            at=self._clock.now(),
            leading=leading,
            synced=synced,
            entries=tuple(self._waiting(entry) for entry in self._queue.snapshot(_MOST_ENTRIES)),
            message=message,
            workers=self._run.options.workers,
            depth=self.depth,
            crowds=tuple(crowds),
            namespaces=namespaces,
        )

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """A value that changes whenever the queue does; computed without a loop over its keys."""
        counts = self._queue.counts
        return (counts.adds, counts.retries, counts.ready, self.under_way, counts.backoff, counts.timers)

    @property
    def busy(self) -> bool:
        """A request runs, waits for the opening, or is ready."""
        return bool(self._running or self._held) or len(self._queue) > 0

    @property
    def depth(self) -> Depth:
        counts, held = self._queue.counts, len(self._held)
        ready = sum(keys for _, keys in counts.ready)
        return Depth(ready=ready + held, running=counts.running - held, backoff=counts.backoff, timers=counts.timers)

    def _waiting(self, entry: QueueEntry[Request]) -> WaitingRequest:
        stage = KeyStage.READY if entry.key in self._held else entry.state
        running = self._running.get(entry.key)
        return WaitingRequest(
            request=entry.key,
            state=stage,
            since=entry.since,
            due=entry.due,
            failures=entry.failures,
            causes=entry.causes,
            attempt=running.attempt if running is not None else "",
        )

    def __repr__(self) -> str:
        state = "stopping" if self._stopping else "open" if self._open.is_set() else "shut"
        return f"Controller({self.spec.name}, {state}, running={len(self._running)}, {self._queue!r})"
