"""JSON merge patch and JSON patch, against their RFCs."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_ctrl.errors import UsageError
from kubectl_ctrl.model.patches import apply_json, apply_merge, json_pointer, merge_patch, same

_VALUES = st.recursive(
    st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)
_OBJECTS = st.dictionaries(st.sampled_from("abc"), _VALUES)


# RFC 7386, appendix A.
@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_as_the_rfc_shows(original: Any, patch: Any, result: Any) -> None:
    assert apply_merge(original, patch) == result


@given(_OBJECTS, _OBJECTS)
def test_a_merge_patch_makes_the_new_of_the_old(old: Any, new: Any) -> None:
    assert apply_merge(old, merge_patch(old, new)) == new
    assert merge_patch(new, new) == {}


def test_pointers_are_escaped() -> None:
    assert json_pointer(()) == ""
    assert json_pointer(("metadata", "labels", "a/b~c", 0)) == "/metadata/labels/a~1b~0c/0"


# RFC 6902, appendix A, and the corners of RFC 6901.
@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
        ({"foo": [1]}, [{"op": "add", "path": "/foo/-", "value": [2]}], {"foo": [1, [2]]}),
        ({"foo": [1]}, [{"op": "add", "path": "/foo/1", "value": 2}], {"foo": [1, 2]}),
        ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
        ({"foo": [1, 2, 3]}, [{"op": "remove", "path": "/foo/1"}], {"foo": [1, 3]}),
        ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
        ({"foo": [1, 2]}, [{"op": "replace", "path": "/foo/1", "value": 3}], {"foo": [1, 3]}),
        ({"a": {"b": 1}, "c": {}}, [{"op": "move", "from": "/a/b", "path": "/c/d"}], {"a": {}, "c": {"d": 1}}),
        ({"foo": [1, 2, 3]}, [{"op": "move", "from": "/foo/0", "path": "/foo/2"}], {"foo": [2, 3, 1]}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a": [1, {"b": 2}]}, [{"op": "test", "path": "/a", "value": [1.0, {"b": 2}]}], {"a": [1, {"b": 2}]}),
        ({"a": None}, [{"op": "add", "path": "/a", "value": 1}], {"a": 1}),
        ({"a": 1}, [{"op": "add", "path": "", "value": {"z": 1}}], {"z": 1}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": [1]}], [1]),
        ({"a": 1}, [{"op": "remove", "path": ""}], None),
        ({"": 1, "a/b": {"m~n": 2}}, [{"op": "replace", "path": "/a~1b/m~0n", "value": 3}], {"": 1, "a/b": {"m~n": 3}}),
        ({"": {"x": 1}}, [{"op": "remove", "path": "//x"}], {"": {}}),
        ({"~1": 1}, [{"op": "replace", "path": "/~01", "value": 2}], {"~1": 2}),
    ],
)
def test_json_patch_as_the_rfc_shows(original: Any, patch: list[dict[str, Any]], result: Any) -> None:
    kept = copy.deepcopy(original)
    assert apply_json(original, patch) == result
    assert original == kept, "the input was changed"


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "test", "path": "/a", "value": 2}, "the value is different"),
        ({"op": "test", "path": "/a", "value": True}, "the value is different"),
        ({"op": "test", "path": "/missing", "value": None}, "there is no 'missing'"),
        ({"op": "replace", "path": "/missing", "value": 2}, "there is no 'missing'"),
        ({"op": "remove", "path": "/missing"}, "there is no 'missing'"),
        ({"op": "remove", "path": "/list/2"}, "the list has no index 2"),
        ({"op": "remove", "path": "/list/-"}, "'-' is not an index"),
        ({"op": "add", "path": "/list/3", "value": 1}, "the list has no index 3"),
        ({"op": "add", "path": "/list/01", "value": 1}, "'01' is not an index"),
        ({"op": "add", "path": "/list/x", "value": 1}, "'x' is not an index"),
        ({"op": "add", "path": "/missing/b", "value": 1}, "there is no 'missing'"),
        ({"op": "add", "path": "/a/b", "value": 1}, "neither object nor list"),
        ({"op": "add", "path": "a", "value": 1}, "a pointer starts with '/'"),
        ({"op": "add", "path": "/b"}, "value"),
        ({"op": "add"}, "path"),
        ({"op": "move", "path": "/list/0/x", "from": "/list"}, "cannot move into itself"),
        ({"op": "move", "path": "/b", "from": "/missing"}, "there is no 'missing'"),
        ({"op": "swap", "path": "/a"}, "the operation is unknown"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_number(operation: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=f"^Operation 1 of the JSON patch .*{why}"):
        apply_json({"a": 1, "list": [1, 2]}, [{"op": "test", "path": "/a", "value": 1}, operation])


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, 0, False),
        (None, None, True),
        (None, False, False),
        ([1, {"a": True}], [1, {"a": True}], True),
        ([1, {"a": True}], [1, {"a": 1}], False),
        ([1], [1, 2], False),
        ({"a": None}, {}, False),
        ({}, [], False),
        ("1", 1, False),
    ],
)
def test_json_values_are_the_same(a: Any, b: Any, equal: bool) -> None:
    assert (same(a, b), same(b, a)) == (equal, equal)
