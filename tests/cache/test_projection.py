from __future__ import annotations

import copy
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from kubectl_ctrl.cache.projection import Projection, StringPool
from kubectl_ctrl.cache.selection import Selection
from kubectl_ctrl.errors import ReadOnlyObject
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import PODS, Resource
from tests.cache.history import THINGS
from tests.cache.pods import pod

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=12,
)


def projection(
    resource: Resource = THINGS, *, metadata_only: bool = False, manager: str = "ours", read_only: bool = False
) -> Projection:
    selection = Selection(resource, metadata_only=metadata_only)
    return Projection(selection, managers=frozenset({manager}), texts=StringPool(), read_only_objects=read_only)


def made(spec: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec}


@given(new=JSON, like=JSON)
@example(new={"a": 0, "b": [0]}, like={"a": 0.0, "b": [0.0]})
def test_what_is_kept_says_exactly_what_came_in(new: Any, like: Any) -> None:
    """Down to the type: where 1 was before, true and 1.0 are something else."""
    expected, pattern = json.dumps(made(new)), made(like)
    before = json.dumps(pattern)
    kept = projection().of(made(copy.deepcopy(new)), pattern)
    assert json.dumps(kept, sort_keys=True) == json.dumps(json.loads(expected), sort_keys=True)
    assert json.dumps(pattern) == before


@given(spec=JSON, read_only=st.booleans())
def test_equal_object_is_the_one_that_is_there(spec: Any, read_only: bool) -> None:
    first = projection(read_only=read_only).of(made(copy.deepcopy(spec)), None)
    assert projection(read_only=read_only).of(made(copy.deepcopy(spec)), first) is first


@given(new=JSON, like=JSON)
def test_read_only_objects_say_the_same_and_share_their_parts_with_the_next(new: Any, like: Any) -> None:
    first = projection(read_only=True).of(made(copy.deepcopy([like, new])), None)
    plain = projection().of(made(copy.deepcopy([new, new])), made([like, new]))
    kept = projection(read_only=True).of(made(copy.deepcopy([new, new])), first)
    assert json.dumps(kept) == json.dumps(plain)
    assert kept["metadata"] is first["metadata"]
    with pytest.raises(ReadOnlyObject):
        kept["spec"].append(1)


@given(spec=JSON, like=st.none() | JSON)
def test_what_somebody_else_holds_is_copied_throughout(spec: Any, like: Any) -> None:
    theirs = made(spec)
    text = json.dumps(theirs)
    kept = projection().of_shared(theirs, made(like))
    _spoil(theirs)
    assert json.dumps(kept, sort_keys=True) == json.dumps(json.loads(text), sort_keys=True)


def _spoil(value: Any) -> None:
    if isinstance(value, dict):
        for inner in list(value.values()):
            _spoil(inner)
        value["spoilt"] = True
    elif isinstance(value, list):
        for inner in value:
            _spoil(inner)
        value.append("spoilt")


def test_pods_of_one_template_share_their_equal_parts() -> None:
    ours = projection(PODS)
    first, second = ours.of(pod(1), None), ours.of(pod(2), None)
    shared = ours.of(pod(2), first)
    assert shared == second
    assert shared["spec"]["containers"][0]["env"] is first["spec"]["containers"][0]["env"]
    assert shared["metadata"]["labels"] is first["metadata"]["labels"]
    assert shared["metadata"]["name"] != first["metadata"]["name"]


def test_new_version_shares_all_but_the_change() -> None:
    ours = projection(PODS)
    old = ours.of(pod(1), None)
    new = ours.of(pod(1, version=2), old)
    assert new["spec"] is old["spec"]
    assert new["status"] is not old["status"]


def test_managed_fields_of_others_lose_their_fields() -> None:
    kept = projection(PODS, manager="kubelet").of(pod(1), None)["metadata"]["managedFields"]
    assert [("fieldsV1" in entry, entry["manager"]) for entry in kept] == [
        (False, "kube-controller-manager"),
        (True, "kubelet"),
    ]


def test_metadata_only_keeps_nothing_else() -> None:
    kept = projection(PODS, metadata_only=True).of_shared(pod(1), None)
    assert kept.keys() == {"apiVersion", "kind", "metadata"}
    assert kept["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize("length", [5, 500])
def test_table_of_texts_does_not_grow_for_ever(length: int) -> None:
    texts = StringPool()
    for number in range(50_000):
        text = str(number).rjust(length, "x")
        assert texts[text] == text
    assert len(texts) <= 20_000
