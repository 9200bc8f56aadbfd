"""The summary of a run: the reason of its end, and the requests left undone."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.errors import CtrlError, NotInstalled, TimedOut
from kubectl_ctrl.model.attempt import Verdict, WaitingRequest
from kubectl_ctrl.model.cause import Request
from kubectl_ctrl.value import Value


class Reason(StrEnum):
    """Why a run ended."""

    STOPPED = "stopped"  # on request, after attempts under way had finished
    CUT = "cut"  # requested twice, or after the drain time
    ONCE = "once"
    IDLE = "idle"
    UNTIL = "until"  # the conditions hold
    TIMEOUT = "timeout"
    NOT_INSTALLED = "not installed"
    FATAL = "fatal"


class UndoneRequest(Value, kw_only=True):
    controller: str
    entry: WaitingRequest


class FailedRequest(Value, kw_only=True):
    """A request whose last attempt failed."""

    controller: str
    request: Request
    verdict: Verdict


class Unmet(Value):
    """A condition that a run waited for in vain, and since when (wall time) it does not hold."""

    what: str
    since: float


class Summary(Value, kw_only=True):
    """See the module."""

    reason: Reason
    left: tuple[UndoneRequest, ...] = ()
    failed: tuple[FailedRequest, ...] = ()
    unmet: tuple[Unmet, ...] = ()
    error: CtrlError | None = None

    def problem(self) -> CtrlError | None:
        """The error of the process, or None if the run reached its goal. Failed requests do not count."""
        if self.reason is Reason.TIMEOUT:
            first = self.unmet[0].what.rstrip(".") if self.unmet else "reconciles were still running"
            more = f" (and {len(self.unmet) - 1} more)" if len(self.unmet) > 1 else ""
            return TimedOut(f"The run timed out: {first}{more}.")
        if self.reason is Reason.NOT_INSTALLED:
            what = "; ".join(one.what for one in self.unmet)
            return NotInstalled(f"Nothing was reconciled: {what}.")
        return self.error
