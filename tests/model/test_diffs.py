"""Differences between objects, and whether one is contained in another."""

from __future__ import annotations

import copy
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kubectl_ctrl.model.diffs import ABSENT, HIDDEN, Difference, Marker, diff, is_subset
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import same

names = st.sampled_from(["name", "type", "a", "b", "env", "ports", "spec"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "x", "y"]))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=10
)
objects = st.dictionaries(names, values, max_size=4)


def paths(old: Obj | None, new: Obj | None, **options: Any) -> list[str]:
    return [difference.path for difference in diff(old, new, **options)]


def one(path: str, old: Any, new: Any) -> Difference:
    return Difference(path=path, old=old, new=new)


def pod(*containers: Obj, **spec: Any) -> Obj:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers), **spec}}


# diff


def test_changed_added_and_removed_fields() -> None:
    old = {"spec": {"replicas": 3, "paused": True, "same": {"deep": [1]}}}
    new = {"spec": {"replicas": 5, "same": {"deep": [1]}, "extra": {"a": 1}}}
    assert diff(old, new) == (
        one("spec.replicas", 3, 5),
        one("spec.paused", True, ABSENT),
        one("spec.extra", ABSENT, {"a": 1}),
    )


def test_an_object_that_came_or_went_is_one_difference() -> None:
    obj = {"spec": {"replicas": 3}}
    assert diff(None, obj) == (one("", ABSENT, obj),)
    assert diff(obj, None) == (one("", obj, ABSENT),)
    assert diff(None, None) == ()


def test_values_are_by_reference() -> None:
    old, new = {"spec": {"args": ["a"]}}, {"spec": {"args": ["b"]}}
    (difference,) = diff(old, new)
    assert difference.old is old["spec"]["args"]
    assert difference.new is new["spec"]["args"]


def test_bookkeeping_is_ignored_unless_asked_for() -> None:
    old = {"metadata": {"resourceVersion": "1", "generation": 1, "managedFields": [], "labels": {"a": "1"}}}
    new = {"metadata": {"resourceVersion": "2", "generation": 2, "managedFields": [{}], "labels": {"a": "1"}}}
    assert diff(old, new) == ()
    assert paths(old, new, ignore=frozenset({"metadata.managedFields"})) == [
        "metadata.resourceVersion",
        "metadata.generation",
    ]


def test_keys_that_are_no_words_are_quoted() -> None:
    old = {"metadata": {"labels": {"app.kubernetes.io/name": "a", "plain-one": "a", 'odd"': "a", "": "a"}}}
    new = {"metadata": {"labels": {"app.kubernetes.io/name": "b", "plain-one": "b", 'odd"': "b", "": "b"}}}
    assert paths(old, new) == [
        'metadata.labels["app.kubernetes.io/name"]',
        "metadata.labels.plain-one",
        'metadata.labels["odd\\""]',
        'metadata.labels[""]',
    ]
    assert paths({"a/b": 1}, {"a/b": 2}) == ['["a/b"]']


