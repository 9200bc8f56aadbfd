"""The results of a replay: the differences between the current code and the recording."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.attempt import Attempt, Verdict
from kubectl_ctrl.model.diffs import Difference
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay.casefile import ReplayCase
from kubectl_ctrl.value import Value


class ComparisonResult(StrEnum):
    """The result for one recorded or current request."""

    SAME = "same"
    DIFFERS = "differs"
    MISSING = "missing"  # recorded, and not requested by the current code
    EXTRA = "extra"  # requested by the current code, and not recorded
    MOVED = "moved"  # the same in another order
    UNKNOWN = "not recorded"  # a read without a recorded response: the replay ended there
    UNREACHED = "not reached"  # recorded after the place where the replay ended


class ComparedRequest(Value, kw_only=True):
    """One requested change, event or read, compared with the recorded one."""

    fate: ComparisonResult
    verb: str  # of the writer, or `event`
    resource: Resource | None = None
    key: Key | None = None
    number: int = 0  # position in the recording from 1, 0 if EXTRA
    today: int = 0  # position in the replay from 1, 0 if MISSING
    text: str = ""  # the query of a read, or the reason of an event
    where: str = ""  # file:line of the request in the current code
    changes: tuple[Difference, ...] = ()  # recorded -> today


class ReplayedAttempt(Value, kw_only=True):
    """One replayed attempt."""

    case: ReplayCase
    today: Attempt  # the attempt of the current code
    writes: tuple[ComparedRequest, ...]  # in the current order, missing ones at their recorded position
    events: tuple[ComparedRequest, ...] = ()
    unknown: ComparedRequest | None = None  # the read at which the replay ended
    outcome: tuple[Difference, ...] = ()
    cut: bool = False  # the recorded attempt was cut, so only its beginning could be compared
    hidden: tuple[str, ...] = ()  # objects with values that the recording hides

    @property
    def recorded(self) -> Verdict:
        verdict = self.case.attempt.verdict
        assert verdict is not None
        return verdict

    @property
    def same(self) -> bool:
        return not (self.differing or self.unknown or self.outcome)

    @property
    def differing(self) -> tuple[ComparedRequest, ...]:
        """The writes and events that differ; those after the end of the replay are unknown."""
        return tuple(
            one
            for one in (*self.writes, *self.events)
            if one.fate not in (ComparisonResult.SAME, ComparisonResult.UNREACHED)
        )
