"""One recorded attempt executed again, by whatever the reconciler's code is now.

It sees what was recorded: the request, what its reads and `ctx.outside` found, the time, and the same chance. Nothing
else is held still: what code does outside `ctx` (files, network, a clock of its own, memory) happens for real.

| recorded attempt                         | replay                                                            |
|------------------------------------------|-------------------------------------------------------------------|
| ended by itself                          | everything is compared                                            |
| cut by a timeout, a stop, a lost lease   | as far as it came: up to the write or the end that was cut         |
| still running, or its process died       | NotRecorded: what it read is told only when it ends                |
| an object it read is not kept any more   | NotRecorded, with the object's name                                |
| it read a Secret                         | NotRecorded: no recording holds what is in Secrets                 |
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import TypeVar

from kubectl_ctrl.client.official import api_client
from kubectl_ctrl.clock import Clock
from kubectl_ctrl.errors import CtrlError, NotRecorded
from kubectl_ctrl.model.attempt import Attempt, Outcome, Started, Verdict, WriteRequest, WriteResult
from kubectl_ctrl.model.diffs import Difference
from kubectl_ctrl.model.masking import MASK, MASKED, is_secret
from kubectl_ctrl.model.objects import Obj, name_of, namespace_of
from kubectl_ctrl.model.record import Recorded
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay import comparison
from kubectl_ctrl.replay.access import ReplayReader, ReplayWriter, where_in
from kubectl_ctrl.replay.casefile import Case
from kubectl_ctrl.replay.deviations import Finding, Replayed
from kubectl_ctrl.replay.official import ReplayCalls
from kubectl_ctrl.replay.recorded_errors import raised_again
from kubectl_ctrl.replay.script import Script
from kubectl_ctrl.runtime.attempts import Cut, Ended, Running, reconciled
from kubectl_ctrl.runtime.builder import ControllerSpec, Source, Via
from kubectl_ctrl.runtime.contract import Context, Reconciler
from kubectl_ctrl.runtime.ids import attempt_log
from kubectl_ctrl.runtime.notes import Notes
from kubectl_ctrl.runtime.observers import Observers
from kubectl_ctrl.runtime.verdict import code_of
from kubectl_ctrl.value import replace

T = TypeVar("T")

# As long as a run gives an attempt.
TIMEOUT = 60.0


async def replay(case: Case, code: ControllerSpec | Reconciler, *, clock: Clock, timeout: float = TIMEOUT) -> Replayed:
    """Execute the case again and compare; NotRecorded when it cannot be."""
    spec = code if isinstance(code, ControllerSpec) else _spec_of(case, code)
    if reason := why_not(case.attempt):
        raise NotRecorded(f"{case.attempt.id} cannot be replayed: {reason}.", next_step=_NEXT)
    verdict = case.attempt.verdict
    assert verdict is not None
    cut = verdict.outcome is Outcome.DROPPED and not verdict.error_id
    running, script = _start(case, spec, clock, cut=cut)
    if not await running.wait(clock, timeout):
        raise CtrlError(f"The reconciler keeps running although it was cancelled {timeout:g} s after its start.")
    ended = running.ended(clock, timeout)
    today = running.notes.finished(ended.verdict, took=ended.took, echoes=0, traceback=ended.traceback)
    return Replayed(
        case=case,
        today=today,
        writes=script.findings(),
        events=_events(case.attempt, today, cut=cut, stopped=ended.cut is Cut.UNKNOWN),
        unknown=script.unknown,
        outcome=_outcome(verdict, ended, cut=cut),
        cut=cut,
        hidden=tuple(sorted(set(_hidden(case.attempt)))),
    )


_NEXT = "kubectl ctrl trace shows what is recorded about it"


def blessed(replayed: Replayed) -> Case:
    """The case with what today's code did as what is expected; its reads and times stay as they were recorded."""
    if replayed.unknown is not None:
        raise NotRecorded(
            f"{replayed.case.attempt.id} cannot be blessed: today's code reads objects that are not recorded.",
            next_step="record it again with today's code, and export that",
        )
    today = replayed.today
    verdict = replace(today.verdict, last=replayed.recorded.last)
    if replayed.cut or today.verdict.outcome is Outcome.DROPPED:  # where the recording ends
        verdict = replayed.recorded
    attempt = replace(replayed.case.attempt, wishes=today.wishes, intents=today.intents, verdict=verdict)
    return replace(replayed.case, attempt=attempt)


