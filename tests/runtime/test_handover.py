from __future__ import annotations

from typing import Any

from kubectl_ctrl.model.managed_fields import own_entry
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.patches import apply_json
from kubectl_ctrl.runtime.handover import co_owned, first_apply_patch, leftovers_patch, without
from tests.objects import present

US = "kubectl-ctrl-toy"


def entry(manager: str, operation: str, fields: Obj, subresource: str = "") -> Obj:
    made: Obj = {"manager": manager, "operation": operation, "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"}
    return made | ({"subresource": subresource} if subresource else {})


def live(*entries: Obj, **parts: Any) -> Obj:
    metadata = {"name": "bear", "resourceVersion": "7", "managedFields": list(entries)} | parts.pop("metadata", {})
    return {"metadata": metadata, **parts}


POSTED = entry(US, "Update", {"f:spec": {"f:replicas": {}}})


def test_our_update_entry_becomes_an_apply_and_everybody_elses_stays() -> None:
    obj = live(entry("kubectl", "Update", {}), POSTED, entry(US, "Update", {"f:status": {}}, "status"))
    patch = present(first_apply_patch(obj, US))
    after = apply_json(obj, patch)
    assert own_entry(after, US, "Apply") == {**POSTED, "operation": "Apply"}
    assert own_entry(after, US, "Update") is None
    assert own_entry(after, US, "Update", "status") is not None
    assert own_entry(after, "kubectl", "Update") is not None
    assert {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"} in patch


def test_there_is_nothing_to_turn_without_a_post_of_ours_or_after_an_apply() -> None:
    assert first_apply_patch(live(entry("kubectl", "Update", {})), US) is None
    assert first_apply_patch(live(POSTED, entry(US, "Apply", {})), US) is None


def test_finalizers_are_left_to_the_update_that_put_them() -> None:
    fields: Obj = {"f:metadata": {"f:finalizers": {".": {}, 'v:"a/x"': {}}, "f:labels": {"f:a": {}}}, "f:spec": {}}
    patch = present(first_apply_patch(live(entry(US, "Update", fields)), US))
    after = apply_json(live(entry(US, "Update", fields)), patch)
    kept, turned = own_entry(after, US, "Update"), own_entry(after, US, "Apply")
    assert kept is not None
    assert turned is not None
    assert kept["fieldsV1"] == {"f:metadata": {"f:finalizers": {".": {}, 'v:"a/x"': {}}}}
    assert turned["fieldsV1"] == {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {}}


def leftovers(fields: Obj, desired: Obj, **parts: Any) -> Any:
    """The object after the patch, without its metadata; None when there is no patch."""
    obj = live(**parts)
    patch = leftovers_patch(obj, entry(US, "Update", fields), desired)
    if patch is None:
        return None
    after = dict(apply_json(obj, patch))
    del after["metadata"]
    return after


def test_owned_fields_that_are_not_desired_are_taken_away_and_foreign_ones_stay() -> None:
    fields: Obj = {"f:spec": {"f:replicas": {}, "f:paused": {}, "f:strategy": {"f:type": {}}}}
    spec = {"replicas": 1, "paused": True, "strategy": {"type": "Recreate", "theirs": 1}, "theirs": 2}
    assert leftovers(fields, {"spec": {"replicas": 1}}, spec=spec) == {
        "spec": {"replicas": 1, "strategy": {"theirs": 1}, "theirs": 2}
    }
    assert leftovers(fields, {"spec": spec}, spec=spec) is None


def test_items_of_lists_are_found_by_their_keys_and_values() -> None:
    containers = [{"name": "sidecar"}, {"name": "toy", "image": "toy:1", "tty": True}, {"name": "old", "image": "x"}]
    fields: Obj = {
        "f:spec": {
            "f:containers": {
                'k:{"name":"toy"}': {".": {}, "f:name": {}, "f:image": {}, "f:tty": {}},
                'k:{"name":"old"}': {".": {}, "f:name": {}, "f:image": {}},
            },
            "f:hosts": {'v:"a"': {}, 'v:"b"': {}},
        }
    }
    desired = {"spec": {"containers": [{"name": "toy", "image": "toy:1"}], "hosts": ["b"]}}
    assert leftovers(fields, desired, spec={"containers": containers, "hosts": ["a", "b", "c"]}) == {
        "spec": {"containers": [{"name": "sidecar"}, {"name": "toy", "image": "toy:1"}], "hosts": ["b", "c"]}
    }


def test_a_key_field_that_desired_leaves_to_its_default_does_not_make_another_item() -> None:
    fields: Obj = {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}}}}
    ports = [{"port": 80, "protocol": "TCP"}]
    assert leftovers(fields, {"ports": [{"port": 80}]}, ports=ports) == {"ports": [{"port": 80}]}


def test_finalizers_are_never_leftovers() -> None:
    fields: Obj = {"f:metadata": {"f:finalizers": {".": {}, 'v:"a/x"': {}}}}
    obj = live(metadata={"finalizers": ["a/x"]})
    assert leftovers_patch(obj, entry(US, "Update", fields), {"metadata": {}}) is None


def test_only_what_we_own_needs_a_second_owner() -> None:
    obj = live(spec={"replicas": 3, "paused": True})
    assert co_owned(obj, POSTED, ["spec.replicas", "spec.paused", "spec.none"]) == {"spec": {"replicas": 3}}
    assert co_owned(obj, POSTED, ["spec.paused"]) is None
    assert co_owned(obj, None, ["spec.replicas"]) is None


def test_fields_are_left_out_of_a_copy() -> None:
    obj = live(spec={"replicas": 3, "paused": True})
    assert without(obj, ["spec.replicas", "spec.none", "status.a"])["spec"] == {"paused": True}
    assert obj["spec"] == {"replicas": 3, "paused": True}
