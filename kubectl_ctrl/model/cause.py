"""Requests and causes: the object of a reconcile, and the reasons for it."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value

# A request has only namespace and name; its causes are beside it.
Request = Key


class CauseKind(StrEnum):
    INITIAL = "initial list"
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RESYNC = "resync"
    RETRY = "retry"  # the attempt named by `attempt` failed
    TIMER = "timer"  # the attempt named by `attempt` requested it
    AGAIN = "again"  # the attempt named by `attempt` requested another reconcile at once
    MANUAL = "manual"  # requested through the public API
    RELOADED = "code reloaded"  # the controller's code has changed, so all objects are reconciled again


class Cause(Value, kw_only=True):
    """One trigger of a request; `old` and `new` are references, and compared only when needed."""

    kind: CauseKind
    at: float  # wall time
    resource: Resource | None = None
    key: Key | None = None
    uid: str = ""
    old_version: str = ""
    new_version: str = ""
    old: Obj | None = None
    new: Obj | None = None
    relisted: bool = False  # versions in between may have been missed
    attempt: str = ""
    count: int = 0  # RETRY: the number of consecutive retries
    detail: str = ""  # RETRY: the error in one line; TIMER: the requested delay
