from __future__ import annotations

import pytest

from kubectl_ctrl.errors import TimedOut
from kubectl_ctrl.install.kinds import CLUSTERROLES
from kubectl_ctrl.install.removal import Remover, installed, wait_until_gone
from kubectl_ctrl.model.objects import Obj, name_of
from kubectl_ctrl.model.resources import CRDS, NAMESPACES
from kubectl_ctrl.testing.faults import Match
from tests.install.land import ACCOUNT, SYSTEM, THINGS, Land, role
from tests.runtime.world import crd

_MARKS = {"app.kubernetes.io/managed-by": "kubectl-ctrl", "app.kubernetes.io/name": "mine"}


def _kinds(objects: tuple[Obj, ...]) -> list[str]:
    return [obj["kind"] for obj in objects]


async def test_what_install_made_is_found_in_the_order_in_which_it_goes(land: Land) -> None:
    await land.install()
    found = await installed(land.client, "mine")
    assert _kinds(found.rights) == ["ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role", "ServiceAccount"]
    assert [name_of(obj) for obj in (*found.namespaces, *found.crds)] == [SYSTEM, THINGS.full_name]
    assert found.left == ()
    elsewhere = await installed(land.client, "mine", "default")
    assert _kinds(elsewhere.rights) == ["ClusterRoleBinding", "ClusterRole"]
    assert elsewhere.namespaces == ()
    assert (await installed(land.client, "other")).rights == ()


async def test_labels_alone_do_not_make_an_object_ours(land: Land) -> None:
    marked = crd(THINGS)
    marked["metadata"]["labels"] = _MARKS
    land.server.create(marked)
    land.server.create({**role("get"), "metadata": {"name": ACCOUNT, "labels": _MARKS}})
    found = await installed(land.client, "mine")
    assert (found.rights, found.crds) == ((), ())
    assert found.left[1] == (
        "customresourcedefinition.apiextensions.k8s.io/things.example.com is kept: it has the labels of "
        "install, but was written by test."
    )


async def test_an_object_that_changed_is_judged_anew(land: Land) -> None:
    await land.install()
    (found,) = (one for one in (await installed(land.client, "mine")).rights if one["kind"] == "ClusterRole")
    remover = Remover(land.client, "mine")
    land.server.change(CLUSTERROLES, ACCOUNT, {"metadata": {"labels": {"app.kubernetes.io/name": "theirs"}}})
    assert not await remover.remove(found)
    assert land.server.get(CLUSTERROLES, ACCOUNT), "It is not ours any more."
    land.server.change(CLUSTERROLES, ACCOUNT, {"metadata": {"labels": _MARKS}})
    assert await remover.remove(found)
    assert land.server.get(CLUSTERROLES, ACCOUNT) is None
    land.server.create(role("*"))
    assert not await remover.remove(found)
    assert land.server.get(CLUSTERROLES, ACCOUNT), "Another one of that name."


async def test_a_dry_run_removes_nothing(land: Land) -> None:
    await land.install()
    land.changes()
    for obj in (await installed(land.client, "mine")).rights:
        assert await Remover(land.client, "mine", dry_run=True).remove(obj)
    assert land.changes() == []


async def test_contents_of_a_namespace_are_what_somebody_put_there(land: Land) -> None:
    await land.install()
    remover = Remover(land.client, "mine")
    for kind, name in (
        ("ConfigMap", "kube-root-ca.crt"),
        ("ServiceAccount", "default"),
        ("Lease", ACCOUNT),
        ("Lease", f"{ACCOUNT}-default"),
    ):
        version = "coordination.k8s.io/v1" if kind == "Lease" else "v1"
        land.server.create({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": SYSTEM}})
    assert await remover.contents(SYSTEM) == ()
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": SYSTEM}}
    land.server.create(thing)
    land.server.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": SYSTEM}})
    found = await remover.contents(SYSTEM)
    assert sorted(found) == [f"secrets {SYSTEM}/key", f"things.example.com {SYSTEM}/one"]


async def test_what_cannot_be_looked_at_counts_as_contents(land: Land) -> None:
    await land.install()
    land.server.faults.fail(Match(verb="list", plural="secrets"), 403, reason="Forbidden")
    assert await Remover(land.client, "mine").contents(SYSTEM) == ("secrets (no right to list it)",)


async def test_waiting_for_the_end_names_what_is_still_there(land: Land) -> None:
    await land.install()
    space, other = land.server.get(NAMESPACES, SYSTEM), land.server.get(CRDS, THINGS.full_name)
    assert space is not None
    assert other is not None
    land.server.delete(CRDS, THINGS.full_name)
    with pytest.raises(TimedOut, match=r"Not deleted within 5s: namespace/mine-system\."):
        await wait_until_gone(land.client, [space, other], 5)
    land.server.delete(NAMESPACES, SYSTEM)
    await wait_until_gone(land.client, [space, other], 5)
