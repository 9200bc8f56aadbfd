"""What `doctor` finds and mends, as values: a line for each thing that was looked at, in groups."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from kubectl_ctrl.value import Value


class Mark(StrEnum):
    """How good it is."""

    OK = "ok"
    INFO = "info"  # worth knowing, and neither good nor bad
    WARN = "warn"  # works all the same
    FAIL = "fail"


class Group(StrEnum):
    """What a line is about, in the order in which they are told."""

    MACHINE = "machine"
    PROVIDERS = "providers"
    CLUSTER = "cluster"
    CONTROLLERS = "controllers"
    LEFTOVERS = "leftovers"
    RECORDINGS = "recordings"


class Line(Value, kw_only=True):
    """One thing that was looked at; `advice` and `command`, which is to be copied, say what to do about it."""

    check: str
    mark: Mark
    text: str
    advice: str = ""
    command: str = ""
    code: int = 0  # the exit code that it stands for, where it fails


class Told(Value, kw_only=True):
    """The lines of one group."""

    group: Group
    lines: tuple[Line, ...]


class Outcome(StrEnum):
    """What became of something that was to be mended."""

    DONE = "done"
    LISTED = "listed"  # it waits for --yes
    BY_HAND = "by hand"  # nothing that may be done unasked helps
    REFUSED = "refused"  # by the guard
    FAILED = "failed"


class Repair(Value, kw_only=True):
    """One thing that `--fix` saw to."""

    outcome: Outcome
    text: str
    advice: str = ""
    command: str = ""


class Diagnosis(Value, kw_only=True):
    """All that was found, or all that was mended."""

    at: float  # wall time
    told: tuple[Told, ...] = ()
    repairs: tuple[Repair, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for told in self.told for line in told.lines)

    @property
    def mark(self) -> Mark:
        """The worst of all lines; information is no worse than good."""
        marks = {line.mark for line in self.lines}
        return next((mark for mark in (Mark.FAIL, Mark.WARN) if mark in marks), Mark.OK)

    @property
    def code(self) -> int:
        return worst(line.code for line in self.lines if line.mark is Mark.FAIL)


# What keeps everything from working goes before what keeps one thing from it.
_WORST = (5, 3, 7, 8, 1)


def worst(codes: Iterable[int]) -> int:
    """The exit code that says most about how much does not work; 0 for none."""
    found = set(codes)
    return next((code for code in _WORST if code in found), max(found, default=0))