def why_not(attempt: Recorded) -> str:
    """Why an attempt cannot be replayed, "" when it can be."""
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
        if _is_lost(wish):
            return f"the recording no longer contains the answer to {wish.verb} {wish.resource} {wish.key}"
    return ""


def _is_lost(wish: WriteRequest) -> bool:
    if wish.how in ("", WriteResult.GIVEN, WriteResult.DONE) or is_secret(wish.resource):
        return False
    return wish.answer is None


def _spec_of(case: Case, reconcile: Reconciler) -> ControllerSpec:
    """A reconciler alone as a controller that declares every resource of the case."""
    attempt = case.attempt
    read, written = (one.resource for one in attempt.reads), (one.resource for one in attempt.wishes)
    found = dict.fromkeys((*case.primaries, *read, *written))
    sources = tuple(Source(resource=resource, via=Via.NOTHING) for resource in found)
    return ControllerSpec(name=case.controller, reconcile=reconcile, sources=sources)


def _start(case: Case, spec: ControllerSpec, clock: Clock, *, cut: bool) -> tuple[Running, Script]:
    attempt, reconcile = case.attempt, spec.reconcile
    notes = Notes(_started(attempt), Observers(), seed=attempt.seed)
    script = Script(attempt, clock, cut=cut, stop=lambda: running.cut(Cut.UNKNOWN))
    where = where_in(code_of(reconcile))
    times = _times(attempt)

    def now() -> float:
        return notes.time(next(times))

    async def outside(name: str, look: Callable[[], Awaitable[T]]) -> T:
        notes.check_open()
        told = await script.outside(name, where())
        if told.raised is not None:
            raise raised_again(told.raised)
        value: T = json.loads(told.value)
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
        random=Random(attempt.seed),  # noqa: S311  # the same as it had then
        log=attempt_log(attempt.controller, attempt.id, attempt.request),
    )
    task = asyncio.create_task(reconciled(reconcile, ctx), name=f"replay of {attempt.id}")
    running = Running(notes, task, reconcile, about=_about(case), started=clock.elapsed())
    return running, script


def _started(attempt: Recorded) -> Started:
    return Started(
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


def _times(attempt: Recorded) -> Iterator[float]:
    """What was told, and from then on the last of it."""
    last = attempt.started
    for last in attempt.times:
        yield last
    while True:
        yield last


def _about(case: Case) -> str:
    """The object that the request names, as calls name it."""
    if not case.primaries:
        return ""
    return str(case.primaries[0].ref(case.attempt.request.name, case.attempt.request.namespace))


def _outcome(recorded: Verdict, ended: Ended, *, cut: bool) -> tuple[Difference, ...]:
    """Compared where both ended by themselves, or were both too slow."""
    return () if cut or ended.cut is Cut.UNKNOWN else comparison.outcomes(recorded, ended.verdict)


def _events(attempt: Recorded, today: Attempt, *, cut: bool, stopped: bool) -> tuple[Finding, ...]:
    """Compared as far as both came."""
    before = attempt.intents[: len(today.intents)] if stopped else attempt.intents
    after = today.intents[: len(attempt.intents)] if cut else today.intents
    return tuple(comparison.events(before, after))


def _hidden(attempt: Recorded) -> Iterator[str]:
    """Objects that were not told whole."""
    for read in attempt.reads:
        yield from (_named(obj, read.resource) for obj in read.objects if MASKED in obj["metadata"])
    yield from (f"outside {one.name}" for one in attempt.outside if MASK in one.value)


def _named(obj: Obj, resource: Resource) -> str:
    return str(resource.ref(name_of(obj), namespace_of(obj)))
