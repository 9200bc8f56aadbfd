"""Filters for changes. A change that a predicate filters out is counted under the name of the predicate.

Predicates that compare old and new apply to modifications alone: an object that appears, disappears, is replaced by
another of its name, begins to be deleted or is resynced passes them.
"""

from __future__ import annotations

from collections.abc import Callable

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import Obj, annotations_of, generation_of, is_deleting, labels_of, uid_of
from kubectl_ctrl.model.owners import controller_of
from kubectl_ctrl.value import Unshown, Value


class Predicate(Value):
    """A named filter for changes."""

    name: str
    passes: Unshown[Callable[[Change], bool]]


def named(name: str, passes: Callable[[Change], bool]) -> Predicate:
    """A custom predicate; `explain` prints its name for changes that it filtered out."""
    if not name.strip():
        raise ControllerError("A predicate needs a name: `explain` prints it for changes that were filtered out.")
    return Predicate(name, passes)


def any_of(*predicates: Predicate) -> Predicate:
    return Predicate(_listed("any of", predicates), lambda change: any(one.passes(change) for one in predicates))


def all_of(*predicates: Predicate) -> Predicate:
    return Predicate(_listed("all of", predicates), lambda change: all(one.passes(change) for one in predicates))


def not_(predicate: Predicate) -> Predicate:
    return Predicate(f"not {predicate.name}", lambda change: not predicate.passes(change))


def _listed(word: str, predicates: tuple[Predicate, ...]) -> str:
    return f"{word} ({', '.join(one.name for one in predicates)})"


def _when_modified(name: str, differ: Callable[[Obj, Obj], bool]) -> Predicate:
    def passes(change: Change) -> bool:
        old, new = change.old, change.new
        if change.kind is not ChangeKind.MODIFIED or old is None or new is None:
            return True
        return uid_of(old) != uid_of(new) or is_deleting(old) != is_deleting(new) or differ(old, new)

    return Predicate(name, passes)


def _generations_differ(old: Obj, new: Obj) -> bool:
    # Some kinds have no generation; to filter out all of their changes is never intended.
    return not generation_of(new) or generation_of(old) != generation_of(new)


generation_changed = _when_modified("generation changed", _generations_differ)
labels_changed = _when_modified("labels changed", lambda old, new: labels_of(old) != labels_of(new))
annotations_changed = _when_modified("annotations changed", lambda old, new: annotations_of(old) != annotations_of(new))
# For objects that are counted or listed: their existence and owner matter, not their state.
owner_changed = _when_modified("owner changed", lambda old, new: controller_of(old) != controller_of(new))
