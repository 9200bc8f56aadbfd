"""Who owns an object, and who may."""

from __future__ import annotations

import pytest

from kubectl_ctrl.errors import ControllerError
from kubectl_ctrl.model.objects import Obj
from kubectl_ctrl.model.owners import check_owner, controlled_by, controller_of, owner_reference, with_owner


def thing(name: str = "web", namespace: str = "default", *, uid: str = "u1", kind: str = "Foo") -> Obj:
    meta = {"name": name, "uid": uid} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": meta}


CONTROLLER = {
    "apiVersion": "example.com/v1",
    "kind": "Foo",
    "name": "web",
    "uid": "u1",
    "controller": True,
    "blockOwnerDeletion": True,
}
BYSTANDER = {"apiVersion": "v1", "kind": "Bar", "name": "b", "uid": "u9"}


def test_the_controller_is_the_owner_that_says_so() -> None:
    child = {"metadata": {"name": "c", "ownerReferences": [BYSTANDER, CONTROLLER]}}
    assert controller_of(child) == CONTROLLER
    assert controlled_by(child, "u1")
    assert not controlled_by(child, "u9")


@pytest.mark.parametrize("meta", [{}, {"ownerReferences": None}, {"ownerReferences": [BYSTANDER]}])
def test_without_a_controller_nobody_controls(meta: Obj) -> None:
    assert controller_of({"metadata": meta}) is None
    assert not controlled_by({"metadata": meta}, "u9")


def test_a_missing_uid_controls_nothing() -> None:
    assert not controlled_by({"metadata": {"ownerReferences": [{"controller": True, "uid": ""}]}}, "")


def test_a_reference_names_the_owner() -> None:
    assert owner_reference(thing()) == CONTROLLER
    assert owner_reference(thing(), controller=False, block=False) == {
        key: CONTROLLER[key] for key in ("apiVersion", "kind", "name", "uid")
    }


def test_m21_an_owner_without_kind_or_uid_is_refused() -> None:
    with pytest.raises(ControllerError, match="'web' cannot own anything, because it has no apiVersion, kind, uid"):
        owner_reference({"metadata": {"name": "web"}})


def test_f57_owners_across_namespaces_are_refused() -> None:
    with pytest.raises(ControllerError, match="Foo 'a/web' cannot own Pod 'b/p': owner and child must live in one"):
        check_owner(thing(namespace="a"), thing("p", "b", kind="Pod"))


def test_f57_a_namespaced_owner_of_a_cluster_scoped_child_is_refused() -> None:
    with pytest.raises(ControllerError, match="cannot own an object without one"):
        check_owner(thing(namespace="a"), thing("n", "", kind="Node"))


def test_a_child_that_gets_its_name_from_the_server_can_be_spoken_of() -> None:
    child = {"kind": "Job", "metadata": {"generateName": "run-", "namespace": "b"}}
    with pytest.raises(ControllerError, match=r"cannot own Job 'run-\*'"):
        check_owner(thing(namespace="a"), child)


def test_a_cluster_scoped_owner_owns_anywhere() -> None:
    check_owner(thing(namespace=""), thing("p", "b"))
    check_owner(thing(namespace=""), thing("p", ""))


def test_with_owner_adds_the_reference_to_a_copy() -> None:
    child = {"metadata": {"name": "c", "namespace": "default", "ownerReferences": [BYSTANDER]}, "data": {}}
    owned = with_owner(child, thing())
    assert owned["metadata"]["ownerReferences"] == [BYSTANDER, CONTROLLER]
    assert child["metadata"]["ownerReferences"] == [BYSTANDER]
    assert with_owner(owned, thing()) == owned


def test_with_owner_makes_a_plain_owner_the_controller() -> None:
    child = {
        "metadata": {"name": "c", "namespace": "default", "ownerReferences": [{**CONTROLLER, "controller": False}]}
    }
    assert with_owner(child, thing())["metadata"]["ownerReferences"] == [CONTROLLER]


def test_m21_a_second_controller_is_refused() -> None:
    child = {"kind": "Pod", "metadata": {"name": "c", "namespace": "default", "ownerReferences": [CONTROLLER]}}
    with pytest.raises(ControllerError, match="already controlled by Foo 'web' \\(uid 'u1'\\)"):
        with_owner(child, thing(uid="u2"))
