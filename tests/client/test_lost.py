from __future__ import annotations

import copy
from typing import Any

import pytest

from kubectl_ctrl.client import requests
from kubectl_ctrl.client.lost import WriteFate, fate
from kubectl_ctrl.client.options import PLAIN_WRITE, DeleteOptions, PatchKind, WriteOptions
from kubectl_ctrl.client.order import Order
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.resources import DEPLOYMENTS, SECRETS
from tests.client.rig import CONFIGMAPS, UID, configmap

REF = CONFIGMAPS.ref("one", "default")


def live(obj: Obj, version: str = "8", **metadata: Any) -> Obj:
    """As the server holds it."""
    stored = copy.deepcopy(obj)
    stored["metadata"].update({"uid": "live-uid", "resourceVersion": version, "generation": 1, "managedFields": [{}]})
    stored["metadata"].update(metadata)
    return stored


def created(obj: Obj) -> Order:
    return requests.create(CONFIGMAPS, obj, PLAIN_WRITE)


def test_a_create_that_left_nothing_was_not_done() -> None:
    assert fate(created(configmap()), None) is WriteFate.NOT_DONE


def test_a_create_is_ours_by_owner_and_content() -> None:
    sent = configmap(owner=UID, a="1")
    assert fate(created(sent), live(sent)) is WriteFate.DONE
    assert fate(created(sent), live(configmap(owner="other", a="1"))) is WriteFate.REFUSED
    assert fate(created(sent), live(configmap(a="1"))) is WriteFate.REFUSED
    assert fate(created(sent), live(configmap(owner=UID, a="2"))) is WriteFate.REFUSED


def test_a_create_without_an_owner_is_ours_by_content() -> None:
    sent = configmap(a="1")
    assert fate(created(sent), live(configmap(a="1", b="defaulted"))) is WriteFate.DONE
    assert fate(created(sent), live(configmap(a="2"))) is WriteFate.REFUSED


@pytest.mark.parametrize(
    ("owner", "there", "expected"),
    [
        (UID, configmap(owner=UID, a="rewritten"), WriteFate.DONE),
        (UID, configmap(owner="other", a="1"), WriteFate.REFUSED),
        (UID, configmap(a="1"), WriteFate.REFUSED),
        ("", configmap(a="1"), WriteFate.DONE),
        ("", configmap(a="rewritten"), WriteFate.UNCLEAR),
    ],
)
def test_a_drawn_name_is_never_drawn_twice_for_one_object(owner: str, there: Obj, expected: WriteFate) -> None:
    sent = configmap(owner=owner, a="1")
    sent["metadata"]["generateName"] = "o"
    assert fate(created(sent), live(there)) is expected


def test_what_a_server_drops_or_rewrites_does_not_count() -> None:
    sent = {**configmap(a="1"), "status": {"x": 1}}
    sent["metadata"] = {**sent["metadata"], "generateName": "o-", "uid": "mine", "creationTimestamp": None}
    assert fate(created(sent), live(configmap(a="1"), creationTimestamp="2026-01-01T00:00:00Z")) is WriteFate.DONE


def test_zero_values_may_be_left_out_and_others_not() -> None:
    sent = {**configmap(), "spec": {"a": "", "b": 0, "c": False, "d": [{"e": {}, "f": 1}], "g": None}}
    stored = {**configmap(), "spec": {"d": [{"f": 1}]}}
    del stored["data"]
    assert fate(created(sent), live(stored)) is WriteFate.DONE
    assert fate(created(sent), live({**stored, "spec": {"b": 1, "d": [{"f": 1}]}})) is WriteFate.REFUSED
    assert fate(created(sent), live({**stored, "spec": {"d": [{}]}})) is WriteFate.REFUSED


def test_the_plain_text_of_a_secret_is_stored_encoded() -> None:
    sent: Obj = {"metadata": {"name": "s", "namespace": "x"}, "stringData": {"p": "hunter2"}}
    stored: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": sent["metadata"], "data": {"p": "aHVudGVyMg=="}}
    order = requests.create(SECRETS, sent, PLAIN_WRITE)
    assert fate(order, live(stored)) is WriteFate.DONE
    stored["data"] = {"p": "b3RoZXI="}
    assert fate(order, live(stored)) is WriteFate.REFUSED


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (None, WriteFate.DONE),
        (live(configmap(), uid="other"), WriteFate.DONE),
        (live(configmap(), uid="u", deletionTimestamp="2026-01-01T00:00:00Z"), WriteFate.DONE),
        (live(configmap(), uid="u"), WriteFate.REFUSED),
    ],
)
def test_a_delete_of_one_version(there: Obj | None, expected: WriteFate) -> None:
    assert fate(requests.delete(REF, DeleteOptions(uid="u", version="7")), there) is expected


def replaced(sent: Obj, subresource: str = "") -> Order:
    return requests.replace(REF.sub(subresource), live(sent, "7"), PLAIN_WRITE)


