"""Recognizes the events of own writes, so that a reconcile does not trigger itself.

An event is an echo only for the request whose attempt made the write, and only when all of this holds:
- its (UID, resourceVersion) is the one that the server answered to that write;
- it is one step of a watch, not found by a later list: then versions in between may have gone unseen;
- the step is provably an own write. A write that changed nothing is answered with the present version, and that may be
  another client's, which the reconcile has not seen yet.
Everything else is news. An event during the attempt is decided at its end, because events usually overtake answers; a
later one is decided when it arrives.
"""

from __future__ import annotations

from collections import OrderedDict

from kubectl_ctrl.model.cause import Cause, CauseKind, Request
from kubectl_ctrl.model.managed_fields import made_by
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Unshown, Value

# An event that is later than this triggers its request once more, which is harmless.
_KEPT_FOR = 600.0
_MOST_KEPT = 20_000

_STEPS = (CauseKind.ADDED, CauseKind.MODIFIED)


class AwaitedEcho(Value, kw_only=True):
    """One answered write that may come back as an event."""

    request: Request
    attempt: str
    resource: Resource
    uid: str
    version: str
    at: float  # elapsed time of the answer
    certain: bool  # the answer alone proves the own write: of a POST, or of a patch with a resourceVersion
    sent: Unshown[Obj | None] = None  # what was applied


_Mark = tuple[Request, str, str]  # request, UID, resourceVersion


class Echoes:
    """The writes of one controller whose events have not arrived yet."""

    def __init__(self, manager: str) -> None:
        self._manager = manager
        self._written: OrderedDict[_Mark, AwaitedEcho] = OrderedDict()  # oldest first

    def wrote(self, written: AwaitedEcho) -> None:
        mark = (written.request, written.uid, written.version)
        # A second write that changed nothing is answered with the version of the first: the proof of the first counts.
        if mark not in self._written:
            self._written[mark] = written
        self._drop_old(written.at)

    def match(self, request: Request, cause: Cause) -> AwaitedEcho | None:
        """The write whose echo this cause is for this request, if any; it is forgotten then."""
        if cause.kind not in _STEPS or cause.relisted or not cause.uid or not cause.new_version or cause.new is None:
            return None
        mark = (request, cause.uid, cause.new_version)
        written = self._written.get(mark)
        if written is None or not (written.certain or made_by(cause.old, cause.new, self._manager, written.sent)):
            return None
        del self._written[mark]
        return written

    def new_epoch(self, resource: Resource) -> None:
        """A list replaced the store. After a restore from a backup the server may use the same versions again."""
        for mark in [mark for mark, written in self._written.items() if written.resource == resource]:
            del self._written[mark]

    def _drop_old(self, now: float) -> None:
        while self._written:
            oldest = next(iter(self._written.values()))
            if len(self._written) <= _MOST_KEPT and now - oldest.at <= _KEPT_FOR:
                return
            self._written.popitem(last=False)

    def __len__(self) -> int:
        return len(self._written)

    def __repr__(self) -> str:
        return f"Echoes({self._manager}, awaited={len(self)})"
