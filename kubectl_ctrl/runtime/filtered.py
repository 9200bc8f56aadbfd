"""Changes that triggered nothing: counts by reason, and the last such change of each object.

They answer "why did it not run". `note` is called for many changes, so it is cheap; the changed fields are computed
when they are read.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

from kubectl_ctrl.model.attempt import FilteredChange
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.diffs import diff
from kubectl_ctrl.model.managed_fields import writer
from kubectl_ctrl.model.objects import Key, uid_of
from kubectl_ctrl.model.resources import Resource
from kubectl_ctrl.value import Value, replace

# So many objects are remembered; primaries are not displaced by other objects.
_MOST_PRIMARIES = 128
_MOST_OTHERS = 64
_MOST_PATHS = 8


class _Noted(Value):
    held: FilteredChange
    change: Change | None  # until its changed fields are computed


class FilteredChanges:
    """The changes of one controller that became no request."""

    def __init__(self, primaries: tuple[Resource, ...]) -> None:
        self.counts: Counter[str] = Counter()
        self._primaries = primaries
        self._last: tuple[OrderedDict[tuple[Resource, Key], _Noted], ...] = (OrderedDict(), OrderedDict())

    def note(self, change: Change, by: tuple[str, ...], at: float) -> None:
        """This change triggered nothing, for these reasons."""
        place = (change.resource, change.key)
        primary = change.resource in self._primaries
        last = self._last[primary]
        if change.kind is ChangeKind.RESYNC:
            return  # nothing happened
        before = last.pop(place, None)
        if change.kind is ChangeKind.DELETED:
            return
        uid = uid_of(change.obj)
        count = before.held.count if before is not None and before.held.uid == uid else 0
        held = FilteredChange(
            resource=change.resource,
            key=change.key,
            uid=uid,
            version=change.version,
            kind=change.kind.value,
            by=by,
            at=at,
            count=count + 1,
        )
        last[place] = _Noted(held, change)
        if len(last) > (_MOST_PRIMARIES if primary else _MOST_OTHERS):
            last.popitem(last=False)

    def triggered(self, change: Change) -> None:
        """This change triggered a request, which also sees the filtered changes before it."""
        self._last[change.resource in self._primaries].pop((change.resource, change.key), None)

    def changes(self) -> tuple[FilteredChange, ...]:
        """The last change of each object with its changed fields, oldest first."""
        for last in self._last:
            for place, noted in last.items():
                if noted.change is not None:
                    last[place] = _Noted(_described(noted.held, noted.change), None)
        return tuple(sorted((noted.held for last in self._last for noted in last.values()), key=lambda held: held.at))

    def __repr__(self) -> str:
        return f"FilteredChanges(changes={self.counts.total()}, objects={sum(map(len, self._last))})"


def _described(held: FilteredChange, change: Change) -> FilteredChange:
    if change.new is None or change.relisted:
        return held
    if change.old is None:
        return replace(held, writers=writer(None, change.new))
    changed = diff(change.old, change.new, keys_only=True)
    paths = tuple(one.path for one in changed[:_MOST_PATHS])
    return replace(held, changed=paths, writers=writer(change.old, change.new, changed))
