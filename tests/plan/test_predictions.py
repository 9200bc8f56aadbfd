"""Predictions: a series of dry runs leads to the same state as the writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.model.patches import apply_merge
from kubectl_ctrl.plan.predictions import combined, merged

_NAMES = st.sampled_from("abcd")
_SCALARS = st.one_of(st.integers(0, 2), st.sampled_from(["x", ""]), st.booleans())
_VALUES = st.recursive(
    st.one_of(_SCALARS, st.lists(_SCALARS, max_size=2)), lambda inner: st.dictionaries(_NAMES, inner), max_leaves=6
)
_OBJECTS = st.dictionaries(_NAMES, _VALUES)
_PATCHES = st.dictionaries(_NAMES, st.one_of(st.none(), _VALUES))


@given(live=_OBJECTS, patches=st.lists(_PATCHES, max_size=4))
def test_dry_runs_on_one_live_object_predict_the_result_of_the_writes(
    live: dict[str, Any], patches: list[dict[str, Any]]
) -> None:
    state, expected = live, live
    for patch in patches:
        # The response of a server, which forgets each dry run.
        state = combined(live, state, apply_merge(state, patch), apply_merge(live, patch))
        expected = apply_merge(expected, patch)
    assert state == expected


def test_fields_added_by_the_server_stay() -> None:
    live = {"spec": {"replicas": 1}}
    before = {"spec": {"replicas": 1, "paused": True}}
    answer = {"spec": {"replicas": 3, "strategy": "default"}}
    local = {"spec": {"replicas": 3, "paused": True}}
    assert combined(live, before, local, answer) == {"spec": {"replicas": 3, "paused": True, "strategy": "default"}}


def test_values_normalized_by_the_server_are_taken_from_it() -> None:
    live, before = {"cpu": "1", "a": 1}, {"cpu": "2", "a": 1}
    assert combined(live, before, {"cpu": "1000m", "a": 1}, {"cpu": "1", "a": 1}) == {"cpu": "1", "a": 1}


def containers(**images: str) -> dict[str, Any]:
    return {"containers": [{"name": name, "image": image} for name, image in images.items()]}


def test_items_of_a_list_are_matched_by_their_keys() -> None:
    live, before = containers(a="1", b="1"), containers(a="2", b="1")
    local, answer = containers(a="2", b="3", c="1"), containers(a="1", b="3", c="1")
    assert combined(live, before, local, answer) == containers(a="2", b="3", c="1")


def test_an_item_removed_by_this_write_is_gone() -> None:
    live = containers(a="1", b="1")
    assert combined(live, containers(a="2", b="1"), containers(a="2"), containers(a="1")) == containers(a="2")


def test_entries_of_managed_fields_are_matched_by_manager_and_operation() -> None:
    ours = {"manager": "us", "operation": "Apply", "fieldsV1": {"f:a": {}}}
    status = {"manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:s": {}}}
    result = combined(
        {"managedFields": []}, {"managedFields": [ours]}, {"managedFields": [ours]}, {"managedFields": [status]}
    )
    assert result == {"managedFields": [ours, status]}


@pytest.mark.parametrize(
    ("state", "said", "expected"),
    [
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        (containers(a="1", b="1"), containers(b="2", c="2"), containers(a="1", b="2", c="2")),
        ({"finalizers": ["x"]}, {"finalizers": ["y", "x"]}, {"finalizers": ["x", "y"]}),
        ({"command": ["a", "b"]}, {"command": ["c"]}, {"command": ["c"]}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_an_apply_adds_its_fields_to_the_state(state: Any, said: Any, expected: Any) -> None:
    assert merged(state, said) == expected
