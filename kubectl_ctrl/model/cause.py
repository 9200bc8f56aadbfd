"""Requests and causes: which object a reconcile is about, and everything that woke it."""

from __future__ import annotations

from enum import StrEnum

from kubectl_ctrl.model.objects import Key, Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value

# A reconcile is asked for by place alone; why is told beside it, by causes.
Request = Key


class CauseKind(StrEnum):
    INITIAL = "initial list"
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RESYNC = "resync"
    RETRY = "retry"  # the attempt named by `attempt` failed
    TIMER = "timer"  # the attempt named by `attempt` asked to be called again
    AGAIN = "again"  # the attempt named by `attempt` asked for another pass at once
    MANUAL = "manual"  # asked for by a person or a program through the public API
    RELOADED = "code reloaded"  # the controller's code was replaced, and looks at everything anew


class Cause(Value, kw_only=True):
    """One thing that woke a request; `old` and `new` are by reference, and compared only when somebody asks."""

    kind: CauseKind
    at: float  # wall time
    resource: Resource | None = None
    key: Key | None = None
    uid: str = ""
    old_version: str = ""
    new_version: str = ""
    old: Obj | None = None
    new: Obj | None = None
    relisted: bool = False  # versions in between may have gone unseen
    attempt: str = ""
    count: int = 0  # RETRY: the how manieth retry in a row
    detail: str = ""  # RETRY: the error in one line; TIMER: the delay that was asked for
