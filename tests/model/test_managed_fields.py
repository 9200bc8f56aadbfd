"""managedFields: what is owned, and who provably wrote. The entries are those of a kube-apiserver 1.36.3."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubectl_ctrl.model.diffs import diff
from kubectl_ctrl.model.managed_fields import entries, fields_set, made_by, own_entry, owns_exactly, reduce, writer
from kubectl_ctrl.model.objects import Obj

BORN = "2026-01-01T00:00:00Z"


def entry(manager: str, time: str = BORN, *, fields: Obj | None = None, **more: str) -> Obj:
    """An entry as the cache keeps that of others; with `fields`, one of ours."""
    kept: Obj = {"manager": manager, "operation": "Update", "time": time, **more}
    return kept if fields is None else {**kept, "fieldsType": "FieldsV1", "fieldsV1": fields}


def obj(*noted: Obj, **more: Any) -> Obj:
    return {"metadata": {"name": "c", "creationTimestamp": BORN, "managedFields": list(noted)}, **more}


def later(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def data(*names: str) -> Obj:
    return {"f:data": {f"f:{name}": {} for name in names}}


# Reading the entries.


def test_entries_of_an_object_without_any() -> None:
    assert entries({"metadata": {"name": "c"}}) == []
    assert entries({"metadata": {"name": "c", "managedFields": None}}) == []


def test_an_entry_is_found_by_manager_operation_and_subresource() -> None:
    main, applied = entry("m"), entry("m", operation="Apply")
    status = entry("m", operation="Apply", subresource="status")
    it = obj(entry("x"), main, status, applied)
    assert own_entry(it, "m", "Update") is main
    assert own_entry(it, "m", "Apply") is applied
    assert own_entry(it, "m", "Apply", "status") is status
    assert own_entry(it, "m", "Update", "status") is None


def test_the_paths_of_a_tree() -> None:
    tree = {"f:spec": {"f:replicas": {}, "f:list": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}, "f:data": {".": {}}}
    assert fields_set(tree) == {
        ("f:spec", "f:replicas"),
        ("f:spec", "f:list", 'k:{"name":"a"}'),
        ("f:spec", "f:list", 'k:{"name":"a"}', "f:name"),
        ("f:data",),
    }
    assert fields_set({}) == frozenset()


# What the cache keeps.


def test_reduce_keeps_ours_whole_and_of_others_who_and_when() -> None:
    ours = entry("me", fields=data("a"), apiVersion="v1")
    theirs = entry("kubectl", later(1), fields=data("b"), apiVersion="v1", subresource="status")
    it = obj(ours, theirs, data={"a": "1"})
    assert reduce(it, frozenset({"me"})) is it
    assert entries(it) == [ours, entry("kubectl", later(1), subresource="status")]
    assert it["data"] == {"a": "1"}
    assert entries(it)[0] is ours


def test_reduce_leaves_objects_without_notes_alone() -> None:
    assert reduce({"metadata": {"name": "c"}}, frozenset({"me"})) == {"metadata": {"name": "c"}}


# Who wrote.


def test_a_new_entry_is_a_write() -> None:
    assert writer(obj(entry("a")), obj(entry("a"), entry("b", later(5)))) == ("b",)


def test_another_time_is_a_write() -> None:
    assert writer(obj(entry("a"), entry("b")), obj(entry("a"), entry("b", later(5)))) == ("b",)


def test_a_write_that_takes_a_field_from_another_is_not_the_others() -> None:
    """Force: `me` owns less afterwards, with its old time."""
    old = obj(entry("me", fields=data("a", "b"), operation="Apply"))
    new = obj(entry("me", fields=data("b"), operation="Apply"), entry("other", later(3), operation="Apply"))
    assert writer(old, new) == ("other",)
    assert not made_by(old, new, "me")


@pytest.mark.parametrize("left", [(), (entry("a"),)])
def test_a_removal_is_nobodys(left: tuple[Obj, ...]) -> None:
    """The owner's entry shrinks or goes; whoever removed it leaves no note."""
    old = obj(entry("a"), entry("ed", later(3), fields=data("c")), data={"c": "1"})
    assert writer(old, obj(*left, data={})) == ()
    assert writer(old, obj(*left, entry("ed", later(3), fields={}), data={})) == ()


