"""The results of `doctor` as values: lines in groups, and repairs."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from kubectl_ctrl.value import Value


class Mark(StrEnum):
    OK = "ok"
    INFO = "info"  # neither good nor bad
    WARN = "warn"  # it works, with a problem
    FAIL = "fail"


class Group(StrEnum):
    """The subject of a line, in the order of the output."""

    MACHINE = "machine"
    PROVIDERS = "providers"
    CLUSTER = "cluster"
    CONTROLLERS = "controllers"
    LEFTOVERS = "leftovers"
    RECORDINGS = "recordings"


class Line(Value, kw_only=True):
    """One result; `advice` and `command`, which can be copied, are the remedy."""

    check: str
    mark: Mark
    text: str
    advice: str = ""
    command: str = ""
    code: int = 0  # the exit code of a failure


class GroupLines(Value, kw_only=True):
    group: Group
    lines: tuple[Line, ...]


class RepairOutcome(StrEnum):
    DONE = "done"
    LISTED = "listed"  # it needs --yes
    BY_HAND = "by hand"  # it needs a decision of the user
    REFUSED = "refused"  # by the guard
    FAILED = "failed"


class Repair(Value, kw_only=True):
    outcome: RepairOutcome
    text: str
    advice: str = ""
    command: str = ""


class Diagnosis(Value, kw_only=True):
    """The results of all checks, or of all repairs."""

    at: float  # wall time
    groups: tuple[GroupLines, ...] = ()
    repairs: tuple[Repair, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for group in self.groups for line in group.lines)

    @property
    def mark(self) -> Mark:
        """The worst mark of all lines; INFO counts as OK."""
        marks = {line.mark for line in self.lines}
        return next((mark for mark in (Mark.FAIL, Mark.WARN) if mark in marks), Mark.OK)

    @property
    def code(self) -> int:
        return worst(line.code for line in self.lines if line.mark is Mark.FAIL)


# Problems that affect everything come first.
_WORST = (5, 3, 7, 8, 1)


def worst(codes: Iterable[int]) -> int:
    """The exit code of the worst problem; 0 for none."""
    found = set(codes)
    return next((code for code in _WORST if code in found), max(found, default=0))
