"""How a run went: what ended it, and what it left undone."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.errors import CtrlError, NotInstalled, TimedOut
from kubectl_ctrl.model.attempt import Verdict, Waiting
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.value import Value


class Reason(StrEnum):
    """Why a run ended."""

    STOPPED = "stopped"  # asked to, and everything under way was finished
    CUT = "cut"  # asked twice, or the drain took too long
    ONCE = "once"
    IDLE = "idle"
    UNTIL = "until"  # what was waited for holds
    TIMEOUT = "timeout"
    NOT_INSTALLED = "not installed"
    FATAL = "fatal"


class Left(Value, kw_only=True):
    """A request that was not done."""

    controller: str
    entry: Waiting


class Failed(Value, kw_only=True):
    """A request whose last attempt failed."""

    controller: str
    request: Request
    verdict: Verdict


class Unmet(Value):
    """A condition that a run waited for in vain, and since when (wall time) it has been so."""

    what: str
    since: float


class Summary(Value, kw_only=True):
    """How a run went."""

    reason: Reason
    left: tuple[Left, ...] = ()
    failed: tuple[Failed, ...] = ()
    unmet: tuple[Unmet, ...] = ()
    error: CtrlError | None = None

    def problem(self) -> CtrlError | None:
        """What to end the process with, None when the run did what it was meant to. Failed requests are told apart."""
        if self.reason is Reason.TIMEOUT:
            first = self.unmet[0].what.rstrip(".") if self.unmet else "it was still at work"
            more = f" (and {len(self.unmet) - 1} more)" if len(self.unmet) > 1 else ""
            return TimedOut(f"The run was ended by its timeout: {first}{more}.")
        if self.reason is Reason.NOT_INSTALLED:
            what = "; ".join(one.what for one in self.unmet)
            return NotInstalled(f"Nothing could be done: {what}.")
        return self.error
