"""Runs a recorded attempt again with the current code of the reconciler.

It gets the recorded request, results of reads and of `ctx.outside`, times, and the same random numbers. Everything else
is real: what the code does outside `ctx` (files, network, other clocks, memory) has its effects.

| recorded attempt                         | replay                                                            |
|------------------------------------------|-------------------------------------------------------------------|
| ended by itself                          | everything is compared                                            |
| cut by a timeout, a stop, a lost lease   | compared up to the write that was cut, or the end                  |
| running, or interrupted                  | NotRecorded: reads are recorded at the end of an attempt           |
| an object that it read is deleted        | NotRecorded, with the object's name                                |
| it read a Secret                         | NotRecorded: no recording contains the data of Secrets             |
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from itertools import chain, repeat
from random import Random
from typing import TypeVar

from kubectl_ctrl.client.official import api_client
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError, NotRecorded
from kubectl_ctrl.model.attempt import AttemptStarted, Outcome, WriteResult
from kubectl_ctrl.model.masking import MASK, MASKED, is_secret
from kubectl_ctrl.model.objects import name_of, namespace_of
from kubectl_ctrl.model.record import RecordedAttempt
from kubectl_ctrl.replay import comparison
from kubectl_ctrl.replay.access import ReplayCalls, ReplayReader, ReplayWriter, where_in
from kubectl_ctrl.replay.casefile import ReplayCase
from kubectl_ctrl.replay.deviations import ReplayedAttempt
from kubectl_ctrl.replay.recorded_errors import raised_again
from kubectl_ctrl.replay.script import Script
from kubectl_ctrl.runtime.attempts import CancelReason, RunningAttempt, reconciled
from kubectl_ctrl.runtime.builder import ControllerSpec, Via, WatchClause
from kubectl_ctrl.runtime.contract import Context, Reconciler
from kubectl_ctrl.runtime.ids import attempt_log
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.verdict import code_of
from kubectl_ctrl.value import replace

T = TypeVar("T")

# The timeout of an attempt in a run.
TIMEOUT = 60.0


async def replay(
    case: ReplayCase, code: ControllerSpec | Reconciler, *, clock: Clock, timeout: float = TIMEOUT
) -> ReplayedAttempt:
    """Run the case and compare the results; raises NotRecorded if it cannot be replayed."""
    spec = code if isinstance(code, ControllerSpec) else _spec_of(case, code)
    if reason := why_not(case.attempt):
        raise NotRecorded(
            f"{case.attempt.id} cannot be replayed: {reason}.",
            next_step="kubectl ctrl trace shows what is recorded about it",
        )
    verdict = case.attempt.verdict
    assert verdict is not None
    cut = verdict.outcome is Outcome.DROPPED and not verdict.error_id
    running, script = _start(case, spec, clock, cut=cut)
    if not await running.wait(clock, timeout):
        raise CtrlError(f"The reconciler keeps running although it was canceled {timeout:g} s after its start.")
    ended = running.ended(clock, timeout)
    today = running.notes.finished(ended.verdict, took=ended.took, echoes=0, traceback=ended.traceback)
    stopped = ended.cut is CancelReason.UNKNOWN
    # An attempt that was cut, and a replay that stopped, are compared up to there.
    before = case.attempt.intents[: len(today.intents)] if stopped else case.attempt.intents
    after = today.intents[: len(case.attempt.intents)] if cut else today.intents
    return ReplayedAttempt(
        case=case,
        today=today,
        writes=script.findings(),
        events=tuple(comparison.events(before, after)),
        unknown=script.unknown,
        outcome=() if cut or stopped else comparison.outcomes(verdict, ended.verdict),
        cut=cut,
        hidden=tuple(sorted(set(_hidden(case.attempt)))),
    )


def blessed(replayed: ReplayedAttempt) -> ReplayCase:
    """The case with the output of the current code as the expected one; reads and times stay as recorded."""
    if replayed.unknown is not None:
        raise NotRecorded(
            f"{replayed.case.attempt.id} cannot be blessed: today's code reads objects that are not recorded.",
            next_step="record it again with today's code, and export that",
        )
    today = replayed.today
    verdict = replace(today.verdict, last=replayed.recorded.last)
    if replayed.cut or today.verdict.outcome is Outcome.DROPPED:  # the replay ended with the recording
        verdict = replayed.recorded
    attempt = replace(replayed.case.attempt, wishes=today.wishes, intents=today.intents, verdict=verdict)
    return replace(replayed.case, attempt=attempt)


def why_not(attempt: RecordedAttempt) -> str:
    """Why an attempt cannot be replayed, "" if it can."""
    if attempt.verdict is None:
        return "its process stopped before it finished" if attempt.interrupted else "it is still running"
    for read in attempt.reads:
        if read.found and is_secret(read.resource):
            return f"it reads a Secret ({read.query}), and the content of Secrets is never recorded"
        if len(read.objects) < len(read.found):
            return (
                f"the recording no longer contains the objects that it read ({read.verb} {read.resource} {read.query})"
            )
    for wish in attempt.wishes:
        unstored = wish.how in ("", WriteResult.GIVEN, WriteResult.DONE) or is_secret(wish.resource)
        if not unstored and wish.answer is None:
            return f"the recording no longer contains the answer to {wish.verb} {wish.resource} {wish.key}"
    return ""


def _spec_of(case: ReplayCase, reconcile: Reconciler) -> ControllerSpec:
    """A controller for a reconciler alone that declares every type of the case."""
    attempt = case.attempt
    read, written = (one.resource for one in attempt.reads), (one.resource for one in attempt.wishes)
    found = dict.fromkeys((*case.primaries, *read, *written))
    sources = tuple(WatchClause(resource=resource, via=Via.NOTHING) for resource in found)
    return ControllerSpec(name=case.controller, reconcile=reconcile, sources=sources)


def _start(case: ReplayCase, spec: ControllerSpec, clock: Clock, *, cut: bool) -> tuple[RunningAttempt, Script]:
    attempt, reconcile = case.attempt, spec.reconcile
    start = AttemptStarted(
        id=attempt.id,
        controller=attempt.controller,
        request=attempt.request,
        causes=(),
        causes_total=attempt.causes_total,
        queued_at=attempt.queued_at,
        started=attempt.started,
        waited=attempt.waited,
        try_no=attempt.try_no,
    )
    notes = Notes(start, Observers(), seed=attempt.seed)
    script = Script(attempt, clock, cut=cut, stop=lambda: running.cut(CancelReason.UNKNOWN))
    where = where_in(code_of(reconcile))
    # More calls than recorded get the last time again.
    times = chain(attempt.times, repeat(attempt.times[-1] if attempt.times else attempt.started))

    def now() -> float:
        return notes.time(next(times))

    async def outside(name: str, look: Callable[[], Awaitable[T]]) -> T:
        notes.check_open()
        recorded = await script.outside(name, where())
        if recorded.raised is not None:
            raise raised_again(recorded.raised)
        value: T = json.loads(recorded.value)
        return value

    writer = ReplayWriter(spec, script, notes, where, now)
    calls = ReplayCalls(attempt, script, notes, writer)
    loop = asyncio.get_running_loop()
    ctx = Context(
        request=attempt.request,
        attempt=attempt.id,
        read=ReplayReader(script, notes, where),
        write=writer,
        outside=outside,
        official=lambda: api_client(calls, loop),
        now=now,
        random=Random(attempt.seed),  # noqa: S311  # the same numbers as in the recorded attempt
        log=attempt_log(attempt.controller, attempt.id, attempt.request),
    )
    task = asyncio.create_task(reconciled(reconcile, ctx), name=f"replay of {attempt.id}")
    name = attempt.request
    about = str(case.primaries[0].ref(name.name, name.namespace)) if case.primaries else ""
    running = RunningAttempt(notes, task, reconcile, about=about, started=clock.elapsed())
    return running, script


def _hidden(attempt: RecordedAttempt) -> Iterator[str]:
    """The inputs with hidden values."""
    for read in attempt.reads:
        for obj in read.objects:
            if MASKED in obj["metadata"]:
                yield str(read.resource.ref(name_of(obj), namespace_of(obj)))
    yield from (f"outside {one.name}" for one in attempt.outside if MASK in one.value)
