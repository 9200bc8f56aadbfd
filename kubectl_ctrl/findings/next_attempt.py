"""What will make an object run again, and when."""

from __future__ import annotations

from kubectl_ctrl.findings.account import Coming, Qualifier, Standing
from kubectl_ctrl.findings.case import Case, short
from kubectl_ctrl.model.attempt import Outcome
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.model.life import Life
from kubectl_ctrl.model.record import Played, Recorded


def coming(case: Case, qualifier: Qualifier | None) -> tuple[Coming, ...]:
    """What is next: what stands in the queue or was decided last, and what would wake it besides."""
    if case.controller is None:
        return (Coming(text="nothing: no controller for it is known"),)
    if qualifier is not None:
        return (Coming(text=_stalled(case, case.controller.name, qualifier)),)
    return (_planned(case), Coming(text=_wakes(case, case.controller)))


def _stalled(case: Case, name: str, qualifier: Qualifier) -> str:
    if case.life is Life.STOPPED:
        return f"nothing while {name} is suspended; once resumed, it continues where it stopped"
    if qualifier.standing is Standing.UNHEARD:
        return f"unknown: {name} has recorded nothing since; newer reconciles may be missing here"
    return f"nothing while {name} is inactive; once active, it reconciles every object"


def wakers(controller: Played) -> str:
    """`Foo, owned Deployment, watched HorizontalPodAutoscaler`."""
    parts = [resource.kind for resource in controller.primaries]
    parts += [f"owned {resource.kind}" for resource in controller.owns]
    known = {*controller.primaries, *controller.owns}
    parts += [f"watched {resource.kind}" for resource in controller.watches if resource not in known]
    return ", ".join(parts)


def _wakes(case: Case, controller: Played) -> str:
    last = case.last
    delayed = last is not None and last.verdict is not None and last.verdict.delay > 0
    return f"sooner if {wakers(controller)} changes" if delayed else f"triggered by {wakers(controller)}"


def _planned(case: Case) -> Coming:
    last = case.last
    if last is None:
        return Coming(text="its first reconcile") if case.entry else Coming(text="nothing is queued")
    if not last.over:
        return Coming(text=f"{short(last.id)} is running; its result decides what follows")
    if case.entry is not None and case.entry.state == "ready":
        return Coming(text="a reconcile is queued and starts as soon as a worker is free")
    return _decided(last)


def _decided(last: Recorded) -> Coming:
    if last.verdict is None:
        return Coming(text="nothing is scheduled: the process stopped during the reconcile")
    verdict, at = last.verdict, last.end + last.verdict.delay
    match verdict.outcome:
        case _ if verdict.last:
            return Coming(text="nothing: with --once each object gets one attempt")
        case Outcome.RETRY:
            return Coming(text=f"retry {last.try_no} (backoff {format_duration(verdict.delay)})", at=at)
        case Outcome.TERMINAL if verdict.delay:
            return Coming(text="no retry: it runs again on its schedule", at=at)
        case Outcome.TERMINAL:
            return Coming(text="no retry: only a change triggers it again")
        case Outcome.AFTER:
            return Coming(text="requeued by the reconciler", at=at)
        case Outcome.AGAIN | Outcome.DROPPED:
            return Coming(text="it runs again immediately")
        case Outcome.WAITING if verdict.delay:
            return Coming(text="it is checked again", at=at)
    return Coming(text="nothing is queued, no timer")
