"""What follows an attempt. Pure, and the only place that decides: retry, wait, come back later, or leave it.

| what happened                                     | outcome                                              |
|---------------------------------------------------|------------------------------------------------------|
| None, Result()                                    | done                                                 |
| Result(again=True)                                | again, at once                                       |
| Result(after), without or with waiting_for        | after that time; or waiting, looked at again then    |
| Result(waiting_for)                               | waiting, until something changes                     |
| TerminalError, Invalid, Refused                   | terminal: any new cause runs it, no backoff does     |
| ControllerError, UsageError: a wrong call         | terminal as well                                     |
| NamespaceTerminating, NotInstalled, NotServed     | waiting: not an error                                |
| Forbidden: quota, admission, RBAC                 | retry, slowly                                        |
| 429 and 5xx that name a time                      | retry, not before that time, 5 min at most           |
| attempt timeout, every other error                | retry with backoff                                   |
| NotFound of the request's own object              | done: it was deleted meanwhile, which is no error    |
| NotLeading, cancelled by shutdown or a lost lease | dropped                                              |
| several errors in a group                         | that of the error with the most hope                 |
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

# Until an administrator lifts a quota or a rule, asking more often only makes noise.
SLOW_RETRY = 30.0
# A CRD that the controller finds too old is looked at again after this time; nothing tells us when it is replaced.
NOT_INSTALLED_RETRY = 30.0

# A server may be wrong about the time that it asks for, and nothing would tell that a request sleeps for a day.
_LONGEST_WISH = 300.0

_LONGEST_MESSAGE = 1000


class AttemptTimeout(Exception):
    """The attempt took longer than it may; made by the loop, never by reconcilers."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The attempt was cut after {seconds:g} s, its timeout.")


class AttemptQuit(Exception):
    """The reconciler cancelled itself or asked the process to exit; neither is its to decide."""


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
    """The verdict on a reconcile that raised; the delay of a retry is the least that the error asks for.

    `about` is the object that the request names, as calls name it: `foos.example.com default/web`. `within` is the time
    after which it runs again at the latest, as Result(after, failed=error) has it.
    """
    verdict = (
        _judge_group(error, where, about) if isinstance(error, BaseExceptionGroup) else _judge(error, where, about)
    )
    if within < inf and verdict.outcome in (Outcome.TERMINAL, Outcome.WAITING):
        return replace(verdict, delay=min(verdict.delay or within, within))
    return verdict


def meant(error: BaseException) -> BaseException:
    """The error of our tree that an ApiException of ctx.official() stands for, else the error itself."""
    cause = error.__cause__
    foreign = type(error).__module__ == "kubernetes.client.exceptions"
    return cause if foreign and isinstance(cause, CallError) else error


def _judge(error: BaseException, where: str, about: str) -> Verdict:
    error = meant(error)
    if about and _is_gone(error, about):
        return Verdict(outcome=Outcome.DONE, message="It was deleted while it was reconciled.")
    outcome, delay = _fate(error)
    return Verdict(
        outcome=outcome,
        delay=delay,
        message=_one_line(describe(error)),
        error_id=error.id if isinstance(error, CtrlError) else type(error).__name__,
        where=where,
    )


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The error, or of a group the errors in it and in its groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def describe(error: BaseException) -> str:
    """One error for people: ours are sentences already, of others the type says half."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # whatever a stranger's error does when asked, it is judged
        text = "(its message cannot be read)"
    if isinstance(error, (CtrlError, AttemptTimeout, AttemptQuit)):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def where_raised(error: BaseException, reconciler: Reconciler) -> str:
    """`folder/file.py:line` of the innermost line of the reconciler's own code that the error passed, "" if none."""
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
    """None for a partial of something odd: the traceback has it all the same."""
    code: CodeType | None = getattr(inspect.unwrap(reconciler), "__code__", None)
    return code or getattr(type(reconciler).__call__, "__code__", None)


def _fate(error: BaseException) -> tuple[Outcome, float]:
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
            return Outcome.RETRY, max(SLOW_RETRY, _wish(error))
        case CallError():
            return Outcome.RETRY, _wish(error)
    return Outcome.RETRY, 0.0


def _is_gone(error: BaseException, about: str) -> bool:
    """Whether the object itself is no more, or another one has its name; the watch tells either."""
    if not isinstance(error, NotFound) or isinstance(error, NotServed) or error.site.verb == "create":
        return False
    return error.site.target == about or error.site.target.startswith(f"{about}/")


def _wish(error: CallError) -> float:
    return min(error.retry_after or 0.0, _LONGEST_WISH)


# Of several errors at once the most hopeful decides: a retry finds out about the rest.
_HOPE = (Outcome.DROPPED, Outcome.RETRY, Outcome.WAITING, Outcome.TERMINAL, Outcome.DONE)


def _judge_group(group: BaseExceptionGroup[Any], where: str, about: str) -> Verdict:
    verdicts = [_judge(error, where, about) for error in leaves(group)]
    chosen = min(verdicts, key=lambda verdict: (_HOPE.index(verdict.outcome), -verdict.delay))
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
    except Exception:  # noqa: BLE001  # a wrong value may be wrong in this too
        return f"a {type(value).__name__}"


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_MESSAGE else line[: _LONGEST_MESSAGE - 3] + "..."