def test_list_items_are_found_by_their_key_wherever_they_stand() -> None:
    a, b, sidecar = {"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "s", "image": "1"}
    assert diff(pod(a, b), pod(sidecar, a, {**b, "image": "2"})) == (
        one("spec.containers[name=b].image", "1", "2"),
        one("spec.containers[name=s]", ABSENT, sidecar),
    )
    assert diff(pod(a, b), pod(b)) == (one("spec.containers[name=a]", a, ABSENT),)


def test_another_order_is_a_difference_of_the_list() -> None:
    a, b = {"name": "a"}, {"name": "b"}
    assert diff(pod(a, b), pod(b, a)) == (one("spec.containers", [a, b], [b, a]),)


def test_ports_have_two_keys_and_a_default() -> None:
    def service(*ports: Obj) -> Obj:
        return {"spec": {"ports": list(ports)}}

    old = service({"port": 53, "name": "t"}, {"port": 53, "protocol": "UDP", "name": "u"})
    new = service({"port": 53, "name": "t"}, {"port": 53, "protocol": "UDP", "name": "v"})
    assert paths(old, new) == ["spec.ports[port=53,protocol=UDP].name"]
    assert paths(service({"port": 53}), service({"port": 53, "protocol": "TCP"})) == [
        "spec.ports[port=53,protocol=TCP].protocol"
    ]


def test_lists_of_unknown_fields_are_read_by_a_likely_key_or_by_place() -> None:
    assert paths({"l": [{"type": "A", "v": 1}]}, {"l": [{"type": "A", "v": 2}]}) == ["l[type=A].v"]
    assert paths({"l": [{"v": 1}, {"v": 1}]}, {"l": [{"v": 1}, {"v": 2}]}) == ["l[1].v"]
    assert paths({"l": [[1], [2]]}, {"l": [[1], [3]]}) == ["l[1]"]
    assert diff({"l": [{"v": 1}]}, {"l": []}) == (one("l", [{"v": 1}], []),)
    assert diff({"args": ["a", "b"]}, {"args": ["a", "c"]}) == (one("args", ["a", "b"], ["a", "c"]),)


def test_names_that_repeat_are_no_keys() -> None:
    old = pod({"name": "a", "image": "1"}, {"name": "a", "image": "2"})
    new = pod({"name": "a", "image": "1"}, {"name": "a", "image": "3"})
    assert paths(old, new) == ["spec.containers[1].image"]


def test_types_differ_where_python_sees_none() -> None:
    assert diff({"a": 1, "b": [0], "c": None}, {"a": True, "b": [False]}) == (
        one("a", 1, True),
        one("b", [0], [False]),
        one("c", None, ABSENT),
    )
    assert diff({"a": 1}, {"a": 1.0}) == ()


def test_many_differences_become_one_of_the_field_that_holds_them() -> None:
    old = {"metadata": {"labels": {}}, "data": {str(n): "a" for n in range(100)}, "spec": {"x": 1}}
    new = {"metadata": {"labels": {}}, "data": {str(n): "b" for n in range(100)}, "spec": {"x": 2}}
    assert diff(old, new) == (one("data", old["data"], new["data"]), one("spec.x", 1, 2))
    wide = {f"field{n}": n for n in range(5000)}
    assert len(diff(wide, dict.fromkeys(wide, -1))) == 1


def test_keys_only_names_every_place_and_no_value() -> None:
    old = {"type": "Opaque", "data": {"a": "c2VjcmV0", "gone": "c2VjcmV0"}}
    new = {"type": "Opaque", "data": {"a": "b3RoZXI=", "came": "c2VjcmV0"}, "stringData": {"s": "secret", "e": {}}}
    found = diff(old, new, keys_only=True)
    assert found == (
        one("data.a", HIDDEN, HIDDEN),
        one("data.gone", HIDDEN, ABSENT),
        one("data.came", ABSENT, HIDDEN),
        one("stringData.s", ABSENT, HIDDEN),
        one("stringData.e", ABSENT, HIDDEN),
    )
    assert "c2VjcmV0" not in repr(diff(None, old, keys_only=True))
    assert paths(None, old, keys_only=True) == ["type", "data.a", "data.gone"]
    assert paths(old, None, keys_only=True) == ["type", "data.a", "data.gone"]
    assert repr((ABSENT, HIDDEN)) == "(<absent>, <hidden>)"


def leaves(value: Any) -> bool:
    return isinstance(value, Marker)


@given(objects, objects)
def test_no_difference_means_equal_and_every_difference_is_one(old: Obj, new: Obj) -> None:
    kept = copy.deepcopy((old, new))
    found = diff(old, new)
    assert (found == ()) == same(old, new)
    for difference in found:
        assert leaves(difference.old) or leaves(difference.new) or not same(difference.old, difference.new)
    assert len({difference.path for difference in found}) == len(found)
    assert (old, new) == kept


@given(objects, objects)
def test_a_difference_seen_from_the_other_side_is_its_mirror(old: Obj, new: Obj) -> None:
    there = {(d.path, repr(d.old), repr(d.new)) for d in diff(old, new)}
    back = {(d.path, repr(d.new), repr(d.old)) for d in diff(new, old)}
    assert there == back


@given(objects, objects)
def test_the_places_of_the_old_object_are_those_where_it_has_something(old: Obj, new: Obj) -> None:
    assert diff(old, new, of_old=True) == tuple(one for one in diff(old, new) if one.old is not ABSENT)


@given(objects, objects)
def test_keys_only_sees_no_fewer_places(old: Obj, new: Obj) -> None:
    hidden = diff(old, new, keys_only=True)
    assert bool(hidden) == bool(diff(old, new))
    assert all(isinstance(side, Marker) for d in hidden for side in (d.old, d.new))


# is_subset


@pytest.mark.parametrize(
    ("desired", "live", "holds"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {}, False),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, True),
        ({"a": {"x": 1}}, {"a": [1]}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1.0}, {"a": 1}, True),
        ({"a": "1000m"}, {"a": "1"}, False),
        ({"a": None}, {}, True),
        ({"a": None}, {"a": None}, True),
        ({"a": None}, {"a": 1}, False),
        ({"a": {}}, {}, False),
        ({"a": {}}, {"a": {"x": 1}}, True),
        ({"a": []}, {"a": []}, True),
        ({"a": []}, {"a": [1]}, False),
        ({"args": ["a", "b"]}, {"args": ["a", "b"]}, True),
        ({"args": ["a"]}, {"args": ["a", "b"]}, False),
        ({"args": ["b", "a"]}, {"args": ["a", "b"]}, False),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "a", "operator": "Equal"}]}, True),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "a"}, {"key": "b"}]}, False),
        ({"unknown": [{"name": "a"}]}, {"unknown": [{"name": "b"}, {"name": "a"}]}, False),
    ],
)
def test_plain_values(desired: Obj, live: Obj, holds: bool) -> None:
    assert is_subset(desired, live) is holds


