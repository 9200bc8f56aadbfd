from __future__ import annotations

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.install.requirements import needs
from kubectl_ctrl.model.objects import Obj
from tests.install.land import ACCOUNT, SYSTEM, parts, role


def _named(objects: tuple[Obj, ...]) -> list[str]:
    return [
        f"{obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}".replace(" /", " ")
        for obj in objects
    ]


def test_everything_in_the_order_in_which_it_can_be_made() -> None:
    assert _named(needs(parts())) == [
        "CustomResourceDefinition things.example.com",
        "Namespace mine-system",
        f"ServiceAccount {SYSTEM}/{ACCOUNT}",
        f"ClusterRole {ACCOUNT}",
        f"Role {SYSTEM}/{ACCOUNT}",
        f"ClusterRoleBinding {ACCOUNT}",
        f"RoleBinding {SYSTEM}/{ACCOUNT}",
    ]


def test_one_half_of_it() -> None:
    whole = needs(parts())
    assert needs(parts(), rbac=False) == whole[:1]
    assert needs(parts(), crds=False) == whole[1:]
    assert needs(parts(crds=())) == whole[1:]


def test_all_of_it_carries_our_labels_and_keeps_its_own() -> None:
    marked = {**role("get"), "metadata": {"name": ACCOUNT, "labels": {"team": "a"}}}
    objects = needs(parts(rbac=(marked,)))
    marks = {"app.kubernetes.io/managed-by": "kubectl-ctrl", "app.kubernetes.io/name": "mine"}
    assert all(marks.items() <= obj["metadata"]["labels"].items() for obj in objects)
    assert objects[3]["metadata"]["labels"]["team"] == "a"
    assert marked["metadata"]["labels"] == {"team": "a"}, "What was read is not changed."


def test_each_role_is_bound_to_the_account() -> None:
    elsewhere = {**role("get"), "kind": "Role", "metadata": {"name": "there", "namespace": "kube-system"}}
    here = {**role("get"), "kind": "Role", "metadata": {"name": "here"}}
    found = {obj["metadata"]["name"]: obj for obj in needs(parts(rbac=(elsewhere, here))) if "Binding" in obj["kind"]}
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}]
    assert {name: obj["metadata"]["namespace"] for name, obj in found.items()} == {
        "there": "kube-system",
        "here": SYSTEM,
        ACCOUNT: SYSTEM,
    }
    assert all(obj["subjects"] == subjects and obj["roleRef"]["kind"] == "Role" for obj in found.values())


def _lease_rules(namespace: str) -> list[Obj]:
    (found,) = (obj for obj in needs(parts(), namespace) if obj["kind"] == "Role")
    rules: list[Obj] = found["rules"]
    return rules


def test_leases_are_limited_by_name_where_others_could_have_some() -> None:
    group = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert _lease_rules("") == [{**group, "verbs": ["get", "create", "update"]}]
    assert _lease_rules("shared") == [
        {**group, "verbs": ["create"]},
        {**group, "resourceNames": [ACCOUNT], "verbs": ["get", "update"]},
    ]


def test_a_role_by_the_name_that_install_needs_is_refused() -> None:
    clash = {**role("get"), "kind": "Role", "metadata": {"name": ACCOUNT}}
    with pytest.raises(ControllerError, match="a name that install uses itself"):
        needs(parts(rbac=(clash,)))
