"""Every error that this package raises on purpose, as one tree.

CtrlError                   exit  1  CTRL-ERROR
|-- UsageError              exit  2  CTRL-USAGE              an invalid command line, or a call with invalid values
|-- ConfigError             exit  3  CTRL-KUBECONFIG         kubeconfig missing, unreadable or contradictory
|   `-- CredentialsError    exit  3  CTRL-CREDENTIALS        an exec plugin, OIDC or token file yielded no credentials
|-- CallError               exit  1  CTRL-API                one request to a cluster failed; has its verb and object
|   |-- Unreachable         exit  3  CTRL-UNREACHABLE        no answer: refused, reset, TLS, name lookup
|   |   `-- Untrusted       exit  3  CTRL-TLS                the server's certificate or TLS is not acceptable
|   |-- DeadlinePassed      exit  3  CTRL-DEADLINE           no answer in time
|   |-- OutcomeUnknown      exit  1  CTRL-OUTCOME-UNKNOWN    a write was sent; whether it took effect is unknown
|   |-- NotLeading          exit  1  CTRL-NOT-LEADING        the request was not sent: the Lease may have passed on
|   |-- BadAnswer           exit  1  CTRL-BAD-ANSWER         the answer is not from a Kubernetes API server
|   `-- ApiError            exit  1  CTRL-API                the server rejected the request; has code, reason, causes
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
|-- PrerequisiteMissing     exit  5  CTRL-PREREQUISITE       a program or file that the verb needs is missing
|-- ProgramFailed           exit  1  CTRL-PROGRAM            a program that was started failed; has its output
|-- ClusterError            exit  1  CTRL-CLUSTER            a managed cluster could not be created, changed or deleted
|   `-- NoCluster           exit  4  CTRL-NO-CLUSTER         there is no managed cluster of that name
|-- Refused                 exit  6  CTRL-REFUSED            the guard, a second runner, a deletion without --yes
|-- NotRecorded             exit  4  CTRL-NOT-RECORDED       no recording contains it
|-- RecordingError          exit  1  CTRL-RECORDING          a recording cannot be read or written
|-- NotInstalled            exit  8  CTRL-NOT-INSTALLED      the controller's CRD is not in the cluster
|-- TimedOut                exit 124 CTRL-TIMEOUT            a condition was not met in time
|-- ControllerError         exit  1  CTRL-CONTROLLER         a controller is declared or used incorrectly
|   `-- ReadOnlyObject      exit  1  CTRL-CONTROLLER         its code changes an object of the cache in place
|-- QueueClosed             exit  1  CTRL-ERROR              raised to workers that wait for work
`-- TerminalError           exit  1  CTRL-TERMINAL           raised by reconcilers: no retry until something changes

A message is a sentence: what failed, with the value. `next_step` is what to do about it.
"""

from __future__ import annotations

import shlex
from typing import ClassVar

from kubectl_ctrl.value import Value


