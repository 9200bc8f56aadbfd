"""The facts around the attempts of a story: totals, the object itself, the ends of runs, and the next triggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import AttemptCounts, RecordedAttempt, RecordedRun
from kubectl_ctrl.value import Value


class Scene(Value, kw_only=True):
    totals: AttemptCounts  # of all selected attempts, including hidden ones
    hidden: int = 0  # older selected attempts that are not shown
    over: Mapping[str, str]  # the end of each inactive run: `ended 5m ago`
    object: Obj | None = None  # its last recorded state
    seen: float = 0.0  # the time of that state
    live: bool = False  # a run watches it, so the last recorded state is the current one
    gone: float | None = None  # the time of its deletion
    triggers: tuple[str, ...] = ()  # the triggers of the next reconcile
    hint: str = ""
    runs: Sequence[RecordedRun] = ()  # of all selected attempts, newest first; none: those of the story
    related: bool = False  # the attempts are for other objects: it triggered them, or they wrote it


def totals(attempts: Sequence[RecordedAttempt]) -> AttemptCounts:
    return AttemptCounts(
        attempts=len(attempts),
        reads=sum(len(one.reads) for one in attempts),
        writes=sum(len(one.writes) for one in attempts),
        errors=sum(one.failed for one in attempts),
        interrupted=sum(one.interrupted for one in attempts),
        first=attempts[0].started if attempts else 0.0,
    )
