"""Every error that this package raises on purpose, as one tree.

CtrlError                   exit  1  CTRL-ERROR
|-- UsageError              exit  2  CTRL-USAGE              wrong words on the command line or wrong values in a call
|-- ConfigError             exit  3  CTRL-KUBECONFIG         kubeconfig missing, unreadable or contradictory
|   `-- CredentialsError    exit  3  CTRL-CREDENTIALS        an exec plugin, OIDC or token file gave no credentials
|-- CallError               exit  1  CTRL-API                one call to a cluster failed; knows verb and object
|   |-- Unreachable         exit  3  CTRL-UNREACHABLE        no answer: refused, reset, TLS, name lookup
|   |   `-- Untrusted       exit  3  CTRL-TLS                an answer, but no TLS that the kubeconfig accepts
|   |-- DeadlinePassed      exit  3  CTRL-DEADLINE           no answer in time
|   |-- OutcomeUnknown      exit  1  CTRL-OUTCOME-UNKNOWN    a write was sent, no answer came, and no read could tell
|   |-- NotLeading          exit  1  CTRL-NOT-LEADING        the call was not sent: the lease may have passed
|   |-- BadAnswer           exit  1  CTRL-BAD-ANSWER         the server answered something that is not Kubernetes
|   `-- ApiError            exit  1  CTRL-API                the server said no; has code, reason, causes
|       |-- BadRequest      400
|       |-- Unauthorized    401  exit 3  CTRL-UNAUTHORIZED
|       |-- Forbidden       403  exit 7  CTRL-FORBIDDEN
|       |   `-- NamespaceTerminating
|       |-- NotFound        404  exit 4  CTRL-NOT-FOUND
|       |   |-- NotServed
|       |   `-- Replaced
|       |-- MethodNotAllowed 405
|       |-- Conflict        409
|       |   `-- AlreadyExists
|       |-- Expired         410
|       |-- Invalid         422
|       |-- TooManyRequests 429
|       `-- ServerError     5xx
|-- PrerequisiteMissing     exit  5  CTRL-PREREQUISITE       a program or file that the verb needs is not there
|-- ProgramFailed           exit  1  CTRL-PROGRAM            a program that we started failed; has its output
|-- ClusterError            exit  1  CTRL-CLUSTER            a cluster could not be made, changed or taken away
|   `-- NoCluster           exit  4  CTRL-NO-CLUSTER         there is no cluster of ours of that name
|-- Refused                 exit  6  CTRL-REFUSED            the guard, a second runner, destruction without --yes
|-- NotRecorded             exit  4  CTRL-NOT-RECORDED       no recording holds what was asked for
|-- RecordingError          exit  1  CTRL-RECORDING          a recording cannot be read or written
|-- NotInstalled            exit  8  CTRL-NOT-INSTALLED      the controller's CRD is not in the cluster
|-- TimedOut                exit 124 CTRL-TIMEOUT            a wait ended before its condition held
|-- ControllerError         exit  1  CTRL-CONTROLLER         a controller is declared or used wrongly
|   `-- ReadOnlyObject      exit  1  CTRL-CONTROLLER         its code tried to change an object of the cache in place
|-- QueueClosed             exit  1  CTRL-ERROR              told to workers that wait for work: there will be none
`-- TerminalError           exit  1  CTRL-TERMINAL           raised by reconcilers: no retry until something changes

Messages are sentences: what failed, the value, and `next_step` says what to do about it.
"""

from __future__ import annotations

import shlex
from typing import ClassVar

from kubectl_ctrl.value import Value


