"""What woke what: the attempts that are causes of other attempts, joined by equality alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_ctrl.model.record import Made, Recorded, Why
from kubectl_ctrl.value import Value


class Link(Value, kw_only=True):
    """One attempt, or one call of it, that is a cause of another attempt."""

    # wrote: the call made the version that woke it; followed: what woke it was a change of the very version that the
    # call had made of another object than its own; else retry, timer, again.
    kind: str
    source: str  # id of the attempt
    call: str = ""  # id of the call
    target: str  # id of the attempt that it woke
    cause: int  # which of the target's causes, from 0


Writers = dict[tuple[str, str], tuple[str, str]]  # (UID, version) -> (attempt, call)


def links(attempts: Iterable[Recorded]) -> tuple[Link, ...]:
    """All links between these attempts, in the order of what was woken."""
    known = list(attempts)
    names, wrote = {attempt.id for attempt in known}, writers(known)
    return tuple(link for attempt in known for link in _of(attempt, names, wrote))


def writers(attempts: Iterable[Recorded]) -> Writers:
    """Which call made which version. A call that changed nothing made none: it was answered by the version before."""
    return {
        (call.uid, call.new_version): (attempt.id, call.id)
        for attempt in attempts
        for call in (made.call for made in all_calls(attempt))
        if call.write and call.uid and call.new_version and call.new_version != call.old_version
    }


def all_calls(attempt: Recorded) -> tuple[Made, ...]:
    return (*attempt.calls, *attempt.background)


def _of(attempt: Recorded, names: set[str], wrote: Writers) -> Iterator[Link]:
    for place, cause in enumerate(attempt.causes):
        if cause.attempt in names:
            yield Link(kind=cause.kind.value, source=cause.attempt, target=attempt.id, cause=place)
        elif (found := _by_version(cause, attempt.uid, wrote)) is not None:
            kind, (source, call) = found
            yield Link(kind=kind, source=source, call=call, target=attempt.id, cause=place)


def _by_version(cause: Why, own: str, wrote: Writers) -> tuple[str, tuple[str, str]] | None:
    if (made := wrote.get((cause.uid, cause.new_version))) is not None:
        return "wrote", made
    # Over a relist there may be versions between. And who edits the object itself seldom answers to its last status.
    if cause.relisted or cause.uid == own or (made := wrote.get((cause.uid, cause.old_version))) is None:
        return None
    return "followed", made
