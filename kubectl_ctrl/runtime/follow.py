"""From a verdict to the next run in the queue, and to its cause."""

from __future__ import annotations

from math import inf

from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.model.cause import Cause, CauseKind
from kubectl_ctrl.model.durations import format_duration
from kubectl_ctrl.workqueue.values import LIVE, After, Again, Retry

Then = After[Cause] | Again[Cause] | Retry[Cause]

# A reconciler requests one more run because it expects a change at once. Again and again, it would be a busy loop.
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 10.0


def follow(verdict: Verdict, attempt: str, *, at: float, agains: int, within: float = inf) -> Then | None:
    """The next run of the request, which requested `agains` immediate runs in a row before.

    A retry comes `within` so many seconds, whatever the backoff is.
    """
    match verdict.outcome:
        case Outcome.RETRY:
            least = min(verdict.delay, within)
            return Retry(lambda count, _: _retry(verdict, attempt, at, count), at_least=least, at_most=within)
        case Outcome.AFTER:
            return After(verdict.delay, _timer(verdict, attempt, at), priority=LIVE)
        case Outcome.WAITING | Outcome.TERMINAL if verdict.delay:
            return After(verdict.delay, _timer(verdict, attempt, at), priority=LIVE)
        case Outcome.AGAIN:
            cause = Cause(kind=CauseKind.AGAIN, at=at, attempt=attempt)
            return After(pause(agains), cause) if agains else Again(cause)
        case Outcome.DROPPED:
            # It was cancelled, not judged; it runs again as soon as attempts may start.
            return Again(Cause(kind=CauseKind.RETRY, at=at, attempt=attempt, detail=verdict.message))
    return None


def pause(agains: int) -> float:
    """Seconds before an immediate run, after `agains` of them in a row."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(agains - 1, 60))


def _retry(verdict: Verdict, attempt: str, at: float, count: int) -> Cause:
    return Cause(kind=CauseKind.RETRY, at=at, attempt=attempt, count=count, detail=verdict.message)


def _timer(verdict: Verdict, attempt: str, at: float) -> Cause:
    return Cause(kind=CauseKind.TIMER, at=at, attempt=attempt, detail=format_duration(verdict.delay))