def test_a_write_without_a_note_is_nobodys() -> None:
    """Deletion asked for: only metadata that nobody owns changes."""
    assert writer(obj(entry("a")), obj(entry("a"))) == ()


def test_two_signs_are_candidates_in_a_stable_order() -> None:
    """Over several versions that nobody saw; of one step it cannot be."""
    assert writer(obj(), obj(entry("b", later(1)), entry("a", later(2)))) == ("a", "b")


def test_entries_of_one_manager_count_once() -> None:
    old, new = obj(entry("m")), obj(entry("m", later(2)), entry("m", later(2), subresource="status"))
    assert writer(old, new) == ("m",)


def test_old_entries_that_the_server_merges_are_not_writers() -> None:
    old = obj(entry("m0", later(1)), entry("m1", later(2)), entry("m9", later(9)))
    new = obj(entry("ancient-changes", later(2)), entry("m9", later(9)), entry("m10", later(10)))
    assert writer(old, new) == ("m10",)
    assert writer(obj(), obj(entry("before-first-apply"), entry("me", later(1), operation="Apply"))) == ("me",)


@pytest.mark.parametrize("change", [{"manager": "flux"}, {"operation": "Apply"}, {"subresource": "status"}])
def test_an_entry_that_somebody_rewrote_proves_nothing(change: Obj) -> None:
    """A JSON patch can put anything into managedFields; the time stays."""
    for fields in (None, data("a")):
        whole = entry("maker", fields=fields)
        old = obj(whole, entry("other", later(3)), data={"a": "1"})
        new = obj({**whole, **change}, entry("other", later(3)), data={"a": "1"})
        assert writer(old, new) == ()
        assert not made_by(old, new, "maker")
        assert not made_by(old, new, "flux")


def test_entries_that_differ_in_api_version_are_told_apart_by_time() -> None:
    v1, v2 = entry("m", later(1), apiVersion="v1"), entry("m", later(2), apiVersion="v2")
    assert writer(obj(v1, v2), obj(v2, v1)) == ()
    assert writer(obj(v1, v2), obj(v1, {**v2, "time": later(7)})) == ("m",)


def test_a_second_write_in_one_second_shows_in_what_is_owned() -> None:
    old = obj(entry("me", fields=data("a"), operation="Apply"), data={"a": "1"})
    grown = obj(entry("me", fields=data("a", "b"), operation="Apply"), data={"a": "1", "b": "1"})
    changed = obj(entry("me", fields=data("a"), operation="Apply"), data={"a": "2"})
    assert made_by(old, grown, "me")
    assert made_by(old, changed, "me")
    shared = obj(entry("me", fields=data("a", "b"), operation="Apply"), data={"a": "1", "b": "2"})
    assert made_by(obj(entry("me", fields=data("a"), operation="Apply"), data={"a": "1", "b": "2"}), shared, "me")
    # It could be that another gave up a field that both had.
    assert not made_by(grown, old, "me")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"resources": {}}, {"resources": {"limits": {"cpu": "1"}}}),  # set empty by us, filled by another
        ({"resources": []}, {"resources": ["one"]}),
        ({"resources": {"limits": {"cpu": "1"}}}, {"resources": {}}),
        ({"resources": "1"}, {}),  # dropped by the server when another field no longer lets it be
        ({"resources": "1"}, {"resources": None}),
    ],
)
def test_what_others_may_change_without_taking_it_proves_nothing(old: Obj, new: Obj) -> None:
    ours = entry("me", fields={"f:spec": {"f:resources": {}}}, operation="Apply")
    assert not made_by(obj(ours, spec=old), obj(ours, entry("ed", later(9)), spec=new), "me")
    assert writer(obj(ours, spec=old), obj(ours, entry("ed", later(9)), spec=new)) == ("ed",)


