"""Recorded errors as exceptions of the same class, with all attributes visible to a reconciler."""

from __future__ import annotations

import builtins

from kubectl_ctrl import errors
from kubectl_ctrl.errors import ApiError, CallError, CallSite, CtrlError
from kubectl_ctrl.model.attempt import RaisedError


class RecordedError(Exception):
    """Base of errors of unknown classes; each is of a subclass with the recorded name."""


def raised_again(raised: RaisedError) -> Exception:
    kind = getattr(errors, raised.error, None)
    if not (isinstance(kind, type) and issubclass(kind, CtrlError)):
        return _foreign(raised)
    site = CallSite(raised.verb, raised.target)
    error: CtrlError
    if issubclass(kind, ApiError):
        error = kind(raised.message, site=site, code=raised.code, reason=raised.reason, causes=raised.causes)
    elif issubclass(kind, CallError):
        error = kind(raised.message, site=site)
    elif kind.__init__ is CtrlError.__init__:
        error = kind(raised.message)
    else:  # a class with other arguments, which neither reader nor writer raises
        return _foreign(raised)
    if isinstance(error, CallError):
        error.retry_after = raised.retry_after
    error.next_step = raised.next_step
    return error


def _foreign(raised: RaisedError) -> Exception:
    kind = getattr(builtins, raised.error, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return _unknown(raised)
    try:
        # The text of a KeyError is the repr of its argument.
        return kind(raised.message[1:-1] if kind is KeyError else raised.message)
    except TypeError:
        return _unknown(raised)


def _unknown(raised: RaisedError) -> Exception:
    error: Exception = type(raised.error, (RecordedError,), {})(raised.message)
    return error
