"""The questions that everyone asks of an object's metadata, also of one that has next to none."""

from __future__ import annotations

from kubectl_ctrl.model.change import Change, ChangeKind
from kubectl_ctrl.model.objects import (
    Key,
    Obj,
    annotations_of,
    generation_of,
    is_deleting,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
    version_of,
)
from kubectl_ctrl.model.resources import DEPLOYMENTS

BARE: Obj = {"metadata": {"name": "n"}}
FULL: Obj = {
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 3,
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
}


def test_an_object_that_has_all() -> None:
    assert (key_of(FULL), name_of(FULL), namespace_of(FULL)) == (Key("default", "web"), "web", "default")
    assert (uid_of(FULL), version_of(FULL), generation_of(FULL)) == ("u1", "7", 3)
    assert (labels_of(FULL), annotations_of(FULL), is_deleting(FULL)) == ({"a": "b"}, {"c": "d"}, True)


def test_an_object_that_has_only_a_name() -> None:
    assert (key_of(BARE), name_of(BARE), namespace_of(BARE)) == (Key("", "n"), "n", "")
    assert (uid_of(BARE), version_of(BARE), generation_of(BARE)) == ("", "", 0)
    assert (labels_of(BARE), annotations_of(BARE), is_deleting(BARE)) == ({}, {}, False)


def test_nulls_are_as_good_as_nothing() -> None:
    nulls: Obj = {"metadata": {**dict.fromkeys(FULL["metadata"]), "name": "n"}}
    assert (key_of(nulls), labels_of(nulls), generation_of(nulls), is_deleting(nulls)) == (Key("", "n"), {}, 0, False)


def test_keys_read_like_paths() -> None:
    assert (str(Key("default", "web")), str(Key("", "node-1"))) == ("default/web", "node-1")


def test_a_change_is_about_the_newest_state_known() -> None:
    newer: Obj = {"metadata": {**FULL["metadata"], "resourceVersion": "8"}}
    step = Change(kind=ChangeKind.MODIFIED, resource=DEPLOYMENTS, old=FULL, new=newer, version="8")
    gone = Change(kind=ChangeKind.DELETED, resource=DEPLOYMENTS, old=FULL, new=None, version="")
    assert (step.obj, gone.obj) == (newer, FULL)
    assert gone.key == Key("default", "web")
