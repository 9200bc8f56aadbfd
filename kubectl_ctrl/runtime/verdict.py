"""The verdict on an attempt: retry, wait, run later, or stop. Pure, and the only place that decides.

| end                                               | outcome                                              |
|---------------------------------------------------|------------------------------------------------------|
| None, Result()                                    | done                                                 |
| Result(again=True)                                | again, at once                                       |
| Result(after), without or with waiting_for        | after that time; or waiting, and run again then      |
| Result(waiting_for)                               | waiting, until something changes                     |
| TerminalError, Invalid, Refused                   | terminal: runs again for new causes, without retry   |
| ControllerError, UsageError: a wrong call         | terminal                                             |
| NamespaceTerminating, NotInstalled, NotServed     | waiting: not an error                                |
| Forbidden: quota, admission, RBAC                 | retry, slowly                                        |
| 429 and 5xx with Retry-After                      | retry, not before that time, 5 min at most           |
| attempt timeout, every other error                | retry with backoff                                   |
| NotFound of the request's own object              | done: it was deleted meanwhile                       |
| NotLeading, cancelled by shutdown or a lost lease | dropped                                              |
| several errors in a group                         | that of the error most likely to pass                |
| Result(after, failed=error)                       | that of the error, and at the latest after that time |
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Iterator
from math import inf
from pathlib import PurePath
from types import CodeType, TracebackType
from typing import Any

from kubectl_ctrl.errors import (
    CallError,
    ControllerError,
    CtrlError,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    NotFound,
    NotInstalled,
    NotLeading,
    NotServed,
    Refused,
    TerminalError,
    UsageError,
)
from kubectl_ctrl.model.attempt import Outcome, Verdict
from kubectl_ctrl.runtime.contract import Reconciler, Result
from kubectl_ctrl.value import replace

# Until an administrator changes a quota or a rule, more frequent retries are useless.
SLOW_RETRY = 30.0
# The retry after a CRD was found missing or too old; no event reports its replacement.
NOT_INSTALLED_RETRY = 30.0

# A server may send a wrong Retry-After, and nobody would notice that a request waits for a day.
_LONGEST_RETRY_AFTER = 300.0

_LONGEST_MESSAGE = 1000


class AttemptTimeout(Exception):
    """The attempt exceeded its timeout; never raised by reconcilers."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The attempt was canceled after its timeout of {seconds:g} s.")


class AttemptQuit(Exception):
    """The reconciler cancelled itself or called sys.exit()."""


def judge_result(result: object) -> Verdict:
    """The verdict on a reconcile that returned."""
    if result is None:
        return Verdict(outcome=Outcome.DONE)
    if not isinstance(result, Result):
        return judge_error(ControllerError(f"The reconciler returned {_shown(result)}; expected a Result or None."))
    if result.waiting_for:
        return Verdict(outcome=Outcome.WAITING, delay=result.seconds or 0.0, message=_one_line(result.waiting_for))
    if result.again:
        return Verdict(outcome=Outcome.AGAIN)
    if result.seconds is not None:
        return Verdict(outcome=Outcome.AFTER, delay=result.seconds)
    return Verdict(outcome=Outcome.DONE)


def judge_error(error: BaseException, where: str = "", about: str = "", within: float = inf) -> Verdict:
    """The verdict on a reconcile that raised; the delay of a retry is the minimum that the error requires.

    `about` is the object of the request, as calls name it: `foos.example.com default/web`. `within` is the time after
    which it runs again at the latest, from Result(after, failed=error).
    """
    verdict = (
        _judge_group(error, where, about) if isinstance(error, BaseExceptionGroup) else _judge(error, where, about)
    )
    if within < inf and verdict.outcome in (Outcome.TERMINAL, Outcome.WAITING):
        return replace(verdict, delay=min(verdict.delay or within, within))
    return verdict