@pytest.mark.parametrize(
    ("field", "key", "other"),
    [
        ("containers", {"name": "a"}, {"name": "b"}),
        ("initContainers", {"name": "a"}, {"name": "b"}),
        ("env", {"name": "A"}, {"name": "B"}),
        ("volumes", {"name": "a"}, {"name": "b"}),
        ("volumeMounts", {"mountPath": "/a"}, {"mountPath": "/b"}),
        ("ports", {"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}),
        ("ports", {"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}),
        ("conditions", {"type": "Ready"}, {"type": "Other"}),
        ("ownerReferences", {"uid": "1"}, {"uid": "2"}),
        ("imagePullSecrets", {"name": "a"}, {"name": "b"}),
    ],
)
def test_keyed_lists_may_hold_more_items_and_items_more_fields(field: str, key: Obj, other: Obj) -> None:
    wanted = {**key, "x": 1}
    live = {field: [other, {**key, "x": 1, "default": "d"}]}
    assert is_subset({field: [wanted]}, live)
    assert not is_subset({field: [{**wanted, "x": 2}]}, live)
    assert not is_subset({field: [wanted]}, {field: [other]})


def test_a_port_without_protocol_is_the_tcp_one() -> None:
    live = {"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]}
    assert is_subset({"ports": [{"containerPort": 53}]}, live)
    assert not is_subset({"ports": [{"containerPort": 53}]}, {"ports": live["ports"][:1]})


def test_order_of_keyed_items_matters_but_not_what_stands_between() -> None:
    """An env entry may use only those before it."""
    a, b, c = {"name": "A"}, {"name": "B"}, {"name": "C"}
    assert is_subset({"env": [a, b]}, {"env": [a, c, b]})
    assert not is_subset({"env": [a, b]}, {"env": [b, a]})


def test_names_that_repeat_are_compared_by_place() -> None:
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    assert is_subset({"env": twice}, {"env": twice})
    assert not is_subset({"env": twice}, {"env": twice[::-1]})
    assert not is_subset({"env": twice[:1]}, {"env": twice})


def test_finalizers_are_a_set() -> None:
    assert is_subset({"finalizers": ["b"]}, {"finalizers": ["a", "b"]})
    assert not is_subset({"finalizers": ["c"]}, {"finalizers": ["a", "b"]})


@given(objects)
def test_everything_is_a_subset_of_itself(obj: Obj) -> None:
    assert is_subset(obj, copy.deepcopy(obj))


@given(objects, objects)
def test_what_has_it_all_and_is_contained_differs_in_nothing(a: Obj, b: Obj) -> None:
    if is_subset(a, b) and is_subset(b, a):
        assert same(without_nulls(a), without_nulls(b))


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
