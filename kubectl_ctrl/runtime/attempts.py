"""Runs one reconcile: its context, its timeout and its end."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from math import inf
from random import Random
from typing import Any

from kubectl_ctrl.client.client import Client
from kubectl_ctrl.client.official import api_client
from kubectl_ctrl.client.options import Scope
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import Conflict
from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.runtime.access import AccessParts, LiveReader, LiveWriter
from kubectl_ctrl.runtime.builder import ControllerSpec
from kubectl_ctrl.runtime.contract import Context, Reconciler, Result
from kubectl_ctrl.runtime.ids import attempt_context, attempt_log
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.official import LiveCalls
from kubectl_ctrl.runtime.verdict import AttemptQuit, AttemptTimeout, judge_error, judge_result, meant, where_raised
from kubectl_ctrl.value import Value

_log = logging.getLogger(__name__)

# The time for a cancelled reconciler to clean up, before its worker takes the next request.
_GRACE = 5.0
_LONGEST_TRACEBACK = 20_000


class CancelReason(Enum):
    """Why the runtime cancelled an attempt."""

    TIMEOUT = "timeout"
    LEASE = "the lease was lost"
    STOP = "the run was stopped"
    RELOAD = "its code was replaced"
    UNKNOWN = "what comes next was not recorded"  # in a replay


class AttemptEnd(Value, kw_only=True):
    """The end of a reconcile."""

    verdict: Verdict
    took: float
    error: BaseException | None = None
    cut: CancelReason | None = None
    within: float = inf  # seconds after which the request runs again at the latest

    @property
    def traceback(self) -> str:
        # The message of a conflict is enough: another client wrote in between, and the request runs again.
        if self.error is None or self.cut is not None or isinstance(meant(self.error), Conflict):
            return ""
        return "".join(traceback.format_exception(self.error))[-_LONGEST_TRACEBACK:]


class RunningAttempt:
    """One reconcile under way, in its own task, so that its errors and hangs stay there."""

    def __init__(
        self, notes: Notes, task: asyncio.Task[object], reconciler: Reconciler, *, about: str, started: float
    ) -> None:
        self.notes = notes
        self._task = task
        self._reconciler = reconciler
        self._about = about  # the object of the request, as calls name it
        self._started = started  # elapsed time
        self._cut: CancelReason | None = None
        self._was_cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def attempt(self) -> str:
        return self.notes.attempt

    @property
    def over(self) -> bool:
        return self._task.done()

    @property
    def holds_loop(self) -> bool:
        """The event loop runs it at this moment; for a thread that found the loop blocked."""
        return asyncio.current_task(self._task.get_loop()) is self._task

    def cut(self, why: CancelReason) -> None:
        """Cancel it. Its `ctx` refuses calls at once, even if the reconciler ignores its cancellation."""
        if not self._task.done() and self._cut is None:
            self._cut = why
            self._was_cut.set_result(None)
            self.notes.close()
            self._task.cancel()

    async def wait(self, clock: Clock, timeout: float) -> bool:
        """Wait for its end, and cancel it after `timeout`. False if it ignores the cancellation."""
        await self._until(clock, timeout, self._task, self._was_cut)
        if not self.over:
            self.cut(CancelReason.TIMEOUT)
            await self._until(clock, _GRACE, self._task)
        return self.over

    async def joined(self) -> None:
        """Wait for its end without a timeout."""
        await asyncio.wait((self._task,))

    def abandoned(self, clock: Clock) -> AttemptEnd:
        """Cancel it and give its end for observers, without waiting for the reconciler."""
        self.cut(CancelReason.STOP)
        self._task.add_done_callback(
            lambda task: task.cancelled() or task.exception()
        )  # or asyncio logs that its exception was never retrieved
        cut = self._cut or CancelReason.STOP
        message = f"The attempt ignored its cancellation ({cut.value}) and was abandoned."
        verdict = Verdict(outcome=Outcome.DROPPED, message=message)
        return AttemptEnd(verdict=verdict, took=clock.elapsed() - self._started, cut=cut)

    def when_over(self, callback: Callable[[], None]) -> None:
        self._task.add_done_callback(lambda _: callback())

    def ended(self, clock: Clock, timeout: float) -> AttemptEnd:
        """Its end; only once it is over."""
        self.notes.close()
        took = clock.elapsed() - self._started
        error = self._error()
        if self._cut is CancelReason.TIMEOUT:
            return AttemptEnd(verdict=judge_error(AttemptTimeout(timeout)), took=took, error=error, cut=self._cut)
        if self._cut is not None:
            verdict = Verdict(outcome=Outcome.DROPPED, message=f"The attempt was cut: {self._cut.value}.")
            return AttemptEnd(verdict=verdict, took=took, error=error, cut=self._cut)
        within = inf
        if error is None:
            result = self._task.result()
            if not isinstance(result, Result) or result.failed is None:
                return AttemptEnd(verdict=judge_result(result), took=took)
            error, within = result.failed, result.seconds or inf
        verdict = judge_error(error, where_raised(error, self._reconciler), self._about, within)
        done = verdict.outcome is Outcome.DONE
        return AttemptEnd(verdict=verdict, took=took, error=None if done else error, within=within)

    async def _until(self, clock: Clock, timeout: float, *any_of: asyncio.Future[Any]) -> None:
        with suppress(TimeoutError):
            async with clock.timeout(timeout):
                await asyncio.wait(any_of, return_when=asyncio.FIRST_COMPLETED)

    def _error(self) -> BaseException | None:
        if not self._task.cancelled():
            return self._task.exception()
        return AttemptQuit("The reconciler was canceled by its own code or by something that it awaited.")

    def __repr__(self) -> str:
        return f"RunningAttempt({self.attempt}, over={self.over}, cut={self._cut})"


class Attempts:
    """Starts the attempts of one controller."""

    def __init__(self, spec: ControllerSpec, equipment: AccessParts, client: Client) -> None:
        self._spec = spec
        self._equipment = equipment
        self._client = client

    def start(self, notes: Notes, gate: Callable[[], float | None]) -> RunningAttempt:
        """`gate` is called before each request is sent."""
        client = self._client.scoped(Scope(prefix=notes.attempt, note=notes.call, gate=lambda: _passed(notes, gate)))
        calls = LiveCalls(self._equipment, client, notes)
        loop = asyncio.get_running_loop()
        ctx = Context(
            request=notes.start.request,
            attempt=notes.attempt,
            read=LiveReader(self._equipment.caches, client, notes),
            write=LiveWriter(self._equipment, client, notes),
            outside=notes.outside,
            official=lambda: api_client(calls, loop),
            now=lambda: notes.time(self._equipment.clock.now()),
            random=Random(notes.seed),  # noqa: S311  # for spreading and jitter; a replay has the same seed
            log=attempt_log(self._spec.name, notes.attempt, notes.start.request),
        )
        task = asyncio.create_task(reconciled(self._spec.reconcile, ctx), name=f"attempt {notes.attempt}")
        request, started = notes.start.request, self._equipment.clock.elapsed()
        about = str(self._spec.primary.ref(request.name, request.namespace))
        return RunningAttempt(notes, task, self._spec.reconcile, about=about, started=started)


async def reconciled(reconcile: Reconciler, ctx: Context) -> object:
    """Call the reconciler. SystemExit is an ordinary error of it."""
    with attempt_context(ctx.attempt):
        try:
            return await reconcile(ctx, ctx.request)
        except SystemExit as error:
            # It would end the event loop, and with it all other attempts.
            raise AttemptQuit(f"The reconciler asked the process to exit ({error.code!r}).") from error


def _passed(notes: Notes, gate: Callable[[], float | None]) -> float | None:
    notes.check_open()
    return gate()