def meant(error: BaseException) -> BaseException:
    """The CtrlError behind an ApiException of ctx.official(), else the error itself."""
    cause = error.__cause__
    foreign = type(error).__module__ == "kubernetes.client.exceptions"
    return cause if foreign and isinstance(cause, CallError) else error


def _judge(error: BaseException, where: str, about: str) -> Verdict:
    error = meant(error)
    if about and _is_gone(error, about):
        return Verdict(outcome=Outcome.DONE, message="The object was deleted during the reconcile.")
    outcome, delay = _outcome(error)
    return Verdict(
        outcome=outcome,
        delay=delay,
        message=_one_line(describe(error)),
        error_id=error.id if isinstance(error, CtrlError) else type(error).__name__,
        where=where,
    )


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The error itself, or all errors of a group and its subgroups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def describe(error: BaseException) -> str:
    """The message of an error, with its type unless it is a CtrlError, which is a sentence already."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # the verdict must not depend on a broken __str__
        text = "(its message cannot be read)"
    if isinstance(error, (CtrlError, AttemptTimeout, AttemptQuit)):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def where_raised(error: BaseException, reconciler: Reconciler) -> str:
    """`folder/file.py:line` of the innermost frame in the reconciler's own code, or ""."""
    code = code_of(reconciler)
    if code is None:
        return ""
    home = PurePath(code.co_filename).parent
    spot = ""
    for path, line in _frames(error.__traceback__):
        if path.is_relative_to(home):
            spot = f"{path.parent.name}/{path.name}:{line}"
    return spot


def code_of(reconciler: Reconciler) -> CodeType | None:
    """None for unusual callables; the traceback has the place all the same."""
    code: CodeType | None = getattr(inspect.unwrap(reconciler), "__code__", None)
    return code or getattr(type(reconciler).__call__, "__code__", None)


def _outcome(error: BaseException) -> tuple[Outcome, float]:
    match error:
        case CancelledError() | NotLeading():
            return Outcome.DROPPED, 0.0
        case TerminalError() | ControllerError() | UsageError() | Invalid() | Refused():
            return Outcome.TERMINAL, 0.0
        case NamespaceTerminating():
            return Outcome.WAITING, 0.0
        case NotInstalled() | NotServed():
            return Outcome.WAITING, NOT_INSTALLED_RETRY
        case Forbidden():
            return Outcome.RETRY, max(SLOW_RETRY, _retry_after(error))
        case CallError():
            return Outcome.RETRY, _retry_after(error)
    return Outcome.RETRY, 0.0


def _is_gone(error: BaseException, about: str) -> bool:
    """The object was deleted, or another one has its name; an event follows in either case."""
    if not isinstance(error, NotFound) or isinstance(error, NotServed) or error.site.verb == "create":
        return False
    return error.site.target == about or error.site.target.startswith(f"{about}/")


def _retry_after(error: CallError) -> float:
    return min(error.retry_after or 0.0, _LONGEST_RETRY_AFTER)


# Of several errors the one most likely to pass decides: a retry reports the others.
_MOST_LIKELY_TO_PASS = (Outcome.DROPPED, Outcome.RETRY, Outcome.WAITING, Outcome.TERMINAL, Outcome.DONE)


def _judge_group(group: BaseExceptionGroup[Any], where: str, about: str) -> Verdict:
    verdicts = [_judge(error, where, about) for error in leaves(group)]
    chosen = min(verdicts, key=lambda verdict: (_MOST_LIKELY_TO_PASS.index(verdict.outcome), -verdict.delay))
    if len(verdicts) == 1 or chosen.outcome is Outcome.DONE:
        return chosen
    return replace(chosen, message=_one_line(f"{chosen.message} (and {len(verdicts) - 1} more)"))


def _frames(traceback: TracebackType | None) -> Iterator[tuple[PurePath, int]]:
    while traceback is not None:
        yield PurePath(traceback.tb_frame.f_code.co_filename), traceback.tb_lineno
        traceback = traceback.tb_next


def _shown(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001  # an invalid result may have a broken __repr__
        return f"a {type(value).__name__}"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."
