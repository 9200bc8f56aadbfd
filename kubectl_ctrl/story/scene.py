"""The surroundings of the attempts of a story: totals, the object itself, how each run ended, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.record import Counts, Recorded, Run
from kubectl_ctrl.value import Value


class Scene(Value, kw_only=True):
    """What stands around the rows."""

    totals: Counts  # over all attempts that are meant, also those that are not shown
    hidden: int = 0  # older attempts that are meant and not shown
    over: Mapping[str, str]  # of each run that is over, how it ended: `ended 10:31:07`
    object: Obj | None = None  # as it was when last seen
    seen: float = 0.0  # when that was
    live: bool = False  # a run watches it still, so that what was seen last is so now
    gone: float | None = None  # when it was seen deleted
    coming: tuple[str, ...] = ()  # what will make it run again
    hint: str = ""
    runs: Sequence[Run] = ()  # of all attempts that are meant, newest first; none: those of the story
    related: bool = False  # the attempts are about other objects: it caused them, or they wrote it


def totals(attempts: Sequence[Recorded]) -> Counts:
    return Counts(
        attempts=len(attempts),
        reads=sum(len(one.reads) for one in attempts),
        writes=sum(len(one.writes) for one in attempts),
        errors=sum(one.failed for one in attempts),
        interrupted=sum(one.interrupted for one in attempts),
        first=attempts[0].started if attempts else 0.0,
    )
