"""Links from attempts to the attempts that they caused, joined by equality of ids and versions alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_ctrl.model.record import RecordedAttempt, RecordedCall, RecordedCause
from kubectl_ctrl.value import Value


class Link(Value, kw_only=True):
    """One attempt, or one call of it, that is a cause of another attempt."""

    # wrote: the call wrote the version that triggered the target; followed: a change from the version that the call
    # wrote triggered the target, and the object is not the target's own; else retry, timer, again.
    kind: str
    source: str  # id of the attempt
    call: str = ""  # id of the call
    target: str  # id of the attempt that it triggered
    cause: int  # which of the target's causes, from 0


Writers = dict[tuple[str, str], tuple[str, str]]  # (UID, version) -> (attempt, call)


def links(attempts: Iterable[RecordedAttempt]) -> tuple[Link, ...]:
    """All links between these attempts, in the order of their targets."""
    known = list(attempts)
    names, wrote = {attempt.id for attempt in known}, writers(known)
    return tuple(link for attempt in known for link in _of(attempt, names, wrote))


def writers(attempts: Iterable[RecordedAttempt]) -> Writers:
    """The call that wrote each version. A write without a change returns the version before, and wrote none."""
    return {
        (call.uid, call.new_version): (attempt.id, call.id)
        for attempt in attempts
        for call in (made.call for made in all_calls(attempt))
        if call.write and call.uid and call.new_version and call.new_version != call.old_version
    }


def all_calls(attempt: RecordedAttempt) -> tuple[RecordedCall, ...]:
    return (*attempt.calls, *attempt.background)


def _of(attempt: RecordedAttempt, names: set[str], wrote: Writers) -> Iterator[Link]:
    for place, cause in enumerate(attempt.causes):
        if cause.attempt in names:
            yield Link(kind=cause.kind.value, source=cause.attempt, target=attempt.id, cause=place)
        elif (found := _by_version(cause, attempt.uid, wrote)) is not None:
            kind, (source, call) = found
            yield Link(kind=kind, source=source, call=call, target=attempt.id, cause=place)


def _by_version(cause: RecordedCause, own: str, wrote: Writers) -> tuple[str, tuple[str, str]] | None:
    if (made := wrote.get((cause.uid, cause.new_version))) is not None:
        return "wrote", made
    # A relist may hide versions in between. An edit of the object itself is seldom an effect of its last status write.
    if cause.relisted or cause.uid == own or (made := wrote.get((cause.uid, cause.old_version))) is None:
        return None
    return "followed", made