def test_a_list_that_holds_what_was_sent_and_is_owned_whole_was_set_by_its_owner() -> None:
    ours = entry("me", fields={"f:status": {"f:nodes": {}}}, operation="Apply")
    old, new = obj(ours, status={"nodes": ["a"]}), obj(ours, status={"nodes": ["a", "b"]})
    assert made_by(old, new, "me", {"status": {"nodes": ["a", "b"]}})
    assert not made_by(old, new, "me")
    assert not made_by(old, new, "me", {"status": {"nodes": ["a", "c"]}})  # another changed it after us
    assert not made_by(old, new, "other", {"status": {"nodes": ["a", "b"]}})
    emptied = obj(ours, status={"nodes": []})
    assert not made_by(old, emptied, "me", {"status": {"nodes": []}})  # the server may have, under another's write


def test_an_item_that_came_is_its_owners_and_one_that_went_is_nobodys() -> None:
    ours = entry("me", fields={"f:metadata": {"f:finalizers": {'v:"a"': {}}}})
    bare, held = obj(ours), obj(ours)
    held["metadata"]["finalizers"] = ["a", "b"]
    assert made_by(bare, held, "me")
    assert not made_by(held, bare, "me")


def test_a_value_in_a_keyed_item_is_its_owners() -> None:
    ours = entry("me", fields={"f:ports": {'k:{"port":80}': {".": {}, "f:name": {}}}})
    old, new = obj(ours, ports=[{"port": 80, "name": "a"}]), obj(ours, ports=[{"port": 80, "name": "b"}])
    assert made_by(old, new, "me")
    assert not made_by(old, obj(ours, ports=[{"port": 81, "name": "a"}]), "me")


def test_the_value_of_anothers_field_is_not_ours() -> None:
    ours = entry("me", fields=data("a"), operation="Apply")
    assert writer(obj(ours, data={"a": "1", "b": "1"}), obj(ours, data={"a": "1", "b": "2"})) == ()


STATUS = entry("kcm", subresource="status")
MINE = entry("me", fields={"f:spec": {"f:a": {}}}, operation="Apply")


@pytest.mark.parametrize(
    ("noted", "old", "new", "names"),
    [
        ((entry("ed"), STATUS), {"status": {"a": 1}}, {"status": {"a": 2}}, ("kcm",)),
        ((entry("ed"), entry("ed2")), {"status": {"a": 1}}, {"status": {"a": 2}}, ("ed", "ed2")),  # no subresource
        ((entry("ed"), STATUS), {"spec": {"a": 1}}, {"spec": {"a": 2}}, ("ed",)),
        ((entry("ed"), entry("hpa", subresource="scale")), {"spec": {"a": 1}}, {"spec": {"a": 2}}, ("ed", "hpa")),
        ((MINE, entry("ed"), STATUS), {"spec": {"b": 1}}, {"spec": {"b": 2}}, ("ed", "me")),
        ((MINE, entry("ed"), STATUS), {"other": {"b": 1}}, {"other": {"b": 2}}, ("ed",)),  # ours has nothing there
        ((entry("ed"), STATUS), {"status": {"a": 1, "b": 1}}, {"status": {"a": 1}}, ()),  # only taken away
        ((entry("ed"), STATUS), {"status": {"a": 1, "b": 1}}, {"status": {"a": 2}}, ("kcm",)),
        ((entry("ed"), entry("before-first-apply")), {"spec": {"a": 1}}, {"spec": {"a": 2}}, ()),
        (tuple(map(entry, "abcd")), {"spec": {"a": 1}}, {"spec": {"a": 2}}, ()),  # anybody
        ((), {"spec": {"a": 1}}, {"spec": {"a": 2}}, ()),
    ],
)
def test_without_a_sign_it_was_one_of_those_who_can_have_set_it(
    noted: tuple[Obj, ...], old: Obj, new: Obj, names: tuple[str, ...]
) -> None:
    before, after = obj(*noted, **old), obj(*noted, **new)
    assert writer(before, after, diff(before, after)) == names


