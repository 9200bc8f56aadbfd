"""Recorded errors, raised again: of the same class, and with all that a reconciler could see of them."""

from __future__ import annotations

import builtins

from kubectl_ctrl import errors
from kubectl_ctrl.errors import ApiError, CallError, CallSite, CtrlError
from kubectl_ctrl.model.attempt import Raised


class RecordedError(Exception):
    """Base of those that stand for errors of unknown classes; each has the name of the one that it is for."""


def raised_again(raised: Raised) -> Exception:
    """The error."""
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
    else:  # one that no door raises
        return _foreign(raised)
    if isinstance(error, CallError):
        error.retry_after = raised.retry_after
    error.next_step = raised.next_step
    return error


def _foreign(raised: Raised) -> Exception:
    kind = getattr(builtins, raised.error, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return _stranger(raised)
    try:
        # A KeyError's text is the repr of what it was given.
        return kind(raised.message[1:-1] if kind is KeyError else raised.message)
    except TypeError:
        return _stranger(raised)


def _stranger(raised: Raised) -> Exception:
    error: Exception = type(raised.error, (RecordedError,), {})(raised.message)
    return error