class CtrlError(Exception):
    """Base of every error of ours; `str()` of it is one sentence that a user can read."""

    id: ClassVar[str] = "CTRL-ERROR"
    exit_code: ClassVar[int] = 1
    usual_step: ClassVar[str] = ""  # what to do next, where nothing better is known

    def __init__(self, message: str, *, tried: str = "", next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.tried = tried
        self.next_step = next_step or self.usual_step


class UsageError(CtrlError):
    """Wrong words on the command line, or a call with values that cannot be meant."""

    id = "CTRL-USAGE"
    exit_code = 2


class ConfigError(CtrlError):
    """The kubeconfig cannot be found, read, or does not say what it must."""

    id = "CTRL-KUBECONFIG"
    exit_code = 3
    usual_step = "correct the kubeconfig, or choose another one with --kubeconfig"


class CredentialsError(ConfigError):
    """A credential plugin, token file or identity provider gave no usable credentials."""

    id = "CTRL-CREDENTIALS"
    usual_step = "log in again, or correct the user's entry in the kubeconfig"


class PrerequisiteMissing(CtrlError):
    """A program, file or library that the verb needs is not there."""

    id = "CTRL-PREREQUISITE"
    exit_code = 5
    each: tuple[str, ...] = ()  # what was tried, where that was several things: a line for each


class ProgramFailed(CtrlError):
    """A program that we started failed, or did not end in time; `code` is negative when a signal ended it."""

    id = "CTRL-PROGRAM"

    def __init__(
        self,
        message: str,
        *,
        argv: tuple[str, ...],
        outcome: str,
        code: int,
        stdout: str = "",
        stderr: str = "",
    ) -> None:
        super().__init__(message, tried=shlex.join(argv))
        self.argv = argv
        self.outcome = outcome  # "exited with code 1": without the arguments, which can hold secrets
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


class ClusterError(CtrlError):
    """A cluster of ours could not be made, changed or taken away; `output` is what the program behind it said.

    `last_words` are the lines of it that a user must see too, because the message does not tell the cause.
    """

    id = "CTRL-CLUSTER"

    def __init__(
        self,
        message: str,
        *,
        tried: str = "",
        next_step: str = "",
        output: str = "",
        last_words: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, tried=tried, next_step=next_step)
        self.output = output
        self.last_words = last_words


class NoCluster(ClusterError):
    """There is no cluster of ours of that name."""

    id = "CTRL-NO-CLUSTER"
    exit_code = 4


class Refused(CtrlError):
    """The tool could have done it and would not: foreign context, second runner, destruction without --yes."""

    id = "CTRL-REFUSED"
    exit_code = 6


class NotRecorded(CtrlError):
    """No recording holds what was asked for."""

    id = "CTRL-NOT-RECORDED"
    exit_code = 4


class RecordingError(CtrlError):
    """A recording cannot be read or written: not a database, no permission, a newer version's, a full disk."""

    id = "CTRL-RECORDING"


class NotInstalled(CtrlError):
    """The controller's CRD (or its status subresource) is not in the cluster."""

    id = "CTRL-NOT-INSTALLED"
    exit_code = 8


class TimedOut(CtrlError):
    """A wait ended before its condition held.

    Where it was for a program, `output` and `last_words` are what that said, as in ClusterError.
    """

    id = "CTRL-TIMEOUT"
    exit_code = 124
    output: str = ""
    last_words: tuple[str, ...] = ()


class ControllerError(CtrlError):
    """A controller is declared or used wrongly; found before anything ran."""

    id = "CTRL-CONTROLLER"


class ReadOnlyObject(ControllerError, TypeError):
    """Code of a controller tried to change an object of the cache in place."""

    usual_step = "change a copy: copy.deepcopy(obj)"


class QueueClosed(CtrlError):
    """Told to workers that wait for work: the queue is closed and has given out all that was ready."""


class TerminalError(CtrlError):
    """Raised by a reconciler: the attempt failed and only a change of something can help, so it is not retried."""

    id = "CTRL-TERMINAL"


class CallSite(Value):
    """Which call an error is about; never holds credentials or bodies."""

    verb: str
    target: str
    audit_id: str = ""


class CallError(CtrlError):
    """One call to a cluster failed."""

    id = "CTRL-API"

    def __init__(self, message: str, *, site: CallSite, next_step: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.site = site
        self.retry_after = retry_after


class Unreachable(CallError):
    """No answer came: connection refused or reset, TLS failure, name not found."""

    id = "CTRL-UNREACHABLE"
    exit_code = 3


class Untrusted(Unreachable):
    """The server is there, and its certificate or its TLS is not what the kubeconfig expects."""

    id = "CTRL-TLS"


class DeadlinePassed(CallError):
    """No answer came within the call's deadline."""

    id = "CTRL-DEADLINE"
    exit_code = 3


class OutcomeUnknown(CallError):
    """A write was sent, its answer was lost, and reading back could not tell whether it took effect."""

    id = "CTRL-OUTCOME-UNKNOWN"


class NotLeading(CallError):
    """The call was not sent, because this process may no longer hold its lease."""

    id = "CTRL-NOT-LEADING"


class BadAnswer(CallError):
    """The server answered something that is not Kubernetes: HTML, truncated JSON, an unexpected redirect."""

    id = "CTRL-BAD-ANSWER"


class StatusCause(Value, kw_only=True):
    """One entry of a Status object's details.causes."""

    reason: str
    message: str
    field: str = ""


class ApiError(CallError):
    """The server refused the call and said why in a Status object."""

    def __init__(
        self,
        message: str,
        *,
        site: CallSite,
        code: int,
        reason: str = "",
        causes: tuple[StatusCause, ...] = (),
        next_step: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, site=site, next_step=next_step, retry_after=retry_after)
        self.code = code
        self.reason = reason
        self.causes = causes


class BadRequest(ApiError):
    """400: the server could not make sense of the request."""


class Unauthorized(ApiError):
    """401: the credentials are missing, expired or wrong."""

    id = "CTRL-UNAUTHORIZED"
    exit_code = 3


class Forbidden(ApiError):
    """403: authenticated, but not allowed, or refused by admission."""

    id = "CTRL-FORBIDDEN"
    exit_code = 7


class NamespaceTerminating(Forbidden):
    """403: the namespace is being deleted and takes nothing new."""


class NotFound(ApiError):
    """404: the object, or the whole resource type, is not there."""

    id = "CTRL-NOT-FOUND"
    exit_code = 4


class NotServed(NotFound):
    """404: the server does not serve this resource type, or not any more."""


class Replaced(NotFound):
    """409 or 422: the object of that UID is gone; its name belongs to another one, or to nobody."""


class MethodNotAllowed(ApiError):
    """405: the resource does not support this verb."""


class Conflict(ApiError):
    """409: the object changed since it was read, or a field manager conflict."""


class AlreadyExists(Conflict):
    """409: an object of that name is already there."""


class Expired(ApiError):
    """410: the resourceVersion or page token is too old."""


class Invalid(ApiError):
    """422: the object breaks its schema or a rule of its kind."""


class TooManyRequests(ApiError):
    """429: the server sheds load."""


class ServerError(ApiError):
    """5xx: the server failed."""