def test_a_deletion_is_noted_by_the_server_itself() -> None:
    before, after = obj(entry("ed")), obj(entry("ed"))
    after["metadata"] |= {"deletionTimestamp": BORN, "deletionGracePeriodSeconds": 0}
    assert writer(before, after, diff(before, after)) == ()


def test_a_label_can_be_set_through_a_subresource_too() -> None:
    before, after = obj(entry("ed"), STATUS), obj(entry("ed"), STATUS)
    after["metadata"] = {**after["metadata"], "labels": {"a": "b"}}
    assert writer(before, after, diff(before, after)) == ("ed", "kcm")


def test_who_created_an_object() -> None:
    assert writer(None, obj(entry("maker"))) == ("maker",)
    assert made_by(None, obj(entry("maker", later(1))), "maker")  # the second ended within the request
    assert not made_by(None, obj(entry("maker")), "other")


@pytest.mark.parametrize(
    "it",
    [
        obj(entry("maker"), entry("other")),
        obj(entry("maker", later(9))),
        obj(entry("maker"), entry("maker", later(9), subresource="status")),
        obj(entry("before-first-apply")),
        obj({"manager": "maker", "operation": "Update"}),
        obj({"operation": "Update", "time": BORN}),
        obj(),
        {"metadata": {"name": "c", "managedFields": [entry("maker")]}},
    ],
)
def test_who_created_an_object_that_was_written_since_is_not_known(it: Obj) -> None:
    assert writer(None, it) == ()
    assert not made_by(None, it, "maker")


# What is owned. The entry is what `apply` of DEPLOYMENT left.

DEPLOYMENT: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "facts",
        "uid": "u1",
        "finalizers": ["example.com/a"],
        "labels": {"app.kubernetes.io/name": "web"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Foo", "name": "f", "uid": "u2"}],
    },
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}, "creationTimestamp": None},
            "spec": {
                "containers": [
                    {
                        "name": "a",
                        "args": ["ax", "bz"],
                        "image": "nginx",
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
                        "resources": {"requests": {"cpu": "1"}},
                    }
                ],
                "tolerations": [{"key": "a", "operator": "Exists"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        },
    },
}
CONTAINER: Obj = {
    ".": {},
    "f:name": {},
    "f:args": {},
    "f:image": {},
    "f:env": {
        'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}},
        'k:{"name":"B"}': {".": {}, "f:name": {}, "f:value": {}},
    },
    "f:ports": {
        'k:{"containerPort":53,"protocol":"UDP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}},
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
    },
    "f:resources": {"f:requests": {"f:cpu": {}}},
}
FIELDS: Obj = {
    "f:metadata": {
        "f:finalizers": {'v:"example.com/a"': {}},
        "f:labels": {"f:app.kubernetes.io/name": {}},
        "f:ownerReferences": {'k:{"uid":"u2"}': {}},
    },
    "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:creationTimestamp": {}, "f:labels": {"f:app": {}}},
            "f:spec": {
                "f:containers": {'k:{"name":"a"}': CONTAINER},
                "f:tolerations": {},
                "f:volumes": {'k:{"name":"v"}': {".": {}, "f:emptyDir": {}, "f:name": {}}},
            },
        },
    },
}
APPLIED = entry("me", operation="Apply", fields=FIELDS)


