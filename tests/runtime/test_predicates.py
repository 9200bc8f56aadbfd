from __future__ import annotations

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.change import Change
from kubectl_ctrl.model.owners import owner_reference
from kubectl_ctrl.runtime.predicates import (
    Predicate,
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    named,
    not_,
    owner_changed,
)
from tests.runtime.toy import CONFIGMAPS, TOYS, added, at, deleted, made, modified, resynced

BEAR = made(TOYS, "bear", metadata={"labels": {"a": "1"}, "annotations": {"b": "1"}})
STATUS = modified(TOYS, BEAR, at(BEAR, "2", status={"ready": True}))
SPEC = modified(TOYS, BEAR, at(BEAR, "2", metadata={"generation": 2}))
LABELS = modified(TOYS, BEAR, at(BEAR, "2", metadata={"labels": {}}))
ANNOTATIONS = modified(TOYS, BEAR, at(BEAR, "2", metadata={"annotations": {"b": "2"}}))
OWNER = {"ownerReferences": [owner_reference(made(TOYS, "owner"))]}
ADOPTED = modified(TOYS, BEAR, at(BEAR, "2", metadata=OWNER))
DELETING = modified(TOYS, BEAR, at(BEAR, "2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
REPLACED = modified(TOYS, BEAR, at(BEAR, "2", metadata={"uid": "another"}))


@pytest.mark.parametrize(
    ("predicate", "passed"),
    [
        (generation_changed, SPEC),
        (labels_changed, LABELS),
        (annotations_changed, ANNOTATIONS),
        (owner_changed, ADOPTED),
    ],
)
def test_a_modification_passes_only_when_it_touches_what_is_asked(predicate: Predicate, passed: Change) -> None:
    changes = (STATUS, SPEC, LABELS, ANNOTATIONS, ADOPTED)
    assert [change for change in changes if predicate.passes(change)] == [passed]


@pytest.mark.parametrize("predicate", [generation_changed, labels_changed, annotations_changed, owner_changed])
@pytest.mark.parametrize(
    "change",
    [added(TOYS, BEAR), added(TOYS, BEAR, initial=True), deleted(TOYS, BEAR), resynced(TOYS, BEAR), DELETING, REPLACED],
)
def test_what_is_more_than_a_modification_passes_them_all(predicate: Predicate, change: Change) -> None:
    assert predicate.passes(change)


def test_a_kind_without_generations_is_never_held_back_by_them() -> None:
    settings = made(CONFIGMAPS, "settings", metadata={"generation": None})
    assert generation_changed.passes(modified(CONFIGMAPS, settings, at(settings, "2", data={"a": "b"})))


def test_predicates_combine_and_their_names_with_them() -> None:
    either = any_of(generation_changed, labels_changed)
    both = all_of(generation_changed, not_(labels_changed))
    assert (either.passes(LABELS), either.passes(STATUS)) == (True, False)
    assert (both.passes(SPEC), both.passes(LABELS)) == (True, False)
    assert either.name == "any of (generation changed, labels changed)"
    assert both.name == "all of (generation changed, not labels changed)"


def test_a_predicate_of_ones_own_needs_a_name() -> None:
    assert named("bears only", lambda change: change.key.name == "bear").passes(STATUS)
    with pytest.raises(ControllerError, match="needs a name"):
        named(" ", lambda change: True)
