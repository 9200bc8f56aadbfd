"""What a replay found: where today's code does not do what was recorded."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.attempt import Attempt, Verdict
from kubectl_ctrl.model.diffs import Difference
from kubectl_ctrl.model.objects import Key
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.replay.casefile import Case
from kubectl_ctrl.value import Value


class Fate(StrEnum):
    """What became of something that was recorded, or that is asked for today."""

    SAME = "same"
    DIFFERS = "differs"
    MISSING = "missing"  # recorded, and not asked for today
    EXTRA = "extra"  # asked for today, and not recorded
    MOVED = "moved"  # the same, in another order
    UNKNOWN = "not recorded"  # a read whose answer nobody knows: the replay ended there
    UNREACHED = "not reached"  # recorded, and after the place where the replay ended


class Finding(Value, kw_only=True):
    """One question at the writing door, one event or one read, beside what was recorded."""

    fate: Fate
    verb: str  # of the door; `event`
    resource: Resource | None = None
    key: Key | None = None
    number: int = 0  # in the recording, from 1; 0 for what is extra
    today: int = 0  # in the replay, from 1; 0 for what is missing
    text: str = ""  # the query of a read, reason of an event
    where: str = ""  # file:line of today's code that asked
    changes: tuple[Difference, ...] = ()  # recorded -> today


class Replayed(Value, kw_only=True):
    """One attempt executed again."""

    case: Case
    today: Attempt  # what today's code did
    writes: tuple[Finding, ...]  # in the order of today, what is missing at its recorded place
    events: tuple[Finding, ...] = ()
    unknown: Finding | None = None  # the read at which the replay ended
    outcome: tuple[Difference, ...] = ()
    cut: bool = False  # the recorded attempt was cut, so only its beginning could be compared
    hidden: tuple[str, ...] = ()  # objects of which the recording hides values

    @property
    def recorded(self) -> Verdict:
        """How the recorded attempt ended."""
        verdict = self.case.attempt.verdict
        assert verdict is not None
        return verdict

    @property
    def same(self) -> bool:
        return not (self.differing or self.unknown or self.outcome)

    @property
    def differing(self) -> tuple[Finding, ...]:
        """Writes and events that are not the same; what the replay did not come to is unknown."""
        all_of = (*self.writes, *self.events)
        return tuple(one for one in all_of if one.fate not in (Fate.SAME, Fate.UNREACHED))