class CtrlError(Exception):
    """Base of all errors of kubectl-ctrl; its `str()` is one sentence for users."""

    id: ClassVar[str] = "CTRL-ERROR"
    exit_code: ClassVar[int] = 1
    usual_step: ClassVar[str] = ""  # the default of next_step

    def __init__(self, message: str, *, tried: str = "", next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.tried = tried
        self.next_step = next_step or self.usual_step


class UsageError(CtrlError):
    """The command line is invalid, or a call has invalid values."""

    id = "CTRL-USAGE"
    exit_code = 2


class ConfigError(CtrlError):
    """The kubeconfig is missing, unreadable or contradictory, or does not select a cluster."""

    id = "CTRL-KUBECONFIG"
    exit_code = 3
    usual_step = "correct the kubeconfig, or choose another one with --kubeconfig"


class CredentialsError(ConfigError):
    """A credential plugin, token file or identity provider yielded no usable credentials."""

    id = "CTRL-CREDENTIALS"
    usual_step = "log in again, or correct the user's entry in the kubeconfig"


class PrerequisiteMissing(CtrlError):
    """A program, file or library that the verb needs is missing or unsuitable."""

    id = "CTRL-PREREQUISITE"
    exit_code = 5
    each: tuple[str, ...] = ()  # `tried` as one line for each attempt, where there were several


class ProgramFailed(CtrlError):
    """A program started by kubectl-ctrl failed, or did not exit in time; `code` is -N after signal N."""

    id = "CTRL-PROGRAM"

    def __init__(
        self, message: str, *, argv: tuple[str, ...], outcome: str, code: int, stdout: str = "", stderr: str = ""
    ) -> None:
        super().__init__(message, tried=shlex.join(argv))
        self.argv = argv
        self.outcome = outcome  # "exited with code 1": without the arguments, which can contain secrets
        self.code = code
        self.stdout = stdout
        self.stderr = stderr


class ClusterError(CtrlError):
    """A managed cluster could not be created, changed or deleted.

    `output` is everything that the program behind it printed. `last_words` are the lines of it that a user must see
    too, because the message does not contain the cause.
    """

    id = "CTRL-CLUSTER"

    def __init__(
        self, message: str, *, tried: str = "", next_step: str = "", output: str = "", last_words: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, tried=tried, next_step=next_step)
        self.output = output
        self.last_words = last_words


class NoCluster(ClusterError):
    """There is no managed cluster of that name."""

    id = "CTRL-NO-CLUSTER"
    exit_code = 4


class Refused(CtrlError):
    """The command was refused: unmanaged remote cluster, second runner, or deletion without --yes."""

    id = "CTRL-REFUSED"
    exit_code = 6


class NotRecorded(CtrlError):
    """No recording contains the object, attempt or cluster."""

    id = "CTRL-NOT-RECORDED"
    exit_code = 4


class RecordingError(CtrlError):
    """A recording cannot be read or written: corrupt, no permission, from a newer version, full disk."""

    id = "CTRL-RECORDING"


class NotInstalled(CtrlError):
    """The cluster lacks the controller's CRD, its status subresource or its ServiceAccount."""

    id = "CTRL-NOT-INSTALLED"
    exit_code = 8


class TimedOut(CtrlError):
    """A condition was not met in time.

    For a wait for a program, `output` and `last_words` are its output, as in ClusterError.
    """

    id = "CTRL-TIMEOUT"
    exit_code = 124
    output: str = ""
    last_words: tuple[str, ...] = ()


class ControllerError(CtrlError):
    """A controller is declared or used incorrectly; raised before anything runs, where that is possible."""

    id = "CTRL-CONTROLLER"


class ReadOnlyObject(ControllerError, TypeError):
    """A controller's code changes an object of the cache in place."""

    usual_step = "change a copy: copy.deepcopy(obj)"


class QueueClosed(CtrlError):
    """Raised to workers that wait for work: the queue is closed and has handed out everything that was ready."""


class TerminalError(CtrlError):
    """A reconciler failed in a way that retrying cannot help until something changes."""

    id = "CTRL-TERMINAL"


class CallSite(Value):
    """The request that an error is about, without credentials and bodies."""

    verb: str
    target: str
    audit_id: str = ""


class CallError(CtrlError):
    """One request to a cluster failed."""

    id = "CTRL-API"

    def __init__(self, message: str, *, site: CallSite, next_step: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.site = site
        self.retry_after = retry_after


class Unreachable(CallError):
    """The server did not answer: connection refused or reset, TLS failure, name not found."""

    id = "CTRL-UNREACHABLE"
    exit_code = 3


class Untrusted(Unreachable):
    """The server answered, but its certificate or TLS is not what the kubeconfig expects."""

    id = "CTRL-TLS"


class DeadlinePassed(CallError):
    """The server did not answer in time."""

    id = "CTRL-DEADLINE"
    exit_code = 3


class OutcomeUnknown(CallError):
    """A write was sent, its answer was lost, and reading the object back could not show whether it took effect."""

    id = "CTRL-OUTCOME-UNKNOWN"


class NotLeading(CallError):
    """The request was not sent, because this process may no longer hold its Lease."""

    id = "CTRL-NOT-LEADING"


class BadAnswer(CallError):
    """The answer is not from a Kubernetes API server: HTML, truncated JSON, an unexpected redirect."""

    id = "CTRL-BAD-ANSWER"


class StatusCause(Value, kw_only=True):
    """One entry of a Status object's details.causes."""

    reason: str
    message: str
    field: str = ""


class ApiError(CallError):
    """The server rejected the request, with the reason in a Status object."""

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
    """400: the request is malformed."""


class Unauthorized(ApiError):
    """401: the credentials are missing, expired or wrong."""

    id = "CTRL-UNAUTHORIZED"
    exit_code = 3


class Forbidden(ApiError):
    """403: authenticated, but not permitted, or rejected by admission."""

    id = "CTRL-FORBIDDEN"
    exit_code = 7


class NamespaceTerminating(Forbidden):
    """403: the namespace is being deleted and accepts no new objects."""


class NotFound(ApiError):
    """404: the object, or its type, does not exist on the server."""

    id = "CTRL-NOT-FOUND"
    exit_code = 4


class NotServed(NotFound):
    """404: the server does not serve this type, or no longer does."""


class Replaced(NotFound):
    """409 or 422: the object of that UID was deleted; its name is free, or another object's."""


class MethodNotAllowed(ApiError):
    """405: the type does not support this verb."""


class Conflict(ApiError):
    """409: the object changed after it was read, or another field manager owns a field."""


class AlreadyExists(Conflict):
    """409: an object of that name already exists."""


class Expired(ApiError):
    """410: the resourceVersion or continue token is too old."""


class Invalid(ApiError):
    """422: the object violates its schema or a rule of its kind."""


class TooManyRequests(ApiError):
    """429: the server is overloaded, or rate limits the client."""


class ServerError(ApiError):
    """5xx: the server failed."""
