"""What triggers the next reconcile of an object, and when."""

from __future__ import annotations

from kubectl_ctrl.findings.account import Inactivity, Qualifier, Trigger
from kubectl_ctrl.findings.case import Case, short
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.record import RecordedAttempt


def next_triggers(case: Case, qualifier: Qualifier | None) -> tuple[Trigger, ...]:
    """The queue entry or the last verdict, and the types whose changes trigger it besides."""
    controller, last = case.controller, case.last
    if controller is None:
        return (Trigger(text="nothing: no controller for it is known"),)
    if qualifier is not None:
        text = f"nothing while {controller.name} is inactive; once active, it reconciles every object"
        if case.life is Life.STOPPED:
            text = f"nothing while {controller.name} is suspended; once resumed, it continues where it stopped"
        elif qualifier.state is Inactivity.UNHEARD:
            text = f"unknown: {controller.name} has recorded nothing since; newer reconciles may be missing here"
        return (Trigger(text=text),)
    known = {*controller.primaries, *controller.owns}
    types = [resource.kind for resource in controller.primaries]
    types += [f"owned {resource.kind}" for resource in controller.owns]
    types += [f"watched {resource.kind}" for resource in controller.watches if resource not in known]
    delayed = last is not None and last.verdict is not None and last.verdict.delay > 0
    changes = f"sooner if {', '.join(types)} changes" if delayed else f"triggered by {', '.join(types)}"
    return (_planned(case), Trigger(text=changes))


def _planned(case: Case) -> Trigger:
    last = case.last
    if last is None:
        return Trigger(text="its first reconcile") if case.entry else Trigger(text="nothing is queued")
    if not last.over:
        return Trigger(text=f"{short(last.id)} is running; its result decides what follows")
    if case.entry is not None and case.entry.state == "ready":
        return Trigger(text="a reconcile is queued and starts as soon as a worker is free")
    if case.entry is not None and case.entry.state == "running":
        return Trigger(text="a reconcile is running; its result decides what follows")
    return _decided(last)


def _decided(last: RecordedAttempt) -> Trigger:
    if last.verdict is None:
        return Trigger(text="nothing is scheduled: the process stopped during the reconcile")
    verdict, at = last.verdict, last.end + last.verdict.delay
    match verdict.outcome:
        case _ if verdict.last:
            return Trigger(text="nothing: with --once each object gets one attempt")
        case Outcome.RETRY:
            return Trigger(text=f"retry {last.try_no} (backoff {format_duration(verdict.delay)})", at=at)
        case Outcome.TERMINAL if verdict.delay:
            return Trigger(text="no retry: it runs again on its schedule", at=at)
        case Outcome.TERMINAL:
            return Trigger(text="no retry: only a change triggers it again")
        case Outcome.AFTER:
            return Trigger(text="requeued by the reconciler", at=at)
        case Outcome.AGAIN | Outcome.DROPPED:
            return Trigger(text="it runs again immediately")
        case Outcome.WAITING if verdict.delay:
            return Trigger(text="it is checked again", at=at)
    return Trigger(text="nothing is queued, no timer")