def changed(path: str, value: Any) -> Obj:
    """DEPLOYMENT with another value at a dotted path; `None` takes the field out."""
    result = copy.deepcopy(DEPLOYMENT)
    *way, last = path.split(".")
    node: Any = result
    for part in way:
        node = node[int(part) if part.isdigit() else part]
    last_part: Any = int(last) if last.isdigit() else last
    if value is None:
        del node[last_part]
    else:
        node[last_part] = value
    return result


def test_what_was_applied_is_owned_exactly() -> None:
    assert owns_exactly(APPLIED, DEPLOYMENT)


POD = "spec.template.spec"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.replicas", None),
        ("spec.paused", True),
        ("metadata.labels", None),
        ("metadata.annotations", {"a": "b"}),
        ("metadata.finalizers", []),
        ("metadata.finalizers", ["example.com/b"]),
        ("metadata.finalizers", ["example.com/a", "example.com/b"]),
        ("metadata.ownerReferences", None),
        ("metadata.ownerReferences.0.uid", "u3"),
        (f"{POD}.containers.0.env.1", None),
        (f"{POD}.containers.0.env.1.name", "C"),
        (f"{POD}.containers.0.env.0.value", None),
        (f"{POD}.containers.0.ports.1.protocol", "SCTP"),
        (f"{POD}.containers.0.resources", {}),
        (f"{POD}.containers.0.workingDir", "/"),
        (f"{POD}.containers.0.name", "b"),
        (f"{POD}.containers", {"name": "a"}),
        (f"{POD}.volumes", None),
        (f"{POD}.containers", []),
        ("spec", None),
    ],
)
def test_more_or_less_than_was_applied_is_not(path: str, value: Any) -> None:
    assert not owns_exactly(APPLIED, changed(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.uid", "another"),
        ("apiVersion", "apps/v2"),
        ("spec.replicas", 7),
        ("spec.selector", {"matchLabels": {"x": "y"}}),
        (f"{POD}.tolerations", []),
    ],
)
def test_values_and_what_is_owned_whole_do_not_matter(path: str, value: Any) -> None:
    assert owns_exactly(APPLIED, changed(path, value))


def test_a_null_may_be_owned_or_not() -> None:
    applied = copy.deepcopy(APPLIED)
    del applied["fieldsV1"]["f:spec"]["f:template"]["f:metadata"]["f:creationTimestamp"]
    assert owns_exactly(applied, DEPLOYMENT)
    assert not owns_exactly(APPLIED, changed("spec.template.metadata.creationTimestamp", None))


def test_a_key_field_that_is_left_to_its_default_may_be_owned_or_not() -> None:
    said = entry(
        "me", fields={"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}}}}
    )
    unsaid = entry("me", fields={"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}})
    assert owns_exactly(said, {"ports": [{"port": 80}]})
    assert owns_exactly(unsaid, {"ports": [{"port": 80}]})
    assert owns_exactly(said, {"ports": [{"port": 80, "protocol": "TCP"}]})
    assert not owns_exactly(unsaid, {"ports": [{"port": 80, "protocol": "TCP"}]})


def test_an_object_of_which_no_field_is_owned_is_not_owned_whole() -> None:
    it = entry("me", fields={"f:data": {".": {}}})
    assert owns_exactly(it, {"data": {}})
    assert not owns_exactly(it, {"data": {"a": "1"}})


def test_without_an_entry_nothing_is_owned() -> None:
    assert not owns_exactly(None, {})
    assert not owns_exactly(entry("me"), {})
    assert owns_exactly(entry("me", fields={}), {"metadata": {"name": "c"}})
    assert not owns_exactly(entry("me", fields={}), {"data": {"a": "1"}})


def test_two_items_that_one_key_could_mean_are_not_told_apart() -> None:
    it = entry("me", fields={"f:ports": {'k:{"port":80}': {".": {}, "f:port": {}}}})
    assert owns_exactly(it, {"ports": [{"port": 80}]})
    assert not owns_exactly(it, {"ports": [{"port": 80}, {"port": 80}]})