def test_a_replacement() -> None:
    wanted = configmap(a="1")
    assert fate(replaced(wanted), None) is WriteFate.REFUSED
    assert fate(replaced(wanted), live(configmap(a="0"), "7")) is WriteFate.NOT_DONE
    assert fate(replaced(wanted), live(wanted, "8", generation=2)) is WriteFate.DONE
    assert fate(replaced(wanted), live(configmap(a="2"), "8")) is WriteFate.REFUSED


def test_a_replacement_that_removed_something_is_not_done_while_it_is_there() -> None:
    assert fate(replaced(configmap(a="1")), live(configmap(a="1", b="2"), "8")) is WriteFate.REFUSED


def test_a_replaced_status_is_judged_by_the_status_alone() -> None:
    sent = {**configmap(a="1"), "status": {"ready": 1}}
    assert fate(replaced(sent, "status"), live({**configmap(a="2"), "status": {"ready": 1}})) is WriteFate.DONE
    assert fate(replaced(sent, "status"), live({**configmap(a="1"), "status": {"ready": 2}})) is WriteFate.REFUSED


def patched(patch: Any, kind: PatchKind) -> Order:
    if isinstance(patch, list):
        patch = [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}, *patch]
    else:
        patch = {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": "7"}}
    return requests.patch(REF, patch, kind, PLAIN_WRITE)


@pytest.mark.parametrize(
    ("patch", "there", "expected"),
    [
        ({"data": {"a": "1"}}, configmap(a="1", b="2"), WriteFate.DONE),
        ({"data": {"a": "1"}}, configmap(a="2"), WriteFate.REFUSED),
        ({"data": {"a": None}}, configmap(b="2"), WriteFate.DONE),
        ({"data": {"a": None}}, configmap(a="2"), WriteFate.REFUSED),
        ({"data": {"a": {}}}, configmap(), WriteFate.REFUSED),
        ({"metadata": {"uid": "live-uid"}, "data": {"a": "1"}}, configmap(a="1"), WriteFate.DONE),
    ],
)
def test_a_merge_patch(patch: Obj, there: Obj, expected: WriteFate) -> None:
    assert fate(patched(patch, PatchKind.MERGE), live(there)) is expected
    assert fate(patched(patch, PatchKind.MERGE), live(there, "7")) is WriteFate.NOT_DONE
    assert fate(patched(patch, PatchKind.MERGE), None) is WriteFate.REFUSED


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ([{"op": "add", "path": "/data/a", "value": "1"}], WriteFate.DONE),
        ([{"op": "add", "path": "/data/a", "value": "2"}], WriteFate.REFUSED),
        ([{"op": "replace", "path": "/data/a", "value": "1"}], WriteFate.DONE),
        ([{"op": "replace", "path": "/data/c", "value": "1"}], WriteFate.REFUSED),
        ([{"op": "remove", "path": "/data/c"}], WriteFate.DONE),
        ([{"op": "remove", "path": "/data/a"}], WriteFate.REFUSED),
        ([{"op": "replace", "path": "/data/a", "value": None}], WriteFate.REFUSED),
        ([{"op": "add", "path": "/data/x~1y", "value": "3"}], WriteFate.DONE),
        (
            [{"op": "test", "path": "/data/a", "value": "before"}, {"op": "replace", "path": "/data/a", "value": "1"}],
            WriteFate.DONE,
        ),
        ([{"op": "add", "path": "/metadata/finalizers/-", "value": "f"}], WriteFate.UNCLEAR),
        ([{"op": "remove", "path": "/metadata/finalizers/0"}], WriteFate.UNCLEAR),
        ([{"op": "move", "from": "/data/c", "path": "/data/a"}], WriteFate.UNCLEAR),
        ([{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/a", "value": "1"}], WriteFate.UNCLEAR),
    ],
)
def test_a_json_patch(patch: list[Obj], expected: WriteFate) -> None:
    there = live(configmap(a="1", **{"x/y": "3"}), finalizers=["f"])
    assert fate(patched(patch, PatchKind.JSON), there) is expected


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{"name": "a", "image": "x"}], WriteFate.DONE),
        ([{"name": "a", "image": "y"}], WriteFate.REFUSED),
        ([{"name": "a", "$patch": "delete"}], WriteFate.UNCLEAR),
        ([{"name": "a", "image": None}], WriteFate.UNCLEAR),
    ],
)
def test_a_strategic_patch(containers: list[Obj], expected: WriteFate) -> None:
    patch = {"metadata": {"resourceVersion": "7"}, "spec": {"template": {"spec": {"containers": containers}}}}
    order = requests.patch(DEPLOYMENTS.ref("d", "x"), patch, PatchKind.STRATEGIC, PLAIN_WRITE)
    running = [{"name": "a", "image": "x", "env": []}, {"name": "sidecar"}]
    there = {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": running}}}}
    assert fate(order, live(there)) is expected


def test_an_apply_is_repeated_and_never_judged() -> None:
    order = requests.patch(REF, configmap(), PatchKind.APPLY, WriteOptions(manager="me"))
    assert fate(order, live(configmap())) is WriteFate.UNCLEAR
